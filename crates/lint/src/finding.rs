//! The finding of a check.

use serde::{Serialize, Serializer};
use std::fmt;
use warpline_check::render::SourceLocation;
use warpline_ir::Frame;

/// A finding of a check about one kernel, or about one line of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct LintFinding {
    /// The check: one of [`checks::ALL`](crate::checks::ALL).
    pub check: &'static str,
    /// The status.
    pub status: LintStatus,
    /// The observation, with its numbers.
    pub text: String,
    /// The author's line, if the finding is about a line.
    #[serde(serialize_with = "serialize_frame")]
    pub at: Option<Frame>,
    /// The role, if the finding is about a role.
    pub role: Option<String>,
    /// The kernel.
    pub kernel: String,
}

/// The status of a check.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LintStatus {
    /// No problem found.
    Pass,
    /// A possible problem.
    Warn,
    /// The data that the check needs is missing.
    Skipped,
}

impl LintStatus {
    /// Returns the status as a word.
    pub const fn name(self) -> &'static str {
        match self {
            LintStatus::Pass => "pass",
            LintStatus::Warn => "warn",
            LintStatus::Skipped => "skipped",
        }
    }
}

impl fmt::Display for LintStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Formats one line of the checklist: ``warn  coalescing: gemm.rs:88, role `math`: …``.
impl fmt::Display for LintFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  {}: ", self.status, self.check)?;
        match (self.at, &self.role) {
            (Some(at), Some(role)) => write!(f, "{at}, role `{role}`: ")?,
            (Some(at), None) => write!(f, "{at}: ")?,
            (None, Some(role)) => write!(f, "role `{role}`: ")?,
            (None, None) => {}
        }
        f.write_str(&self.text)
    }
}

/// Serializes a line as the reports of the checker do.
fn serialize_frame<S: Serializer>(frame: &Option<Frame>, to: S) -> Result<S::Ok, S::Error> {
    frame.map(SourceLocation::from).serialize(to)
}
