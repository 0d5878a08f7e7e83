//! Runs a workload on the CPU executor and applies the checks.

use crate::checks::run_all;
use crate::finding::LintFinding;
use crate::input::LintInput;
use warpline::{Device, Prepared, RunOptions, Timing, estimate, prepare, run};
use warpline_check::Checked;
use warpline_cpu::Stats;
use warpline_ir::Target;
use warpline_kernels::{AnyFamily, AnyWorkload};
use warpline_ptx::ptxas::{KernelReport, Ptxas, PtxasError};
use warpline_ptx::{PtxError, ResourceEstimate, print};

/// The options of a lint.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options<'f> {
    /// The target that kernels are checked and printed for.
    pub target: Target,
    /// The assembler; without it, checks that need it are skipped.
    pub ptxas: Option<Ptxas>,
    /// The family of the workload. Its test cases replace a problem that is too large for the CPU.
    pub family: Option<&'f dyn AnyFamily>,
    /// The longest estimated duration of the run on the CPU executor, in seconds.
    pub seconds: f64,
}

/// The default limit, short enough for interactive use.
const DEFAULT_RUN_LIMIT_S: f64 = 5.0;

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            target: Target::default(),
            ptxas: None,
            family: None,
            seconds: DEFAULT_RUN_LIMIT_S,
        }
    }
}

/// The reason that a lint failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LintError {
    /// The workload cannot be planned, is not proved, or faults.
    #[error(transparent)]
    Run(#[from] warpline::Error),
    /// A kernel cannot be printed.
    #[error(transparent)]
    Print(#[from] PtxError),
    /// ptxas does not run, or rejects a kernel.
    #[error(transparent)]
    Ptxas(#[from] PtxasError),
}

/// Runs a workload on the CPU executor and checks every kernel of its plan.
///
/// If the run would take too long, a smaller problem with the same programs runs instead: one
/// period of the workload, or a test case of its family. If there is none, the checks that need a
/// run are skipped.
pub fn lint(work: &dyn AnyWorkload, options: &Options<'_>) -> Result<Vec<LintFinding>, LintError> {
    let prepared = prepare(work, &options.target)?;
    let stats = match workload_to_run(work, &prepared, options) {
        Ok(RunnableWorkload::Given) => Ok(run_counters(work)?),
        Ok(RunnableWorkload::Smaller(work)) => Ok(run_counters(work.as_ref())?),
        Err(why) => Err(why),
    };
    let mut findings = Vec::new();
    for (i, step) in prepared.steps.iter().enumerate() {
        let stats = match &stats {
            Ok(all) => all
                .get(i)
                .ok_or_else(|| "the run has no counters".to_owned()),
            Err(why) => Err(why.clone()),
        };
        findings.extend(lint_kernel(&step.kernel, stats, options)?);
    }
    Ok(findings)
}

/// Checks one kernel with the counters of a run by the caller.
pub fn lint_run(
    kernel: &Checked,
    stats: &Stats,
    options: &Options<'_>,
) -> Result<Vec<LintFinding>, LintError> {
    lint_kernel(kernel, Ok(stats), options)
}

fn lint_kernel(
    kernel: &Checked,
    stats: Result<&Stats, String>,
    options: &Options<'_>,
) -> Result<Vec<LintFinding>, LintError> {
    let input = LintInput {
        kernel,
        target: &options.target,
        stats,
        ptxas_report: ptxas_report(kernel, options)?,
        estimate: ResourceEstimate::of(kernel, &options.target),
    };
    Ok(run_all(&input))
}

/// Returns the report of ptxas, or the reason that there is none.
fn ptxas_report(
    kernel: &Checked,
    options: &Options<'_>,
) -> Result<Result<KernelReport, String>, LintError> {
    let Some(ptxas) = &options.ptxas else {
        return Ok(Err("no ptxas".to_owned()));
    };
    let ptx = print(kernel, &options.target)?;
    let report = ptxas.assemble(&ptx.text, options.target.name)?.report;
    let entry = report.kernel(&ptx.entry).cloned();
    Ok(entry.ok_or_else(|| format!("the report of ptxas lacks {}", ptx.entry)))
}

/// The workload to run.
enum RunnableWorkload {
    /// The given workload.
    Given,
    /// A smaller problem with the same programs.
    Smaller(Box<dyn AnyWorkload>),
}

/// Returns a workload whose run is short enough, or the reason that there is none.
fn workload_to_run(
    work: &dyn AnyWorkload,
    prepared: &Prepared,
    options: &Options<'_>,
) -> Result<RunnableWorkload, String> {
    let seconds =
        |work: &dyn AnyWorkload| estimate::simulation_seconds(&work.cost(), Timing::Eager, 1);
    if seconds(work) <= options.seconds {
        return Ok(RunnableWorkload::Given);
    }
    let cases = || options.family.map(|f| f.cases(&options.target));
    let others = (work.period().into_iter()).chain(cases().into_iter().flatten().flatten());
    // The largest problem within the limit is the most representative.
    let mut others: Vec<_> = others
        .filter(|o| seconds(o.as_ref()) <= options.seconds)
        .collect();
    others.sort_by(|a, b| b.cost().bytes.total_cmp(&a.cost().bytes));
    let equivalent = others
        .into_iter()
        .find(|o| has_same_programs(o.as_ref(), prepared, options));
    equivalent.map(RunnableWorkload::Smaller).ok_or_else(|| {
        format!(
            "the run would take about {:.0} s, and no smaller problem has the same program",
            seconds(work)
        )
    })
}

/// Does a workload have the same programs?
fn has_same_programs(work: &dyn AnyWorkload, prepared: &Prepared, options: &Options<'_>) -> bool {
    let plan = work.plan(&options.target);
    plan.is_ok_and(|plan| {
        let hashes = plan.steps.iter().map(|s| s.kernel.program_hash());
        hashes.eq(prepared.steps.iter().map(|s| s.hash.to_string()))
    })
}

/// Runs a workload on the CPU executor and returns the counters, by step of the plan.
fn run_counters(work: &dyn AnyWorkload) -> Result<Vec<Stats>, LintError> {
    let mut options = RunOptions::default();
    // The caller has checked the estimated duration.
    options.simulate = true;
    let outcome = run(work, &Device::cpu(), &options)?;
    Ok(outcome
        .kernels
        .into_iter()
        .filter_map(|k| k.stats)
        .collect())
}
