//! `cargo xtask mutants`: tests that the checker refutes mutated kernels.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;

use crate::run;
use crate::workspace::Workspace;

/// Builds the binary `mutants` in the release profile and runs it with these arguments.
pub(crate) fn run(args: &[OsString]) -> Result<ExitCode> {
    let workspace = Workspace::load()?;
    let mut build = workspace.cargo();
    build.args(["build", "--release", "--package", "warpline-mutants"]);
    build.args(["--bin", "mutants"]);
    run::run(build)?;
    let mut mutants = std::process::Command::new(workspace.target_dir.join("release/mutants"));
    mutants.args(args);
    // The binary prints its own errors.
    Ok(match run::succeeds("mutants", mutants)? {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
