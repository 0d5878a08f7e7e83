//! The share of the campaign that every test run judges: a fixed seed, a fixed count.

use std::sync::LazyLock;
use warpline_fuzz::corpus::Entry;
use warpline_fuzz::report::{Report, Sort};
use warpline_fuzz::{Effort, campaign};
use warpline_testkit::full::few_or;

/// The first seed of the share.
const SEED: u64 = 1;
/// The kernels of the share.
fn kernels() -> u64 {
    few_or(120, 280)
}

/// The share, run once for the tests that judge it.
static SHARE: LazyLock<Report> =
    LazyLock::new(|| campaign::run(SEED, kernels(), Effort::NORMAL, &|_| true));

/// How many kernels are run in every interleaving.
fn ordered() -> u64 {
    few_or(24, 40)
}

/// Causes that the checker is known to get wrong. A repaired cause leaves this list; the list is
/// empty when the checker is sound.
const KNOWN: &str = include_str!("../../corpus/known-causes.txt");

fn is_known(cause: &str) -> bool {
    KNOWN.lines().any(|line| line == cause)
}

#[test]
fn no_proved_kernel_goes_wrong() {
    let report = &*SHARE;
    assert_eq!(report.kernels, kernels());
    let new: Vec<_> = report
        .of(Sort::Unsound)
        .filter(|f| !is_known(&f.cause))
        .map(|f| format!("seed {}: {}", f.seed, f.cause))
        .collect();
    assert!(new.is_empty(), "proved and wrong: {new:#?}");
    assert_eq!(report.of(Sort::Panic).count(), 0);
    let refuted: Vec<_> = report.of(Sort::FalseAlarm).map(|f| f.seed).collect();
    assert!(refuted.is_empty(), "right and refuted: {refuted:?}");
}

/// The same for every order of small launches of other kernels.
#[test]
fn no_order_of_a_proved_kernel_goes_wrong() {
    let report = campaign::run(SEED + 10_000, ordered(), Effort::BRUTE, &|_| true);
    let new: Vec<_> = report
        .of(Sort::Unsound)
        .filter(|f| !is_known(&f.cause))
        .map(|f| format!("seed {}: {}", f.seed, f.cause))
        .collect();
    assert!(new.is_empty(), "proved and wrong: {new:#?}");
    let wrong: Vec<_> = report.of(Sort::Generator).collect();
    assert!(wrong.is_empty(), "correct and wrong: {wrong:#?}");
}

/// The executor holds the generator to its word: no correct kernel goes wrong.
#[test]
fn correct_plans_run() {
    let wrong: Vec<_> = SHARE.of(Sort::Generator).collect();
    assert!(wrong.is_empty(), "correct and wrong: {wrong:#?}");
}

/// Every kept finding still goes wrong on the executor if it is wrong, and runs if it is correct.
#[test]
fn kept_findings_reproduce() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus");
    let mut seen = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|e| e != "json") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let entry: Entry = serde_json::from_str(&text).unwrap();
        assert!(entry.is_reproduced(), "{}", path.display());
        let open = entry.is_open();
        // A correct kernel that is not proved is a matter of precision, which the report counts.
        let known = is_known(&entry.subject.cause()) || entry.correct;
        assert!(!open || known, "{} is judged wrongly again", path.display());
        seen += 1;
    }
    assert!(seen > 0, "the corpus is empty");
}
