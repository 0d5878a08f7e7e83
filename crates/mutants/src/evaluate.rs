//! Checks kernels and their mutants, and counts the verdicts.

use crate::equivalent::{EquivalentMutant, EquivalentMutants};
use crate::kinds;
use crate::mutation::{Mutation, mutations, select_mutations};
use crate::original::OriginalKernel;
use rayon::prelude::*;
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};
use warpline_check::{Verdict, examine};
use warpline_ir::Target;

/// The verdicts of the mutants of one kind.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct KindCounts {
    /// The kind.
    pub kind: &'static str,
    /// The number of mutants.
    pub made: usize,
    /// The refuted mutants.
    pub killed: usize,
    /// The undecided mutants.
    pub undecided: usize,
    /// The proved mutants.
    pub survived: usize,
}

/// A mutant that the checker did not refute.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct UnrefutedMutant {
    /// The name of the kernel.
    pub kernel: String,
    /// The name of the mutant.
    pub mutant: String,
    /// The author's line.
    pub at: String,
    /// The reason why a proved mutant is equivalent to its kernel, or the undecided diagnostic.
    pub reason: Option<String>,
}

/// A shipped kernel that was not proved.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FalseAlarm {
    /// The name of the kernel.
    pub kernel: String,
    /// The verdict: refuted or undecided.
    pub verdict: &'static str,
    /// The first diagnostic.
    pub text: String,
}

/// The slowest check of a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct SlowestCheck {
    /// The name of the kernel.
    pub kernel: String,
    /// The name of the mutant; `None` for the kernel itself.
    pub mutant: Option<String>,
    /// The time of the check in milliseconds.
    pub ms: f64,
}

/// The result of a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct MutantReport {
    /// The number of kernels.
    pub kernels: usize,
    /// The number of mutants.
    pub mutants: usize,
    /// The verdicts by kind.
    pub kinds: Vec<KindCounts>,
    /// The killed mutants by the code of the first broken rule.
    pub rules: BTreeMap<&'static str, usize>,
    /// The proved mutants.
    pub survived: Vec<UnrefutedMutant>,
    /// The undecided mutants.
    pub undecided: Vec<UnrefutedMutant>,
    /// The kernels that were not proved.
    pub false_alarms: Vec<FalseAlarm>,
    /// The entries of the list of equivalent mutants that match no proved mutant of this run.
    pub stale: Vec<String>,
    /// The wall time in seconds.
    pub seconds: f64,
    /// The slowest check.
    pub slowest: SlowestCheck,
}

/// The counts of a whole run, as `--record` writes them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RecordedCounts {
    /// The date of the run, in UTC.
    pub date: String,
    /// The number of kernels.
    pub kernels: usize,
    /// The number of mutants.
    pub mutants: usize,
    /// The refuted mutants.
    pub killed: usize,
    /// The undecided mutants.
    pub undecided: usize,
    /// The proved mutants.
    pub survived: usize,
}

/// The maximum percentage of proved mutants.
const MAX_SURVIVED_PERCENT: usize = 5;

impl MutantReport {
    /// Returns one sentence for each failed requirement; empty if the run passes.
    pub fn failures(&self) -> Vec<String> {
        let unexplained = self.survived.iter().filter(|s| s.reason.is_none()).count();
        let counts = [
            (unexplained, "proved mutants are not listed as equivalent"),
            (self.undecided.len(), "mutants are undecided"),
            (self.false_alarms.len(), "unchanged kernels are not proved"),
            (
                self.stale.len(),
                "entries of equivalent.json match no proved mutant",
            ),
        ];
        let mut failures: Vec<String> = counts
            .iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, failure)| format!("{n} {failure}"))
            .collect();
        if self.survived.len() * 100 > self.mutants * MAX_SURVIVED_PERCENT {
            failures.push(format!(
                "{} of {} mutants are proved, the limit is {MAX_SURVIVED_PERCENT} %",
                self.survived.len(),
                self.mutants
            ));
        }
        failures
    }

    /// Returns the counts with a date.
    pub fn counts(&self, date: String) -> RecordedCounts {
        RecordedCounts {
            date,
            kernels: self.kernels,
            mutants: self.mutants,
            killed: self.kinds.iter().map(|c| c.killed).sum(),
            undecided: self.undecided.len(),
            survived: self.survived.len(),
        }
    }
}

/// The check of one kernel or mutant.
struct CheckResult<'a> {
    original: &'a OriginalKernel,
    mutation: Option<&'a Mutation>,
    verdict: Verdict,
    /// The code and the text of the first diagnostic.
    first: Option<(&'static str, String)>,
    time: Duration,
}

fn check<'a>(
    original: &'a OriginalKernel,
    mutation: Option<&'a Mutation>,
    target: &Target,
) -> CheckResult<'a> {
    let start = Instant::now();
    let report = match mutation {
        None => examine(&original.kernel, target),
        Some(m) => examine(&m.apply(&original.kernel), target),
    };
    let verdict = report.verdict();
    // A refuted kernel may also have undecided diagnostics; those do not refute it.
    let is_decisive =
        |r: &&warpline_check::Diagnostic| r.undecided == (verdict == Verdict::Undecided);
    let first = report.diagnostics.iter().find(is_decisive);
    CheckResult {
        original,
        mutation,
        verdict,
        first: first.map(|r| (r.code(), r.to_string())),
        time: start.elapsed(),
    }
}

/// Makes at most `max` mutants of each kind of every kernel, and checks all of them.
pub fn run(
    originals: &[OriginalKernel],
    max: usize,
    equivalent: &EquivalentMutants,
    target: &Target,
) -> MutantReport {
    let start = Instant::now();
    let selected = select(originals, max);
    let inputs: Vec<(&OriginalKernel, Option<&Mutation>)> = selected
        .iter()
        .flat_map(|(original, all)| {
            let unchanged = std::iter::once((*original, None));
            unchanged.chain(all.iter().map(|m| (*original, Some(m))))
        })
        .collect();
    let results: Vec<CheckResult<'_>> = inputs
        .into_par_iter()
        .map(|(original, m)| check(original, m, target))
        .collect();
    let mut report = count(&results, equivalent);
    report.kernels = selected.len();
    report.seconds = start.elapsed().as_secs_f64();
    report
}

/// Selects the mutations of each kernel. A fallback kernel keeps only the kinds that no other
/// kernel has.
fn select(originals: &[OriginalKernel], max: usize) -> Vec<(&OriginalKernel, Vec<Mutation>)> {
    let all = originals.par_iter().enumerate();
    let mut selected: Vec<(&OriginalKernel, Vec<Mutation>)> = all
        .map(|(turn, s)| (s, select_mutations(mutations(&s.kernel), max, turn)))
        .collect();
    let shipped = selected.iter().filter(|(s, _)| !s.is_fallback);
    let kinds: HashSet<_> = shipped
        .flat_map(|(_, all)| all.iter().map(|m| m.kind.name))
        .collect();
    for (_, all) in selected.iter_mut().filter(|(s, _)| s.is_fallback) {
        all.retain(|m| !kinds.contains(m.kind.name));
    }
    selected.retain(|(s, all)| !s.is_fallback || !all.is_empty());
    selected
}

fn count(results: &[CheckResult<'_>], equivalent: &EquivalentMutants) -> MutantReport {
    let mut report = MutantReport {
        kinds: kinds::ALL
            .iter()
            .map(|kind| KindCounts {
                kind: kind.name,
                ..KindCounts::default()
            })
            .collect(),
        ..MutantReport::default()
    };
    let mut stale: Vec<&EquivalentMutant> = equivalent.0.iter().collect();
    for result in results {
        let kernel = result.original.name.clone();
        let (code, text) = match &result.first {
            Some((code, text)) => (*code, Some(text.clone())),
            None => ("", None),
        };
        let ms = result.time.as_secs_f64() * 1e3;
        if ms > report.slowest.ms {
            report.slowest = SlowestCheck {
                kernel: kernel.clone(),
                mutant: result.mutation.map(Mutation::id),
                ms,
            };
        }
        let Some(mutation) = result.mutation else {
            if result.verdict != Verdict::Proved {
                report.false_alarms.push(FalseAlarm {
                    kernel,
                    verdict: result.verdict.name(),
                    text: text.unwrap_or_default(),
                });
            }
            continue;
        };
        report.mutants += 1;
        let mut mutant = UnrefutedMutant {
            kernel,
            mutant: mutation.id(),
            at: result.original.kernel.locs.show(mutation.loc),
            reason: text,
        };
        let Some(row) = (report.kinds.iter_mut()).find(|c| c.kind == mutation.kind.name) else {
            continue;
        };
        row.made += 1;
        match result.verdict {
            Verdict::Refuted => {
                row.killed += 1;
                *report.rules.entry(code).or_default() += 1;
            }
            Verdict::Undecided => {
                row.undecided += 1;
                report.undecided.push(mutant);
            }
            Verdict::Proved => {
                row.survived += 1;
                let reason = equivalent.reason(&mutant.kernel, &mutant.mutant);
                mutant.reason = reason.map(str::to_owned);
                stale.retain(|s| !s.matches(&mutant.kernel, &mutant.mutant));
                report.survived.push(mutant);
            }
        }
    }
    let name = |s: &EquivalentMutant| format!("{}, {}", s.kernel, s.mutant);
    report.stale = stale.into_iter().map(name).collect();
    report
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpline_ir::{Kernel, builder::*};

    /// Returns a kernel with three mutants that are killed and one that is equivalent.
    fn original() -> OriginalKernel {
        let kernel = Kernel::build("greedy", &Target::SM_90A, |k| {
            k.role("load").warpgroups(1).registers(24).body(|| {});
            let math = k.role("math").warpgroups(2).registers(240);
            math.body(warp_sync);
        });
        OriginalKernel {
            name: "greedy".to_owned(),
            kernel: kernel.expect("a kernel"),
            is_fallback: false,
        }
    }

    fn listed(mutant: &str) -> EquivalentMutant {
        EquivalentMutant {
            kernel: "greedy".to_owned(),
            mutant: mutant.to_owned(),
            reason: "the kernel has no accesses".to_owned(),
        }
    }

    const EQUIVALENT: &str = "drop-warp-sync.0 math: no warp_sync";

    fn report(equivalent: &[&str]) -> MutantReport {
        let equivalent = equivalent.iter().map(|s| listed(s)).collect();
        run(
            &[original()],
            9,
            &EquivalentMutants(equivalent),
            &Target::SM_90A,
        )
    }

    #[test]
    fn killed_and_equivalent_mutants_are_counted() {
        let report = report(&[EQUIVALENT]);
        assert_eq!((report.kernels, report.mutants), (1, 4));
        assert_eq!(report.rules, BTreeMap::from([("R9.pool", 3)]));
        assert_eq!(
            report.survived[0].reason.as_deref(),
            Some("the kernel has no accesses")
        );
        assert!(report.stale.is_empty() && report.false_alarms.is_empty());
        let text = report.to_string();
        assert!(text.contains("4 mutants of 1 kernels"), "{text}");
        let counts = report.counts("2026-11-18".to_owned());
        assert_eq!(
            (counts.killed, counts.undecided, counts.survived),
            (3, 0, 1)
        );
    }

    #[test]
    fn the_list_must_match_the_proved_mutants() {
        let failures = report(&[]).failures();
        assert_eq!(failures[0], "1 proved mutants are not listed as equivalent");
        let killed = "greedy-registers.0 load: 32 registers per thread, not 24";
        let failures = report(&[EQUIVALENT, killed]).failures();
        assert_eq!(
            failures[0],
            "1 entries of equivalent.json match no proved mutant"
        );
    }

    #[test]
    fn too_many_proved_mutants_fail() {
        let failures = report(&[EQUIVALENT]).failures();
        assert_eq!(failures, ["1 of 4 mutants are proved, the limit is 5 %"]);
    }
}
