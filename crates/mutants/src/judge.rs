//! What the checker says of kernels and their mutants.

use crate::kinds;
use crate::mutation::{Mutation, mutations, pick};
use crate::subject::Subject;
use crate::survivors::{Survivor, Survivors};
use rayon::prelude::*;
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};
use warpline_check::{Verdict, examine};
use warpline_ir::Target;

/// What became of the mutants of one kind.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Count {
    /// The kind.
    pub kind: &'static str,
    /// Mutants that were made.
    pub made: usize,
    /// Those that were refused.
    pub killed: usize,
    /// Those of which the checker could not decide.
    pub undecided: usize,
    /// Those that were proved.
    pub survived: usize,
}

/// A mutant that was not refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Found {
    /// The kernel.
    pub subject: String,
    /// The mutant.
    pub mutant: String,
    /// The author's line.
    pub at: String,
    /// Why it may survive, or what could not be decided.
    pub why: Option<String>,
}

/// A kernel that ships and was not proved.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FalseAlarm {
    /// The kernel.
    pub subject: String,
    /// Refused or undecided.
    pub outcome: &'static str,
    /// The first thing that was found.
    pub text: String,
}

/// What took the checker longest.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Slowest {
    /// The kernel.
    pub subject: String,
    /// The mutant; none: the kernel itself.
    pub mutant: Option<String>,
    /// How long it took.
    pub ms: f64,
}

/// What became of all of them.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Report {
    /// Kernels.
    pub subjects: usize,
    /// Mutants.
    pub mutants: usize,
    /// By kind.
    pub kinds: Vec<Count>,
    /// Kills by the code of the first rule that was broken.
    pub rules: BTreeMap<&'static str, usize>,
    /// Mutants that were proved, with the reason if there is one.
    pub survivors: Vec<Found>,
    /// Mutants of which the checker could not decide.
    pub undecided: Vec<Found>,
    /// Kernels that were not proved.
    pub false_alarms: Vec<FalseAlarm>,
    /// Survivors of the list that were killed, or were not made.
    pub stale: Vec<String>,
    /// Wall time of it all.
    pub seconds: f64,
    /// What took longest.
    pub slowest: Slowest,
}

/// The largest share of mutants that may be as good as their kernel, in percent.
const MOST_SURVIVORS: usize = 5;

impl Report {
    /// Everything that is not as it should be, one sentence each; none: all is well.
    pub fn failures(&self) -> Vec<String> {
        let unexplained = self.survivors.iter().filter(|s| s.why.is_none()).count();
        let counts = [
            (unexplained, "survived without a reason"),
            (self.undecided.len(), "could not be decided"),
            (self.false_alarms.len(), "were not broken and not proved"),
            (self.stale.len(), "are listed as survivors and are not"),
        ];
        let mut all: Vec<String> = counts
            .iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, what)| format!("{n} {what}"))
            .collect();
        if self.survivors.len() * 100 > self.mutants * MOST_SURVIVORS {
            all.push(format!(
                "{} of {} survived, which is more than {MOST_SURVIVORS} %",
                self.survivors.len(),
                self.mutants
            ));
        }
        all
    }
}

/// One answer of the checker.
struct Answer<'a> {
    subject: &'a Subject,
    mutation: Option<&'a Mutation>,
    outcome: Verdict,
    /// The first thing found: the rule's code, and the sentence.
    first: Option<(&'static str, String)>,
    time: Duration,
}

fn ask<'a>(subject: &'a Subject, mutation: Option<&'a Mutation>, target: &Target) -> Answer<'a> {
    let start = Instant::now();
    let report = match mutation {
        None => examine(&subject.kernel, target),
        Some(m) => examine(&m.of(&subject.kernel), target),
    };
    let outcome = report.verdict();
    // Of a refused kernel a breach, and not what could not be decided beside it.
    let breach = |r: &&warpline_check::Diagnostic| r.undecided == (outcome == Verdict::Undecided);
    let first = report.diagnostics.iter().find(breach);
    Answer {
        subject,
        mutation,
        outcome,
        first: first.map(|r| (r.code(), r.to_string())),
        time: start.elapsed(),
    }
}

/// Makes at most `most` mutants of each kind of every subject, and asks the checker about all.
pub fn run(subjects: &[Subject], most: usize, survivors: &Survivors, target: &Target) -> Report {
    let start = Instant::now();
    let chosen = choose(subjects, most);
    let questions: Vec<(&Subject, Option<&Mutation>)> = chosen
        .iter()
        .flat_map(|(s, all)| {
            let itself = std::iter::once((*s, None));
            itself.chain(all.iter().map(|m| (*s, Some(m))))
        })
        .collect();
    let answers: Vec<Answer<'_>> = questions
        .into_par_iter()
        .map(|(s, m)| ask(s, m, target))
        .collect();
    let mut report = count(&answers, survivors);
    report.subjects = chosen.len();
    report.seconds = start.elapsed().as_secs_f64();
    report
}

/// The subjects that are broken, and how.
fn choose(subjects: &[Subject], most: usize) -> Vec<(&Subject, Vec<Mutation>)> {
    let all = subjects.par_iter().enumerate();
    let mut chosen: Vec<(&Subject, Vec<Mutation>)> = all
        .map(|(turn, s)| (s, pick(mutations(&s.kernel), most, turn)))
        .collect();
    let ships = chosen.iter().filter(|(s, _)| !s.spare);
    let kinds: HashSet<_> = ships
        .flat_map(|(_, all)| all.iter().map(|m| m.kind.name))
        .collect();
    for (_, all) in chosen.iter_mut().filter(|(s, _)| s.spare) {
        all.retain(|m| !kinds.contains(m.kind.name));
    }
    chosen.retain(|(s, all)| !s.spare || !all.is_empty());
    chosen
}

fn count(answers: &[Answer<'_>], survivors: &Survivors) -> Report {
    let mut report = Report {
        kinds: kinds::ALL
            .iter()
            .map(|kind| Count {
                kind: kind.name,
                ..Count::default()
            })
            .collect(),
        ..Report::default()
    };
    let mut stale: Vec<&Survivor> = survivors.0.iter().collect();
    for answer in answers {
        let subject = answer.subject.name.clone();
        let (code, text) = match &answer.first {
            Some((code, text)) => (*code, Some(text.clone())),
            None => ("", None),
        };
        let ms = answer.time.as_secs_f64() * 1e3;
        if ms > report.slowest.ms {
            report.slowest = Slowest {
                subject: subject.clone(),
                mutant: answer.mutation.map(Mutation::id),
                ms,
            };
        }
        let Some(mutation) = answer.mutation else {
            if answer.outcome != Verdict::Proved {
                report.false_alarms.push(FalseAlarm {
                    subject,
                    outcome: answer.outcome.name(),
                    text: text.unwrap_or_default(),
                });
            }
            continue;
        };
        report.mutants += 1;
        let mut found = Found {
            subject,
            mutant: mutation.id(),
            at: answer.subject.kernel.locs.show(mutation.loc),
            why: text,
        };
        let Some(row) = (report.kinds.iter_mut()).find(|c| c.kind == mutation.kind.name) else {
            continue;
        };
        row.made += 1;
        match answer.outcome {
            Verdict::Refuted => {
                row.killed += 1;
                *report.rules.entry(code).or_default() += 1;
            }
            Verdict::Undecided => {
                row.undecided += 1;
                report.undecided.push(found);
            }
            Verdict::Proved => {
                row.survived += 1;
                let why = survivors.why(&found.subject, &found.mutant);
                found.why = why.map(str::to_owned);
                stale.retain(|s| !s.is(&found.subject, &found.mutant));
                report.survivors.push(found);
            }
        }
    }
    let told = |s: &Survivor| format!("{}, {}", s.subject, s.mutant);
    report.stale = stale.into_iter().map(told).collect();
    report
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpline_ir::{Kernel, builder::*};

    /// A kernel of two mutants that are killed, and one that changes nothing that matters.
    fn subject() -> Subject {
        let kernel = Kernel::build("greedy", &Target::SM_90A, |k| {
            k.role("load").warpgroups(1).registers(24).body(|| {});
            let math = k.role("math").warpgroups(2).registers(240);
            math.body(warp_sync);
        });
        Subject {
            name: "greedy".to_owned(),
            kernel: kernel.expect("a kernel"),
            spare: false,
        }
    }

    fn survivor(mutant: &str) -> Survivor {
        Survivor {
            subject: "greedy".to_owned(),
            mutant: mutant.to_owned(),
            why: "nothing is read".to_owned(),
        }
    }

    const ALIVE: &str = "drop-warp-sync.0 math: no warp_sync";

    fn report(survivors: &[&str]) -> Report {
        let survivors = survivors.iter().map(|s| survivor(s)).collect();
        run(&[subject()], 9, &Survivors(survivors), &Target::SM_90A)
    }

    #[test]
    fn kills_and_survivors_are_counted() {
        let report = report(&[ALIVE]);
        assert_eq!((report.subjects, report.mutants), (1, 4));
        assert_eq!(report.rules, BTreeMap::from([("R9.pool", 3)]));
        assert_eq!(report.survivors[0].why.as_deref(), Some("nothing is read"));
        assert!(report.stale.is_empty() && report.false_alarms.is_empty());
        let text = report.to_string();
        assert!(text.contains("4 mutants of 1 kernels"), "{text}");
    }

    #[test]
    fn a_survivor_needs_a_reason_and_a_reason_a_survivor() {
        let failures = report(&[]).failures();
        assert_eq!(failures[0], "1 survived without a reason");
        let killed = "greedy-registers.0 load: 32 registers per thread, not 24";
        let failures = report(&[ALIVE, killed]).failures();
        assert_eq!(failures[0], "1 are listed as survivors and are not");
    }

    #[test]
    fn few_may_survive() {
        let failures = report(&[ALIVE]).failures();
        assert_eq!(failures, ["1 of 4 survived, which is more than 5 %"]);
    }
}
