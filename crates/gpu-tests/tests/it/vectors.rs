//! The CPU semantics of every op against results recorded on an H200.

use std::fs;
use std::io::Write;
use warpline_gpu_tests::ops::{DataSize, all};
use warpline_gpu_tests::vectors::{TestVector, folder, path};

/// Returns whether recorded files exist; prints a note if not.
fn has_recorded_files() -> bool {
    let exist = fs::read_dir(folder()).is_ok_and(|mut files| {
        files.any(|f| f.is_ok_and(|f| f.path().extension().is_some_and(|e| e == "bin")))
    });
    if !exist {
        // `writeln!` to stderr, because the harness captures `eprintln!`.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: no recorded files in {}; run `gpu-tests --record` on a GPU",
            folder().display()
        );
    }
    exist
}

#[test]
fn every_op_matches_the_recorded_hardware_results() {
    if !has_recorded_files() {
        return;
    }
    let mut failures = vec![];
    for trial in all(DataSize::Recorded) {
        let replayed = match TestVector::read(&folder(), &trial.name) {
            Ok(Some(vector)) => vector.replay(&trial),
            Ok(None) => Err(anyhow::anyhow!("not recorded")),
            Err(e) => Err(e),
        };
        if let Err(why) = replayed {
            failures.push(format!("{}: {why:#}", trial.name));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_recorded_file_has_a_trial_and_is_small() {
    if !has_recorded_files() {
        return;
    }
    let paths: Vec<_> = (all(DataSize::Recorded).iter())
        .map(|t| path(&folder(), &t.name))
        .collect();
    let mut bytes = 0;
    for file in fs::read_dir(folder()).unwrap() {
        let file = file.unwrap();
        assert!(paths.contains(&file.path()), "{:?}", file.path());
        bytes += file.metadata().unwrap().len();
    }
    assert!(bytes < 2 << 20, "{bytes} bytes");
}
