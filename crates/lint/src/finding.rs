//! What a check says.

use serde::{Serialize, Serializer};
use std::fmt;
use warpline_check::render::Place;
use warpline_ir::Frame;

/// What a check says of one kernel, or of one line of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The check: one of [`checks::ALL`](crate::checks::ALL).
    pub check: &'static str,
    /// What it comes to.
    pub verdict: Verdict,
    /// What was seen, with the numbers.
    pub text: String,
    /// The author's line, if it is about one.
    #[serde(serialize_with = "shown")]
    pub at: Option<Frame>,
    /// The role, if it is about one.
    pub role: Option<String>,
    /// The kernel.
    pub kernel: String,
}

/// What a check comes to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Nothing to look at.
    Pass,
    /// A place to look at.
    Warn,
    /// What it would take was not there.
    NotLooked,
}

impl Verdict {
    /// As a word.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Warn => "warn",
            Verdict::NotLooked => "not looked at",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One line of a checklist: `warn  coalescing: gemm.rs:88, role math: …`.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  {}: ", self.verdict, self.check)?;
        match (self.at, &self.role) {
            (Some(at), Some(role)) => write!(f, "{at}, role {role}: ")?,
            (Some(at), None) => write!(f, "{at}: ")?,
            (None, Some(role)) => write!(f, "role {role}: ")?,
            (None, None) => {}
        }
        f.write_str(&self.text)
    }
}

/// A line as in the reports of the checker.
fn shown<S: Serializer>(frame: &Option<Frame>, to: S) -> Result<S::Ok, S::Error> {
    frame.map(Place::from).serialize(to)
}
