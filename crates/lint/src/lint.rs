//! The run that the checks read, kept small.

use crate::case::Case;
use crate::checks::look;
use crate::finding::Finding;
use warpline::{Device, Prepared, RunOptions, Timing, estimate, prepare, run};
use warpline_check::Checked;
use warpline_cpu::Stats;
use warpline_ir::Target;
use warpline_kernels::{AnyFamily, AnyWork};
use warpline_ptx::ptxas::{Entry, Ptxas, PtxasError};
use warpline_ptx::{Estimate, PtxError, print};

/// How to lint.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options<'f> {
    /// The machine that kernels are checked and printed for.
    pub target: Target,
    /// The assembler; without one, what needs it is not looked at.
    pub ptxas: Option<Ptxas>,
    /// The family of the work, whose test table has small problems to run
    /// where the caller's is too large.
    pub family: Option<&'f dyn AnyFamily>,
    /// The most seconds that the run may take, as it is estimated.
    pub seconds: f64,
}

/// The most seconds that a lint takes unasked: a checklist is waited for.
const UNASKED_SECONDS: f64 = 5.0;

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            target: Target::default(),
            ptxas: None,
            family: None,
            seconds: UNASKED_SECONDS,
        }
    }
}

/// Why there is no checklist.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The work cannot be planned, is refused, or faults.
    #[error(transparent)]
    Run(#[from] warpline::Error),
    /// A kernel cannot be printed.
    #[error(transparent)]
    Print(#[from] PtxError),
    /// ptxas does not run, or rejects a kernel.
    #[error(transparent)]
    Ptxas(#[from] PtxasError),
}

/// Runs work on the simulator and looks at every kernel of its plan.
///
/// Work that would take too long is not run: a smaller problem is that makes
/// the same programs, the one that it repeats or one of its family's table.
/// Where there is none, the checks that read a run say so.
pub fn lint(work: &dyn AnyWork, options: &Options<'_>) -> Result<Vec<Finding>, Error> {
    let prepared = prepare(work, &options.target)?;
    let stats = match small(work, &prepared, options) {
        Ok(Small::Same) => Ok(counted(work)?),
        Ok(Small::Other(work)) => Ok(counted(work.as_ref())?),
        Err(why) => Err(why),
    };
    let mut findings = Vec::new();
    for (i, step) in prepared.steps.iter().enumerate() {
        let stats = match &stats {
            Ok(all) => all.get(i).ok_or_else(|| "nothing was counted".to_owned()),
            Err(why) => Err(why.clone()),
        };
        findings.extend(look_at(&step.kernel, stats, options)?);
    }
    Ok(findings)
}

/// Looks at one kernel, of which the caller has run a launch on the simulator.
pub fn lint_run(
    kernel: &Checked,
    stats: &Stats,
    options: &Options<'_>,
) -> Result<Vec<Finding>, Error> {
    look_at(kernel, Ok(stats), options)
}

fn look_at(
    kernel: &Checked,
    stats: Result<&Stats, String>,
    options: &Options<'_>,
) -> Result<Vec<Finding>, Error> {
    let case = Case {
        kernel,
        target: &options.target,
        stats,
        entry: assembled(kernel, options)?,
        estimate: Estimate::of(kernel, &options.target),
    };
    Ok(look(&case))
}

/// What ptxas says of a kernel, or why it does not.
fn assembled(kernel: &Checked, options: &Options<'_>) -> Result<Result<Entry, String>, Error> {
    let Some(ptxas) = &options.ptxas else {
        return Ok(Err("no ptxas".to_owned()));
    };
    let ptx = print(kernel, &options.target)?;
    let report = ptxas.assemble(&ptx.text, options.target.name)?.report;
    let entry = report.entry(&ptx.entry).cloned();
    Ok(entry.ok_or_else(|| format!("ptxas says nothing of {}", ptx.entry)))
}

/// What is run.
enum Small {
    /// The work itself.
    Same,
    /// A smaller problem that makes the same programs.
    Other(Box<dyn AnyWork>),
}

/// Something that does not take too long, or why nothing is run.
fn small(work: &dyn AnyWork, made: &Prepared, options: &Options<'_>) -> Result<Small, String> {
    let seconds = |work: &dyn AnyWork| estimate::simulation_seconds(&work.cost(), Timing::Eager, 1);
    if seconds(work) <= options.seconds {
        return Ok(Small::Same);
    }
    let table = || options.family.map(|f| f.cases(&options.target));
    let others = (work.period().into_iter()).chain(table().into_iter().flatten().flatten());
    // The largest that is small enough says the most.
    let mut others: Vec<_> = others
        .filter(|o| seconds(o.as_ref()) <= options.seconds)
        .collect();
    others.sort_by(|a, b| b.cost().bytes.total_cmp(&a.cost().bytes));
    let alike = others
        .into_iter()
        .find(|o| makes(o.as_ref(), made, options));
    alike.map(Small::Other).ok_or_else(|| {
        format!(
            "the run would take about {:.0} s, and no smaller problem makes the same program",
            seconds(work)
        )
    })
}

/// Does work make the same programs?
fn makes(work: &dyn AnyWork, made: &Prepared, options: &Options<'_>) -> bool {
    let plan = work.plan(&options.target);
    plan.is_ok_and(|plan| {
        let hashes = plan.steps.iter().map(|s| s.kernel.program_hash());
        hashes.eq(made.steps.iter().map(|s| s.hash.to_string()))
    })
}

/// What the simulator counts, by step of the plan.
fn counted(work: &dyn AnyWork) -> Result<Vec<Stats>, Error> {
    let mut how = RunOptions::default();
    // How long it takes was looked at before.
    how.simulate = true;
    let outcome = run(work, &Device::cpu(), &how)?;
    Ok(outcome
        .kernels
        .into_iter()
        .filter_map(|k| k.stats)
        .collect())
}
