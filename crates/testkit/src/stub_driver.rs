//! A stub CUDA driver: it allocates memory, accepts every launch and runs none.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The C source of the stub.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../cuda/tests/stub/driver.c");

/// Compiles the stub into the library `path`.
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

/// Creates a folder in which the loader finds the stub, and returns it.
///
/// Each process compiles to a file of its own in the folder and renames it, so several processes may
/// run this function at once.
#[track_caller]
pub fn folder(folder: PathBuf) -> PathBuf {
    fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let library = folder.join("libcuda.so.1");
    let process_library = folder.join(format!("libcuda.{}", std::process::id()));
    compile(&process_library, &[]);
    fs::rename(&process_library, &library).unwrap_or_else(|e| panic!("{}: {e}", library.display()));
    folder
}
