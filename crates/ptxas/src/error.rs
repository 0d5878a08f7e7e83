//! Errors: no usable ptxas, or a rejected module.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use super::VERSION;
use super::log::{LogLine, Severity};

/// One error that ptxas reports for a module.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct PtxasDiagnostic {
    /// The PTX line, if ptxas names one.
    pub line: Option<u32>,
    /// The message of ptxas.
    pub text: String,
}

/// An error of the search for ptxas or of a ptxas run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PtxasError {
    /// No ptxas was found.
    #[error(
        "ptxas {VERSION} not found: PTXAS is not set, no target/ptxas/{VERSION}/ptxas exists at or \
         above the current directory or the executable, and PATH has no ptxas\n\
         help: download it with `cargo xtask ptxas`, or set PTXAS=/path/to/ptxas"
    )]
    NotFound,
    /// The ptxas on the `PATH` has another version; only `$PTXAS` may select one.
    #[error(
        "{} is ptxas {found}; Warpline uses {VERSION} unless PTXAS selects another\n\
         help: download it with `cargo xtask ptxas`, or set PTXAS={}", .path.display(), .path.display()
    )]
    WrongVersion {
        /// The path of the executable.
        path: PathBuf,
        /// Its version.
        found: String,
    },
    /// The executable does not start.
    #[error("cannot run {} as ptxas: {cause}", .path.display())]
    Run {
        /// The path of the executable.
        path: PathBuf,
        /// The reason.
        cause: std::io::Error,
    },
    /// The executable printed no ptxas version.
    #[error("`{} --version` printed no ptxas version: {output:?}", .path.display())]
    NoVersion {
        /// The path of the executable.
        path: PathBuf,
        /// Its output.
        output: String,
    },
    /// The temporary directory cannot be written or read.
    #[error("cannot use the temporary directory for ptxas: {0}")]
    Scratch(std::io::Error),
    /// ptxas rejected the module.
    #[error("ptxas {version} rejected the module for {arch} ({status}){}", diagnostic_list(.diagnostics))]
    Rejected {
        /// The version of ptxas.
        version: String,
        /// The target architecture.
        arch: String,
        /// The exit status of ptxas.
        status: ExitStatus,
        /// The errors, in the order of the log.
        diagnostics: Vec<PtxasDiagnostic>,
        /// The complete output.
        log: String,
    },
    /// The log lacks a number that the report requires.
    #[error("the ptxas log does not state {what} of kernel `{kernel}`")]
    Unreadable {
        /// The kernel.
        kernel: String,
        /// The missing numbers.
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

/// Returns the errors in `log`, without the closing "aborted" line unless it is the only one.
pub(super) fn diagnostics(log: &str) -> Vec<PtxasDiagnostic> {
    let mut found: Vec<PtxasDiagnostic> = log
        .lines()
        .filter_map(LogLine::parse)
        .filter(|line| matches!(line.severity, Severity::Error | Severity::Fatal))
        .map(|line| PtxasDiagnostic {
            line: line.line,
            text: line.text.to_owned(),
        })
        .collect();
    if found.len() > 1 {
        found.retain(|diagnostic| diagnostic.text != "Ptx assembly aborted due to errors");
    }
    found
}

fn diagnostic_list(diagnostics: &[PtxasDiagnostic]) -> String {
    let mut list = String::new();
    for PtxasDiagnostic { line, text } in diagnostics {
        let _ = match line {
            Some(line) => write!(list, "\n  line {line}: {text}"),
            None => write!(list, "\n  {text}"),
        };
    }
    list
}
