//! Tests in a process of their own, whose driver is the stand-in.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use warpline_testkit::stand_in;

const LOG: &str = "WARPLINE_STUB_LOG";

/// Runs `body` in a process of its own, whose driver is the stand-in with that
/// configuration, and whose cubins are kept in a folder of their own. `test` is the path of the
/// calling test within `stand_in`.
pub(crate) fn with_driver(test: &str, words: &str, body: impl FnOnce()) {
    const CHILD: &str = "WARPLINE_STAND_IN_CHILD";
    if env::var(CHILD).as_deref() == Ok(test) {
        return body();
    }
    let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", &format!("stand_in::{test}")])
        .args(["--nocapture", "--include-ignored"])
        .env(CHILD, test)
        .env("WARPLINE_STUB", words)
        .env(LOG, scratch.path().join("calls"))
        .env("WARPLINE_CACHE_DIR", scratch.path().join("cubins"))
        .env_remove("WARPLINE_CACHE")
        .env("LD_LIBRARY_PATH", library())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    // A misspelt name would pass by running nothing.
    let counted = String::from_utf8_lossy(&output.stdout);
    assert!(counted.contains("1 passed"), "{counted}");
    eprint!("{said}");
}

/// What the driver was called for while `work` ran, with what came of it.
pub(crate) fn calls<T>(work: impl FnOnce() -> T) -> (T, String) {
    let log = || fs::read_to_string(env::var_os(LOG).unwrap()).unwrap_or_default();
    let before = log().len();
    let came = work();
    (came, log()[before..].to_owned())
}

/// How often the driver's compiler ran while `work` did.
pub(crate) fn compilations(work: impl FnOnce()) -> usize {
    calls(work).1.matches("cuLinkAddData_v2").count()
}

/// The folder of the cubins.
pub(crate) fn cubins() -> PathBuf {
    env::var_os("WARPLINE_CACHE_DIR").unwrap().into()
}

/// The folder with the stand-in, compiled once.
fn library() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let own = std::process::id().to_string();
        stand_in::folder(Path::new(env!("CARGO_TARGET_TMPDIR")).join(own))
    })
}
