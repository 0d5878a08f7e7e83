//! A stub of the CUDA driver; test cases of families.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use warpline::{Device, RunOptions, Timing, run};
use warpline_family::AnyFamily;
use warpline_testkit::stub_driver;

/// A folder with the stub of the CUDA driver.
pub(crate) static DRIVER_STUB: LazyLock<PathBuf> = LazyLock::new(|| {
    stub_driver::folder(Path::new(env!("CARGO_TARGET_TMPDIR")).join("stub-driver"))
});

/// Runs a command with the stub of the CUDA driver, little memory and no cache.
pub(crate) fn with_driver_stub(command: &str, args: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_warpline"))
        .arg(command)
        .args(args.split_whitespace())
        .env("LD_LIBRARY_PATH", &*DRIVER_STUB)
        .env("WARPLINE_STUB", "free=16777216 l2=1048576")
        .env("WARPLINE_CACHE", "off")
        .output()
        .unwrap()
}

/// Runs a family's test cases on the CPU executor under every timing.
pub(crate) fn assert_cases_pass(family: &dyn AnyFamily) {
    let device = Device::cpu();
    for work in family.cases(&device.target()) {
        let work = work.unwrap_or_else(|e| panic!("{}: {e}", family.name()));
        for timing in Timing::ALL {
            let mut options = RunOptions::default();
            options.timing = timing;
            let outcome = run(work.as_ref(), &device, &options).unwrap_or_else(|e| panic!("{e}"));
            let (problem, config) = (work.problem(), work.config());
            let outputs = &outcome.outputs;
            assert!(outcome.passed(), "{problem} {config} {timing}: {outputs:?}");
        }
    }
}
