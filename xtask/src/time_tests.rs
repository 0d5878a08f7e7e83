//! Runs one test binary for `cargo test` and makes it report the time of each test.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result};

use crate::test_results::summary_line;

/// Runs `exe`, whose directory and environment cargo has set, and prints its time.
///
/// On a stable toolchain libtest accepts `--report-time` only if `RUSTC_BOOTSTRAP` is set. The value
/// `-1` keeps a rustc that a test starts stable.
pub(crate) fn run(exe: &Path, args: &[OsString]) -> Result<ExitCode> {
    let mut command = Command::new(exe);
    command.args(args);
    if is_libtest(exe)? {
        command.args(["-Zunstable-options", "--report-time"]);
        if env::var_os("RUSTC_BOOTSTRAP").is_none() {
            command.env("RUSTC_BOOTSTRAP", "-1");
        }
    }
    let start = Instant::now();
    let status = command
        .status()
        .with_context(|| format!("cannot run {}", exe.display()))?;
    let seconds = start.elapsed().as_secs_f64();
    let package = env::var("CARGO_PKG_NAME").unwrap_or_default();
    println!(
        "{}",
        summary_line(&label(&package, exe), status.success(), seconds)
    );
    if status.code().is_none() {
        eprintln!("{} ended by {status}", exe.display());
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Returns whether `exe` supports `--report-time`; `harness = false` binaries have their own options.
fn is_libtest(exe: &Path) -> Result<bool> {
    let image = fs::read(exe).with_context(|| format!("cannot read {}", exe.display()))?;
    Ok(contains(&image, b"report-time"))
}

fn contains(image: &[u8], needle: &[u8]) -> bool {
    image.windows(needle.len()).any(|window| window == needle)
}

/// Returns `package`, or `package/target` if the target has another name.
fn label(package: &str, exe: &Path) -> String {
    let stem = exe.file_stem().unwrap_or_default().to_string_lossy();
    let target = stem.rsplit_once('-').map_or(&*stem, |(target, _)| target);
    if target == package.replace('-', "_") {
        package.to_owned()
    } else {
        format!("{package}/{target}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libtest_binaries_are_detected() {
        assert!(is_libtest(&env::current_exe().unwrap()).unwrap());
        assert!(!contains(b"report time", b"report-time"));
    }

    #[test]
    fn labels_name_the_package_once() {
        let exe = Path::new("target/debug/deps/warpline_ptx-0123456789abcdef");
        assert_eq!(label("warpline-ptx", exe), "warpline-ptx");
        assert_eq!(label("warpline-cli", exe), "warpline-cli/warpline_ptx");
    }
}
