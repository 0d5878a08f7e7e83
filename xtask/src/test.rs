//! `cargo xtask test`: every check, in order, and what it came to.

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
use crate::tally::Tally;
use crate::workspace::Workspace;

/// Every package, also the library that Python loads and that has no tests of its own here: cargo
/// unifies the features of the packages that are selected, and the stage `python` selects the same.
const TEST: [&str; 4] = ["test", "--workspace", "--locked", "--no-fail-fast"];

/// Runs every stage up to the first that fails, and prints what they came to.
pub(crate) fn run(full: bool) -> Result<ExitCode> {
    // Asked for now: cargo may replace this executable while it builds the tests.
    let xtask = env::current_exe().context("the path of xtask is unknown")?;
    let mut session = Session {
        workspace: Workspace::load()?,
        full,
        xtask,
        ptxas: None,
        tally: Tally::default(),
        stages: Vec::new(),
    };
    let done = session.stages();
    session.print_summary();
    if let Err((stage, error)) = &done {
        println!("\nstage {stage} failed, and no later stage ran: {error:#}");
    }
    println!(
        "\n{} passed, {} failed",
        session.tally.passed, session.tally.failed
    );
    Ok(match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}

/// The stage that failed, and why.
type Failure = (&'static str, anyhow::Error);

struct Session {
    workspace: Workspace,
    full: bool,
    /// This executable.
    xtask: PathBuf,
    /// Known once the first stage is through.
    ptxas: Option<Ptxas>,
    tally: Tally,
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
            run::shown(session.cargo(&["fmt", "--all", "--check"]))
        })?;
        self.stage("clippy", |session| {
            let mut command = session.cargo(&["clippy", "--workspace", "--all-targets"]);
            command.args(["--locked", "--", "-D", "warnings"]);
            run::shown(command)
        })?;
        self.stage("tests", |session| {
            let mut command = session.cargo(&TEST);
            // The targets with `test = true`; clippy compiles the examples.
            command.arg("--tests");
            command.args(["--config", &runner(&session.xtask)]);
            session.counted(command)
        })?;
        self.stage("doc tests", |session| {
            let mut command = session.cargo(&TEST);
            command.arg("--doc");
            session.counted(command)
        })?;
        self.stage("rustdoc", |session| {
            let mut command = session.cargo(&["doc", "--workspace", "--no-deps", "--locked"]);
            command.env("RUSTDOCFLAGS", "-D warnings");
            run::shown(command)
        })?;
        self.stage("python", |session| {
            let (workspace, tally) = (&session.workspace, &mut session.tally);
            python::test(workspace, session.full, |line| tally.line(line))
        })?;
        // A list, not a failure: a changed kernel has yet to be run on a GPU.
        self.stage("ledger", |session| {
            // The tests of the binary have built it; `cargo run` would build its
            // dependencies once more, with fewer features.
            let binary = session.workspace.target_dir.join("debug/gpu-tests");
            let mut command = Command::new(binary);
            command.current_dir(&session.workspace.root);
            command.args(["--missing", "crates/gpu-tests/ledger.json"]);
            run::shown(command)
        })
    }

    fn stage(
        &mut self,
        name: &'static str,
        work: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<(), Failure> {
        println!("== {name}");
        let start = Instant::now();
        let done = work(self);
        self.stages.push((name, start.elapsed().as_secs_f64()));
        done.map_err(|error| (name, error))
    }

    /// `cargo`, which hands the tests the ptxas of the first stage.
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

    /// Runs a `cargo test` and counts its tests.
    fn counted(&mut self, mut command: Command) -> Result<()> {
        if io::stdout().is_terminal() {
            // As an option, not in the environment, where the tests would see it.
            command.arg("--color=always");
        }
        run::scanned(command, |line| self.tally.line(line))
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
        let slowest = self.tally.slowest(10);
        if slowest.is_empty() {
            println!("\nno test was timed");
            return;
        }
        println!("\nslowest tests, in seconds:");
        for time in slowest {
            println!("{:9.3}  {}", time.seconds, time.name);
        }
    }
}

/// The setting that has cargo run each test binary through `xtask time-tests`.
///
/// cargo then sets the directory and the environment of the tests as it always does. On the
/// command line, the setting does not reach a cargo that a test starts.
fn runner(xtask: &Path) -> String {
    let xtask = serde_json::Value::from(xtask.to_string_lossy());
    format!("target.'cfg(all())'.runner=[{xtask},\"time-tests\"]")
}
