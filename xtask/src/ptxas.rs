//! The pinned ptxas: downloads its wheel once, and runs it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};
use warpline_ptxas::{Ptxas, VERSION, pinned_path};

use crate::run;
use crate::workspace::Workspace;

/// The PyPI wheel that contains ptxas for x86_64 Linux.
const PACKAGE: &str = "nvidia-cuda-nvcc";
const SHA256: &str = "56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03";

/// The script that verifies and unpacks the wheel.
const UNPACK: &str = include_str!("unpack.py");

/// `cargo xtask ptxas -- ARGS`
pub(crate) fn run(args: &[OsString]) -> Result<ExitCode> {
    let ptxas = ensure(&Workspace::load()?)?;
    if args.is_empty() {
        println!("ptxas {} at {}", ptxas.version, ptxas.path.display());
        return Ok(ExitCode::SUCCESS);
    }
    let status = Command::new(&ptxas.path)
        .args(args)
        .status()
        .with_context(|| format!("cannot run {}", ptxas.path.display()))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Returns the ptxas of `$PTXAS`, else the pinned one; downloads it if necessary.
pub(crate) fn ensure(workspace: &Workspace) -> Result<Ptxas> {
    if let Some(ptxas) = Ptxas::from_override().context("the ptxas of $PTXAS is not usable")? {
        return Ok(ptxas);
    }
    let path = pinned_path(&workspace.target_dir);
    if path.is_file() {
        match pinned(&path) {
            Ok(ptxas) => return Ok(ptxas),
            Err(why) => eprintln!("{why:#}; downloading it again"),
        }
    }
    fetch(&path).with_context(|| {
        format!(
            "cannot download ptxas {VERSION}\nhelp: use `PTXAS=/path/to/ptxas cargo xtask test`, or \
             install it from a folder with the {PACKAGE} {VERSION} wheel: \
             `PIP_NO_INDEX=1 PIP_FIND_LINKS=/folder cargo xtask ptxas`"
        )
    })?;
    pinned(&path)
}

fn pinned(path: &Path) -> Result<Ptxas> {
    let ptxas = Ptxas::at(path)?;
    let found = &ptxas.version;
    ensure!(
        found == VERSION,
        "{} is ptxas {found}, not {VERSION}",
        path.display()
    );
    Ok(ptxas)
}

/// Downloads ptxas to `path`. Concurrent calls are safe: each renames complete files of equal content.
fn fetch(path: &Path) -> Result<()> {
    eprintln!("downloading ptxas {VERSION} from the {PACKAGE} wheel");
    let folder = path.parent().context("ptxas has no folder")?;
    let scratch = scratch_beside(folder).with_context(|| {
        format!(
            "cannot create a temporary folder next to {}",
            folder.display()
        )
    })?;
    let wheel = download(scratch.path())?;
    let unpacked = scratch.path().join("unpacked");
    fs::create_dir(&unpacked)?;
    let mut unpack = python();
    unpack
        .args(["-c", UNPACK])
        .arg(&wheel)
        .arg(SHA256)
        .arg(&unpacked);
    run::run_as("unpack.py", unpack)?;
    for name in ["License.txt", "ptxas"] {
        let from = unpacked.join(name);
        if from.exists() {
            let to = folder.join(name);
            fs::rename(&from, &to).with_context(|| format!("cannot write {}", to.display()))?;
        }
    }
    Ok(())
}

/// Creates `folder`, and a temporary folder on the same file system.
fn scratch_beside(folder: &Path) -> io::Result<tempfile::TempDir> {
    fs::create_dir_all(folder)?;
    let parent = folder.parent().unwrap_or(folder);
    tempfile::Builder::new().prefix("fetch-").tempdir_in(parent)
}

/// Downloads the wheel into `scratch` with pip, which also verifies the hash.
fn download(scratch: &Path) -> Result<PathBuf> {
    let requirements = scratch.join("requirements.txt");
    let wheels = scratch.join("wheels");
    fs::write(
        &requirements,
        format!("{PACKAGE}=={VERSION} --hash=sha256:{SHA256}\n"),
    )?;
    let mut pip = python();
    pip.args(["-m", "pip", "download", "--quiet", "--no-input"])
        .args(["--disable-pip-version-check", "--only-binary=:all:"])
        .args(["--no-deps", "--require-hashes", "-r"])
        .arg(&requirements)
        .arg("--dest")
        .arg(&wheels);
    run::run_as("python3 -m pip download", pip)?;
    for entry in fs::read_dir(&wheels)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "whl") {
            return Ok(path);
        }
    }
    bail!("pip downloaded no wheel")
}

/// Returns python3 with its output on standard error, so that standard output holds only the output
/// of ptxas.
fn python() -> Command {
    let mut command = Command::new("python3");
    command.stdout(io::stderr());
    command
}
