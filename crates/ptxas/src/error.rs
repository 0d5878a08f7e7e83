//! Why there is no ptxas, or why it made nothing of a module.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use super::VERSION;
use super::log::{LogLine, Severity};

/// One error in a module, as ptxas puts it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Complaint {
    /// The line of the PTX, where ptxas names one.
    pub line: Option<u32>,
    /// What ptxas says of it.
    pub text: String,
}

/// Why there is no ptxas to use, or why it made nothing of a module.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PtxasError {
    /// None of the places has one.
    #[error(
        "ptxas {VERSION} was not found: PTXAS is not set, no target/ptxas/{VERSION}/ptxas lies at \
         or above the current directory or the executable, and the PATH has no ptxas; fetch it \
         with `cargo xtask ptxas`, or name one with PTXAS=/path/to/ptxas"
    )]
    NotFound,
    /// The one that was found is of another version, and was not asked for by name.
    #[error(
        "{} is ptxas {found}, and only {VERSION} is used unasked; fetch that with \
         `cargo xtask ptxas`, or use this one with PTXAS={}", .path.display(), .path.display()
    )]
    WrongVersion {
        /// Where it is.
        path: PathBuf,
        /// What it calls itself.
        found: String,
    },
    /// It does not start.
    #[error("{} does not run as ptxas: {cause}", .path.display())]
    Run {
        /// Where it is.
        path: PathBuf,
        /// Why not.
        cause: std::io::Error,
    },
    /// It ran and told no version.
    #[error("`{} --version` names no ptxas version; it says {said:?}", .path.display())]
    NoVersion {
        /// Where it is.
        path: PathBuf,
        /// What it printed.
        said: String,
    },
    /// The folder for the module and the cubin cannot be written or read.
    #[error("the scratch folder for ptxas cannot be used: {0}")]
    Scratch(std::io::Error),
    /// It ran and rejected the module.
    #[error("ptxas {version} rejects the module for {arch} ({status}){}", listed(.complaints))]
    Rejected {
        /// The version that rejects it.
        version: String,
        /// For which architecture.
        arch: String,
        /// How ptxas ended.
        status: ExitStatus,
        /// What it says against the module, in its order.
        complaints: Vec<Complaint>,
        /// Everything it printed.
        log: String,
    },
    /// The log does not say what a report has to say.
    #[error("the log of ptxas does not state {what} of entry `{entry}`")]
    Unreadable {
        /// The entry in question.
        entry: String,
        /// What is missing.
        what: &'static str,
    },
}

impl PtxasError {
    pub(super) fn run(path: &Path, cause: std::io::Error) -> Self {
        Self::Run {
            path: path.to_owned(),
            cause,
        }
    }
}

/// Every error in `log`; the closing "aborted" counts only where it is all there is.
pub(super) fn complaints(log: &str) -> Vec<Complaint> {
    let mut found: Vec<Complaint> = log
        .lines()
        .filter_map(LogLine::parse)
        .filter(|line| matches!(line.severity, Severity::Error | Severity::Fatal))
        .map(|line| Complaint {
            line: line.line,
            text: line.text.to_owned(),
        })
        .collect();
    if found.len() > 1 {
        found.retain(|complaint| complaint.text != "Ptx assembly aborted due to errors");
    }
    found
}

fn listed(complaints: &[Complaint]) -> String {
    let mut list = String::new();
    for Complaint { line, text } in complaints {
        let _ = match line {
            Some(line) => write!(list, "\n  line {line}: {text}"),
            None => write!(list, "\n  {text}"),
        };
    }
    list
}
