//! Errors of the kernel builder.

use crate::loc::Frame;
use std::fmt;

/// One error of a kernel's author.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BuildError {
    /// A stable code, for tools.
    pub code: &'static str,
    /// The problem and the rule; a second line `help: …` suggests a fix.
    pub text: String,
    /// The author's source line.
    pub at: Option<Frame>,
    /// A related source line and its label, such as `first call`.
    pub other: Option<(Frame, &'static str)>,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = self.at {
            write!(f, "{at}: ")?;
        }
        let (problem, help) = match self.text.split_once('\n') {
            Some((problem, help)) => (problem, Some(help)),
            None => (self.text.as_str(), None),
        };
        write!(f, "{problem} [{}]", self.code)?;
        if let Some((at, label)) = self.other {
            write!(f, " ({label}: {at})")?;
        }
        match help {
            Some(help) => write!(f, "\n  {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for BuildError {}

/// The errors of one kernel, in program order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BuildErrors {
    /// The name of the kernel.
    pub kernel: String,
    /// The errors; never empty.
    pub errors: Vec<BuildError>,
}

impl fmt::Display for BuildErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel {}: ", self.kernel)?;
        for (i, e) in self.errors.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{e}")?;
        }
        Ok(())
    }
}

impl std::error::Error for BuildErrors {}
