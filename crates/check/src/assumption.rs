//! Assumptions: facts about the launch that a proof relies on.

use std::fmt;
use warpline_ir::Frame;

/// A fact that a proof relies on and the checker does not prove. The launcher must ensure it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Assumption {
    /// A stable code for tools, for example `A.writer`.
    pub code: &'static str,
    /// The fact, as a sentence without a full stop.
    pub text: String,
    /// The author's line that needs the fact, if one does.
    pub at: Option<Frame>,
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.text, self.code)?;
        match self.at {
            Some(at) => write!(f, " at {at}"),
            None => Ok(()),
        }
    }
}
