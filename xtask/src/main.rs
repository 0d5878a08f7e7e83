//! `cargo xtask`: what the developers of Warpline run.

mod ptxas;
mod run;
mod tally;
mod test;
mod timed;
mod workspace;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What the developers of Warpline run.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Format, lints, tests, doc tests and documentation, with the pinned ptxas
    Test {
        /// Also the long tests (sets WARPLINE_FULL=1)
        #[arg(long)]
        full: bool,
    },
    /// Fetch the pinned ptxas if need be, and run it; without arguments, say where it is
    Ptxas {
        /// What to hand to ptxas
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Run one test binary for `cargo test` and time its tests
    #[command(hide = true)]
    TimeTests {
        exe: PathBuf,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    let done = match Args::parse().task {
        Task::Test { full } => test::run(full),
        Task::Ptxas { args } => ptxas::by_hand(&args),
        Task::TimeTests { exe, args } => timed::run(&exe, &args),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
