//! `gpu-tests`: what must hold on the GPU, on a machine that needs no Rust.

use anyhow::{Context as _, Result, bail};
use libtest_mimic::Arguments;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use warpline::DeviceInfo;
use warpline_gpu_tests::args::{HELP, Task, Tests};
use warpline_gpu_tests::ledger::Ledger;
use warpline_gpu_tests::suite::{self, Leaving};
use warpline_gpu_tests::{child, works};
use warpline_ir::Target;

/// There is no GPU, or the flags are wrong.
const UNUSABLE: u8 = 2;

fn main() -> ExitCode {
    let task = match Task::parse(std::env::args_os().skip(1)) {
        Ok(task) => task,
        Err(error) => return unusable(&format!("{error:#}")),
    };
    let done = match task {
        Task::Child(kind) => child::serve(&kind).map(|()| ExitCode::SUCCESS),
        Task::Missing(ledger) => missing(&ledger).map(|()| ExitCode::SUCCESS),
        Task::Tests(tests) => run(tests),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn unusable(why: &str) -> ExitCode {
    eprintln!("error: {why}");
    ExitCode::from(UNUSABLE)
}

/// The first GPU that can be used, or why there is none.
fn gpu() -> Result<DeviceInfo, String> {
    let mut why = "the driver finds none".to_owned();
    for device in warpline::devices().into_iter().filter(|d| !d.simulator) {
        match device.unavailable {
            None => return Ok(device),
            Some(reason) => why = reason,
        }
    }
    Err(format!("there is no GPU to test on: {why}"))
}

fn run(tests: Tests) -> Result<ExitCode> {
    if tests.rest.iter().any(|a| a == "--help" || a == "-h") {
        println!("{HELP}");
    }
    let program = OsString::from("gpu-tests");
    let mut arguments = Arguments::from_iter(std::iter::once(program).chain(tests.rest));
    // One GPU, and times are taken on it.
    arguments.test_threads = Some(1);
    let device = match gpu() {
        Ok(device) => device,
        Err(why) => return Ok(unusable(&why)),
    };
    let left = Leaving::default();
    let all = match &tests.record {
        Some(folder) => suite::recording(folder, &left),
        None => suite::everything(&device, &left)?,
    };
    if !arguments.list {
        println!("on {}", device.description);
    }
    let conclusion = libtest_mimic::run(&arguments, all);
    if arguments.list {
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(path) = &tests.ledger {
        note(path, &device, &left)?;
    }
    let left = left.lock().ok().context("a test panicked")?;
    for (name, note) in &left.notes {
        println!("{name}: {note}");
    }
    for (group, took) in &left.took {
        println!("{group}: {:.1} s", took.as_secs_f64());
    }
    println!(
        "{} passed, {} failed",
        conclusion.num_passed, conclusion.num_failed
    );
    Ok(conclusion.exit_code())
}

/// Notes what passed in a ledger.
fn note(path: &Path, device: &DeviceInfo, left: &Leaving) -> Result<()> {
    let mut ledger = Ledger::read(path)?;
    let left = left.lock().ok().context("a test panicked")?;
    ledger.update(&left.passed, &works::shipped(&suite::target(device))?.run);
    ledger.write(path)
}

/// Lists what ships and has never been seen right on a GPU.
fn missing(ledger: &Path) -> Result<()> {
    let works::Kernels { run, others } = works::shipped(&Target::default())?;
    if let Some(one) = others.first() {
        bail!(
            "{} kernels ship that no test runs, of which the first is {one:?}",
            others.len()
        );
    }
    let ledger = Ledger::read(ledger)?;
    let missing = ledger.missing(&run);
    println!(
        "{} of {} kernels have not been seen right on a GPU since they changed",
        missing.len(),
        run.len()
    );
    for kernel in missing {
        println!("  {} {} ({})", kernel.hash, kernel.kernel, kernel.of);
    }
    Ok(())
}
