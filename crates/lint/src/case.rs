//! What every check reads, and how it answers.

use crate::finding::{Finding, Verdict};
use warpline_cpu::Stats;
use warpline_ir::{Frame, Kernel, Role, Target, Tile};
use warpline_ptx::Estimate;
use warpline_ptx::ptxas::Entry;

/// One kernel, and what is known of it.
pub(crate) struct Case<'k> {
    pub(crate) kernel: &'k Kernel,
    pub(crate) target: &'k Target,
    /// What the simulator counted, or why nothing was.
    pub(crate) stats: Result<&'k Stats, String>,
    /// What ptxas says, or why it does not.
    pub(crate) entry: Result<Entry, String>,
    /// Our own estimate of registers.
    pub(crate) estimate: Estimate,
}

/// The answers of one check.
pub(crate) struct Answers<'c> {
    check: &'static str,
    case: &'c Case<'c>,
    findings: Vec<Finding>,
}

impl<'c> Answers<'c> {
    pub(crate) fn new(check: &'static str, case: &'c Case<'c>) -> Self {
        Self {
            check,
            case,
            findings: Vec::new(),
        }
    }

    fn add(&mut self, verdict: Verdict, text: String, at: Option<Frame>, role: Option<&str>) {
        self.findings.push(Finding {
            check: self.check,
            verdict,
            text,
            at,
            role: role.map(str::to_owned),
            kernel: self.case.kernel.name.clone(),
        });
    }

    /// Warns of a line.
    pub(crate) fn warn(&mut self, text: String, at: Option<Frame>, role: Option<&str>) {
        self.add(Verdict::Warn, text, at, role);
    }

    /// Warns of a role, where it was declared; of the kernel, if none is named.
    pub(crate) fn warn_role(&mut self, text: String, role: Option<&Role>) {
        let at = role.and_then(|r| self.case.kernel.locs.author(r.loc));
        self.warn(text, at, role.map(|r| &*r.name));
    }

    /// Warns of a tile, where it was declared.
    pub(crate) fn warn_tile(&mut self, text: String, tile: &Tile) {
        self.warn(text, self.case.kernel.locs.author(tile.loc), None);
    }

    /// Says why it could not look at a tile.
    pub(crate) fn not_looked_at(&mut self, why: &str, tile: &Tile) {
        let at = self.case.kernel.locs.author(tile.loc);
        self.add(Verdict::NotLooked, not_looked(why), at, None);
    }

    /// Passes with a sentence, unless something else was said.
    pub(crate) fn or_pass(mut self, text: impl FnOnce() -> String) -> Vec<Finding> {
        if self.findings.is_empty() {
            self.add(Verdict::Pass, text(), None, None);
        }
        self.findings
    }

    /// Says why it could not look at all, after what it has said.
    pub(crate) fn and_not_looked(mut self, why: &str) -> Vec<Finding> {
        self.add(Verdict::NotLooked, not_looked(why), None, None);
        self.findings
    }
}

fn not_looked(why: &str) -> String {
    format!("not looked at: {why}")
}
