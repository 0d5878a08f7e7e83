//! `warpline new`: what it writes, what it refuses, and that what it writes works.
//!
//! The sources of the template are compiled into this test too, which costs
//! seconds; one test builds a new crate with cargo, as its author would.

#[path = "../../template/src/family.rs"]
mod family;
#[path = "../../template/src/kernel.rs"]
mod kernel;

use crate::common::table_holds;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use warpline::Device;
use warpline_cli::Reply;
use warpline_kernels::AnyFamily;
use warpline_testkit::full::full;

/// What a command of the new crate prints, from the sources in this test.
fn called(line: &str) -> Reply {
    let words: Vec<_> = line.split(' ').map(Into::into).collect();
    warpline_cli::call(&[&family::ScaleBiasRelu], &words)
}

/// Runs `warpline new` in a folder.
fn new(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpline"));
    command.arg("new").args(args).current_dir(folder);
    command.output().unwrap()
}

/// The names in a folder.
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
fn the_kernel_is_right_under_every_timing() {
    let cases = AnyFamily::cases(&family::ScaleBiasRelu, &Device::cpu().target());
    assert!(cases.len() > 40, "{} cases", cases.len());
    table_holds(&family::ScaleBiasRelu);
}

#[test]
fn every_config_is_proved_and_free_of_races_in_global_memory() {
    let Reply { out, err, exit } = called("mine check --all");
    assert_eq!((exit, err.as_str()), (0, ""));
    assert!(out.ends_with("4 of 4 kernels are proved\n"), "{out}");
    let line = "mine check scale-bias-relu --launch --rows 37 --cols 1000 --json";
    let Reply { out, err, exit } = called(line);
    assert_eq!((exit, err.as_str()), (0, ""), "{out}");
}

#[test]
fn nothing_is_slow_by_the_checklist() {
    let Reply { out, err, exit } = called("mine check scale-bias-relu --lint");
    assert_eq!((exit, err.as_str()), (0, ""));
    assert!(out.contains("  pass  bank-conflicts "), "{out}");
    assert!(!out.contains("  warn "), "{out}");
}

#[test]
fn its_ptx_assembles_without_spills() {
    let ptx = called("mine emit scale-bias-relu --ptx").out;
    assert!(ptx.contains(".visible .entry scale_bias_relu("), "{ptx}");
    assert!(ptx.contains("cp.async.bulk.global.shared::cta"), "{ptx}");
    let Reply { out, err, exit } = called("mine emit scale-bias-relu --resources --json");
    assert_eq!((exit, err.as_str()), (0, ""));
    let answer: Value = serde_json::from_str(&out).unwrap();
    let resources = &answer["kernels"][0]["resources"];
    assert_eq!(resources["estimate"]["threads"], 320);
    if std::env::var_os("PTXAS").is_some() {
        assert_eq!(resources["source"], "ptxas");
        assert_eq!(resources["entry"]["spill_store_bytes"], 0);
    }
}

#[test]
fn what_it_does_not_serve_is_refused_with_the_value() {
    for (options, said) in [
        ("--cols 6", "--cols is a multiple of 4, not 6"),
        (
            "--rows 4294967295 --cols 4",
            "--rows times --cols is a whole number of at most 2147483648, not 17179869180",
        ),
        (
            "--stages 0",
            "--stages is a whole number of at least 1, not 0",
        ),
        (
            "--stages 8",
            "8 stages need 262400 bytes of shared memory; sm_90a has 232448",
        ),
        ("--ctas 0", "--ctas is a whole number of at least 1, not 0"),
    ] {
        let reply = called(&format!("mine run scale-bias-relu --device cpu {options}"));
        assert_eq!(reply.err, format!("error: {said}\n"));
        assert_eq!(reply.exit, 2, "{options}");
    }
}

/// A newcomer reads both files.
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
fn a_crate_is_written_whole_and_said_in_json() {
    let around = tempfile::tempdir().unwrap();
    let output = new(around.path(), &["mine", "--json"]);
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

    let folder = around.path().join("mine");
    assert_eq!(names(around.path()), ["mine"], "nothing else is left");
    let files = [".gitignore", "Cargo.lock", "Cargo.toml", "README.md", "src"];
    assert_eq!(names(&folder), files);
    for file in answer["files"].as_array().unwrap() {
        assert!(folder.join(file.as_str().unwrap()).is_file(), "{file}");
    }
    let main = fs::read_to_string(folder.join("src/main.rs")).unwrap();
    assert!(main.contains("warpline_cli::main(&[&family::ScaleBiasRelu])"));
}

#[test]
fn an_empty_folder_is_filled_and_a_checkout_can_be_named() {
    let around = tempfile::tempdir().unwrap();
    let checkout = around.path().join("checkout");
    fs::create_dir_all(checkout.join("crates/cli")).unwrap();
    fs::write(checkout.join("crates/cli/Cargo.toml"), "").unwrap();
    let empty = around.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let output = new(
        &empty,
        &["mine", "--path", ".", "--warpline", "../checkout"],
    );
    assert_eq!(text(&output.stderr), "");
    let said = text(&output.stdout);
    assert!(said.starts_with("crate mine is in .\n"), "{said}");
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
fn what_cannot_be_made_is_refused_and_leaves_nothing() {
    let around = tempfile::tempdir().unwrap();
    fs::create_dir(around.path().join("full")).unwrap();
    fs::write(around.path().join("full/file"), "mine").unwrap();
    for (args, said) in [
        (
            &["9lives"][..],
            "NAME is made of ASCII letters, digits, - and _ and begins with a letter or _, not \"9lives\"",
        ),
        (&["fn"], "NAME cannot be \"fn\": that is a Rust keyword"),
        (&["std"], "NAME cannot be \"std\": that is a crate of Rust"),
        (
            &["full"],
            "cannot write full: it is a folder that is not empty",
        ),
        (
            &["mine", "--path", "full/file"],
            "cannot write full/file: it is no folder",
        ),
        (
            &["mine", "--path", "no/mine"],
            "cannot write no/mine: nothing can be made in no: entity not found",
        ),
        (
            &["mine", "--warpline", "full"],
            "--warpline is a checkout of Warpline, and full has no crates/cli/Cargo.toml",
        ),
    ] {
        let output = new(around.path(), args);
        assert_eq!(text(&output.stderr), format!("error: {said}\n"));
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), ""));
        assert_eq!(names(around.path()), ["full"], "{args:?}");
        assert_eq!(names(&around.path().join("full")), ["file"], "{args:?}");
    }
    #[cfg(target_os = "linux")]
    {
        let output = new(around.path(), &["mine", "--path", "/proc/mine"]);
        let said = "error: cannot write /proc/mine: nothing can be made in /proc: ";
        assert!(text(&output.stderr).starts_with(said));
        assert_eq!(output.status.code(), Some(2));
    }
}
/// Builds in the target folder of this test: cargo has let go of it by now, and
/// every dependency but our own crates is there, as the profiles agree on them.
///
/// `cargo check` takes half the time of `cargo run`, which only a full test run does: this test
/// binary already runs the sources of the template.
#[test]
fn a_new_crate_is_built_checked_and_run_by_cargo() {
    let name = "scaffold-of-a-test";
    let around = tempfile::tempdir().unwrap();
    let output = new(around.path(), &[name]);
    assert_eq!(text(&output.stderr), "");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let cargo = |line: &str| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(line.split(' ')).env("CARGO_TARGET_DIR", target);
        // Who times this test sets it, and build scripts ask for it: what the
        // workspace has built would be built again, here and there.
        cargo.env_remove("RUSTC_BOOTSTRAP");
        // What is built once is built faster so.
        cargo.env("CARGO_INCREMENTAL", "0");
        let output = cargo
            .current_dir(around.path().join(name))
            .output()
            .unwrap();
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
        text(&output.stdout).to_owned()
    };
    if !full() {
        cargo("check --quiet --offline");
        return;
    }
    let said = cargo("run --quiet --offline -- check scale-bias-relu");
    assert!(
        said.starts_with("kernel scale_bias_relu: proved; "),
        "{said}"
    );
    let said =
        cargo("run --quiet --offline -- run scale-bias-relu --device cpu --rows 37 --cols 100");
    let good = "good: all 3700 elements are within their bounds";
    assert!(said.contains(good), "{said}");
}
