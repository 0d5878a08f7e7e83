//! Child processes: this test binary with the name of one test.

use std::thread::sleep;
use std::time::{Duration, Instant};
use warpline::child::{ChildResult, is_child, report_exit, run};

const LONG: Duration = Duration::from_secs(100);

/// Runs one test of this file in a child process.
fn run_child(test: &str, limit: Duration) -> ChildResult {
    run(["--exact", &format!("child::{test}"), "--nocapture"], limit).expect("a child")
}

#[test]
fn child_process_reports_its_exit_code_and_hangs() {
    if is_child() {
        report_exit(3, "cannot continue").expect("output");
        sleep(LONG);
    }
}

#[test]
fn child_process_hangs_without_a_report() {
    if is_child() {
        sleep(LONG);
    }
}

#[test]
fn child_process_exits() {
    if is_child() {
        std::process::exit(7);
    }
}

#[test]
fn the_report_of_a_child_is_read_and_the_child_is_killed() {
    if is_child() {
        return;
    }
    let start = Instant::now();
    let result = run_child("child_process_reports_its_exit_code_and_hangs", LONG);
    assert_eq!(result.code, Some(3));
    assert!(result.output.contains("cannot continue\n"), "{result:?}");
    assert!(!result.output.contains("ends with"), "{result:?}");
    assert!(start.elapsed() < LONG / 2);
}

#[test]
fn a_child_without_a_report_is_killed_at_its_limit() {
    if is_child() {
        return;
    }
    let limit = Duration::from_millis(300);
    let silent = run_child("child_process_hangs_without_a_report", limit);
    assert_eq!(silent.code, None);
    assert_eq!(run_child("child_process_exits", LONG).code, Some(7));
}
