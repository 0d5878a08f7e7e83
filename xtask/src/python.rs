//! Tests the Python package in its own virtual environment, and builds its wheel.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::run;
use crate::workspace::Workspace;

/// The maximum size of the wheel in bytes.
const MAX_BYTES: u64 = 15 << 20;

/// A script that prints the requirements of the package and of its tests, one per line.
const REQUIREMENTS: &str = "\
import tomllib
with open('python/pyproject.toml', 'rb') as file:
    project = tomllib.load(file)['project']
print(*project['dependencies'], *project['optional-dependencies']['test'], sep='\\n')";

/// Runs the tests of the package on the library of the test build; a full run installs the package
/// with pip, as users do.
pub(crate) fn test(workspace: &Workspace, full: bool, on_line: impl FnMut(&str)) -> Result<()> {
    let python = environment(workspace, "tests")?;
    let mut pytest = Command::new(&python);
    if full {
        let mut pip = pip(&python, workspace);
        pip.args(["./python[test]", "--config-settings"]);
        pip.arg("build-args=--profile dev --locked");
        pip.env("CARGO_TARGET_DIR", &workspace.target_dir);
        run::run(pip)?;
    } else {
        install_requirements(&python, workspace)?;
        pytest.env("PYTHONPATH", assemble(workspace)?);
    }
    pytest.args(["-m", "pytest", "-q", "--durations=5", "python/tests"]);
    pytest.current_dir(&workspace.root);
    // torch's own ops do not run instead of a kernel.
    pytest.env("WARPLINE_STRICT", "1");
    run::run_with_lines(pytest, on_line)
}

/// Installs the requirements of the package and of its tests, not the package itself.
fn install_requirements(python: &Path, workspace: &Workspace) -> Result<()> {
    let mut list_requirements = Command::new(python);
    list_requirements
        .args(["-c", REQUIREMENTS])
        .current_dir(&workspace.root);
    let output = list_requirements.output().context("cannot run Python")?;
    ensure!(
        output.status.success(),
        "python/pyproject.toml: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut pip = pip(python, workspace);
    pip.args(String::from_utf8_lossy(&output.stdout).lines());
    run::run(pip)
}

/// Builds the native library and copies it next to the Python sources; returns the folder to
/// import from.
///
/// The build also selects all tests of the workspace, which are built already. Cargo unifies the
/// features of the selected packages: with this package alone, syn, serde_core and others would have
/// other features, and Cargo would build every crate again.
fn assemble(workspace: &Workspace) -> Result<PathBuf> {
    let mut cargo = workspace.cargo();
    cargo.args(["build", "--workspace", "--lib", "--tests", "--locked"]);
    run::run(cargo)?;
    let folder = workspace.target_dir.join("python/package");
    let package = folder.join("warpline");
    if package.exists() {
        fs::remove_dir_all(&package).with_context(|| format!("{}", package.display()))?;
    }
    copy_folder(&workspace.root.join("python/src/warpline"), &package)?;
    let library = workspace.target_dir.join("debug/lib_warpline.so");
    let name = package.join("_warpline.abi3.so");
    fs::copy(&library, name).with_context(|| format!("{}", library.display()))?;
    Ok(folder)
}

/// Copies a folder recursively.
fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("{}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("{}", from.display()))? {
        let (path, to) = (entry?.path(), to);
        let to = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_folder(&path, &to)?;
        } else {
            fs::copy(&path, &to).with_context(|| format!("{}", path.display()))?;
        }
    }
    Ok(())
}

/// `cargo xtask wheel --output DIR`
pub(crate) fn wheel(output: Option<PathBuf>) -> Result<ExitCode> {
    let workspace = Workspace::load()?;
    let output = output.unwrap_or_else(|| workspace.target_dir.join("wheels"));
    let python = environment(&workspace, "wheel")?;
    let mut pip = pip(&python, &workspace);
    pip.arg("maturin[zig]>=1.9.4,<2");
    run::run(pip)?;
    // Zig links against glibc 2.17, as manylinux2014 requires.
    let mut maturin = Command::new(&python);
    maturin.args(["-m", "maturin", "build", "--profile", "dist", "--locked"]);
    maturin.args(["--zig", "--compatibility", "manylinux2014", "--out"]);
    maturin.arg(&output);
    maturin.current_dir(workspace.root.join("python"));
    maturin.env("CARGO_TARGET_DIR", &workspace.target_dir);
    // Maturin looks for zig in the `python3` of the PATH.
    maturin.env("PATH", path_with(python.parent())?);
    run::run(maturin)?;
    let (path, bytes) = newest(&output)?;
    ensure!(
        bytes < MAX_BYTES,
        "{} has {bytes} bytes; the limit is {MAX_BYTES}",
        path.display()
    );
    println!("{}: {:.1} MB", path.display(), bytes as f64 / 1e6);
    Ok(ExitCode::SUCCESS)
}

/// Returns the Python of a virtual environment in the target directory; creates it if missing.
fn environment(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    let folder = workspace.target_dir.join("python").join(name);
    let python = folder.join("bin/python");
    if !python.is_file() {
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv", "--clear"]).arg(&folder);
        run::run(venv)?;
    }
    Ok(python)
}

/// Returns PATH with a folder prepended.
fn path_with(folder: Option<&Path>) -> Result<OsString> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = folder.map(Path::to_path_buf).into_iter();
    env::join_paths(folders.chain(env::split_paths(&path)))
        .context("a folder of PATH contains a colon")
}

/// Returns `pip install`, run at the root of the workspace.
fn pip(python: &Path, workspace: &Workspace) -> Command {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet"]);
    pip.arg("--disable-pip-version-check");
    pip.current_dir(&workspace.root);
    pip
}

/// Returns the newest wheel and its size in bytes.
fn newest(folder: &Path) -> Result<(PathBuf, u64)> {
    let mut wheels = Vec::new();
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|x| x == "whl") {
            let metadata = fs::metadata(&path)?;
            wheels.push((metadata.modified()?, path, metadata.len()));
        }
    }
    wheels.sort();
    let (_, path, bytes) = wheels.pop().context("maturin built no wheel")?;
    Ok((path, bytes))
}
