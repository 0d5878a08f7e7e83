//! `warpline completions SHELL`.

use crate::answer::Answer;
use crate::args::{self, CompletionArgs};
use crate::errors::Failure;
use clap::{ArgMatches, FromArgMatches};
use std::ffi::OsString;
use warpline_kernels::AnyFamily;

/// The script that completes commands in a shell.
pub(crate) fn completions(
    families: &[&dyn AnyFamily],
    args: &[OsString],
    matches: &ArgMatches,
) -> Result<Answer, Failure> {
    let asked = CompletionArgs::from_arg_matches(matches)
        .map_err(|e| Failure::usage(&e, args, families))?;
    let mut script = Vec::new();
    let mut command = args::command(families, args);
    clap_complete::generate(asked.shell, &mut command, args::program(args), &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    Ok(Answer::new("completions", script.clone())
        .field("shell", asked.shell.to_string())
        .field("script", script))
}
