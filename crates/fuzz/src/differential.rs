//! Compares the verdict of the checker with runs of one kernel.

use crate::brute::{Exploration, explore};
use crate::launch::{FuzzLaunchValues, launch_values, small_launch_values};
use crate::mutate::{self, FuzzMutation};
use crate::plan::{CommStep, FuzzPlan};
use crate::project;
use serde::{Deserialize, Serialize};
use std::panic::{AssertUnwindSafe, catch_unwind};
use warpline_check::examine;
use warpline_cpu::{Options, Timing, run};
use warpline_ir::Kernel;

/// A fuzzed kernel: a plan and mutations of its statements.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FuzzCase {
    /// The plan.
    pub plan: FuzzPlan,
    /// The mutations, in order of application.
    #[serde(default)]
    pub mutations: Vec<FuzzMutation>,
}

/// The effort to find a failing run of a kernel.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Effort {
    /// The number of launches.
    pub launches: usize,
    /// The number of seeds of the random timing for each launch.
    pub seeds: u64,
    /// The maximum number of statements of a run.
    pub steps: u64,
    /// The maximum number of states of an exploration of all interleavings; 0 disables it.
    pub states: usize,
}

impl Effort {
    /// The default.
    pub const NORMAL: Self = Self {
        launches: 8,
        seeds: 2,
        steps: 300_000,
        states: 0,
    };

    /// As [`NORMAL`](Self::NORMAL), with an exploration of all interleavings.
    pub const BRUTE: Self = Self {
        states: 1500,
        ..Self::NORMAL
    };
}

/// The verdict of the checker, or a panic.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum CheckOutcome {
    /// Proved.
    Proved,
    /// Refuted, with the code and the text of the first diagnostic.
    Refuted(String),
    /// Undecided, with the code and the text of the first diagnostic.
    Undecided(String),
    /// The checker panicked.
    Panicked,
}

/// A run that fails.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FailedRun {
    /// The launch.
    pub values: FuzzLaunchValues,
    /// The timing.
    pub timing: String,
    /// The seed of the random timing.
    pub seed: u64,
    /// The kind of fault.
    pub kind: String,
    /// The description of the fault.
    pub text: String,
}

/// The verdict of the checker and the first failed run of a kernel.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CaseOutcome {
    /// The checker's verdict.
    pub verdict: CheckOutcome,
    /// The first failed run; only proved and correct kernels run.
    pub failure: Option<FailedRun>,
}

impl CaseOutcome {
    /// Returns whether the kernel was proved and a run failed.
    pub fn is_unsound(&self) -> bool {
        self.failure.is_some() && self.verdict == CheckOutcome::Proved
    }
}

impl FuzzCase {
    /// Builds the kernel; `None` if it cannot be built or a mutation does not apply.
    pub fn kernel(&self) -> Option<Kernel> {
        let mut kernel = project::kernel(&self.plan).ok()?;
        for &mutation in &self.mutations {
            kernel = mutate::apply(&kernel, mutation)?;
        }
        Some(kernel)
    }

    /// Returns whether the kernel is correct by construction.
    pub fn is_correct(&self) -> bool {
        self.mutations.is_empty() && !self.plan.has_bug()
    }

    /// Checks the kernel, and runs it if it is proved or correct.
    pub fn check_and_run(&self, seed: u64, effort: Effort) -> Option<CaseOutcome> {
        let kernel = self.kernel()?;
        let (verdict, assumed) = verdict(&kernel);
        let failure = match verdict {
            CheckOutcome::Proved => self.run(&kernel, seed, effort, &assumed),
            // The executor tests that the generator makes correct kernels.
            _ if self.is_correct() => self.run(&kernel, seed, effort, &[]),
            _ => None,
        };
        Some(CaseOutcome { verdict, failure })
    }

    /// Runs the kernel over launches and timings, and returns the first failure that the proof should
    /// have excluded. `assumed` has the codes of the assumptions of the proof.
    pub fn run(
        &self,
        kernel: &Kernel,
        seed: u64,
        effort: Effort,
        assumed: &[&str],
    ) -> Option<FailedRun> {
        let launches = launch_values(&self.plan, seed, effort.launches);
        let is_relevant = |f: &FailedRun| !self.is_outside_proof(f, assumed);
        let run =
            |values: &FuzzLaunchValues| self.run_with(kernel, values, effort).filter(is_relevant);
        launches
            .iter()
            .find_map(run)
            .or_else(|| self.explore(kernel, seed, effort).filter(is_relevant))
    }

    /// Returns whether the proof says nothing about this failure of a mutated kernel.
    fn is_outside_proof(&self, failure: &FailedRun, assumed: &[&str]) -> bool {
        let has_mutation = |kind| self.mutations.iter().any(|m| m.kind == kind);
        let kind = failure.kind.as_str();
        let outside = match kind {
            "Race" if failure.text.contains("of buffer") => assumed.contains(&"A.writer"),
            "Deadlock" | "Limit" if failure.text.contains("polls") => {
                assumed.contains(&"A.lock") || assumed.contains(&"A.flags")
            }
            // The checker does not track uninitialized memory.
            "NeverWritten" => true,
            // The result depends on the lane that `elect` picks, not on an order.
            "Result" => has_mutation(mutate::FuzzMutationKind::Branch),
            _ => false,
        };
        outside && !self.mutations.is_empty()
    }

    /// Explores all interleavings of small launches, and returns the first failure.
    pub fn explore(&self, kernel: &Kernel, seed: u64, effort: Effort) -> Option<FailedRun> {
        if effort.states == 0 {
            return None;
        }
        for values in small_launch_values(&self.plan, seed) {
            let explored = explore(&self.plan, kernel, &values, effort.states);
            if let Exploration::Fault(kind, text) = explored {
                return Some(FailedRun {
                    values,
                    timing: "all interleavings".to_owned(),
                    seed: 0,
                    kind,
                    text,
                });
            }
        }
        None
    }

    /// Runs the kernel with one launch.
    pub fn run_with(
        &self,
        kernel: &Kernel,
        values: &FuzzLaunchValues,
        effort: Effort,
    ) -> Option<FailedRun> {
        let timings = [(Timing::Eager, 0), (Timing::Late, 0)];
        let random = (0..effort.seeds).map(|s| (Timing::Random, s + 1));
        let mut expected: Option<Vec<u8>> = None;
        for (timing, seed) in timings.into_iter().chain(random) {
            let failure = |kind: String, text: String| {
                Some(FailedRun {
                    values: values.clone(),
                    timing: timing.name().to_owned(),
                    seed,
                    kind,
                    text,
                })
            };
            let (launch, memory, outputs) = values.launch(&self.plan, kernel);
            let options = Options {
                timing,
                seed,
                threads: 1,
                max_steps: Some(effort.steps),
                ..Options::default()
            };
            if let Err(e) = run(kernel, &launch, &memory, &options) {
                return failure(format!("{:?}", e.kind), e.to_string());
            }
            let mut result = Vec::new();
            for (address, bytes) in outputs {
                result.extend(memory.read_lossy(address, bytes).unwrap_or_default());
            }
            match &expected {
                Some(expected) if *expected != result && !self.plan.is_order_dependent() => {
                    return failure(
                        "Result".to_owned(),
                        "the outputs differ from those of the eager timing".to_owned(),
                    );
                }
                Some(_) => {}
                None => expected = Some(result),
            }
        }
        None
    }
}

/// Checks a kernel; returns the verdict and the codes of the assumptions.
pub fn verdict(kernel: &Kernel) -> (CheckOutcome, Vec<&'static str>) {
    let report = catch_unwind(AssertUnwindSafe(|| examine(kernel, &kernel.target)));
    let Ok(report) = report else {
        return (CheckOutcome::Panicked, Vec::new());
    };
    let assumed = report.assumptions.iter().map(|a| a.code).collect();
    let first = || {
        let all = report.diagnostics.iter();
        all.map(|r| format!("{}: {}", r.code(), r.text))
            .next()
            .unwrap_or_default()
    };
    let verdict = match report.verdict() {
        warpline_check::Verdict::Proved => CheckOutcome::Proved,
        warpline_check::Verdict::Refuted => CheckOutcome::Refuted(first()),
        warpline_check::Verdict::Undecided => CheckOutcome::Undecided(first()),
    };
    (verdict, assumed)
}

impl FuzzPlan {
    /// Returns whether the results of a correct run depend on the order of CTAs.
    fn is_order_dependent(&self) -> bool {
        let mut found = false;
        self.each_step(&mut |s| found |= matches!(s, CommStep::FlagHandshake(f) if f.once));
        found
    }
}
