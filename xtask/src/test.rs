//! `cargo xtask test`: runs every check in order and prints a summary.

use std::env;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result};
use warpline_ptxas::Ptxas;

use crate::ptxas;
use crate::python;
use crate::run;
use crate::test_results::TestResults;
use crate::workspace::Workspace;

/// Selects every package, including the Python library, which has no Rust tests: Cargo unifies the
/// features of the selected packages, and the stage `python` selects the same ones.
const TEST: [&str; 4] = ["test", "--workspace", "--locked", "--no-fail-fast"];

/// Runs the stages up to the first failure and prints a summary.
pub(crate) fn run(full: bool) -> Result<ExitCode> {
    // Read the path first: cargo may replace this executable while it builds the tests.
    let xtask = env::current_exe().context("the path of the xtask executable is unknown")?;
    let mut session = Session {
        workspace: Workspace::load()?,
        full,
        xtask,
        ptxas: None,
        results: TestResults::default(),
        stages: Vec::new(),
    };
    let outcome = session.stages();
    session.print_summary();
    if let Err((stage, error)) = &outcome {
        println!("\nstage {stage} failed; later stages did not run: {error:#}");
    }
    println!(
        "\n{} passed, {} failed",
        session.results.passed, session.results.failed
    );
    Ok(match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}

/// The stage that failed and its error.
type Failure = (&'static str, anyhow::Error);

struct Session {
    workspace: Workspace,
    full: bool,
    /// This executable.
    xtask: PathBuf,
    /// The ptxas of the first stage.
    ptxas: Option<Ptxas>,
    results: TestResults,
    /// Seconds per stage.
    stages: Vec<(&'static str, f64)>,
}

impl Session {
    fn stages(&mut self) -> Result<(), Failure> {
        self.stage("ptxas", |session| {
            session.ptxas = Some(ptxas::ensure(&session.workspace)?);
            Ok(())
        })?;
        self.stage("fmt", |session| {
            run::run(session.cargo(&["fmt", "--all", "--check"]))
        })?;
        self.stage("clippy", |session| {
            let mut command = session.cargo(&["clippy", "--workspace", "--all-targets"]);
            command.args(["--locked", "--", "-D", "warnings"]);
            run::run(command)
        })?;
        self.stage("tests", |session| {
            let mut command = session.cargo(&TEST);
            // All targets with `test = true`; clippy compiles the examples.
            command.arg("--tests");
            command.args(["--config", &runner(&session.xtask)]);
            session.count_tests(command)
        })?;
        self.stage("doc tests", |session| {
            let mut command = session.cargo(&TEST);
            command.arg("--doc");
            session.count_tests(command)
        })?;
        self.stage("rustdoc", |session| {
            let mut command = session.cargo(&["doc", "--workspace", "--no-deps", "--locked"]);
            command.env("RUSTDOCFLAGS", "-D warnings");
            run::run(command)
        })?;
        self.stage("python", |session| {
            let (workspace, results) = (&session.workspace, &mut session.results);
            python::test(workspace, session.full, |line| results.parse_line(line))
        })?;
        // Lists kernels without an entry in the GPU ledger. They are not a failure.
        self.stage("ledger", |session| {
            // The test stage built this binary; `cargo run` would build its dependencies again,
            // with fewer features.
            let binary = session.workspace.target_dir.join("debug/gpu-tests");
            let mut command = Command::new(binary);
            command.current_dir(&session.workspace.root);
            command.args(["--missing", "crates/gpu-tests/ledger.json"]);
            run::run(command)
        })
    }

    fn stage(
        &mut self,
        name: &'static str,
        work: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<(), Failure> {
        println!("== {name}");
        let start = Instant::now();
        let outcome = work(self);
        self.stages.push((name, start.elapsed().as_secs_f64()));
        outcome.map_err(|error| (name, error))
    }

    /// Returns a cargo command that passes the ptxas of the first stage to the tests.
    fn cargo(&self, args: &[&str]) -> Command {
        let mut command = self.workspace.cargo();
        command.args(args);
        if let Some(ptxas) = &self.ptxas {
            command.env("PTXAS", &ptxas.path);
        }
        if self.full {
            command.env("WARPLINE_FULL", "1");
        }
        command
    }

    /// Runs `cargo test` and counts its tests.
    fn count_tests(&mut self, mut command: Command) -> Result<()> {
        if io::stdout().is_terminal() {
            // This is an option, because tests would inherit an environment variable.
            command.arg("--color=always");
        }
        run::run_with_lines(command, |line| self.results.parse_line(line))
    }

    fn print_summary(&self) {
        println!();
        match &self.ptxas {
            Some(ptxas) => println!("ptxas {} at {}", ptxas.version, ptxas.path.display()),
            None => println!("no ptxas"),
        }
        println!("\nseconds per stage:");
        for (name, seconds) in &self.stages {
            println!("{seconds:9.1}  {name}");
        }
        let slowest = self.results.slowest(10);
        if slowest.is_empty() {
            println!("\nno test times");
            return;
        }
        println!("\nslowest tests, in seconds:");
        for time in slowest {
            println!("{:9.3}  {}", time.seconds, time.name);
        }
    }
}

/// Returns the setting that makes cargo run each test binary through `xtask time-tests`.
///
/// Cargo still sets the directory and the environment of the tests. As a command-line option, the
/// setting does not reach a cargo process that a test starts.
fn runner(xtask: &Path) -> String {
    let xtask = serde_json::Value::from(xtask.to_string_lossy());
    format!("target.'cfg(all())'.runner=[{xtask},\"time-tests\"]")
}
