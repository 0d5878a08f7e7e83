//! Runs tests in child processes that load the stub driver.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use warpline_testkit::stub_driver;

const LOG: &str = "WARPLINE_STUB_LOG";

/// Runs `body` in a child process that loads the stub driver with a configuration and has its own
/// cache directory. `test` is the path of the calling test within `stub_driver`.
pub(crate) fn with_driver(test: &str, config: &str, body: impl FnOnce()) {
    const CHILD: &str = "WARPLINE_STAND_IN_CHILD";
    if env::var(CHILD).as_deref() == Ok(test) {
        return body();
    }
    let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", &format!("stub_driver::{test}")])
        .args(["--nocapture", "--include-ignored"])
        .env(CHILD, test)
        .env("WARPLINE_STUB", config)
        .env(LOG, scratch.path().join("calls"))
        .env("WARPLINE_CACHE_DIR", scratch.path().join("cubins"))
        .env_remove("WARPLINE_CACHE")
        .env("LD_LIBRARY_PATH", stub_folder())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    // A misspelled test name runs nothing and would pass.
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("1 passed"), "{stdout}");
    eprint!("{stderr}");
}

/// Runs a function. Returns its result and the log of driver calls.
pub(crate) fn calls<T>(body: impl FnOnce() -> T) -> (T, String) {
    let log = || fs::read_to_string(env::var_os(LOG).unwrap()).unwrap_or_default();
    let before = log().len();
    let result = body();
    (result, log()[before..].to_owned())
}

/// Runs a function and returns the number of compilations.
pub(crate) fn compilations(body: impl FnOnce()) -> usize {
    calls(body).1.matches("cuLinkAddData_v2").count()
}

/// Returns the cache directory.
pub(crate) fn cache_dir() -> PathBuf {
    env::var_os("WARPLINE_CACHE_DIR").unwrap().into()
}

/// Returns the directory of the stub driver, which is compiled once.
fn stub_folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let process = std::process::id().to_string();
        stub_driver::folder(Path::new(env!("CARGO_TARGET_TMPDIR")).join(process))
    })
}
