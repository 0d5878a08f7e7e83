//! What the builder refuses.

use crate::loc::Frame;
use std::fmt;

/// One thing an author wrote that cannot be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BuildError {
    /// A stable code, for tools.
    pub code: &'static str,
    /// The rule and the value seen, as a sentence.
    pub text: String,
    /// The author's line.
    pub at: Option<Frame>,
    /// A second line that matters, and why.
    pub other: Option<(Frame, &'static str)>,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = self.at {
            write!(f, "{at}: ")?;
        }
        write!(f, "{} [{}]", self.text, self.code)?;
        if let Some((at, why)) = self.other {
            write!(f, " ({why}: {at})")?;
        }
        Ok(())
    }
}

impl std::error::Error for BuildError {}

/// All errors of one kernel, in program order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BuildErrors {
    /// The kernel's name.
    pub kernel: String,
    /// The errors; never empty.
    pub errors: Vec<BuildError>,
}

impl fmt::Display for BuildErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel {}: ", self.kernel)?;
        for (i, e) in self.errors.iter().enumerate() {
            if i > 0 {
                write!(f, "; ")?;
            }
            write!(f, "{e}")?;
        }
        Ok(())
    }
}

impl std::error::Error for BuildErrors {}
