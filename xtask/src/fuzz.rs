//! `cargo xtask fuzz-checker`: compares checker and CPU executor on random kernels.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;

use crate::run;
use crate::workspace::Workspace;

/// Builds the binary `fuzz-checker` in the release profile and runs it with these arguments.
pub(crate) fn run(args: &[OsString]) -> Result<ExitCode> {
    let workspace = Workspace::load()?;
    let mut build = workspace.cargo();
    build.args(["build", "--release", "--package", "warpline-fuzz"]);
    build.args(["--bin", "fuzz-checker"]);
    run::run(build)?;
    let program = workspace.target_dir.join("release/fuzz-checker");
    let mut fuzz = std::process::Command::new(program);
    fuzz.args(args);
    // The binary prints its own errors.
    Ok(match run::succeeds("fuzz-checker", fuzz)? {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
