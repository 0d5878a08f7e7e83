//! `warpline completions SHELL`.

use crate::args::{self, CompletionArgs};
use crate::errors::Failure;
use crate::output::CommandOutput;
use clap::{ArgMatches, FromArgMatches};
use std::ffi::OsString;
use warpline_kernels::AnyFamily;

/// Prints the completion script for a shell.
pub(crate) fn completions(
    families: &[&dyn AnyFamily],
    args: &[OsString],
    matches: &ArgMatches,
) -> Result<CommandOutput, Failure> {
    let options = CompletionArgs::from_arg_matches(matches)
        .map_err(|e| Failure::usage(&e, args, families))?;
    let mut script = Vec::new();
    let mut command = args::command(families, args);
    clap_complete::generate(
        options.shell,
        &mut command,
        args::program(args),
        &mut script,
    );
    let script = String::from_utf8_lossy(&script).into_owned();
    Ok(CommandOutput::new("completions", script.clone())
        .field("shell", options.shell.to_string())
        .field("script", script))
}
