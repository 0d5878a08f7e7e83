//! The input of a check, and the list of its findings.

use crate::finding::{LintFinding, LintStatus};
use warpline_cpu::Stats;
use warpline_ir::{Frame, Kernel, Role, Target, TileInfo};
use warpline_ptx::ResourceEstimate;
use warpline_ptx::ptxas::KernelReport;

/// One kernel and the data about it.
pub(crate) struct LintInput<'k> {
    pub(crate) kernel: &'k Kernel,
    pub(crate) target: &'k Target,
    /// The counters of a run on the CPU executor, or the reason that there are none.
    pub(crate) stats: Result<&'k Stats, String>,
    /// The report of ptxas, or the reason that there is none.
    pub(crate) ptxas_report: Result<KernelReport, String>,
    /// The printer's estimate of registers.
    pub(crate) estimate: ResourceEstimate,
}

/// The findings of one check.
pub(crate) struct FindingList<'c> {
    check: &'static str,
    input: &'c LintInput<'c>,
    findings: Vec<LintFinding>,
}

impl<'c> FindingList<'c> {
    pub(crate) fn new(check: &'static str, input: &'c LintInput<'c>) -> Self {
        Self {
            check,
            input,
            findings: Vec::new(),
        }
    }

    fn add(&mut self, status: LintStatus, text: String, at: Option<Frame>, role: Option<&str>) {
        self.findings.push(LintFinding {
            check: self.check,
            status,
            text,
            at,
            role: role.map(str::to_owned),
            kernel: self.input.kernel.name.clone(),
        });
    }

    /// Adds a warning about a line.
    pub(crate) fn warn(&mut self, text: String, at: Option<Frame>, role: Option<&str>) {
        self.add(LintStatus::Warn, text, at, role);
    }

    /// Adds a warning about a role, at its declaration, or about the kernel if `role` is `None`.
    pub(crate) fn warn_role(&mut self, text: String, role: Option<&Role>) {
        let at = role.and_then(|r| self.input.kernel.locs.author(r.loc));
        self.warn(text, at, role.map(|r| &*r.name));
    }

    /// Adds a warning about a tile, at its declaration.
    pub(crate) fn warn_tile(&mut self, text: String, tile: &TileInfo) {
        self.warn(text, self.input.kernel.locs.author(tile.loc), None);
    }

    /// Skips a tile, with the reason.
    pub(crate) fn skip_tile(&mut self, why: &str, tile: &TileInfo) {
        let at = self.input.kernel.locs.author(tile.loc);
        self.add(LintStatus::Skipped, skipped(why), at, None);
    }

    /// Returns the findings; a pass with this sentence if there are none.
    pub(crate) fn or_pass(mut self, text: impl FnOnce() -> String) -> Vec<LintFinding> {
        if self.findings.is_empty() {
            self.add(LintStatus::Pass, text(), None, None);
        }
        self.findings
    }

    /// Returns the findings and skips the rest of the check, with the reason.
    pub(crate) fn skip(mut self, why: &str) -> Vec<LintFinding> {
        self.add(LintStatus::Skipped, skipped(why), None, None);
        self.findings
    }
}

fn skipped(why: &str) -> String {
    format!("skipped: {why}")
}
