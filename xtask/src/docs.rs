//! `cargo xtask docs`: writes the generated parts of the documentation.

use std::process::ExitCode;

use anyhow::Result;

use crate::run;
use crate::workspace::Workspace;

/// Runs the generator, or records the terminal picture if `terminal`.
pub(crate) fn run(terminal: bool) -> Result<ExitCode> {
    let mut docs = Workspace::load()?.cargo();
    docs.args(["run", "--quiet", "--package", "warpline-docs", "--"]);
    if terminal {
        docs.arg("--terminal");
    }
    run::run(docs)?;
    Ok(ExitCode::SUCCESS)
}
