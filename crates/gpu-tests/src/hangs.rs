//! Kernels that hang: the watchdog's report comes in time, and the caller goes on.

use crate::child::Answer;
use anyhow::{Context as _, Result, bail, ensure};
use std::time::{Duration, Instant};
use warpline::{Build, Device, RunOptions};
use warpline_ir::Target;
use warpline_kernels::{
    AnyWork, Cost, FamilyError, HostTensor, Place, Plan, Step, TensorSpec, registry,
};
use warpline_watchdog::hangs::{self, Wrong};

/// How soon a report must be there, from the launch on.
const SOON: Duration = Duration::from_secs(2);

/// The case that every other one is followed by: a kernel that is right.
pub const GOOD: &str = "a good kernel";

/// The names of all kinds of hang.
pub fn names() -> Result<Vec<&'static str>> {
    Ok(hangs::all()?.iter().map(|wrong| wrong.name).collect())
}

/// Runs a case by its name.
pub fn run(name: &str, device: &Device) -> Result<Answer> {
    if name == GOOD {
        return good(device);
    }
    let found = hangs::all()?.into_iter().find(|wrong| wrong.name == name);
    let wrong = found.with_context(|| format!("there is no hang {name:?}"))?;
    let work = Hanging(wrong);
    let mut options = RunOptions::default();
    options.build = Build::Watchdog;
    options.repeat = std::num::NonZeroU32::new(1);
    let start = Instant::now();
    let error = match warpline::run(&work, device, &options) {
        Ok(_) => bail!("it did not hang"),
        Err(error) => error,
    };
    let took = start.elapsed();
    let report = error.to_string();
    ensure!(error.code() == "hang", "no hang was reported: {report}");
    for part in &work.0.report {
        ensure!(
            report.contains(part),
            "the report lacks {part:?}:\n{report}"
        );
    }
    ensure!(took < SOON, "the report took {took:.1?}");
    Ok(Answer {
        note: Some(format!("reported after {took:.1?}")),
        // What cannot leave its wait traps, and takes the context with it.
        dead: !work.0.leaves,
        ..Answer::default()
    })
}

fn good(device: &Device) -> Result<Answer> {
    let family = registry().into_iter().next().context("no family")?;
    let work = family.default_work(Place::Cpu, &device.target())?;
    let outcome = warpline::run(work.as_ref(), device, &RunOptions::default())?;
    ensure!(outcome.passed(), "a good kernel is wrong after a hang");
    Ok(Answer::default())
}

/// A kernel that hangs, as work.
struct Hanging(Wrong);

impl AnyWork for Hanging {
    fn family(&self) -> &'static str {
        "hang"
    }
    fn problem(&self) -> serde_json::Value {
        serde_json::json!({ "hang": self.0.name })
    }
    fn config(&self) -> serde_json::Value {
        serde_json::json!({})
    }
    fn plan(&self, _: &Target) -> Result<Plan, FamilyError> {
        Ok(Plan {
            steps: vec![Step::new(self.0.kernel.clone(), self.0.grid, vec![])],
            workspace: 0,
        })
    }
    fn cost(&self) -> Cost {
        Cost {
            flops: 0.0,
            bytes: 0.0,
        }
    }
    fn inputs(&self, _: u64) -> Vec<HostTensor> {
        vec![]
    }
    fn outputs(&self) -> Vec<TensorSpec> {
        vec![]
    }
    fn reference(&self, _: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        vec![]
    }
}
