//! Runs a kernel and compares the findings of one check.

use warpline_check::Checked;
use warpline_cpu::{GlobalMemory, run};
use warpline_ir::builder::Builder;
use warpline_ir::{Arg, Kernel, Launch};
use warpline_lint::{LintFinding, LintStatus, Options, lint_run};
use warpline_testkit::kernel::build;

/// Runs a kernel whose parameters are pointers, and returns all findings.
pub(crate) fn linted_with(kernel: Kernel, options: &Options<'_>) -> Vec<LintFinding> {
    let mut memory = GlobalMemory::new();
    let words = memory.alloc_from(&vec![0; 1 << 16], "words");
    let args = kernel.params.iter().map(|_| Arg::Pointer(words)).collect();
    let launch = Launch {
        grid: [2, 1, 1],
        args,
    };
    // A lint needs no proof; other tests cover the checker.
    let kernel = Checked::unproved(kernel, "a test of lints");
    let stats = run(&kernel, &launch, &memory, &Default::default());
    let stats = stats.unwrap_or_else(|e| panic!("{}: {e}", kernel.name));
    lint_run(&kernel, &stats, options).unwrap_or_else(|e| panic!("{}: {e}", kernel.name))
}

/// Returns the findings of one check, without ptxas.
pub(crate) fn linted(check: &str, body: impl FnOnce(Builder)) -> Vec<LintFinding> {
    findings_of(
        check,
        linted_with(build("linted", body), &Options::default()),
    )
}

/// Returns the findings of one check.
pub(crate) fn findings_of(check: &str, mut findings: Vec<LintFinding>) -> Vec<LintFinding> {
    findings.retain(|f| f.check == check);
    findings
}

/// Asserts that the check passes with this text.
#[track_caller]
pub(crate) fn passes(findings: &[LintFinding], text: &str) {
    let actual: Vec<_> = findings
        .iter()
        .map(|f| (f.status, &*f.text, f.at))
        .collect();
    assert_eq!(actual, [(LintStatus::Pass, text, None)]);
}

/// Asserts that there is one warning, at this line of the calling file.
#[track_caller]
pub(crate) fn warns(findings: &[LintFinding], line: u32, role: Option<&str>, text: &str) {
    let [f] = findings else {
        panic!("{findings:#?}")
    };
    let at = f.at.unwrap_or_else(|| panic!("no line: {f}"));
    assert_eq!((f.status, &*f.text), (LintStatus::Warn, text));
    assert_eq!((at.line, f.role.as_deref()), (line, role));
    assert_eq!(at.file, std::panic::Location::caller().file());
}
