//! Kernels that hang: the watchdog reports in time, and the next kernel runs.

use crate::child::CaseResult;
use anyhow::{Context as _, Result, bail, ensure};
use std::time::{Duration, Instant};
use warpline::gpu::watch;
use warpline::{Device, RunOptions};
use warpline_kernels::{DeviceKind, registry};
use warpline_watchdog::hangs;

/// The time limit of the report, from the launch.
const REPORT_TIMEOUT: Duration = Duration::from_secs(2);

/// The test that runs after every hang: a correct kernel.
pub const CORRECT: &str = "a correct kernel";

/// Returns the names of all hanging kernels.
pub fn names() -> Result<Vec<&'static str>> {
    Ok(hangs::all()?.iter().map(|hanging| hanging.name).collect())
}

/// Runs a test by its name.
pub fn run(name: &str, device: &Device) -> Result<CaseResult> {
    if name == CORRECT {
        return run_correct(device);
    }
    let found = hangs::all()?
        .into_iter()
        .find(|hanging| hanging.name == name);
    let hanging = found.with_context(|| format!("unknown hanging kernel {name:?}"))?;
    let start = Instant::now();
    // Unchecked: the checker would refute the kernel.
    let error = match watch::run_kernel(&hanging.kernel, hanging.grid, device) {
        Ok(()) => bail!("the kernel did not hang"),
        Err(error) => error,
    };
    let elapsed = start.elapsed();
    let report = error.to_string();
    ensure!(
        error.code() == "hang",
        "expected the report of a hang, got: {report}"
    );
    for part in &hanging.report {
        ensure!(
            report.contains(part),
            "the report lacks {part:?}:\n{report}"
        );
    }
    ensure!(
        elapsed < REPORT_TIMEOUT,
        "the report took {elapsed:.1?}; the limit is {REPORT_TIMEOUT:?}"
    );
    Ok(CaseResult {
        note: Some(format!("reported after {elapsed:.1?}")),
        // A kernel that cannot leave its wait traps, and the trap ends the context.
        context_lost: !hanging.exits_cleanly,
        ..CaseResult::default()
    })
}

fn run_correct(device: &Device) -> Result<CaseResult> {
    let family = registry().into_iter().next().context("no family")?;
    let workload = family.default_workload(DeviceKind::Cpu, &device.target())?;
    let outcome = warpline::run(workload.as_ref(), device, &RunOptions::default())?;
    ensure!(outcome.passed(), "a correct kernel fails after a hang");
    Ok(CaseResult::default())
}
