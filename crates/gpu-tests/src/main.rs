//! `gpu-tests`: runs the GPU tests on a machine that needs no Rust.

use anyhow::{Context as _, Result, bail};
use libtest_mimic::Arguments;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use warpline::DeviceInfo;
use warpline_gpu_tests::args::{HELP, Task, TestArgs};
use warpline_gpu_tests::ledger::Ledger;
use warpline_gpu_tests::suite::{self, SharedRunRecord};
use warpline_gpu_tests::{child, workloads};
use warpline_ir::Target;

/// The exit code for a missing GPU or invalid flags.
const UNUSABLE: u8 = 2;

fn main() -> ExitCode {
    let task = match Task::parse(std::env::args_os().skip(1)) {
        Ok(task) => task,
        Err(error) => return unusable(&format!("{error:#}")),
    };
    let exit_code = match task {
        Task::Child(group) => child::serve(&group).map(|()| ExitCode::SUCCESS),
        Task::Missing(ledger) => list_missing(&ledger).map(|()| ExitCode::SUCCESS),
        Task::TestArgs(tests) => run(tests),
    };
    exit_code.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn unusable(message: &str) -> ExitCode {
    eprintln!("error: {message}");
    ExitCode::from(UNUSABLE)
}

/// Returns the first usable GPU, or the reason why there is none.
fn gpu() -> Result<DeviceInfo, String> {
    let mut why = "the driver finds none".to_owned();
    for device in warpline::devices().into_iter().filter(|d| !d.is_cpu) {
        match device.unavailable {
            None => return Ok(device),
            Some(reason) => why = reason,
        }
    }
    Err(format!("no usable GPU: {why}"))
}

fn run(tests: TestArgs) -> Result<ExitCode> {
    if tests.rest.iter().any(|a| a == "--help" || a == "-h") {
        println!("{HELP}");
    }
    let program = OsString::from("gpu-tests");
    let mut arguments = Arguments::from_iter(std::iter::once(program).chain(tests.rest));
    // The tests share one GPU and measure times on it.
    arguments.test_threads = Some(1);
    let device = match gpu() {
        Ok(device) => device,
        Err(why) => return Ok(unusable(&why)),
    };
    let record = SharedRunRecord::default();
    let all = match &tests.record {
        Some(folder) => suite::recording_tests(folder, &record),
        None => match (tests.new, &tests.ledger) {
            (Some(part), Some(path)) => {
                suite::new_tests(&device, &record, &Ledger::read(path)?, part)?
            }
            _ => suite::all_tests(&device, &record)?,
        },
    };
    if !arguments.list {
        println!("on {}", device.description);
    }
    let conclusion = libtest_mimic::run(&arguments, all);
    if arguments.list {
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(path) = &tests.ledger {
        match tests.new {
            None => update_ledger(path, &device, &record)?,
            Some(_) => {
                let mut ledger = Ledger::read(path)?;
                let record = record.lock().ok().context("a test panicked")?;
                ledger.0.extend(record.passed.clone());
                ledger.write(path)?;
            }
        }
    }
    let record = record.lock().ok().context("a test panicked")?;
    for (name, note) in &record.notes {
        println!("{name}: {note}");
    }
    for (group, duration) in &record.durations {
        println!("{group}: {:.1} s", duration.as_secs_f64());
    }
    println!(
        "{} passed, {} failed",
        conclusion.num_passed, conclusion.num_failed
    );
    Ok(conclusion.exit_code())
}

/// Adds the programs that passed to a ledger.
fn update_ledger(path: &Path, device: &DeviceInfo, record: &SharedRunRecord) -> Result<()> {
    let mut ledger = Ledger::read(path)?;
    let record = record.lock().ok().context("a test panicked")?;
    ledger.update(
        &record.passed,
        &workloads::shipped(&suite::target(device))?.tested,
    );
    ledger.write(path)
}

/// Lists the shipped programs that were never verified on a GPU.
fn list_missing(ledger: &Path) -> Result<()> {
    let workloads::ShippedKernels { tested, untested } = workloads::shipped(&Target::default())?;
    if let Some(first) = untested.first() {
        bail!(
            "no GPU test runs {} shipped kernels; the first is {first:?}",
            untested.len()
        );
    }
    let ledger = Ledger::read(ledger)?;
    let missing = ledger.missing(&tested);
    println!(
        "{} of {} shipped kernels are not verified on a GPU",
        missing.len(),
        tested.len()
    );
    for kernel in missing {
        println!("  {} {} ({})", kernel.hash, kernel.kernel, kernel.workload);
    }
    Ok(())
}
