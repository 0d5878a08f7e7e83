//! The `warpline` command line, as a library.
//!
//! Authors of kernels get every command for their own families with a
//! `main.rs` of three lines; the first family is the one that runs when no
//! command is given:
//!
//! ```
//! use warpline_kernels::vector_add::VectorAdd;
//!
//! fn main() -> std::process::ExitCode {
//!     # if std::env::args().count() > 0 { return std::process::ExitCode::SUCCESS; }
//!     warpline_cli::main(&[&VectorAdd])
//! }
//! ```
//!
//! Exit codes: 0 good; 1 refused, undecided or wrong result; 2 bad input or no
//! such device; 3 device fault or hang. With `--json` one versioned object
//! goes to standard output, and all else to standard error.
//!
//! | where | what |
//! |---|---|
//! | `args` | commands and options |
//! | `commands` | what each command does |
//! | `answer` | what a command gives: text and JSON |
//! | `errors` | failures as one sentence with a code |
//! | `report`, `standings`, `words` | the report of a run and of a measurement; numbers and settings in words |
//! | `resources` | what a kernel needs, from ptxas or our estimate |
//! | `progress` | a bar on the terminal |
//! | `file` | writing a file whole or not at all |

mod answer;
mod args;
mod commands;
mod errors;
mod file;
mod progress;
mod report;
mod resources;
mod standings;
mod words;

use answer::Answer;
use errors::Failure;
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;
use warpline_kernels::AnyFamily;

/// Runs the command line of this process for the given families.
pub fn main(families: &[&dyn AnyFamily]) -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let json = args::wants_json(&args);
    let (out, failure) = match answer(families, &args) {
        Ok(answer) if json => (answer.to_json(), answer.failure),
        Ok(answer) => (answer.text, answer.failure),
        Err(failure) if json => (failure.to_json(), Some(failure)),
        Err(failure) => (String::new(), Some(failure)),
    };
    let written = write_out(&out);
    let failure = failure.or(written.err());
    match failure {
        None => ExitCode::SUCCESS,
        Some(failure) => {
            // Nobody is left to tell if this fails too.
            let _ = writeln!(io::stderr(), "error: {failure}");
            ExitCode::from(failure.exit)
        }
    }
}

fn answer(families: &[&dyn AnyFamily], args: &[OsString]) -> Result<Answer, Failure> {
    let command = args::command(families, args);
    match command.try_get_matches_from(args) {
        Ok(matches) => commands::dispatch(families, args, &matches),
        Err(e) if !e.use_stderr() => Ok(Answer::words(e.render().to_string())),
        Err(e) => Err(Failure::usage(&e, args, families)),
    }
}

/// Writes to standard output. A reader that has gone away wants no more.
fn write_out(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(Failure::input(
            "cannot-write",
            format!("cannot write to standard output: {e}"),
        )),
        _ => Ok(()),
    }
}
