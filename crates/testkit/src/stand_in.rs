//! A stub CUDA driver: it allocates memory, accepts every launch and runs none.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The C source of the stand-in.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../cuda/tests/stub/driver.c");

/// Compiles the stand-in into the library `path`.
#[track_caller]
pub fn compile(path: &Path, flags: &[&str]) {
    let output = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-pthread", "-o"])
        .arg(path)
        .args(flags)
        .arg(SOURCE)
        .output()
        .unwrap_or_else(|e| panic!("these tests need a C compiler named cc: {e}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cc {SOURCE}: {errors}");
}

/// Creates a folder in which the loader finds the stand-in, and returns it.
///
/// The library is written beside the folder and renamed, so that two processes may do it at once.
#[track_caller]
pub fn folder(folder: PathBuf) -> PathBuf {
    fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let library = folder.join("libcuda.so.1");
    let own = folder.join(format!("libcuda.{}", std::process::id()));
    compile(&own, &[]);
    fs::rename(&own, &library).unwrap_or_else(|e| panic!("{}: {e}", library.display()));
    folder
}
