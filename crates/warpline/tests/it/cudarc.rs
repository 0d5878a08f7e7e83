//! The feature `cudarc`, and the example that uses it.
//!
//! Nothing in the workspace has the feature on, as cudarc's level of CUDA is
//! its user's to pick. With `WARPLINE_FULL` set it is linted, tested and
//! documented here, and the example is built and run.

use std::path::Path;
use std::process::{Command, Output};
use warpline_testkit::full::full;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/cudarc-softmax");

/// `cargo` with that command line, which builds where this test was built.
fn cargo(folder: &str, line: &str) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(line.split(' ')).current_dir(folder);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    cargo.env("CARGO_TARGET_DIR", target);
    // Set by who times this test; build scripts ask for it, and would run again.
    cargo.env_remove("RUSTC_BOOTSTRAP");
    cargo
}

fn good(mut command: Command) -> Output {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{said}");
    output
}

#[test]
fn the_example_is_no_member_of_this_workspace_and_has_the_feature() {
    let output = good(cargo(
        FOLDER,
        "metadata --offline --no-deps --format-version 1",
    ));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let root = Path::new(metadata["workspace_root"].as_str().unwrap());
    assert_eq!(root, Path::new(FOLDER).canonicalize().unwrap());
    let dependencies = metadata["packages"][0]["dependencies"].as_array().unwrap();
    let here = dependencies
        .iter()
        .find(|d| d["path"] == env!("CARGO_MANIFEST_DIR"));
    assert_eq!(here.unwrap()["features"], serde_json::json!(["cudarc"]));
    good(cargo(FOLDER, "fmt --check"));
}

#[test]
fn the_feature_passes_every_check() {
    if !full() {
        return;
    }
    for line in [
        "clippy --offline --locked --package warpline --features cudarc --all-targets -- -D warnings",
        "test --offline --locked --package warpline --features cudarc --lib ops::interop",
        "test --offline --locked --package warpline --features cudarc --doc ops::interop",
        "doc --offline --locked --package warpline --features cudarc --no-deps",
    ] {
        let mut command = cargo(env!("CARGO_MANIFEST_DIR"), line);
        command.env("CUDARC_CUDA_VERSION", "12080");
        command.env("RUSTDOCFLAGS", "-D warnings");
        good(command);
    }
}

#[test]
fn the_example_runs_or_says_why_not() {
    if !full() {
        return;
    }
    good(cargo(FOLDER, "clippy --offline -- -D warnings"));
    good(cargo(FOLDER, "build --offline"));
    let output = cargo(FOLDER, "run --offline --quiet").output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    let begin = match output.status.code() {
        Some(0) => "softmax of 37 x 1000: the largest error is ",
        Some(2) => "no GPU can be used: ",
        code => panic!("it ends with {code:?}:\n{said}"),
    };
    assert!(
        said.starts_with(begin) && said.lines().count() == 1,
        "{said}"
    );
}
