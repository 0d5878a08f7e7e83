//! Mutants that the checker calls deadlocks: on a GPU they hang.

use crate::child::Answer;
use anyhow::{Context as _, Result, bail, ensure};
use std::time::Instant;
use warpline::Device;
use warpline::gpu::watch;
use warpline_ir::Target;
use warpline_mutants::{DeadlockMutant, deadlocks, find_deadlock};

/// How many are run.
const COUNT: usize = 10;

/// The names of those that are run.
pub fn names(target: &Target) -> Result<Vec<String>> {
    let all = deadlocks(COUNT, target)?;
    Ok(all.into_iter().map(|mutant| mutant.name).collect())
}

/// Runs a mutant by its name.
pub fn run(name: &str, device: &Device) -> Result<Answer> {
    let found = find_deadlock(name, &device.target())?;
    let mutant = found.with_context(|| format!("there is no mutant {name:?}"))?;
    let DeadlockMutant {
        step,
        inputs,
        outputs,
        workspace,
        diagnostic,
        ..
    } = &mutant;
    let start = Instant::now();
    let Err(error) = watch::run_step(step, inputs, outputs, *workspace, device) else {
        bail!("it did not hang, and the checker says: {diagnostic}");
    };
    let took = start.elapsed();
    let report = error.to_string();
    ensure!(error.code() == "hang", "no hang was reported: {report}");
    let first = report.lines().nth(1).unwrap_or(&report).trim();
    Ok(Answer {
        note: Some(format!("reported after {took:.1?}: {first}")),
        // What cannot leave its wait traps, and takes the context with it.
        dead: true,
        ..Answer::default()
    })
}
