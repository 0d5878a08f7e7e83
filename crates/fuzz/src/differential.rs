//! One kernel against the checker and the executor.

use crate::brute::{Explored, explore};
use crate::launch::{Values, small_values, values};
use crate::mutate::{self, Mutation};
use crate::plan::{Plan, Step};
use crate::project;
use serde::{Deserialize, Serialize};
use std::panic::{AssertUnwindSafe, catch_unwind};
use warpline_check::examine;
use warpline_cpu::{Options, Timing, run};
use warpline_ir::Kernel;

/// A kernel: a plan, and mutations of its statements.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Subject {
    /// The plan.
    pub plan: Plan,
    /// Mutations, in this order.
    #[serde(default)]
    pub mutations: Vec<Mutation>,
}

/// How thoroughly a proved kernel is run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Effort {
    /// Launches.
    pub launches: usize,
    /// Seeds of the random timing for each launch.
    pub seeds: u64,
    /// Statements of a run.
    pub steps: u64,
    /// States of an exploration of all orders; 0 explores nothing.
    pub states: usize,
}

impl Effort {
    /// What a campaign runs.
    pub const NORMAL: Self = Self {
        launches: 8,
        seeds: 2,
        steps: 300_000,
        states: 0,
    };

    /// As [`NORMAL`](Self::NORMAL), with an exploration of all orders.
    pub const BRUTE: Self = Self {
        states: 1500,
        ..Self::NORMAL
    };
}

/// What the checker says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Verdict {
    /// Proved.
    Proved,
    /// Refuted, with the rule and the sentence.
    Refuted(String),
    /// Undecided, with the rule and the sentence.
    Undecided(String),
    /// The checker panicked.
    Panicked,
}

/// A run that goes wrong.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// The launch.
    pub values: Values,
    /// The timing.
    pub timing: String,
    /// The seed of the random timing.
    pub seed: u64,
    /// The kind of fault.
    pub kind: String,
    /// The fault in words.
    pub text: String,
}

/// What came of a kernel.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Outcomes {
    /// The checker's verdict.
    pub verdict: Verdict,
    /// The first run that went wrong; proved and correct kernels are run.
    pub failure: Option<Failure>,
}

impl Outcomes {
    /// Proved, and a run goes wrong?
    pub fn is_unsound(&self) -> bool {
        self.failure.is_some() && self.verdict == Verdict::Proved
    }
}

impl Subject {
    /// The kernel; `None` where it cannot be built or a mutation does not apply.
    pub fn kernel(&self) -> Option<Kernel> {
        let mut kernel = project::kernel(&self.plan).ok()?;
        for &mutation in &self.mutations {
            kernel = mutate::apply(&kernel, mutation)?;
        }
        Some(kernel)
    }

    /// Is the kernel correct by construction?
    pub fn is_correct(&self) -> bool {
        self.mutations.is_empty() && !self.plan.is_twisted()
    }

    /// Has the checker judge the kernel, and runs it if it is proved.
    pub fn judge(&self, seed: u64, effort: Effort) -> Option<Outcomes> {
        let kernel = self.kernel()?;
        let (verdict, assumed) = verdict(&kernel);
        let failure = match verdict {
            Verdict::Proved => self.run(&kernel, seed, effort, &assumed),
            // The executor holds the generator to its word.
            _ if self.is_correct() => self.run(&kernel, seed, effort, &[]),
            _ => None,
        };
        Some(Outcomes { verdict, failure })
    }

    /// Runs the kernel over launches and timings; gives the first failure that the proof did not
    /// leave to the author: `assumed` are the codes of its assumptions.
    pub fn run(
        &self,
        kernel: &Kernel,
        seed: u64,
        effort: Effort,
        assumed: &[&str],
    ) -> Option<Failure> {
        let launches = values(&self.plan, seed, effort.launches);
        let counts = |f: &Failure| !self.is_left_open(f, assumed);
        let run = |values: &Values| self.run_with(kernel, values, effort).filter(counts);
        launches
            .iter()
            .find_map(run)
            .or_else(|| self.explore(kernel, seed, effort).filter(counts))
    }

    /// Is a failure of a mutated kernel none that the proof excludes?
    fn is_left_open(&self, failure: &Failure, assumed: &[&str]) -> bool {
        let mutated = |kind| self.mutations.iter().any(|m| m.kind == kind);
        let kind = failure.kind.as_str();
        let left = match kind {
            "Race" if failure.text.contains("of buffer") => assumed.contains(&"A.writer"),
            "Deadlock" | "Limit" if failure.text.contains("polls") => {
                assumed.contains(&"A.lock") || assumed.contains(&"A.flags")
            }
            // The checker follows who may touch what, not what was written before.
            "NeverWritten" => true,
            // Which lane `elect` picks decides, and no order.
            "Result" => mutated(mutate::Kind::Branch),
            _ => false,
        };
        left && !self.mutations.is_empty()
    }

    /// Explores all orders of a few small launches; gives the first that goes wrong.
    pub fn explore(&self, kernel: &Kernel, seed: u64, effort: Effort) -> Option<Failure> {
        if effort.states == 0 {
            return None;
        }
        for values in small_values(&self.plan, seed) {
            let explored = explore(&self.plan, kernel, &values, effort.states);
            if let Explored::Wrong(kind, text) = explored {
                return Some(Failure {
                    values,
                    timing: "all orders".to_owned(),
                    seed: 0,
                    kind,
                    text,
                });
            }
        }
        None
    }

    /// Runs the kernel with one launch.
    pub fn run_with(&self, kernel: &Kernel, values: &Values, effort: Effort) -> Option<Failure> {
        let timings = [(Timing::Eager, 0), (Timing::Late, 0)];
        let random = (0..effort.seeds).map(|s| (Timing::Random, s + 1));
        let mut expected: Option<Vec<u8>> = None;
        for (timing, seed) in timings.into_iter().chain(random) {
            let failure = |kind: String, text: String| {
                Some(Failure {
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
            for (at, bytes) in outputs {
                result.extend(memory.read_lossy(at, bytes).unwrap_or_default());
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

/// The checker's verdict of a kernel.
pub fn verdict(kernel: &Kernel) -> (Verdict, Vec<&'static str>) {
    let report = catch_unwind(AssertUnwindSafe(|| examine(kernel, &kernel.target)));
    let Ok(report) = report else {
        return (Verdict::Panicked, Vec::new());
    };
    let assumed = report.assumptions.iter().map(|a| a.code).collect();
    let said = || {
        let all = report.diagnostics.iter();
        all.map(|r| format!("{}: {}", r.code(), r.text))
            .next()
            .unwrap_or_default()
    };
    let verdict = match report.verdict() {
        warpline_check::Verdict::Proved => Verdict::Proved,
        warpline_check::Verdict::Refuted => Verdict::Refuted(said()),
        warpline_check::Verdict::Undecided => Verdict::Undecided(said()),
    };
    (verdict, assumed)
}

impl Plan {
    /// Do results depend on the order of CTAs, although nothing is wrong?
    fn is_order_dependent(&self) -> bool {
        let mut found = false;
        self.each_step(&mut |s| found |= matches!(s, Step::Flags(f) if f.once));
        found
    }
}
