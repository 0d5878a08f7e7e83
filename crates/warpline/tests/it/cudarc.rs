//! The feature `cudarc`, and the example that uses it.
//!
//! Nothing in the workspace enables the feature, because the user selects cudarc's CUDA version. With
//! `WARPLINE_FULL` set, these tests lint, test and document it, and build and run the example.

use std::path::Path;
use std::process::{Command, Output};
use warpline_testkit::full::full;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/cudarc-softmax");

/// Returns a `cargo` command that uses the target directory of this test.
fn cargo(folder: &str, line: &str) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(line.split(' ')).current_dir(folder);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    cargo.env("CARGO_TARGET_DIR", target);
    // A test runner may set it. Build scripts depend on it and would run again.
    cargo.env_remove("RUSTC_BOOTSTRAP");
    cargo
}

fn succeed(mut command: Command) -> Output {
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{stderr}");
    output
}

#[test]
fn the_example_is_outside_the_workspace_and_enables_the_feature() {
    let output = succeed(cargo(
        FOLDER,
        "metadata --offline --no-deps --format-version 1",
    ));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let root = Path::new(metadata["workspace_root"].as_str().unwrap());
    assert_eq!(root, Path::new(FOLDER).canonicalize().unwrap());
    let dependencies = metadata["packages"][0]["dependencies"].as_array().unwrap();
    let dependency = dependencies
        .iter()
        .find(|d| d["path"] == env!("CARGO_MANIFEST_DIR"));
    assert_eq!(
        dependency.unwrap()["features"],
        serde_json::json!(["cudarc"])
    );
    succeed(cargo(FOLDER, "fmt --check"));
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
        succeed(command);
    }
}

#[test]
fn the_example_runs_or_reports_a_missing_gpu() {
    if !full() {
        return;
    }
    succeed(cargo(FOLDER, "clippy --offline -- -D warnings"));
    succeed(cargo(FOLDER, "build --offline"));
    let output = cargo(FOLDER, "run --offline --quiet").output().unwrap();
    let output_text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    let expected = match output.status.code() {
        Some(0) => "softmax of 37 x 1000: the largest error is ",
        Some(2) => "no GPU can be used: ",
        code => panic!("it exits with {code:?}:\n{output_text}"),
    };
    assert!(
        output_text.starts_with(expected) && output_text.lines().count() == 1,
        "{output_text}"
    );
}
