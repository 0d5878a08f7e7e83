//! The binary where there is no GPU.

use std::process::{Command, Output};

/// Runs the binary, with no device to be seen by the driver if there is one.
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
fn without_a_gpu_it_says_so_in_a_sentence() {
    let out = gpu_tests(&[]);
    assert_eq!(out.status.code(), Some(2));
    let told = text(&out.stderr);
    assert!(
        told.starts_with("error: there is no GPU to test on: "),
        "{told}"
    );
    assert_eq!(told.lines().count(), 1, "{told}");
}

#[test]
fn wrong_flags_are_told_in_a_sentence() {
    let out = gpu_tests(&["--record"]);
    assert_eq!(out.status.code(), Some(2));
    assert_eq!(text(&out.stderr), "error: --record needs a path\n");
}

#[test]
fn what_is_missing_in_the_ledger_is_listed_without_a_gpu() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("ledger.json");
    let out = gpu_tests(&["--missing", nowhere.to_str().unwrap()]);
    let told = text(&out.stdout);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let first = told.lines().next().unwrap();
    assert!(
        first.ends_with("kernels have not been seen right on a GPU since they changed"),
        "{told}"
    );
    assert!(told.contains("probe ping-pong"), "{told}");
}

#[test]
fn a_child_without_a_gpu_answers_so() {
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
    let answer: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let why = answer["failed"].as_str().unwrap();
    assert!(why.starts_with("no GPU: "), "{why}");
}
