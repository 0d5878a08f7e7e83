//! Builds the bundle for a GPU host: the command line, the GPU tests and the Python package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};

use crate::run;
use crate::workspace::Workspace;

/// The build outputs: package, file name, path in the bundle.
const BUILD_OUTPUTS: [(&str, &str, &str); 3] = [
    ("warpline-cli", "warpline", "bin/warpline"),
    ("warpline-gpu-tests", "gpu-tests", "bin/gpu-tests"),
    (
        "warpline-python",
        "lib_warpline.so",
        "warpline/_warpline.abi3.so",
    ),
];

/// Folders to copy: source and path in the bundle. Only Python files are copied.
const FOLDERS: [(&str, &str); 2] = [
    ("python/src/warpline", "warpline"),
    ("python/tests/with_torch", "tests"),
];

/// The maximum size of the bundle in bytes.
const MAX_BYTES: u64 = 56 << 20;

/// `cargo xtask gpu-bundle --output DIR`
pub(crate) fn run(output: Option<PathBuf>) -> Result<ExitCode> {
    let workspace = Workspace::load()?;
    let output = output.unwrap_or_else(|| workspace.target_dir.join("gpu-bundle"));
    let from = build(&workspace)?;
    let bytes = copy(&from, &workspace.root, &output)?;
    println!(
        "{}: {:.1} MiB. Copy it to a machine with an H100 or H200 and an NVIDIA driver, and run there:",
        output.display(),
        bytes as f64 / f64::from(1 << 20)
    );
    println!("  bin/gpu-tests --ledger ledger.json");
    println!("  bin/gpu-tests --record vectors");
    println!("  bin/warpline bench memory");
    println!("and, with PyTorch:");
    println!("  WARPLINE_STRICT=1 PYTHONPATH=. python3 -m unittest discover tests");
    println!("  PYTHONPATH=. python3 -m warpline.bench memory");
    Ok(ExitCode::SUCCESS)
}

/// Builds the outputs stripped, in the release profile, and returns their folder. The dist profile
/// takes many times as long to build and hardly reduces the host overhead of a launch.
fn build(workspace: &Workspace) -> Result<PathBuf> {
    let mut cargo = workspace.cargo();
    cargo.args([
        "build",
        "--release",
        "--config",
        "profile.release.strip=true",
    ]);
    for (package, _, _) in BUILD_OUTPUTS {
        cargo.args(["--package", package]);
    }
    run::run(cargo)?;
    Ok(workspace.target_dir.join("release"))
}

/// Copies the build outputs and the folders; returns their size in bytes.
fn copy(from: &Path, root: &Path, to: &Path) -> Result<u64> {
    let mut bytes = 0;
    for (_, name, path) in BUILD_OUTPUTS {
        bytes += copy_file(&from.join(name), &to.join(path))?;
    }
    for (source, target) in FOLDERS {
        bytes += copy_folder(&root.join(source), &to.join(target))?;
    }
    ensure!(
        bytes < MAX_BYTES,
        "the bundle has {bytes} bytes; the limit is {MAX_BYTES}"
    );
    Ok(bytes)
}

fn copy_file(from: &Path, to: &Path) -> Result<u64> {
    let folder = to.parent().unwrap_or(to);
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    fs::copy(from, to)
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}

/// Copies the Python files of a folder, recursively.
fn copy_folder(from: &Path, to: &Path) -> Result<u64> {
    let mut bytes = 0;
    let entries = fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))?;
    for entry in entries {
        let path = entry?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        let python =
            (path.extension()).is_some_and(|x| ["py", "pyi", "typed"].iter().any(|y| x == *y));
        if path.is_dir() && !path.ends_with("__pycache__") {
            bytes += copy_folder(&path, &target)?;
        } else if python {
            bytes += copy_file(&path, &target)?;
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    /// Creates build outputs of 10 bytes each, and a checkout with two Python files.
    fn folders() -> [TempDir; 3] {
        let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let [built, root, _] = &folders;
        for (_, name, _) in BUILD_OUTPUTS {
            fs::write(built.path().join(name), [0; 10]).unwrap();
        }
        let bench = root.path().join("python/src/warpline/bench");
        fs::create_dir_all(bench.join("__pycache__")).unwrap();
        fs::create_dir_all(root.path().join("python/tests/with_torch")).unwrap();
        fs::write(bench.join("cli.py"), [0; 3]).unwrap();
        fs::write(bench.join("__pycache__/cli.pyc"), [0; 3]).unwrap();
        fs::write(bench.join("../_warpline.abi3.so"), [0; 99]).unwrap();
        fs::write(
            root.path().join("python/tests/with_torch/test_x.py"),
            [0; 4],
        )
        .unwrap();
        folders
    }

    #[test]
    fn build_outputs_and_python_files_are_copied() {
        let [built, root, to] = folders();
        let folder = to.path().join("new/folder");
        let bytes = copy(built.path(), root.path(), &folder).unwrap();
        assert_eq!(bytes, 3 * 10 + 3 + 4);
        assert!(folder.join("bin/gpu-tests").is_file());
        assert!(folder.join("warpline/bench/cli.py").is_file());
        let native = fs::read(folder.join("warpline/_warpline.abi3.so")).unwrap();
        assert_eq!(
            native.len(),
            10,
            "the build output, not the file in the source folder"
        );
        assert!(!folder.join("warpline/bench/__pycache__").exists());
    }

    #[test]
    fn a_missing_binary_is_named() {
        let [built, root, to] = folders();
        fs::remove_file(built.path().join("gpu-tests")).unwrap();
        let error = copy(built.path(), root.path(), to.path()).unwrap_err();
        assert!(error.to_string().contains("gpu-tests to "), "{error}");
    }

    #[test]
    fn a_folder_that_cannot_be_created_is_named() {
        let [built, root, to] = folders();
        let file = to.path().join("file");
        fs::write(&file, []).unwrap();
        let error = copy(built.path(), root.path(), &file.join("below")).unwrap_err();
        assert!(error.to_string().starts_with("cannot create"), "{error}");
    }
}
