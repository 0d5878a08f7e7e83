//! Makes a finding small: fewer steps, roles' plain writings, fewer mutations.

use crate::campaign::sort;
use crate::differential::{Effort, Outcomes, Subject};
use crate::plan::*;
use crate::report::Finding;

/// The most kernels that one shrink judges.
const ATTEMPTS: usize = 250;

/// Shrinks a finding while it stays one of the same kind, with the same kind of fault.
pub fn shrink(finding: &Finding, effort: Effort) -> Finding {
    let mut best = finding.clone();
    let mut attempts = 0;
    'again: while attempts < ATTEMPTS {
        for candidate in candidates(&best.subject) {
            attempts += 1;
            if attempts > ATTEMPTS {
                break;
            }
            let Some(outcomes) = candidate.judge(best.seed, effort) else {
                continue;
            };
            let same = sort(candidate.is_correct(), &outcomes) == Some(best.sort)
                && fault(&outcomes) == fault(&best.outcomes);
            if same {
                best.cause = candidate.cause();
                best.subject = candidate;
                best.outcomes = outcomes;
                continue 'again;
            }
        }
        break;
    }
    best
}

/// The kind of fault of a failing run.
fn fault(outcomes: &Outcomes) -> Option<&str> {
    outcomes.failure.as_ref().map(|f| f.kind.as_str())
}

/// Smaller subjects, the smallest first.
fn candidates(subject: &Subject) -> Vec<Subject> {
    let mut all = Vec::new();
    for i in 0..subject.mutations.len() {
        let mut less = subject.clone();
        less.mutations.remove(i);
        all.push(less);
    }
    for plan in plans(&subject.plan) {
        all.extend(with_plan(subject, plan));
    }
    all
}

/// The subject with another plan: a mutation may then be at another site.
fn with_plan(subject: &Subject, plan: Plan) -> Vec<Subject> {
    let same = Subject {
        plan,
        mutations: subject.mutations.clone(),
    };
    let [mutation] = subject.mutations[..] else {
        return vec![same];
    };
    let sites = (0..mutation.site).rev().take(24);
    let mut all = vec![same.clone()];
    all.extend(sites.map(|site| {
        let mut other = same.clone();
        other.mutations[0].site = site;
        other
    }));
    all
}

fn plans(plan: &Plan) -> Vec<Plan> {
    let mut all = Vec::new();
    for steps in fewer(&plan.steps) {
        all.push(Plan {
            steps,
            ..plan.clone()
        });
    }
    if plan.cluster > 1 {
        all.push(Plan {
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
    for steps in simpler(&plan.steps) {
        all.push(Plan {
            steps,
            ..plan.clone()
        });
    }
    all
}

/// The steps less one of them; a loop gives way to its body.
fn fewer(steps: &[Step]) -> Vec<Vec<Step>> {
    let mut all = Vec::new();
    for i in 0..steps.len() {
        let put = |with: Vec<Step>| {
            let mut steps = steps.to_vec();
            steps.splice(i..=i, with);
            steps
        };
        all.push(put(Vec::new()));
        if let Step::Loop { count, body } = &steps[i] {
            all.push(put(body.clone()));
            for body in fewer(body) {
                let count = count.clone();
                all.push(put(vec![Step::Loop { count, body }]));
            }
        }
    }
    all
}

/// The steps with one of them simpler.
fn simpler(steps: &[Step]) -> Vec<Vec<Step>> {
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

fn simpler_step(step: &Step) -> Vec<Step> {
    match step {
        Step::Loop { count, body } => {
            let mut all: Vec<Step> = simpler_count(count)
                .into_iter()
                .map(|count| Step::Loop {
                    count,
                    body: body.clone(),
                })
                .collect();
            all.extend(simpler(body).into_iter().map(|body| Step::Loop {
                count: count.clone(),
                body,
            }));
            all
        }
        Step::Transfer(t) => simpler_transfer(t)
            .into_iter()
            .map(Step::Transfer)
            .collect(),
        Step::Quiet(q) => simpler_count(&q.count)
            .into_iter()
            .map(|count| Step::Quiet(Quiet { count, ..q.clone() }))
            .collect(),
        Step::Word(w) => simpler_count(&w.count)
            .into_iter()
            .filter(|count| w.add > 0 || count.shape != Shape::Plain)
            .map(|count| Step::Word(Word { count, ..w.clone() }))
            .collect(),
        Step::Turns(t) => simpler_count(&t.count)
            .into_iter()
            .map(|count| Step::Turns(Turns { count, ..t.clone() }))
            .collect(),
        _ => Vec::new(),
    }
}

fn simpler_count(count: &Count) -> Vec<Count> {
    let mut all = Vec::new();
    let mut add = |c: Count| {
        if c != *count {
            all.push(c);
        }
    };
    add(Count {
        source: Source::Small,
        narrow: Narrow::Keep,
        shape: Shape::Plain,
        forms: vec![0],
        twist: count
            .twist
            .filter(|t| !matches!(t.1, CountTwist::Narrow(_) | CountTwist::Unsigned)),
    });
    add(Count {
        forms: vec![0],
        ..count.clone()
    });
    add(Count {
        narrow: Narrow::Keep,
        ..count.clone()
    });
    add(Count {
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
        position[end] = Position::Cursor;
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
        fill: Fill::Stores,
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
