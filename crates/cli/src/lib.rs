//! The `warpline` command line, as a library.
//!
//! A program with its own kernel families gets every command from a `main.rs`
//! of three lines. Without a command, the first family runs:
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
//! Exit codes: 0 PASS or proved; 1 result outside tolerance, kernel refuted or
//! undecided; 2 bad input or device not available; 3 device fault or hang. With
//! `--json`, standard output is one versioned JSON object, and everything else
//! goes to standard error.
//!
//! | where | what |
//! |---|---|
//! | `args` | commands and options |
//! | `commands` | the implementation of each command |
//! | `output` | the output of a command: text and JSON |
//! | `errors` | failures: message, stable code, exit code |
//! | `report`, `bench_report`, `tune_report` | the reports of `run`, `bench` and `tune` |
//! | `display` | numbers with units, settings, lists |
//! | `resources` | registers, shared memory and spills of a kernel, from ptxas or estimated |
//! | `progress` | a progress bar on the terminal |
//! | `sweep` | runs with several values of some options |
//! | `plot` | line and bar plots as SVG |
//! | `tensors` | reading inputs from files, writing inputs and outputs |
//! | `file` | atomic writes of files and folders |

mod args;
mod bench_report;
mod commands;
mod display;
mod errors;
mod file;
mod output;
mod plot;
mod progress;
mod report;
mod resources;
mod sweep;
mod tensors;
mod tune_report;

use errors::Failure;
use output::CommandOutput;
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;
use warpline_kernels::AnyFamily;

/// The output of a command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CliOutput {
    /// The text for standard output.
    pub stdout: String,
    /// The text for standard error: the error if the command fails, else empty.
    pub stderr: String,
    /// The exit code.
    pub exit_code: u8,
}

impl CliOutput {
    fn new(stdout: String, failure: Option<Failure>) -> Self {
        Self {
            stdout,
            stderr: failure.iter().map(|f| format!("error: {f}\n")).collect(),
            exit_code: failure.map_or(0, |f| f.exit),
        }
    }
}

/// Runs the command line of this process for the given families.
pub fn main(families: &[&dyn AnyFamily]) -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let mut output = run(families, &args);
    if let Err(failure) = write_out(&output.stdout)
        && output.exit_code == 0
    {
        output = CliOutput::new(String::new(), Some(failure));
    }
    // A failure of this write cannot be reported.
    let _ = io::stderr().write_all(output.stderr.as_bytes());
    ExitCode::from(output.exit_code)
}

/// Runs a command line for the given families and returns its output, for tests.
///
/// `args[0]` is the program's name.
///
/// ```
/// use warpline_kernels::vector_add::VectorAdd;
///
/// let args = ["mine", "check", "vector-add", "--stages", "0"].map(Into::into);
/// let output = warpline_cli::run(&[&VectorAdd], &args);
/// assert_eq!(output.stderr, "error: --stages is 0, but a ring needs at least 1 stage\n");
/// assert_eq!(output.exit_code, 2);
/// ```
pub fn run(families: &[&dyn AnyFamily], args: &[OsString]) -> CliOutput {
    let json = args::wants_json(args);
    match execute(families, args) {
        Ok(output) if json => CliOutput::new(output.to_json(), output.failure),
        Ok(output) => CliOutput::new(output.text, output.failure),
        Err(failure) if json => CliOutput::new(failure.to_json(), Some(failure)),
        Err(failure) => CliOutput::new(String::new(), Some(failure)),
    }
}

fn execute(families: &[&dyn AnyFamily], args: &[OsString]) -> Result<CommandOutput, Failure> {
    let command = args::command(families, args);
    match command.try_get_matches_from(args) {
        Ok(matches) => commands::dispatch(families, args, &matches),
        Err(e) if !e.use_stderr() => Ok(CommandOutput::text_only(e.render().to_string())),
        Err(e) => Err(Failure::usage(&e, args, families)),
    }
}

/// Writes to standard output; a closed pipe is not an error.
fn write_out(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(Failure::bad_input(
            "cannot-write",
            format!("cannot write to standard output: {e}"),
        )),
        _ => Ok(()),
    }
}

/// Parses a command line without running it; returns the usage error.
///
/// ```
/// let args = |text: &str| text.split(' ').map(Into::into).collect::<Vec<_>>();
/// let families = warpline_kernels::registry();
/// assert!(warpline_cli::parse(&families, &args("warpline run gemm --m 64")).is_ok());
/// assert!(warpline_cli::parse(&families, &args("warpline run gemm --unknown 1")).is_err());
/// ```
pub fn parse(families: &[&dyn AnyFamily], args: &[OsString]) -> Result<(), String> {
    match args::command(families, args).try_get_matches_from(args) {
        Err(error) if error.use_stderr() => Err(error.render().to_string()),
        _ => Ok(()),
    }
}
