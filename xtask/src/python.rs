//! The Python package: installed into an environment of its own, tested, built as a wheel.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::run;
use crate::workspace::Workspace;

/// The most that the wheel may weigh.
const LIMIT: u64 = 15 << 20;

/// The requirements of the package and of its tests, one a line.
const REQUIREMENTS: &str = "\
import tomllib
with open('python/pyproject.toml', 'rb') as file:
    project = tomllib.load(file)['project']
print(*project['dependencies'], *project['optional-dependencies']['test'], sep='\\n')";

/// Runs the tests of the package: on the library that the stage `tests` built the crates of, and
/// in a full run on the package as users install it.
pub(crate) fn test(workspace: &Workspace, full: bool, on_line: impl FnMut(&str)) -> Result<()> {
    let python = environment(workspace, "tests")?;
    let mut pytest = Command::new(&python);
    if full {
        let mut pip = pip(&python, workspace);
        pip.args(["./python[test]", "--config-settings"]);
        pip.arg("build-args=--profile dev --locked");
        pip.env("CARGO_TARGET_DIR", &workspace.target_dir);
        run::shown(pip)?;
    } else {
        install_requirements(&python, workspace)?;
        pytest.env("PYTHONPATH", assemble(workspace)?);
    }
    pytest.args(["-m", "pytest", "-q", "--durations=5", "python/tests"]);
    pytest.current_dir(&workspace.root);
    run::scanned(pytest, on_line)
}

/// Installs what the package and its tests need, but not the package.
fn install_requirements(python: &Path, workspace: &Workspace) -> Result<()> {
    let mut ask = Command::new(python);
    ask.args(["-c", REQUIREMENTS]).current_dir(&workspace.root);
    let output = ask.output().context("Python does not start")?;
    ensure!(
        output.status.success(),
        "python/pyproject.toml: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut pip = pip(python, workspace);
    pip.args(String::from_utf8_lossy(&output.stdout).lines());
    run::shown(pip)
}

/// Builds the native library and puts it beside the Python sources; returns the folder to import
/// from.
///
/// All tests of the workspace are selected too, and are built already: cargo unifies the features
/// of the packages that are selected together. Alone, the package would have other features of
/// syn, serde_core and more, and every crate would be built again.
fn assemble(workspace: &Workspace) -> Result<PathBuf> {
    let mut cargo = workspace.cargo();
    cargo.args(["build", "--workspace", "--lib", "--tests", "--locked"]);
    run::shown(cargo)?;
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

/// Copies a folder with everything in it.
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
    run::shown(pip)?;
    // Zig links against an old glibc, so that the wheel runs on every Linux of the last ten years.
    let mut maturin = Command::new(&python);
    maturin.args(["-m", "maturin", "build", "--profile", "dist", "--locked"]);
    maturin.args(["--zig", "--compatibility", "manylinux2014", "--out"]);
    maturin.arg(&output);
    maturin.current_dir(workspace.root.join("python"));
    maturin.env("CARGO_TARGET_DIR", &workspace.target_dir);
    // Maturin asks the `python3` of the path for zig.
    maturin.env("PATH", path_with(python.parent())?);
    run::shown(maturin)?;
    let (path, bytes) = newest(&output)?;
    ensure!(
        bytes < LIMIT,
        "{} has {bytes} bytes, and {LIMIT} are the most",
        path.display()
    );
    println!("{} has {:.1} MB", path.display(), bytes as f64 / 1e6);
    Ok(ExitCode::SUCCESS)
}

/// The Python of an environment under the target directory, made where it is missing.
fn environment(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    let folder = workspace.target_dir.join("python").join(name);
    let python = folder.join("bin/python");
    if !python.is_file() {
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv", "--clear"]).arg(&folder);
        run::shown(venv)?;
    }
    Ok(python)
}

/// The path, with one folder before it.
fn path_with(folder: Option<&Path>) -> Result<OsString> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = folder.map(Path::to_path_buf).into_iter();
    env::join_paths(folders.chain(env::split_paths(&path))).context("a path with a colon in it")
}

/// `pip install`, at the root of the workspace.
fn pip(python: &Path, workspace: &Workspace) -> Command {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet"]);
    pip.arg("--disable-pip-version-check");
    pip.current_dir(&workspace.root);
    pip
}

/// The wheel that was built last, and its bytes.
fn newest(folder: &Path) -> Result<(PathBuf, u64)> {
    let mut wheels = Vec::new();
    let entries =
        fs::read_dir(folder).with_context(|| format!("no folder {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|x| x == "whl") {
            let about = fs::metadata(&path)?;
            wheels.push((about.modified()?, path, about.len()));
        }
    }
    wheels.sort();
    let (_, path, bytes) = wheels.pop().context("maturin has left no wheel")?;
    Ok((path, bytes))
}
