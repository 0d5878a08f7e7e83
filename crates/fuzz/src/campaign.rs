//! Many kernels, one after the other or in parallel.

use crate::differential::{Effort, Outcomes, Subject, Verdict};
use crate::report::{Finding, Report, Sort};
use crate::rng::Rng;
use crate::{generate, mutate};
use rayon::prelude::*;

/// The kernel of a seed: one of three is correct, one has a twist, one has mutations.
pub fn subject(seed: u64) -> Subject {
    let mut rng = Rng::new(seed ^ 0x5eed);
    let twisted = rng.below(3) == 1;
    let mutated = !twisted && rng.one_in(2);
    let mut subject = Subject {
        plan: generate::plan(seed, twisted),
        mutations: Vec::new(),
    };
    if mutated && let Some(mut kernel) = subject.kernel() {
        for _ in 0..1 + rng.below(2) {
            let Some(mutation) = mutate::random(&kernel, &mut rng) else {
                continue;
            };
            let Some(changed) = mutate::apply(&kernel, mutation) else {
                continue;
            };
            subject.mutations.push(mutation);
            kernel = changed;
        }
    }
    subject
}

/// Judges `count` kernels from `seed` on; stops early when `go_on` of the number done says so.
pub fn run(seed: u64, count: u64, effort: Effort, go_on: &(dyn Fn(u64) -> bool + Sync)) -> Report {
    let mut report = Report::default();
    let batch = 64u64;
    let mut done = 0;
    while done < count {
        let many = batch.min(count - done);
        let parts: Vec<Report> = (done..done + many)
            .into_par_iter()
            .map(|i| one(seed.wrapping_add(i), effort))
            .collect();
        for part in parts {
            report.add(part);
        }
        done += many;
        if !go_on(done) {
            break;
        }
    }
    report
}

/// Judges the kernel of one seed.
pub fn one(seed: u64, effort: Effort) -> Report {
    let subject = subject(seed);
    let correct = subject.is_correct();
    let mut report = Report {
        kernels: 1,
        changed: u64::from(!correct),
        ..Report::default()
    };
    let Some(outcomes) = subject.judge(seed, effort) else {
        report.unbuilt = 1;
        return report;
    };
    match outcomes.verdict {
        Verdict::Proved => report.proved = 1,
        Verdict::Refuted(_) => report.refuted = 1,
        Verdict::Undecided(_) => report.undecided = 1,
        Verdict::Panicked => {}
    }
    if subject.plan.is_twisted() {
        let twisted = report.twists.entry(subject.cause()).or_default();
        match (&outcomes.verdict, &outcomes.failure) {
            (Verdict::Proved, None) => twisted.harmless = 1,
            (Verdict::Proved, Some(_)) => twisted.wrong = 1,
            (Verdict::Undecided(_), _) => twisted.undecided = 1,
            _ => twisted.refuted = 1,
        }
    }
    if let Some(sort) = sort(correct, &outcomes) {
        report.findings.push(Finding {
            seed,
            sort,
            cause: subject.cause(),
            subject,
            outcomes,
        });
    }
    report
}

/// What kind of finding it is, if it is one.
pub fn sort(correct: bool, outcomes: &Outcomes) -> Option<Sort> {
    match &outcomes.verdict {
        _ if outcomes.failure.is_some() && correct => Some(Sort::Generator),
        Verdict::Proved if outcomes.failure.is_some() => Some(Sort::Unsound),
        Verdict::Refuted(_) if correct => Some(Sort::FalseAlarm),
        Verdict::Undecided(_) if correct => Some(Sort::Undecided),
        Verdict::Panicked => Some(Sort::Panic),
        _ => None,
    }
}
