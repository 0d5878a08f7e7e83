//! The assembler of PTX: which one is used, what it makes of a kernel, and what it says of it.

mod error;
mod find;
mod log;
mod report;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use error::{Complaint, PtxasError};
pub use find::pinned_path;
pub use report::{Advisory, Entry, Report};

/// The version of ptxas that Warpline is tested with.
pub const VERSION: &str = "13.0.88";

/// A ptxas that runs and has told its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ptxas {
    /// The absolute path of the executable.
    pub path: PathBuf,
    /// What it calls itself, such as `13.0.88`.
    pub version: String,
}

/// What ptxas made of one PTX module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assembled {
    /// The ELF image that the driver loads.
    pub cubin: Vec<u8>,
    /// What the log says of each entry, and the advisories in it.
    pub report: Report,
    /// Everything that ptxas printed under `-v`.
    pub log: String,
}

impl Ptxas {
    /// Finds the ptxas to use.
    ///
    /// In order: `$PTXAS`, of any version; the pinned copy below the target directory; a `ptxas`
    /// on the `PATH`, only if it is of the pinned [`VERSION`].
    ///
    /// # Errors
    /// When none is found, when the one on the `PATH` is of another version, or when the one that
    /// was found does not run.
    pub fn find() -> Result<Self, PtxasError> {
        find::Search::from_env().resolve(version_of)
    }

    /// The ptxas that `$PTXAS` names, or `None` where that is unset or empty.
    ///
    /// # Errors
    /// When what it names does not run as a ptxas.
    pub fn from_override() -> Result<Option<Self>, PtxasError> {
        find::Search::from_env().resolve_override(version_of)
    }

    /// The ptxas at `path`, which is run once for its version.
    ///
    /// # Errors
    /// When it does not run, or what it prints has no version in it.
    pub fn at(path: &Path) -> Result<Self, PtxasError> {
        let path = find::absolute(path);
        let version = version_of(&path)?;
        Ok(Self { path, version })
    }

    /// Assembles `ptx` for `arch`, such as `sm_90a`.
    ///
    /// # Errors
    /// [`PtxasError::Rejected`] with each of its complaints where ptxas rejects the module; else
    /// when it does not run or its log is not understood.
    pub fn assemble(&self, ptx: &str, arch: &str) -> Result<Assembled, PtxasError> {
        let scratch = tempfile::tempdir().map_err(PtxasError::Scratch)?;
        // Plain names and the folder as the working directory: the log then names no folder.
        let cubin = scratch.path().join("kernel.cubin");
        fs::write(scratch.path().join("kernel.ptx"), ptx).map_err(PtxasError::Scratch)?;
        let output = Command::new(&self.path)
            .current_dir(scratch.path())
            .arg("-v")
            .arg(format!("-arch={arch}"))
            .args(["kernel.ptx", "-o", "kernel.cubin"])
            .output()
            .map_err(|cause| PtxasError::run(&self.path, cause))?;
        let log = text(&output.stdout) + &text(&output.stderr);
        if !output.status.success() {
            return Err(PtxasError::Rejected {
                version: self.version.clone(),
                arch: arch.to_owned(),
                status: output.status,
                complaints: error::complaints(&log),
                log,
            });
        }
        Ok(Assembled {
            cubin: fs::read(cubin).map_err(PtxasError::Scratch)?,
            report: Report::parse(&log)?,
            log,
        })
    }
}

/// Runs `path --version` and reads the version out of the answer.
fn version_of(path: &Path) -> Result<String, PtxasError> {
    let output = Command::new(path)
        .arg("--version")
        .output()
        .map_err(|cause| PtxasError::run(path, cause))?;
    let said = text(&output.stdout);
    find::parse_version(&said).ok_or_else(|| PtxasError::NoVersion {
        path: path.to_owned(),
        said: said + &text(&output.stderr),
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
