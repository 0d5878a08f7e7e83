//! Fuzzes many kernels in this process.

use crate::differential::{CaseOutcome, CheckOutcome, Effort, FuzzCase};
use crate::report::{FindingKind, FuzzFinding, FuzzReport};
use crate::rng::Rng;
use crate::{generate, mutate};
use rayon::prelude::*;

/// Returns the kernel of a seed: correct, with an injected bug, or with mutations (a third each).
pub fn random_case(seed: u64) -> FuzzCase {
    let mut rng = Rng::new(seed ^ 0x5eed);
    let has_bug = rng.below(3) == 1;
    let is_mutated = !has_bug && rng.one_in(2);
    let mut case = FuzzCase {
        plan: generate::plan(seed, has_bug),
        mutations: Vec::new(),
    };
    if is_mutated && let Some(mut kernel) = case.kernel() {
        for _ in 0..1 + rng.below(2) {
            let Some(mutation) = mutate::random(&kernel, &mut rng) else {
                continue;
            };
            let Some(changed) = mutate::apply(&kernel, mutation) else {
                continue;
            };
            case.mutations.push(mutation);
            kernel = changed;
        }
    }
    case
}

/// Fuzzes `count` kernels from `seed` on. Stops early if `should_continue` returns false for the number
/// of fuzzed kernels.
pub fn run(
    seed: u64,
    count: u64,
    effort: Effort,
    should_continue: &(dyn Fn(u64) -> bool + Sync),
) -> FuzzReport {
    const BATCH: u64 = 64;
    let mut report = FuzzReport::default();
    let mut done = 0;
    while done < count {
        let batch_len = BATCH.min(count - done);
        let reports: Vec<FuzzReport> = (done..done + batch_len)
            .into_par_iter()
            .map(|i| run_seed(seed.wrapping_add(i), effort))
            .collect();
        for seed_report in reports {
            report.add(seed_report);
        }
        done += batch_len;
        if !should_continue(done) {
            break;
        }
    }
    report
}

/// Fuzzes the kernel of one seed.
pub fn run_seed(seed: u64, effort: Effort) -> FuzzReport {
    let case = random_case(seed);
    let correct = case.is_correct();
    let mut report = FuzzReport {
        kernels: 1,
        changed: u64::from(!correct),
        ..FuzzReport::default()
    };
    let Some(outcome) = case.check_and_run(seed, effort) else {
        report.unbuilt = 1;
        return report;
    };
    match outcome.verdict {
        CheckOutcome::Proved => report.proved = 1,
        CheckOutcome::Refuted(_) => report.refuted = 1,
        CheckOutcome::Undecided(_) => report.undecided = 1,
        CheckOutcome::Panicked => {}
    }
    if case.plan.has_bug() {
        let counts = report.bugs.entry(case.cause()).or_default();
        match (&outcome.verdict, &outcome.failure) {
            (CheckOutcome::Proved, None) => counts.harmless = 1,
            (CheckOutcome::Proved, Some(_)) => counts.unsound = 1,
            (CheckOutcome::Undecided(_), _) => counts.undecided = 1,
            _ => counts.refuted = 1,
        }
    }
    if let Some(kind) = classify(correct, &outcome) {
        report.findings.push(FuzzFinding {
            seed,
            kind,
            cause: case.cause(),
            case,
            outcome,
        });
    }
    report
}

/// Returns the kind of finding, if the outcome is one.
pub fn classify(correct: bool, outcome: &CaseOutcome) -> Option<FindingKind> {
    match &outcome.verdict {
        _ if outcome.failure.is_some() && correct => Some(FindingKind::Generator),
        CheckOutcome::Proved if outcome.failure.is_some() => Some(FindingKind::Unsound),
        CheckOutcome::Refuted(_) if correct => Some(FindingKind::FalseAlarm),
        CheckOutcome::Undecided(_) if correct => Some(FindingKind::Undecided),
        CheckOutcome::Panicked => Some(FindingKind::Panic),
        _ => None,
    }
}
