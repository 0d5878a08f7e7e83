//! What is carried to a GPU host: the command line and the GPU tests, in one folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};

use crate::run;
use crate::workspace::Workspace;

/// The binaries: package and name.
const BINARIES: [(&str, &str); 2] = [
    ("warpline-cli", "warpline"),
    ("warpline-gpu-tests", "gpu-tests"),
];

/// The most that all of them may weigh.
const LIMIT: u64 = 40 << 20;

/// `cargo xtask gpu-bundle --output DIR`
pub(crate) fn run(output: Option<PathBuf>) -> Result<ExitCode> {
    let workspace = Workspace::load()?;
    let output = output.unwrap_or_else(|| workspace.target_dir.join("gpu-bundle"));
    let from = build(&workspace)?;
    let bytes = copy(&from, &output)?;
    println!(
        "{} has {:.1} MiB. Carry it to a machine with an H100 or H200 and a driver; there:",
        output.display(),
        bytes as f64 / f64::from(1 << 20)
    );
    println!("  ./gpu-tests --ledger ledger.json");
    println!("  ./gpu-tests --record vectors");
    println!("  ./warpline bench memory");
    Ok(ExitCode::SUCCESS)
}

/// Builds them stripped, in the release profile: the one that is shipped takes many times as long
/// to build, for little on the host side of a launch. Gives the folder they are in.
fn build(workspace: &Workspace) -> Result<PathBuf> {
    let mut cargo = workspace.cargo();
    cargo.args([
        "build",
        "--release",
        "--config",
        "profile.release.strip=true",
    ]);
    for (package, name) in BINARIES {
        cargo.args(["--package", package, "--bin", name]);
    }
    run::shown(cargo)?;
    Ok(workspace.target_dir.join("release"))
}

/// Copies the binaries to a folder; gives their bytes.
fn copy(from: &Path, to: &Path) -> Result<u64> {
    fs::create_dir_all(to).with_context(|| format!("no folder {}", to.display()))?;
    let mut bytes = 0;
    for (_, name) in BINARIES {
        let (source, target) = (from.join(name), to.join(name));
        bytes += fs::copy(&source, &target).with_context(|| {
            format!("{} cannot be copied to {}", source.display(), to.display())
        })?;
    }
    ensure!(
        bytes < LIMIT,
        "the bundle has {bytes} bytes, and {LIMIT} are the most"
    );
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_binaries_are_copied_and_counted() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(from.path().join("warpline"), [0; 10]).unwrap();
        fs::write(from.path().join("gpu-tests"), [0; 20]).unwrap();
        let folder = to.path().join("new/folder");
        assert_eq!(copy(from.path(), &folder).unwrap(), 30);
        assert!(folder.join("gpu-tests").is_file());
    }

    #[test]
    fn a_binary_that_is_missing_is_named() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let error = copy(from.path(), to.path()).unwrap_err().to_string();
        assert!(error.contains("warpline cannot be copied"), "{error}");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let from = tempfile::tempdir().unwrap();
        let file = from.path().join("file");
        fs::write(&file, []).unwrap();
        let error = copy(from.path(), &file.join("below")).unwrap_err();
        assert!(error.to_string().starts_with("no folder"), "{error}");
    }
}
