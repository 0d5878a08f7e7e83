//! The pinned ptxas: had from its wheel once, and run by hand.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};
use warpline_ptxas::{Ptxas, VERSION, pinned_path};

use crate::run;
use crate::workspace::Workspace;

/// The wheel on PyPI that has ptxas in it, for x86_64 Linux.
const PACKAGE: &str = "nvidia-cuda-nvcc";
const SHA256: &str = "56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03";

/// Checks the wheel and unpacks it.
const UNPACK: &str = include_str!("unpack.py");

/// `cargo xtask ptxas -- ARGS`
pub(crate) fn by_hand(args: &[OsString]) -> Result<ExitCode> {
    let ptxas = ensure(&Workspace::load()?)?;
    if args.is_empty() {
        println!("ptxas {} at {}", ptxas.version, ptxas.path.display());
        return Ok(ExitCode::SUCCESS);
    }
    let status = Command::new(&ptxas.path)
        .args(args)
        .status()
        .with_context(|| format!("{} does not start", ptxas.path.display()))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// The ptxas that `$PTXAS` names, else the pinned one, which is fetched if it is not there.
pub(crate) fn ensure(workspace: &Workspace) -> Result<Ptxas> {
    if let Some(named) = Ptxas::from_override().context("what PTXAS names cannot be used")? {
        return Ok(named);
    }
    let path = pinned_path(&workspace.target_dir);
    if path.is_file() {
        match pinned(&path) {
            Ok(ptxas) => return Ok(ptxas),
            Err(why) => eprintln!("{why:#}; it is fetched anew"),
        }
    }
    fetch(&path).with_context(|| {
        format!(
            "ptxas {VERSION} could not be fetched; supply one with \
             `PTXAS=/path/to/ptxas cargo xtask test`, or fetch it from a folder that has the \
             {PACKAGE} {VERSION} wheel with \
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

/// Brings ptxas to `path`. Two at once are safe: each renames whole files of the same content.
fn fetch(path: &Path) -> Result<()> {
    eprintln!("fetching ptxas {VERSION} from the {PACKAGE} wheel");
    let folder = path.parent().context("ptxas has no folder")?;
    let scratch = scratch_beside(folder)
        .with_context(|| format!("no scratch folder beside {}", folder.display()))?;
    let wheel = download(scratch.path())?;
    let unpacked = scratch.path().join("unpacked");
    fs::create_dir(&unpacked)?;
    let mut unpack = python();
    unpack
        .args(["-c", UNPACK])
        .arg(&wheel)
        .arg(SHA256)
        .arg(&unpacked);
    run::shown_as("unpack.py", unpack)?;
    for name in ["License.txt", "ptxas"] {
        let from = unpacked.join(name);
        if from.exists() {
            let to = folder.join(name);
            fs::rename(&from, &to).with_context(|| format!("no {}", to.display()))?;
        }
    }
    Ok(())
}

/// A folder on the same file system as `folder`, which is made as well.
fn scratch_beside(folder: &Path) -> io::Result<tempfile::TempDir> {
    fs::create_dir_all(folder)?;
    let above = folder.parent().unwrap_or(folder);
    tempfile::Builder::new().prefix("fetch-").tempdir_in(above)
}

/// Downloads the wheel into `scratch` with pip, which checks the hash as well.
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
    run::shown_as("python3 -m pip download", pip)?;
    for entry in fs::read_dir(&wheels)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "whl") {
            return Ok(path);
        }
    }
    bail!("pip left no wheel")
}

/// python3, whose output does not mix with that of ptxas.
fn python() -> Command {
    let mut command = Command::new("python3");
    command.stdout(io::stderr());
    command
}
