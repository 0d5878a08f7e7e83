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
//! | `report`, `standings`, `raced`, `words` | the report of a run, of a measurement, of a tuning; numbers and settings in words |
//! | `resources` | what a kernel needs, from ptxas or our estimate |
//! | `progress` | a bar on the terminal |
//! | `sweep` | many runs that differ by the values of some options |
//! | `plot` | lines and bars as an SVG |
//! | `tensors` | tensors that a run reads from files and leaves in files |
//! | `file` | writing a file or a folder whole or not at all |

mod answer;
mod args;
mod commands;
mod errors;
mod file;
mod picture;
mod plot;
mod progress;
mod raced;
mod report;
mod resources;
mod standings;
mod sweep;
mod tensors;
mod words;

use answer::Answer;
use errors::Failure;
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;
use warpline_kernels::AnyFamily;

/// What a command line comes to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reply {
    /// What goes to standard output.
    pub out: String,
    /// What goes to standard error: one line if the command fails, else nothing.
    pub err: String,
    /// The exit code.
    pub exit: u8,
}

impl Reply {
    fn new(out: String, failure: Option<Failure>) -> Self {
        Self {
            out,
            err: failure.iter().map(|f| format!("error: {f}\n")).collect(),
            exit: failure.map_or(0, |f| f.exit),
        }
    }
}

/// Runs the command line of this process for the given families.
pub fn main(families: &[&dyn AnyFamily]) -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let mut reply = call(families, &args);
    if let Err(failure) = write_out(&reply.out)
        && reply.exit == 0
    {
        reply = Reply::new(String::new(), Some(failure));
    }
    // Nobody is left to tell if this fails too.
    let _ = io::stderr().write_all(reply.err.as_bytes());
    ExitCode::from(reply.exit)
}

/// Runs a command line, whose first word is the program's name, for the given
/// families: for tests of what their users will read.
///
/// ```
/// use warpline_kernels::vector_add::VectorAdd;
///
/// let args = ["mine", "check", "vector-add", "--stages", "0"].map(Into::into);
/// let reply = warpline_cli::call(&[&VectorAdd], &args);
/// assert_eq!(reply.err, "error: a ring has at least 1 stage, not 0\n");
/// assert_eq!(reply.exit, 2);
/// ```
pub fn call(families: &[&dyn AnyFamily], args: &[OsString]) -> Reply {
    let json = args::wants_json(args);
    match answer(families, args) {
        Ok(answer) if json => Reply::new(answer.to_json(), answer.failure),
        Ok(answer) => Reply::new(answer.text, answer.failure),
        Err(failure) if json => Reply::new(failure.to_json(), Some(failure)),
        Err(failure) => Reply::new(String::new(), Some(failure)),
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
