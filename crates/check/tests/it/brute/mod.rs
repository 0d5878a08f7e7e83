//! The checker against brute force.
//!
//! The checker decides the kernel of each pipeline for all counts and all schedules at once. An
//! independent machine runs the pipeline through every schedule and every sequence of counts up to
//! a bound. The two results must agree.

mod kernel;
mod machine;
mod pipeline;
mod table;

use machine::{Bound, Found, Kind};
use pipeline::Pipeline;
use std::fmt;
use std::sync::Mutex;
use warpline_check::{Report, examine};
use warpline_testkit::cores::for_each;
use warpline_testkit::full::{few_or, full};
use warpline_testkit::kernel::TARGET;

/// The name prefixes of the pipelines that the checker may leave undecided with `full`, because they
/// reach its limit of states. In the first two, one role can be several tiles behind the others. A
/// state then contains the counts of these tiles, so that each sequence of counts is a separate state.
const UNDECIDED: &[&str] = &["one role ahead", "forwarded", "sequential rings"];

#[test]
fn the_checker_agrees_with_brute_force() {
    let full = full();
    let all = table::pipelines(full).into_iter();
    let pipelines: Vec<_> = all.step_by(few_or(2, 1)).collect();
    let tally = Mutex::new(Tally::default());
    for_each(&pipelines, |pipeline| {
        let report = examine(&kernel::kernel(pipeline), &TARGET);
        let codes: Vec<&str> = report.diagnostics.iter().map(|r| r.code()).collect();
        let found = machine::explore(pipeline, bound(pipeline, full), |kind| {
            codes.iter().any(|c| explains(c, kind))
        });
        let comparison = compare(pipeline, &found, &codes);
        let mut tally = tally.lock().expect("no thread panicked");
        tally.add(pipeline, &found, &report, comparison);
        Ok(())
    });
    let tally = tally.into_inner().expect("no thread panicked");
    println!("{} pipelines: {tally}", pipelines.len());
    assert!(
        tally.disagreements.is_empty(),
        "{}",
        tally.disagreements.join("\n\n")
    );
    assert!(tally.both_pass > 100 && tally.both_fail > 100, "{tally}");
    assert!(full || tally.undecided == 0, "{tally}");
}

/// Returns the bounds of brute force.
fn bound(pipeline: &Pipeline, full: bool) -> Bound {
    let depth = pipeline.depth();
    let most = 2 * depth + 1;
    let (tiles, steps) = match (pipeline.pair, pipeline.per_tile(), pipeline.rings.len()) {
        (true, ..) => (2, if full { 4 } else { 2 }),
        // A ring with one slot per tile wraps around after `depth` tiles.
        (_, true, _) if full => (4, depth + 1),
        (_, true, _) => (6 - depth.max(2), depth + 1),
        (_, _, 1) => (3, if full { most } else { most.min(5) }),
        _ => (2, if full { most } else { 3 }),
    };
    Bound { tiles, steps }
}

/// The comparison of the two results.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Comparison {
    /// Both find no fault.
    BothPass,
    /// Both find the same fault.
    BothFail,
    /// No schedule fails, but nothing orders an arrival or a wait after the previous phase. The
    /// checker refutes that by the rule that requires the order.
    PhaseNotOrdered,
    /// The results differ, because the checker decides a branch on a count separately from the loop
    /// over the same count in another role.
    SeparateDecision,
    /// The checker does not decide.
    Undecided,
    /// The results disagree.
    Differs(&'static str),
}

fn compare(pipeline: &Pipeline, found: &Found, codes: &[&str]) -> Comparison {
    let skips = pipeline.roles.iter().any(|r| r.skips);
    let undecided = codes.contains(&"U.states");
    match (found.faults.is_empty(), codes.is_empty()) {
        (true, true) => Comparison::BothPass,
        (false, true) => Comparison::Differs("the checker proves it"),
        _ if undecided && UNDECIDED.iter().any(|u| pipeline.name.starts_with(u)) => {
            Comparison::Undecided
        }
        _ if undecided => Comparison::Differs("the checker does not decide it"),
        (true, false) if codes.iter().all(|c| requires_order(c)) => Comparison::PhaseNotOrdered,
        (true, false) if skips => Comparison::SeparateDecision,
        (true, false) => Comparison::Differs("the checker refutes it"),
        (false, false) => {
            let fits = |c: &&str| found.faults.iter().any(|f| explains(c, f.kind));
            match codes.iter().all(fits) {
                true => Comparison::BothFail,
                false if skips => Comparison::SeparateDecision,
                false => Comparison::Differs("the checker refutes it for another reason"),
            }
        }
    }
}

/// Does a rule require that an arrival or a wait is ordered after the previous phase?
fn requires_order(code: &str) -> bool {
    matches!(code, "R1.phase" | "R3.parity")
}

/// Does a fault of this kind break the rule?
fn explains(code: &str, kind: Kind) -> bool {
    let rules: &[&str] = match kind {
        Kind::Hang => &[
            "R1.arrivals",
            "R2.bytes",
            "R4.trips",
            "R8.agree",
            "R17.cycle",
        ],
        Kind::Race => &["R1.arrivals", "R2.bytes", "R3.order"],
        Kind::Overrun => &["R1.arrivals"],
        Kind::Flight => &["R3.order"],
        Kind::Leftover => &["R1.arrivals", "R2.bytes"],
    };
    requires_order(code) || rules.contains(&code)
}

/// The comparisons of all pipelines.
#[derive(Default)]
struct Tally {
    both_pass: usize,
    both_fail: usize,
    phase_not_ordered: usize,
    separate_decision: usize,
    undecided: usize,
    /// The states of brute force.
    brute: usize,
    /// The states of the checker.
    checker: u64,
    disagreements: Vec<String>,
}

impl Tally {
    fn add(&mut self, pipeline: &Pipeline, found: &Found, report: &Report, comparison: Comparison) {
        self.brute += found.states;
        self.checker += report.states;
        match comparison {
            Comparison::BothPass => self.both_pass += 1,
            Comparison::BothFail => self.both_fail += 1,
            Comparison::PhaseNotOrdered => self.phase_not_ordered += 1,
            Comparison::SeparateDecision => self.separate_decision += 1,
            Comparison::Undecided => self.undecided += 1,
            Comparison::Differs(how) => {
                let reports: Vec<_> = report.diagnostics.iter().map(|r| r.to_string()).collect();
                let mut text = format!("{}: {how}: {reports:#?}", pipeline.name);
                for f in &found.faults {
                    text += &format!("\n{:?}:\n  {}", f.kind, f.schedule.join("\n  "));
                }
                self.disagreements.push(text);
            }
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            both_pass,
            both_fail,
            phase_not_ordered,
            separate_decision,
            undecided,
            brute,
            checker,
            disagreements,
        } = self;
        write!(
            f,
            "{both_pass} correct and proved, {both_fail} faulty and refuted, {phase_not_ordered} with unordered phases, \
             {separate_decision} with a branch on a count, {undecided} undecided, {} with different results; \
             {brute} states by brute force, {checker} of the checker",
            disagreements.len()
        )
    }
}
