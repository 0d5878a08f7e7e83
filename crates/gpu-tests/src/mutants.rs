//! Mutants that the checker refutes as deadlocks: they must hang on a GPU.

use crate::child::CaseResult;
use anyhow::{Context as _, Result, bail, ensure};
use std::time::Instant;
use warpline::Device;
use warpline::gpu::watch;
use warpline_ir::Target;
use warpline_mutants::{DeadlockMutant, deadlocks, find_deadlock};

/// The number of mutants.
const COUNT: usize = 10;

/// Returns the names of the mutants.
pub fn names(target: &Target) -> Result<Vec<String>> {
    let all = deadlocks(COUNT, target)?;
    Ok(all.into_iter().map(|mutant| mutant.name).collect())
}

/// Runs a mutant by its name.
pub fn run(name: &str, device: &Device) -> Result<CaseResult> {
    let found = find_deadlock(name, &device.target())?;
    let mutant = found.with_context(|| format!("unknown mutant {name:?}"))?;
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
        bail!("the mutant did not hang; the checker reports: {diagnostic}");
    };
    let elapsed = start.elapsed();
    let report = error.to_string();
    ensure!(
        error.code() == "hang",
        "expected the report of a hang, got: {report}"
    );
    let first = report.lines().nth(1).unwrap_or(&report).trim();
    Ok(CaseResult {
        note: Some(format!("reported after {elapsed:.1?}: {first}")),
        // A kernel that cannot leave its wait traps, and the trap ends the context.
        context_lost: true,
        ..CaseResult::default()
    })
}
