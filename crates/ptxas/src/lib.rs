//! Runs ptxas, the PTX assembler: finds the executable, assembles kernels, and parses the log.

mod error;
mod find;
mod log;
mod report;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use error::{PtxasDiagnostic, PtxasError};
pub use find::pinned_path;
pub use report::{Advisory, KernelReport, PtxasReport};

/// The version of ptxas that Warpline is tested with.
pub const VERSION: &str = "13.0.88";

/// A ptxas executable with a known version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ptxas {
    /// The absolute path of the executable.
    pub path: PathBuf,
    /// The version, such as `13.0.88`.
    pub version: String,
}

/// The result of assembling one PTX module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assembled {
    /// The ELF image that the driver loads.
    pub cubin: Vec<u8>,
    /// The resources of each kernel and the advisories, parsed from the log.
    pub report: PtxasReport,
    /// The complete output of `ptxas -v`.
    pub log: String,
}

impl Ptxas {
    /// Finds the ptxas to use.
    ///
    /// In order: `$PTXAS`, any version; the pinned copy below the target directory; a `ptxas` on
    /// the `PATH` with the pinned [`VERSION`].
    ///
    /// # Errors
    /// No ptxas is found, the one on the `PATH` has another version, or it does not run.
    pub fn find() -> Result<Self, PtxasError> {
        find::Search::from_env().resolve(version_of)
    }

    /// Returns the ptxas that `$PTXAS` names, or `None` if it is unset or empty.
    ///
    /// # Errors
    /// `$PTXAS` does not run as a ptxas.
    pub fn from_override() -> Result<Option<Self>, PtxasError> {
        find::Search::from_env().resolve_override(version_of)
    }

    /// Returns the ptxas at `path`, after running it for its version.
    ///
    /// # Errors
    /// The executable does not run or prints no version.
    pub fn at(path: &Path) -> Result<Self, PtxasError> {
        let path = find::absolute(path);
        let version = version_of(&path)?;
        Ok(Self { path, version })
    }

    /// Assembles `ptx` for `arch`, such as `sm_90a`.
    ///
    /// # Errors
    /// [`PtxasError::Rejected`] with the diagnostics if ptxas rejects the module; other variants
    /// if ptxas does not run or its log cannot be parsed.
    pub fn assemble(&self, ptx: &str, arch: &str) -> Result<Assembled, PtxasError> {
        let scratch = tempfile::tempdir().map_err(PtxasError::Scratch)?;
        // Relative names keep the temporary path out of the log.
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
                diagnostics: error::diagnostics(&log),
                log,
            });
        }
        Ok(Assembled {
            cubin: fs::read(cubin).map_err(PtxasError::Scratch)?,
            report: PtxasReport::parse(&log)?,
            log,
        })
    }
}

/// Runs `path --version` and parses the version.
fn version_of(path: &Path) -> Result<String, PtxasError> {
    let output = Command::new(path)
        .arg("--version")
        .output()
        .map_err(|cause| PtxasError::run(path, cause))?;
    let printed = text(&output.stdout);
    find::parse_version(&printed).ok_or_else(|| PtxasError::NoVersion {
        path: path.to_owned(),
        output: printed + &text(&output.stderr),
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
