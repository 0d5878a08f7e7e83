//! Mismatches between a program and its PTX.

use std::fmt;
use warpline_ir::Frame;

/// One difference between a program and its PTX.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// The difference, without locations.
    pub text: String,
    /// The source line of the program's statement, if there is one.
    pub at: Option<Frame>,
    /// The role of that statement, if it belongs to one role.
    pub role: Option<String>,
    /// The PTX line, if there is one.
    pub line: Option<PtxLine>,
}

/// A line of a PTX text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PtxLine {
    /// The line number, from 1.
    pub number: usize,
    /// The code on the line.
    pub text: String,
}

impl fmt::Display for PtxLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A wgmma with N = 256 names 128 registers, so long lines are cut.
        const MAX_CHARS: usize = 160;
        let shown: String = self.text.chars().take(MAX_CHARS).collect();
        let ellipsis = if shown.len() < self.text.len() {
            "…"
        } else {
            ""
        };
        write!(f, "PTX line {}: `{shown}{ellipsis}`", self.number)
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = self.at {
            write!(f, "{at}, ")?;
        }
        if let Some(role) = &self.role {
            write!(f, "role {role}, ")?;
        }
        match &self.line {
            Some(line) => write!(f, "{line}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// All mismatches, in the order of the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatches {
    /// The kernel's name.
    pub kernel: String,
    /// The mismatches; never empty.
    pub list: Vec<Mismatch>,
}

/// The number of mismatches that a message shows.
const MAX_SHOWN: usize = 4;

impl fmt::Display for Mismatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel {}: ", self.kernel)?;
        for (i, m) in self.list.iter().take(MAX_SHOWN).enumerate() {
            let separator = if i > 0 { "; " } else { "" };
            write!(f, "{separator}{m}")?;
        }
        match self.list.len().saturating_sub(MAX_SHOWN) {
            0 => Ok(()),
            hidden => write!(f, "; and {hidden} more"),
        }
    }
}

impl std::error::Error for Mismatches {}
