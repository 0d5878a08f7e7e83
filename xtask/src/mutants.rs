//! `cargo xtask mutants`: broken kernels, and whether the checker tells.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;

use crate::run;
use crate::workspace::Workspace;

/// Builds the binary in the release profile and runs it with these arguments.
pub(crate) fn run(args: &[OsString]) -> Result<ExitCode> {
    let workspace = Workspace::load()?;
    let mut build = workspace.cargo();
    build.args(["build", "--release", "--package", "warpline-mutants"]);
    build.args(["--bin", "mutants"]);
    run::shown(build)?;
    let mut mutants = std::process::Command::new(workspace.target_dir.join("release/mutants"));
    mutants.args(args);
    // It has told what is wrong.
    let told = run::shown_as("mutants", mutants);
    Ok(match told {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}
