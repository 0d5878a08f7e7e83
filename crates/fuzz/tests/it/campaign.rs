//! A short campaign with fixed seeds, in every test run.

use std::sync::LazyLock;
use warpline_fuzz::corpus::CorpusEntry;
use warpline_fuzz::report::{FindingKind, FuzzReport};
use warpline_fuzz::{Effort, campaign};
use warpline_testkit::full::few_or;

/// The first seed.
const SEED: u64 = 1;

/// Returns the number of kernels.
fn kernels() -> u64 {
    few_or(90, 280)
}

/// The report of the campaign, computed once for all tests.
static REPORT: LazyLock<FuzzReport> =
    LazyLock::new(|| campaign::run(SEED, kernels(), Effort::NORMAL, &|_| true));

/// Returns the number of kernels whose interleavings are explored.
fn explored_kernels() -> u64 {
    few_or(18, 40)
}

/// The known causes of unsound verdicts. A fixed cause leaves this list.
const KNOWN: &str = include_str!("../../corpus/known-causes.txt");

fn is_known(cause: &str) -> bool {
    KNOWN.lines().any(|line| line == cause)
}

#[test]
fn no_proved_kernel_fails() {
    let report = &*REPORT;
    assert_eq!(report.kernels, kernels());
    let new: Vec<_> = report
        .of_kind(FindingKind::Unsound)
        .filter(|f| !is_known(&f.cause))
        .map(|f| format!("seed {}: {}", f.seed, f.cause))
        .collect();
    assert!(new.is_empty(), "proved and failed: {new:#?}");
    assert_eq!(report.of_kind(FindingKind::Panic).count(), 0);
    let refuted: Vec<_> = report
        .of_kind(FindingKind::FalseAlarm)
        .map(|f| f.seed)
        .collect();
    assert!(refuted.is_empty(), "correct and refuted: {refuted:?}");
}

/// Explores every interleaving of small launches. The seeds differ from those of the other tests.
#[test]
fn no_interleaving_of_a_proved_kernel_fails() {
    let report = campaign::run(SEED + 10_000, explored_kernels(), Effort::BRUTE, &|_| true);
    let new: Vec<_> = report
        .of_kind(FindingKind::Unsound)
        .filter(|f| !is_known(&f.cause))
        .map(|f| format!("seed {}: {}", f.seed, f.cause))
        .collect();
    assert!(new.is_empty(), "proved and failed: {new:#?}");
    let failed: Vec<_> = report.of_kind(FindingKind::Generator).collect();
    assert!(failed.is_empty(), "correct and failed: {failed:#?}");
}

/// The generator makes correct kernels: none fails in the executor.
#[test]
fn correct_plans_pass() {
    let failed: Vec<_> = REPORT.of_kind(FindingKind::Generator).collect();
    assert!(failed.is_empty(), "correct and failed: {failed:#?}");
}

/// Every saved finding still fails in the executor if it is incorrect, and passes if it is correct.
#[test]
fn saved_findings_reproduce() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus");
    let mut seen = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|e| e != "json") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let entry: CorpusEntry = serde_json::from_str(&text).unwrap();
        assert!(entry.is_reproduced(), "{}", path.display());
        let open = entry.is_open();
        // A correct kernel that is not proved is imprecision, not unsoundness.
        let known = is_known(&entry.case.cause()) || entry.correct;
        assert!(!open || known, "{} gets a wrong verdict", path.display());
        seen += 1;
    }
    assert!(seen > 0, "the corpus is empty");
}
