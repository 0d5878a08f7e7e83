//! Children: this test binary once more, told what to do by the name of a test.

use std::thread::sleep;
use std::time::{Duration, Instant};
use warpline::child::{Ended, is_child, run, say};

const LONG: Duration = Duration::from_secs(100);

/// Runs one test of this file as a child.
fn child(test: &str, limit: Duration) -> Ended {
    run(["--exact", &format!("child::{test}"), "--nocapture"], limit).expect("a child")
}

#[test]
fn as_a_child_it_says_how_it_ends_and_hangs() {
    if is_child() {
        say(3, "nothing can go on").expect("output");
        sleep(LONG);
    }
}

#[test]
fn as_a_child_it_says_nothing_and_hangs() {
    if is_child() {
        sleep(LONG);
    }
}

#[test]
fn as_a_child_it_just_ends() {
    if is_child() {
        std::process::exit(7);
    }
}

#[test]
fn what_a_child_said_is_read_and_the_child_ended() {
    if is_child() {
        return;
    }
    let start = Instant::now();
    let said = child("as_a_child_it_says_how_it_ends_and_hangs", LONG);
    assert_eq!(said.code, Some(3));
    assert!(said.output.contains("nothing can go on\n"), "{said:?}");
    assert!(!said.output.contains("ends with"), "{said:?}");
    assert!(start.elapsed() < LONG / 2);
}

#[test]
fn a_child_that_says_nothing_is_ended_at_its_limit() {
    if is_child() {
        return;
    }
    let limit = Duration::from_millis(300);
    let silent = child("as_a_child_it_says_nothing_and_hangs", limit);
    assert_eq!(silent.code, None);
    assert_eq!(child("as_a_child_it_just_ends", LONG).code, Some(7));
}
