//! The command line as a process.

use crate::common::DRIVER_STUB;
use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Returns a folder with an invalid libcuda.so.1, so that the tests use no GPU on any machine.
fn no_driver() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-driver");
    fs::create_dir_all(&folder).unwrap();
    File::create(folder.join("libcuda.so.1")).unwrap();
    folder
}

/// Returns an empty cache folder.
fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-cache")
}

fn warpline(args: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpline"));
    command
        .args(args.split_whitespace())
        .env("LD_LIBRARY_PATH", no_driver())
        .env("WARPLINE_CACHE_DIR", cache());
    command
}

fn out(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn err(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

#[test]
fn commands_print_the_recorded_text() {
    trycmd::TestCases::new()
        .env("LD_LIBRARY_PATH", no_driver().to_str().unwrap())
        .env("WARPLINE_CACHE_DIR", cache().to_str().unwrap())
        .case("tests/cmd/*.trycmd");
}

#[test]
fn every_command_prints_one_versioned_json_object() {
    for (args, name) in [
        ("--json", "run"),
        ("devices --json", "devices"),
        ("list --json", "list"),
        ("list --ops --json", "list"),
        ("check vector-add --json", "check"),
        ("run vector-add --n 100 --json", "run"),
        ("emit vector-add --ir --json", "emit"),
        ("emit vector-add --resources --json", "emit"),
        ("sweep vector-add --n 100 --vary warps=2,4 --json", "sweep"),
        ("tune vector-add --n 100 --candidates 2 --json", "tune"),
        ("cache list --json", "cache"),
        ("cache clear --json", "cache"),
        ("completions bash --json", "completions"),
    ] {
        let output = warpline(args).output().unwrap();
        let value: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(value["version"], 1, "{args}");
        assert_eq!(value["command"], name, "{args}");
        assert_eq!(
            (output.status.code(), err(&output)),
            (Some(0), ""),
            "{args}"
        );
    }
}

#[test]
fn a_family_selected_by_dtype_equals_the_named_one() {
    let stdout_of = |command: &str| {
        let output = warpline(command).output().unwrap();
        let code = output.status.code();
        assert_eq!((code, err(&output)), (Some(0), ""), "{command}");
        out(&output).to_owned()
    };
    let by_flag_and_by_name = |command: &str, options: &str| {
        let problem = "--m 16 --n 64 --k 64 --scale-layout block";
        ["dual-gemm --dtype nvfp4", "nvfp4-dual-gemm"]
            .map(|family| stdout_of(&format!("{command} {family} {problem} {options}")))
    };
    for (command, options) in [
        ("emit", "--ir"),
        ("emit", "--ptx --schedule dequantizer"),
        ("tune", "--candidates 2 --dry-run"),
    ] {
        let [by_flag, by_name] = by_flag_and_by_name(command, options);
        assert_eq!(by_flag, by_name, "{command}");
    }
    for (command, options) in [("check", "--json"), ("run", "--device cpu --json")] {
        let [by_flag, by_name] = by_flag_and_by_name(command, options).map(|text| {
            let value: Value = serde_json::from_str(&text).unwrap();
            // The output without times.
            let reports = value["reports"].as_array().into_iter().flatten();
            let hashes: Vec<_> = reports.map(|report| report["hash"].clone()).collect();
            let fields = ["family", "problem", "config", "proved", "passed"];
            (fields.map(|field| value[field].clone()), hashes)
        });
        assert_eq!(by_flag, by_name, "{command}");
        assert_eq!(by_flag.0[0], "nvfp4-dual-gemm", "{command}");
    }
    let vary = "--m 16 --n 64 --k 64 --vary dtype=bf16,nvfp4 --device cpu";
    stdout_of(&format!("sweep dual-gemm {vary}"));
}

#[test]
fn every_error_is_one_json_object_and_a_message_on_stderr() {
    for (args, code) in [
        ("--json run vectoradd", "unknown-family"),
        ("run --json", "no-family"),
        ("check --json", "no-family"),
        ("check --all --corpus --json", "bad-usage"),
        ("check vector-add --json --stages 0", "bad-config"),
        ("fly --json", "unknown-command"),
        ("run vector-add --json --n -1", "bad-value"),
        ("run vector-add --json --dtype int3", "bad-value"),
        (
            "run vector-add --json --schedule specialized --stages 999",
            "bad-config",
        ),
        ("run vector-add --json --n 9999999999999", "bad-problem"),
        ("run vector-add --json --device cuda:0", "cuda-no-driver"),
        ("run vector-add --json --device tpu", "bad-device-name"),
        ("bench --json", "no-gpu"),
        ("bench ladder --json", "no-gpu"),
        ("bench gemm --json", "no-gpu"),
        ("bench vector-add --device cpu --json", "no-gpu"),
        ("bench nothing --json", "unknown-suite"),
        ("run vector-add --data nowhere --json", "bad-data"),
        ("run vector-add --save . --json", "cannot-write"),
        ("sweep --json", "no-family"),
        ("sweep vector-add --json", "missing-argument"),
        ("sweep vector-add --vary x=0 --json", "unknown-option"),
        ("tune --json", "no-family"),
        ("tune nothing --json", "unknown-family"),
        ("tune vector-add --json --stages 0", "bad-config"),
        ("tune vector-add --json --device cuda:0", "cuda-no-driver"),
        ("cache --json", "missing-argument"),
        ("cache fly --json", "unknown-command"),
        ("cache import nowhere.json --json", "cache"),
        ("emit vector-add --json --ir --ptx", "bad-usage"),
        ("emit vector-add --json -o .", "cannot-write"),
        ("new --json", "missing-argument"),
        ("new --json 9lives", "bad-name"),
        ("new --json mine --path .", "cannot-write"),
        ("new --json mine --warpline nowhere", "no-checkout"),
    ] {
        let output = warpline(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args}");
        let value: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(value["error"]["code"], code, "{args}");
        let message = value["error"]["message"].as_str().unwrap();
        assert_eq!(err(&output), format!("error: {message}\n"), "{args}");
        let mut help = message.lines().skip(1);
        assert!(help.all(|line| line.starts_with("help: ")), "{args}");
    }
}

#[test]
fn resources_come_from_ptxas_if_set() {
    let args = "emit vector-add --schedule specialized --resources --json";
    let output = warpline(args).output().unwrap();
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let resources = &value["kernels"][0]["resources"];
    match std::env::var_os("PTXAS") {
        Some(_) => {
            assert_eq!(resources["source"], "ptxas");
            assert!(resources["entry"]["registers"].as_u64() > Some(0));
            assert_eq!(resources["entry"]["spill_store_bytes"], 0);
        }
        None => assert!(["ptxas", "estimate"].contains(&resources["source"].as_str().unwrap())),
    }
    assert_eq!(resources["estimate"]["threads"], 320);

    let output = warpline(args)
        .env("PTXAS", "/nowhere/ptxas")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).starts_with("error: cannot run /nowhere/ptxas as ptxas"));
}

#[test]
fn emit_writes_a_file() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("emitted");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("k.ptx");
    let output = warpline("emit vector-add --ptx -o")
        .arg(&file)
        .output()
        .unwrap();
    assert_eq!(
        out(&output),
        format!("kernel vector_add written to {}\n", file.display())
    );
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains(".visible .entry vector_add("));
    let printed = warpline("emit vector-add -o -").output().unwrap();
    assert_eq!(
        out(&printed),
        text,
        "`-` is standard output, and PTX is the default"
    );
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let mut child = warpline("emit vector-add --ir")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), err(&output)), (Some(0), ""));
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_reported() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = warpline("list").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).starts_with("error: cannot write to standard output: "));
}

#[test]
fn usable_gpus_are_listed_and_missing_ones_rejected() {
    let with_gpu = |args: &str| {
        warpline(args)
            .env("LD_LIBRARY_PATH", &*DRIVER_STUB)
            .output()
            .unwrap()
    };

    let output = with_gpu("devices");
    let row =
        "cuda:0  Stand-in 0: 132 SMs, 128 GiB, compute capability 9.0, driver for CUDA 12.8  yes";
    assert!(out(&output).contains(row), "{}", out(&output));

    let output = with_gpu("run vector-add --device cuda:9");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        err(&output),
        "error: device cuda:9 does not exist; available: 1 CUDA device (cuda:0)\n"
    );
    let output = with_gpu("run vector-add --n 3 --timing late");
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("requires the CPU executor (device: cuda:0)"));
    let output = with_gpu("run vector-add --help");
    assert!(
        out(&output).contains("[default: 33554432]"),
        "{}",
        out(&output)
    );
}
