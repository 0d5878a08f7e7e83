//! A stand-in for the driver, for tests of the whole command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder of that name in which the loader finds the stand-in.
pub(crate) fn stand_in(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-pthread", "-o"])
        .arg(folder.join("libcuda.so.1"))
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../cuda/tests/stub/driver.c"
        ))
        .status()
        .expect("this test needs a C compiler named cc");
    assert!(built.success());
    folder
}
