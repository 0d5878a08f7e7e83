//! Kernels that hang: the watchdog's report comes in time, and the caller goes on.

use crate::child::Answer;
use anyhow::{Context as _, Result, bail, ensure};
use std::time::{Duration, Instant};
use warpline::gpu::watch;
use warpline::{Device, RunOptions};
use warpline_kernels::{DeviceKind, registry};
use warpline_watchdog::hangs;

/// How soon a report must be there, from the launch on.
const SOON: Duration = Duration::from_secs(2);

/// The case that every other one is followed by: a kernel that is right.
pub const GOOD: &str = "a good kernel";

/// The names of all kinds of hang.
pub fn names() -> Result<Vec<&'static str>> {
    Ok(hangs::all()?.iter().map(|hanging| hanging.name).collect())
}

/// Runs a case by its name.
pub fn run(name: &str, device: &Device) -> Result<Answer> {
    if name == GOOD {
        return good(device);
    }
    let found = hangs::all()?.into_iter().find(|hanging| hanging.name == name);
    let hanging = found.with_context(|| format!("there is no hang {name:?}"))?;
    let start = Instant::now();
    // Unchecked: the checker refuses what can be seen to hang.
    let error = match watch::run_kernel(&hanging.kernel, hanging.grid, device) {
        Ok(()) => bail!("it did not hang"),
        Err(error) => error,
    };
    let took = start.elapsed();
    let report = error.to_string();
    ensure!(error.code() == "hang", "no hang was reported: {report}");
    for part in &hanging.report {
        ensure!(
            report.contains(part),
            "the report lacks {part:?}:\n{report}"
        );
    }
    ensure!(took < SOON, "the report took {took:.1?}");
    Ok(Answer {
        note: Some(format!("reported after {took:.1?}")),
        // What cannot leave its wait traps, and takes the context with it.
        dead: !hanging.exits_cleanly,
        ..Answer::default()
    })
}

fn good(device: &Device) -> Result<Answer> {
    let family = registry().into_iter().next().context("no family")?;
    let work = family.default_workload(DeviceKind::Cpu, &device.target())?;
    let outcome = warpline::run(work.as_ref(), device, &RunOptions::default())?;
    ensure!(outcome.passed(), "a good kernel is wrong after a hang");
    Ok(Answer::default())
}
