//! `warpline tune` and `warpline cache` over a stub of the CUDA driver,
//! which accepts every launch, runs none, and reports 1.5 ms for each.

use crate::common::DRIVER_STUB;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::str;
use tempfile::TempDir;

fn command(cache: &Path, args: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpline"));
    command
        .args(args.split_whitespace())
        .env("LD_LIBRARY_PATH", &*DRIVER_STUB)
        .env("WARPLINE_STUB", "free=16777216 l2=1048576")
        .env("WARPLINE_CACHE_DIR", cache)
        .env_remove("WARPLINE_CACHE");
    command
}

fn warpline(cache: &Path, args: &str) -> Output {
    command(cache, args).output().unwrap()
}

fn folder() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}

#[test]
fn a_winner_is_cached_listed_exported_imported_and_deleted() {
    let (one, two) = (folder(), folder());
    // The problem is empty, so every result passes.
    let output = warpline(one.path(), "tune vector-add --n 0 --candidates 4 --json");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    let tuned = &json(&output)["tuned"][0];
    assert_eq!(tuned["candidates"].as_array().unwrap().len(), 4);
    assert_eq!(tuned["candidates"][0]["outcome"], "winner");
    assert_eq!(tuned["candidates"][0]["from_heuristic"], true);
    assert_eq!(
        (&tuned["speedup"], &tuned["cached_at"]),
        (&1.0.into(), &Value::Null)
    );
    let cache_file = tuned["cache_file"].as_str().unwrap();
    assert!(
        cache_file.contains("tune/vector-add-f32-n1-"),
        "{cache_file}"
    );

    let again = json(&warpline(one.path(), "tune vector-add --n 1 --json"));
    assert!(
        again["tuned"][0]["cached_at"].is_string(),
        "sizes 1 and 0 share a cache bucket"
    );

    let listed = json(&warpline(one.path(), "cache list --json"));
    assert_eq!(listed["entries"][0]["path"], cache_file);
    let file = one.path().join("tuned.json");
    let out = warpline(one.path(), &format!("cache export {}", file.display()));
    assert!(text(&out.stdout).starts_with("wrote 1 tuned config to "));
    let out = warpline(two.path(), &format!("cache import {}", file.display()));
    assert!(text(&out.stdout).starts_with("imported 1 tuned config into "));
    let again = warpline(two.path(), "tune vector-add --n 0");
    let message = text(&again.stdout);
    assert!(message.contains("cached   tuned at 20"), "{message}");

    let out = warpline(two.path(), "cache clear --family vector-add");
    assert!(text(&out.stdout).starts_with("deleted 1 tuned config from "));
    let out = warpline(two.path(), "cache list");
    assert!(text(&out.stdout).starts_with("0 tuned configs in "));
}

#[test]
fn the_report_shows_the_outcome_of_each_candidate() {
    let cache = folder();
    let output = warpline(cache.path(), "tune vector-add --n 0 --candidates 3");
    let message = text(&output.stdout);
    for part in [
        "OUTCOME",
        "(heuristic)",
        "1500.0 µs    0.0 %   winner",
        "runner-up",
        "slower",
        "speedup   1.000x over the config of the heuristic",
        "result    PASS: compared with the reference",
        "cache     ",
    ] {
        assert!(message.contains(part), "{part:?} is not in\n{message}");
    }
}

#[test]
fn wrong_results_are_not_cached() {
    let cache = folder();
    let output = warpline(
        cache.path(),
        "tune vector-add --n 1000 --candidates 2 --json",
    );
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(json(&output)["error"]["code"], "not-tuned");
    let out = warpline(cache.path(), "cache list");
    assert!(text(&out.stdout).starts_with("0 tuned configs in "));
}

#[test]
fn a_damaged_cache_entry_gives_a_warning_and_is_replaced() {
    let cache = folder();
    let tune = "tune vector-add --n 0 --candidates 2 --json";
    let first = json(&warpline(cache.path(), tune));
    let cache_file = first["tuned"][0]["cache_file"].as_str().unwrap();
    fs::write(cache_file, "{}").unwrap();
    let listed = warpline(cache.path(), "cache list");
    assert!(text(&listed.stdout).contains("skipped "));

    let output = warpline(cache.path(), "run vector-add --n 0 --no-watchdog --json");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(json(&output)["tuned"], false);
    let warned = text(&output.stderr);
    assert!(
        warned.starts_with("warning: the tuned config in "),
        "{warned}"
    );
    assert!(
        warned.ends_with("\nhelp: tune again to replace it\n"),
        "{warned}"
    );

    let output = warpline(cache.path(), tune);
    assert_eq!(output.status.code(), Some(0));
    let output = warpline(cache.path(), "run vector-add --n 0 --no-watchdog --json");
    assert_eq!(
        (text(&output.stderr), &json(&output)["tuned"]),
        ("", &true.into())
    );
}

#[test]
fn concurrent_processes_tune_once() {
    let cache = folder();
    let start = || {
        command(cache.path(), "tune vector-add --n 0 --json")
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    };
    let outputs = [start(), start()].map(|child| child.wait_with_output().unwrap());
    assert!(outputs.iter().all(|o| o.status.success()));
    let tuned = outputs.each_ref().map(|o| json(o)["tuned"][0].clone());
    let measured = tuned.iter().filter(|t| t["cached_at"].is_null()).count();
    assert_eq!(
        measured, 1,
        "the other process waits, or finds the cached config"
    );
    assert_eq!(tuned[0]["config"], tuned[1]["config"]);
}

#[test]
fn a_disabled_cache_is_reported() {
    let cache = folder();
    let off = |args: &str| {
        command(cache.path(), args)
            .env("WARPLINE_CACHE", "off")
            .output()
            .unwrap()
    };
    let output = off("cache list");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        text(&output.stderr),
        "error: the cache is off (WARPLINE_CACHE=off)\n"
    );
    let tuned = off("tune vector-add --n 0 --candidates 2");
    assert!(text(&tuned.stdout).contains("cache     in memory only, for this process"));
    assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0);
}
