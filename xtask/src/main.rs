//! `cargo xtask`: development tasks.

mod bundle;
mod docs;
mod fuzz;
mod mutants;
mod ptxas;
mod python;
mod run;
mod test;
mod test_results;
mod time_tests;
mod workspace;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Development tasks of Warpline
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run format check, clippy, tests, doc tests, rustdoc and Python tests, with the pinned ptxas
    Test {
        /// Also run the long tests (sets WARPLINE_FULL=1)
        #[arg(long)]
        full: bool,
    },
    /// Download the pinned ptxas if necessary and run it; without arguments, print its path
    Ptxas {
        /// Arguments of ptxas
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Build the command line, the GPU tests and the Python package into one folder for a GPU host
    GpuBundle {
        /// Output folder [default: gpu-bundle in the target directory]
        #[arg(long, value_name = "DIR")]
        output: Option<PathBuf>,
    },
    /// Build the Python wheel for manylinux2014 (glibc 2.17)
    Wheel {
        /// Output folder [default: wheels in the target directory]
        #[arg(long, value_name = "DIR")]
        output: Option<PathBuf>,
    },
    /// Write the generated documentation: performance pages, charts, diagrams, counts
    Docs {
        /// Record the terminal picture of the README from a real run instead
        #[arg(long)]
        terminal: bool,
    },
    /// Mutate every shipped kernel and test that the checker refutes the mutants
    Mutants {
        /// Arguments of the mutation tester: --json, --most COUNT, --only TEXT, --kinds
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Compare checker and CPU executor on random kernels
    FuzzChecker {
        /// Arguments of the fuzzer: --minutes N, --seed S, --count K, --json, --save DIR, --show, --replay FILE
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
    let result = match Args::parse().task {
        Task::Test { full } => test::run(full),
        Task::Ptxas { args } => ptxas::run(&args),
        Task::GpuBundle { output } => bundle::run(output),
        Task::Wheel { output } => python::wheel(output),
        Task::Docs { terminal } => docs::run(terminal),
        Task::Mutants { args } => mutants::run(&args),
        Task::FuzzChecker { args } => fuzz::run(&args),
        Task::TimeTests { exe, args } => time_tests::run(&exe, &args),
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_arguments_are_rejected() {
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
    fn arguments_of_mutants_are_passed_through() {
        let args = ["cargo xtask", "mutants", "--json", "--most", "2"];
        let Task::Mutants { args } = Args::try_parse_from(args).unwrap().task else {
            panic!("another task")
        };
        assert_eq!(args, ["--json", "--most", "2"]);
    }

    #[test]
    fn arguments_of_the_fuzzer_are_passed_through() {
        let args = ["cargo xtask", "fuzz-checker", "--minutes", "2", "--json"];
        let Task::FuzzChecker { args } = Args::try_parse_from(args).unwrap().task else {
            panic!("another task")
        };
        assert_eq!(args, ["--minutes", "2", "--json"]);
    }

    #[test]
    fn gpu_bundle_takes_an_output_folder() {
        let args = ["cargo xtask", "gpu-bundle", "--output", "there"];
        let Task::GpuBundle { output } = Args::try_parse_from(args).unwrap().task else {
            panic!("another task")
        };
        assert_eq!(output, Some("there".into()));
    }
}
