//! `cargo xtask`: what the developers of Warpline run.

mod bundle;
mod fuzz;
mod mutants;
mod ptxas;
mod python;
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
    /// Build what a GPU host needs, the command line, the GPU tests and the Python package, into one folder
    GpuBundle {
        /// The folder [default: gpu-bundle in the target directory]
        #[arg(long, value_name = "DIR")]
        output: Option<PathBuf>,
    },
    /// Build the wheel of the Python package, for any Linux of the last ten years
    Wheel {
        /// The folder [default: wheels in the target directory]
        #[arg(long, value_name = "DIR")]
        output: Option<PathBuf>,
    },
    /// Break every kernel that ships, and see whether the checker tells
    Mutants {
        /// What to hand on: --json, --most COUNT, --only TEXT, --kinds
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Hold the checker against the executor on random kernels
    FuzzChecker {
        /// What to hand on: --minutes N, --seed S, --count K, --json, --save DIR, --show, --replay FILE
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
        Task::GpuBundle { output } => bundle::run(output),
        Task::Wheel { output } => python::wheel(output),
        Task::Mutants { args } => mutants::run(&args),
        Task::FuzzChecker { args } => fuzz::run(&args),
        Task::TimeTests { exe, args } => timed::run(&exe, &args),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_arguments_are_refused() {
        for (args, why) in [
            (&["gpu-bundle", "--output"][..], "a value is required"),
            (&["gpu-bundle", "folder"], "unexpected argument 'folder'"),
            (&["bundle"], "unrecognized subcommand 'bundle'"),
        ] {
            let args = ["cargo xtask"].iter().chain(args);
            let error = Args::try_parse_from(args).err().expect("an error");
            assert!(error.to_string().contains(why), "{error}");
        }
    }

    #[test]
    fn flags_of_the_mutants_are_handed_on() {
        let args = ["cargo xtask", "mutants", "--json", "--most", "2"];
        let Task::Mutants { args } = Args::try_parse_from(args).unwrap().task else {
            panic!("another task")
        };
        assert_eq!(args, ["--json", "--most", "2"]);
    }

    #[test]
    fn flags_of_the_fuzzer_are_handed_on() {
        let args = ["cargo xtask", "fuzz-checker", "--minutes", "2", "--json"];
        let Task::FuzzChecker { args } = Args::try_parse_from(args).unwrap().task else {
            panic!("another task")
        };
        assert_eq!(args, ["--minutes", "2", "--json"]);
    }

    #[test]
    fn a_folder_for_the_bundle_can_be_named() {
        let args = ["cargo xtask", "gpu-bundle", "--output", "there"];
        let Task::GpuBundle { output } = Args::try_parse_from(args).unwrap().task else {
            panic!("another task")
        };
        assert_eq!(output, Some("there".into()));
    }
}
