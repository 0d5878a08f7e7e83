//! The binary without a GPU.

use std::process::{Command, Output};
use warpline_testkit::full::full;

/// Runs the binary without visible devices.
fn gpu_tests(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gpu-tests"))
        .args(args)
        .env("CUDA_VISIBLE_DEVICES", "")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn without_a_gpu_one_error_line_is_printed() {
    let out = gpu_tests(&[]);
    assert_eq!(out.status.code(), Some(2));
    let output = text(&out.stderr);
    assert!(output.starts_with("error: no usable GPU: "), "{output}");
    assert_eq!(output.lines().count(), 1, "{output}");
}

#[test]
fn invalid_flags_print_one_error_line() {
    let out = gpu_tests(&["--record"]);
    assert_eq!(out.status.code(), Some(2));
    assert_eq!(text(&out.stderr), "error: --record needs a path\n");
}

#[test]
fn missing_programs_are_listed_without_a_gpu() {
    // `cargo xtask test` lists them in every run, with the committed ledger.
    if !full() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let missing_ledger = folder.path().join("ledger.json");
    let out = gpu_tests(&["--missing", missing_ledger.to_str().unwrap()]);
    let output = text(&out.stdout);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let first = output.lines().next().unwrap();
    assert!(
        first.ends_with("shipped kernels are not verified on a GPU"),
        "{output}"
    );
    assert!(output.contains("probe ping-pong"), "{output}");
}

#[test]
fn a_child_without_a_gpu_reports_it() {
    use std::io::Write;
    use std::process::Stdio;
    let mut child = Command::new(env!("CARGO_BIN_EXE_gpu-tests"))
        .args(["--child", "ops"])
        .env("CUDA_VISIBLE_DEVICES", "")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "add").unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success());
    let response: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let message = response["failed"].as_str().unwrap();
    assert!(message.starts_with("no GPU: "), "{message}");
}
