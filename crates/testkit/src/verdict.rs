//! The verdict of the checker on a kernel.

use crate::kernel::TARGET;
use warpline_check::{Checked, Diagnostic, check};
use warpline_ir::{Frame, Kernel};

/// The code of a broken rule, the line of the diagnostic, and the line of its first label.
pub type RuleViolation = (&'static str, u32, Option<u32>);

/// The codes of a kernel that breaks no rule.
pub const NONE: [&str; 0] = [];

/// Checks a kernel that must be proved; panics with its name, the diagnostics and their traces.
#[track_caller]
pub fn checked(kernel: Kernel) -> Checked {
    check(kernel, &TARGET).unwrap_or_else(|rejected| {
        let events = rejected.diagnostics.iter().flat_map(|r| &r.trace);
        let trace: Vec<String> = events.map(|e| format!("{}: {}", e.who, e.what)).collect();
        panic!("{rejected}\n{}", trace.join("\n"))
    })
}

/// Expects a kernel to be proved.
#[track_caller]
pub fn proved(kernel: &Kernel) {
    checked(kernel.clone());
}

/// Returns every breach of a kernel.
pub fn violations(kernel: &Kernel) -> Vec<RuleViolation> {
    let line = |at: Option<Frame>| at.map_or(0, |f| f.line);
    let breach = |r: &Diagnostic| {
        let other = r.labels.first().map(|o| line(o.at));
        (r.code(), line(r.at), other)
    };
    match check(kernel.clone(), &TARGET) {
        Ok(_) => Vec::new(),
        Err(rejected) => rejected.diagnostics.iter().map(breach).collect(),
    }
}

/// Returns the codes of every breach of a kernel.
pub fn codes(kernel: &Kernel) -> Vec<&'static str> {
    violations(kernel).iter().map(|b| b.0).collect()
}
