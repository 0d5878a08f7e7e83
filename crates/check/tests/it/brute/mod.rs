//! The checker against brute force.
//!
//! Each line of a table is built as a kernel, which the checker judges for all counts and all
//! orders at once, and is run by a machine of its own through every order and every sequence of
//! counts up to a bound. The two must agree.

mod kernel;
mod line;
mod machine;
mod table;

use line::Line;
use machine::{Bound, Found, Kind};
use std::fmt;
use std::sync::Mutex;
use warpline_check::{Report, examine};
use warpline_testkit::cores::for_each;
use warpline_testkit::full::full;
use warpline_testkit::kernel::TARGET;

/// Lines on which the checker may give up: it comes to no fixed point, or to a very far one. In
/// the first two a role has yet to come to tiles whose counts others have gone through, and each
/// sequence of counts is a state of its own.
const UNDECIDED: &[&str] = &["told ahead", "handed on", "one then other"];

#[test]
fn the_checker_agrees_with_every_order() {
    let full = full();
    let lines = table::lines(full);
    let tally = Mutex::new(Tally::default());
    for_each(&lines, |line| {
        let report = examine(&kernel::kernel(line), &TARGET);
        let codes: Vec<&str> = report.diagnostics.iter().map(|r| r.code()).collect();
        let found = machine::explore(line, bound(line, full), |kind| {
            codes.iter().any(|c| explains(c, kind))
        });
        let verdict = compare(line, &found, &codes);
        let mut tally = tally.lock().expect("no thread panicked");
        tally.add(line, &found, &report, verdict);
        Ok(())
    });
    let tally = tally.into_inner().expect("no thread panicked");
    println!("{} lines: {tally}", lines.len());
    assert!(tally.wrong.is_empty(), "{}", tally.wrong.join("\n\n"));
    assert!(tally.right > 100 && tally.refused > 100, "{tally}");
    assert!(full || tally.undecided == 0, "{tally}");
}

/// How far brute force goes.
fn bound(line: &Line, full: bool) -> Bound {
    let depth = line.depth();
    let most = 2 * depth + 1;
    let (tiles, steps) = match (line.pair, line.per_tile(), line.rings.len()) {
        (true, ..) => (2, if full { 4 } else { 2 }),
        // A ring that is used once for a tile comes round after as many tiles.
        (_, true, _) if full => (4, depth + 1),
        (_, true, _) => (6 - depth.max(2), depth + 1),
        (_, _, 1) => (3, if full { most } else { most.min(5) }),
        _ => (2, if full { most } else { 3 }),
    };
    Bound { tiles, steps }
}

/// What the two come to.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Verdict {
    /// Both find nothing.
    Right,
    /// Both find something wrong, and it fits.
    Wrong,
    /// Nothing goes wrong, but no role can know it: the phase of an arrival or of a wait is not
    /// fixed by what is handed on. That is refused, under the rule that asks for it.
    Unfixed,
    /// Nothing goes wrong, or something else: the checker decides a branch on a count apart from the loop over
    /// the same count in another role, as it does with every run of a loop.
    Apart,
    /// It gives up.
    Undecided,
    /// They disagree.
    Differs(&'static str),
}

fn compare(line: &Line, found: &Found, codes: &[&str]) -> Verdict {
    let skips = line.roles.iter().any(|r| r.skips);
    let undecided = codes.contains(&"U.states");
    match (found.faults.is_empty(), codes.is_empty()) {
        (true, true) => Verdict::Right,
        (false, true) => Verdict::Differs("it is proved"),
        _ if undecided && UNDECIDED.iter().any(|u| line.name.starts_with(u)) => Verdict::Undecided,
        _ if undecided => Verdict::Differs("it is not decided"),
        (true, false) if codes.iter().all(|c| is_fixed(c)) => Verdict::Unfixed,
        (true, false) if skips => Verdict::Apart,
        (true, false) => Verdict::Differs("it is refused"),
        (false, false) => {
            let fits = |c: &&str| found.faults.iter().any(|f| explains(c, f.kind));
            match codes.iter().all(fits) {
                true => Verdict::Wrong,
                false if skips => Verdict::Apart,
                false => Verdict::Differs("it is refused for another reason"),
            }
        }
    }
}

/// Does a rule ask that the phase of an arrival or of a wait be fixed?
fn is_fixed(code: &str) -> bool {
    matches!(code, "R1.phase" | "R3.parity")
}

/// Is this a rule that such a fault breaks?
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
    is_fixed(code) || rules.contains(&code)
}

/// What came of all lines.
#[derive(Default)]
struct Tally {
    right: usize,
    refused: usize,
    unfixed: usize,
    apart: usize,
    undecided: usize,
    /// States of brute force, and of the checker.
    brute: usize,
    checker: u64,
    wrong: Vec<String>,
}

impl Tally {
    fn add(&mut self, line: &Line, found: &Found, report: &Report, verdict: Verdict) {
        self.brute += found.states;
        self.checker += report.states;
        match verdict {
            Verdict::Right => self.right += 1,
            Verdict::Wrong => self.refused += 1,
            Verdict::Unfixed => self.unfixed += 1,
            Verdict::Apart => self.apart += 1,
            Verdict::Undecided => self.undecided += 1,
            Verdict::Differs(how) => {
                let said: Vec<_> = report.diagnostics.iter().map(|r| r.to_string()).collect();
                let mut text = format!("{}: {how}: {said:#?}", line.name);
                for f in &found.faults {
                    text += &format!("\n{:?}:\n  {}", f.kind, f.schedule.join("\n  "));
                }
                self.wrong.push(text);
            }
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            right,
            refused,
            unfixed,
            apart,
            undecided,
            brute,
            checker,
            wrong,
        } = self;
        write!(
            f,
            "{right} right and proved, {refused} wrong and refused, {unfixed} whose phases are not \
             fixed, {apart} with a branch on a count, {undecided} undecided, {} on which the two \
             differ; {brute} states by brute force, {checker} of the checker",
            wrong.len()
        )
    }
}
