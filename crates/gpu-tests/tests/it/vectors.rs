//! The CPU meaning of every op against what an H200 gave.

use std::fs;
use std::io::Write;
use warpline_gpu_tests::ops::{Amount, all};
use warpline_gpu_tests::vectors::{Vector, folder, path};

/// The recorded files, unless there are none yet.
fn recorded() -> bool {
    let any = fs::read_dir(folder()).is_ok_and(|mut files| {
        files.any(|f| f.is_ok_and(|f| f.path().extension().is_some_and(|e| e == "bin")))
    });
    if !any {
        // Not by a macro, whose output the harness keeps to itself.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: nothing is recorded in {}; `gpu-tests --record` does it on a GPU",
            folder().display()
        );
    }
    any
}

#[test]
fn every_op_gives_what_the_hardware_gave() {
    if !recorded() {
        return;
    }
    let mut wrong = vec![];
    for trial in all(Amount::Recorded) {
        let replayed = match Vector::read(&folder(), &trial.name) {
            Ok(Some(vector)) => vector.replay(&trial),
            Ok(None) => Err(anyhow::anyhow!("it is not recorded")),
            Err(e) => Err(e),
        };
        if let Err(why) = replayed {
            wrong.push(format!("{}: {why:#}", trial.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_file_is_of_a_trial_and_all_are_small() {
    if !recorded() {
        return;
    }
    let known: Vec<_> = (all(Amount::Recorded).iter())
        .map(|t| path(&folder(), &t.name))
        .collect();
    let mut bytes = 0;
    for file in fs::read_dir(folder()).unwrap() {
        let file = file.unwrap();
        assert!(known.contains(&file.path()), "{:?}", file.path());
        bytes += file.metadata().unwrap().len();
    }
    assert!(bytes < 2 << 20, "{bytes} bytes");
}
