//! `warpline new`: the files of the new crate, its kernel, and errors.
//!
//! The sources of the template are also compiled into this test. One test builds a new crate
//! with cargo.

#[path = "../../template/src/family.rs"]
mod family;
#[path = "../../template/src/kernel.rs"]
mod kernel;

use crate::common::assert_cases_pass;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use warpline::Device;
use warpline_cli::CliOutput;
use warpline_kernels::AnyFamily;
use warpline_testkit::full::full;

/// Runs a command of the new crate, from the sources in this test.
fn run_command(line: &str) -> CliOutput {
    let words: Vec<_> = line.split(' ').map(Into::into).collect();
    warpline_cli::run(&[&family::ScaleBiasRelu], &words)
}

/// Runs `warpline new` in a folder.
fn new(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpline"));
    command.arg("new").args(args).current_dir(folder);
    command.output().unwrap()
}

/// Returns the names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn the_kernel_passes_under_every_timing() {
    let cases = AnyFamily::cases(&family::ScaleBiasRelu, &Device::cpu().target());
    assert!(cases.len() > 40, "{} cases", cases.len());
    assert_cases_pass(&family::ScaleBiasRelu);
}

#[test]
fn every_config_is_proved() {
    let CliOutput {
        stdout,
        stderr,
        exit_code,
    } = run_command("mine check --all");
    assert_eq!((exit_code, stderr.as_str()), (0, ""));
    assert!(stdout.ends_with("proved: 4 of 4 kernels\n"), "{stdout}");
    let line = "mine check scale-bias-relu --launch --rows 37 --cols 1000 --json";
    let CliOutput {
        stdout,
        stderr,
        exit_code,
    } = run_command(line);
    assert_eq!((exit_code, stderr.as_str()), (0, ""), "{stdout}");
}

#[test]
fn lints_have_no_warnings() {
    let CliOutput {
        stdout,
        stderr,
        exit_code,
    } = run_command("mine check scale-bias-relu --lint");
    assert_eq!((exit_code, stderr.as_str()), (0, ""));
    assert!(stdout.contains("  pass  bank-conflicts "), "{stdout}");
    assert!(!stdout.contains("  warn "), "{stdout}");
}

#[test]
fn the_ptx_assembles_without_spills() {
    let ptx = run_command("mine emit scale-bias-relu --ptx").stdout;
    assert!(ptx.contains(".visible .entry scale_bias_relu("), "{ptx}");
    assert!(ptx.contains("cp.async.bulk.global.shared::cta"), "{ptx}");
    let CliOutput {
        stdout,
        stderr,
        exit_code,
    } = run_command("mine emit scale-bias-relu --resources --json");
    assert_eq!((exit_code, stderr.as_str()), (0, ""));
    let answer: Value = serde_json::from_str(&stdout).unwrap();
    let resources = &answer["kernels"][0]["resources"];
    assert_eq!(resources["estimate"]["threads"], 320);
    if std::env::var_os("PTXAS").is_some() {
        assert_eq!(resources["source"], "ptxas");
        assert_eq!(resources["entry"]["spill_store_bytes"], 0);
    }
}

#[test]
fn bad_values_are_rejected() {
    for (options, message) in [
        ("--cols 6", "--cols must be a multiple of 4, not 6"),
        (
            "--rows 4294967295 --cols 4",
            "--rows times --cols must be a whole number of at most 2147483648, not 17179869180",
        ),
        (
            "--stages 0",
            "--stages must be a whole number of at least 1, not 0",
        ),
        (
            "--stages 8",
            "8 stages need 262400 bytes of shared memory; sm_90a has 232448",
        ),
        (
            "--ctas 0",
            "--ctas must be a whole number of at least 1, not 0",
        ),
    ] {
        let output = run_command(&format!("mine run scale-bias-relu --device cpu {options}"));
        assert_eq!(output.stderr, format!("error: {message}\n"));
        assert_eq!(output.exit_code, 2, "{options}");
    }
}

/// A new user reads both files, so they stay short.
#[test]
fn the_sources_are_short() {
    let lines = |text: &str| text.lines().count();
    let kernel = lines(include_str!("../../template/src/kernel.rs"));
    let family = lines(include_str!("../../template/src/family.rs"));
    assert!(
        kernel < 60 && kernel + family < 180,
        "{kernel} + {family} lines"
    );
}

#[test]
fn new_writes_a_complete_crate_and_reports_it_as_json() {
    let temp = tempfile::tempdir().unwrap();
    let output = new(temp.path(), &["mine", "--json"]);
    assert_eq!(text(&output.stderr), "");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&answer["version"], &answer["command"]),
        (&1.into(), &"new".into())
    );
    assert_eq!(
        (&answer["name"], &answer["folder"]),
        (&"mine".into(), &"mine".into())
    );
    assert_eq!(answer["family"], family::ScaleBiasRelu.name());
    let root = fs::canonicalize(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
    assert_eq!(answer["warpline"]["path"], root.to_str().unwrap());

    let folder = temp.path().join("mine");
    assert_eq!(names(temp.path()), ["mine"], "no other file remains");
    let files = [".gitignore", "Cargo.lock", "Cargo.toml", "README.md", "src"];
    assert_eq!(names(&folder), files);
    for file in answer["files"].as_array().unwrap() {
        assert!(folder.join(file.as_str().unwrap()).is_file(), "{file}");
    }
    let main = fs::read_to_string(folder.join("src/main.rs")).unwrap();
    assert!(main.contains("warpline_cli::main(&[&family::ScaleBiasRelu])"));
}

#[test]
fn new_fills_an_empty_folder_and_accepts_a_checkout() {
    let temp = tempfile::tempdir().unwrap();
    let checkout = temp.path().join("checkout");
    fs::create_dir_all(checkout.join("crates/cli")).unwrap();
    fs::write(checkout.join("crates/cli/Cargo.toml"), "").unwrap();
    let empty = temp.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let output = new(
        &empty,
        &["mine", "--path", ".", "--warpline", "../checkout"],
    );
    assert_eq!(text(&output.stderr), "");
    let message = text(&output.stdout);
    assert!(
        message.starts_with("created crate mine in .\n"),
        "{message}"
    );
    assert_eq!(
        names(&empty),
        [".gitignore", "Cargo.toml", "README.md", "src"]
    );
    let manifest = fs::read_to_string(empty.join("Cargo.toml")).unwrap();
    let path = fs::canonicalize(&checkout).unwrap().join("crates/cli");
    let line = format!("warpline-cli = {{ path = \"{}\" }}", path.display());
    assert!(manifest.contains(&line), "{manifest}");
}

#[test]
fn failures_leave_no_files() {
    let temp = tempfile::tempdir().unwrap();
    fs::create_dir(temp.path().join("full")).unwrap();
    fs::write(temp.path().join("full/file"), "mine").unwrap();
    for (args, message) in [
        (
            &["9lives"][..],
            "NAME must consist of ASCII letters, digits, - and _ and begin with a letter or _, not \"9lives\"",
        ),
        (&["fn"], "NAME cannot be \"fn\": it is a Rust keyword"),
        (
            &["std"],
            "NAME cannot be \"std\": it is a crate of the Rust distribution",
        ),
        (
            &["full"],
            "cannot write full: it is a folder that is not empty",
        ),
        (
            &["mine", "--path", "full/file"],
            "cannot write full/file: it is not a folder",
        ),
        (
            &["mine", "--path", "no/mine"],
            "cannot write no/mine: cannot create it in no: entity not found",
        ),
        (
            &["mine", "--warpline", "full"],
            "--warpline must be a checkout of Warpline, but full has no crates/cli/Cargo.toml",
        ),
    ] {
        let output = new(temp.path(), args);
        assert_eq!(text(&output.stderr), format!("error: {message}\n"));
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), ""));
        assert_eq!(names(temp.path()), ["full"], "{args:?}");
        assert_eq!(names(&temp.path().join("full")), ["file"], "{args:?}");
    }
    #[cfg(target_os = "linux")]
    {
        let output = new(temp.path(), &["mine", "--path", "/proc/mine"]);
        let message = "error: cannot write /proc/mine: cannot create it in /proc: ";
        assert!(text(&output.stderr).starts_with(message));
        assert_eq!(output.status.code(), Some(2));
    }
}

/// Builds in the target folder of this test: cargo has released it, and it has every third-party
/// dependency, because the profiles agree.
///
/// `cargo check` takes half the time of `cargo run`, which only a full test run uses: this test
/// binary already runs the sources of the template.
#[test]
fn a_new_crate_is_built_checked_and_run_by_cargo() {
    let name = "scaffold-of-a-test";
    let temp = tempfile::tempdir().unwrap();
    let output = new(temp.path(), &[name]);
    assert_eq!(text(&output.stderr), "");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let cargo = |line: &str| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(line.split(' ')).env("CARGO_TARGET_DIR", target);
        // `xtask time-tests` sets it, and build scripts depend on it: the dependencies of the
        // workspace would be built again.
        cargo.env_remove("RUSTC_BOOTSTRAP");
        // Faster for a single build.
        cargo.env("CARGO_INCREMENTAL", "0");
        let output = cargo.current_dir(temp.path().join(name)).output().unwrap();
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
        text(&output.stdout).to_owned()
    };
    if !full() {
        cargo("check --quiet --offline");
        return;
    }
    let message = cargo("run --quiet --offline -- check scale-bias-relu");
    assert!(
        message.starts_with("kernel scale_bias_relu: proved; "),
        "{message}"
    );
    let message =
        cargo("run --quiet --offline -- run scale-bias-relu --device cpu --rows 37 --cols 100");
    let pass = "PASS: 3700 elements within tolerance";
    assert!(message.contains(pass), "{message}");
}
