//! Shrinks findings: fewer steps, simpler expressions, fewer mutations.

use crate::campaign::classify;
use crate::differential::{CaseOutcome, Effort, FuzzCase};
use crate::plan::*;
use crate::report::FuzzFinding;

/// The maximum number of kernels that one shrink checks.
const ATTEMPTS: usize = 250;

/// Shrinks a finding; it keeps its kind and its kind of fault.
pub fn shrink(finding: &FuzzFinding, effort: Effort) -> FuzzFinding {
    let mut best = finding.clone();
    let mut attempts = 0;
    'again: while attempts < ATTEMPTS {
        for candidate in candidates(&best.case) {
            attempts += 1;
            if attempts > ATTEMPTS {
                break;
            }
            let Some(outcome) = candidate.check_and_run(best.seed, effort) else {
                continue;
            };
            let is_same_finding = classify(candidate.is_correct(), &outcome) == Some(best.kind)
                && fault_kind(&outcome) == fault_kind(&best.outcome);
            if is_same_finding {
                best.cause = candidate.cause();
                best.case = candidate;
                best.outcome = outcome;
                continue 'again;
            }
        }
        break;
    }
    best
}

/// Returns the kind of fault of the failed run.
fn fault_kind(outcome: &CaseOutcome) -> Option<&str> {
    outcome.failure.as_ref().map(|f| f.kind.as_str())
}

/// Returns smaller cases, the smallest first.
fn candidates(case: &FuzzCase) -> Vec<FuzzCase> {
    let mut all = Vec::new();
    for i in 0..case.mutations.len() {
        let mut smaller = case.clone();
        smaller.mutations.remove(i);
        all.push(smaller);
    }
    for plan in smaller_plans(&case.plan) {
        all.extend(with_plan(case, plan));
    }
    all
}

/// Returns the case with another plan. The site of a mutation may move, so earlier sites are tried too.
fn with_plan(case: &FuzzCase, plan: FuzzPlan) -> Vec<FuzzCase> {
    let with_plan = FuzzCase {
        plan,
        mutations: case.mutations.clone(),
    };
    let [mutation] = case.mutations[..] else {
        return vec![with_plan];
    };
    let sites = (0..mutation.site).rev().take(24);
    let mut all = vec![with_plan.clone()];
    all.extend(sites.map(|site| {
        let mut other = with_plan.clone();
        other.mutations[0].site = site;
        other
    }));
    all
}

fn smaller_plans(plan: &FuzzPlan) -> Vec<FuzzPlan> {
    let mut all = Vec::new();
    for steps in fewer_steps(&plan.steps) {
        all.push(FuzzPlan {
            steps,
            ..plan.clone()
        });
    }
    if plan.cluster > 1 {
        all.push(FuzzPlan {
            cluster: plan.cluster / 2,
            ..plan.clone()
        });
    }
    for role in 0..plan.warps.len() {
        if plan.warps[role] == 2 {
            let mut one = plan.clone();
            one.warps[role] = 1;
            all.push(one);
        }
    }
    for steps in simpler_steps(&plan.steps) {
        all.push(FuzzPlan {
            steps,
            ..plan.clone()
        });
    }
    all
}

/// Returns the steps without one of them, or with a loop replaced by its body.
fn fewer_steps(steps: &[CommStep]) -> Vec<Vec<CommStep>> {
    let mut all = Vec::new();
    for i in 0..steps.len() {
        let replace_step = |with: Vec<CommStep>| {
            let mut steps = steps.to_vec();
            steps.splice(i..=i, with);
            steps
        };
        all.push(replace_step(Vec::new()));
        if let CommStep::Loop { count, body } = &steps[i] {
            all.push(replace_step(body.clone()));
            for body in fewer_steps(body) {
                let count = count.clone();
                all.push(replace_step(vec![CommStep::Loop { count, body }]));
            }
        }
    }
    all
}

/// Returns the steps with one of them simplified.
fn simpler_steps(steps: &[CommStep]) -> Vec<Vec<CommStep>> {
    let mut all = Vec::new();
    for (i, step) in steps.iter().enumerate() {
        for simple in simpler_step(step) {
            let mut steps = steps.to_vec();
            steps[i] = simple;
            all.push(steps);
        }
    }
    all
}

fn simpler_step(step: &CommStep) -> Vec<CommStep> {
    match step {
        CommStep::Loop { count, body } => {
            let mut all: Vec<CommStep> = simpler_count(count)
                .into_iter()
                .map(|count| CommStep::Loop {
                    count,
                    body: body.clone(),
                })
                .collect();
            all.extend(simpler_steps(body).into_iter().map(|body| CommStep::Loop {
                count: count.clone(),
                body,
            }));
            all
        }
        CommStep::Transfer(t) => simpler_transfer(t)
            .into_iter()
            .map(CommStep::Transfer)
            .collect(),
        CommStep::SyncFreeLoop(q) => simpler_count(&q.count)
            .into_iter()
            .map(|count| CommStep::SyncFreeLoop(SyncFreeLoop { count, ..q.clone() }))
            .collect(),
        CommStep::SharedWord(w) => simpler_count(&w.count)
            .into_iter()
            .filter(|count| w.add > 0 || count.formula != CountFormula::Plain)
            .map(|count| CommStep::SharedWord(SharedWord { count, ..w.clone() }))
            .collect(),
        CommStep::Turns(t) => simpler_count(&t.count)
            .into_iter()
            .map(|count| CommStep::Turns(Turns { count, ..t.clone() }))
            .collect(),
        _ => Vec::new(),
    }
}

fn simpler_count(count: &TripCount) -> Vec<TripCount> {
    let mut all = Vec::new();
    let mut add = |c: TripCount| {
        if c != *count {
            all.push(c);
        }
    };
    add(TripCount {
        source: NumberSource::Small,
        conversion: Conversion::Keep,
        formula: CountFormula::Plain,
        forms: vec![0],
        bug: count
            .bug
            .filter(|t| !matches!(t.1, CountBug::Conversion(_) | CountBug::Unsigned)),
    });
    add(TripCount {
        forms: vec![0],
        ..count.clone()
    });
    add(TripCount {
        conversion: Conversion::Keep,
        ..count.clone()
    });
    add(TripCount {
        forms: count.forms.iter().map(|f| f & 7).collect(),
        ..count.clone()
    });
    all
}

fn simpler_transfer(t: &Transfer) -> Vec<Transfer> {
    let mut all = Vec::new();
    let mut add = |x: Transfer| {
        if x != *t {
            all.push(x);
        }
    };
    add(Transfer {
        guard: None,
        ..t.clone()
    });
    for count in simpler_count(&t.count) {
        add(Transfer { count, ..t.clone() });
    }
    add(Transfer {
        loops: [LoopForm::Up; 2],
        ..t.clone()
    });
    for end in 0..2 {
        let (mut loops, mut position) = (t.loops, t.position);
        loops[end] = LoopForm::Up;
        position[end] = RingPosition::Cursor;
        add(Transfer { loops, ..t.clone() });
        add(Transfer {
            position,
            ..t.clone()
        });
    }
    add(Transfer {
        wait: WaitForm::Wait,
        ..t.clone()
    });
    add(Transfer {
        tail: false,
        ..t.clone()
    });
    add(Transfer {
        safe: false,
        ..t.clone()
    });
    add(Transfer {
        stages: 1,
        ..t.clone()
    });
    add(Transfer {
        consumers: vec![t.consumers[0]],
        ..t.clone()
    });
    add(Transfer {
        fill: SlotFill::Stores,
        ..t.clone()
    });
    if let Some(guard) = &t.guard {
        add(Transfer {
            guard: Some(Guard {
                forms: vec![0],
                ..guard.clone()
            }),
            ..t.clone()
        });
    }
    all
}
