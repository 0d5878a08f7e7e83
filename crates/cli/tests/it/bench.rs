//! `warpline bench` over a stand-in for the driver: it takes every launch,
//! runs none, and says of each that it took 1.5 ms.

use crate::common::with_stand_in;
use serde_json::Value;
use std::process::Output;
use std::str;

fn bench(args: &str) -> Output {
    with_stand_in("bench", args)
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

fn err(output: &Output) -> &str {
    str::from_utf8(&output.stderr).unwrap()
}

#[test]
fn contenders_are_timed_against_each_other_and_a_copy() {
    // Nothing is asked, so nothing is wrong.
    let output = bench("vector-add --n 0 --forms --rounds 15 --json");
    assert_eq!((output.status.code(), err(&output)), (Some(0), ""));
    let report = json(&output);
    assert_eq!(
        (&report["version"], &report["command"]),
        (&1.into(), &"bench".into())
    );
    assert_eq!(
        (&report["passed"], &report["rounds"]),
        (&true.into(), &15.into())
    );
    assert_eq!(report["flush_bytes"], 4 * 1048576);
    assert!(report["no_sensors"].is_string());

    let [heat] = report["heats"].as_array().unwrap().as_slice() else {
        panic!("one heat: {report}");
    };
    assert_eq!(
        (&heat["family"], &heat["bound"]),
        (&"vector-add".into(), &"memory".into())
    );
    assert_eq!(heat["twice"]["apart"], 0.0);
    assert_eq!(heat["limit"]["seconds"]["count"], 15);
    // An eighth of what is free, read and written in 1.5 ms.
    let rate = heat["limit"]["rate"].as_f64().unwrap();
    assert!(
        (rate / (2.0 * 2097152.0 / 1.5e-3) - 1.0).abs() < 1e-6,
        "{rate}"
    );
    let rows = heat["rows"].as_array().unwrap();
    let mut forms: Vec<_> = rows.iter().map(|r| r["config"]["form"].as_str()).collect();
    forms.sort();
    assert_eq!(
        forms,
        [
            Some("double-buffer"),
            Some("grid-stride"),
            Some("specialized")
        ]
    );
    assert_eq!(rows.iter().filter(|r| r["chosen"] == true).count(), 1);
    for row in rows {
        assert_eq!(row["measured"]["seconds"]["count"], 15);
        assert!((row["measured"]["seconds"]["median"].as_f64().unwrap() - 1.5e-3).abs() < 1e-9);
        assert!(row["failure"].is_null() && row["share"] == 0.0);
        assert!(row["measured"]["sm_mhz"].is_null() && row["sustained"].is_null());
    }
}

#[test]
fn a_wrong_result_is_not_timed() {
    // The stand-in computes nothing: the poison stays.
    let output = bench("vector-add --n 1000 --candidates 4 --json");
    assert_eq!(output.status.code(), Some(1));
    let sentence = "error: 4 of 4 contenders were not timed; the first, vector-add: \
                    1000 of 1000 elements are wrong: element ";
    assert!(err(&output).starts_with(sentence), "{}", err(&output));
    let heat = &json(&output)["heats"][0];
    assert!(heat["limit"].is_null() && heat["twice"].is_null());
    let rows = heat["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for row in rows {
        assert_eq!(row["check"]["failed"], 1000);
        assert!(row["measured"].is_null());
    }
}

#[test]
fn what_does_not_fit_is_told_and_the_process_goes_on() {
    let output = bench("vector-add --n 100000000 --json");
    assert_eq!(output.status.code(), Some(1));
    let row = &json(&output)["heats"][0]["rows"][0];
    let why = row["failure"].as_str().unwrap();
    let told = "out of memory on cuda:0: 1200000000 bytes were asked for, 16777216 of ";
    assert!(why.starts_with(told), "{why}");
}

#[test]
fn the_table_says_how_it_was_measured() {
    let output = bench("vector-add --n 0 --rounds 15 --sustained");
    let text = str::from_utf8(&output.stdout).unwrap();
    for part in [
        "OF LIMIT",
        "1500.0 µs",
        "(sustained)",
        "medians of 15 rounds in random order",
        "by reading 4 MiB",
        "lay apart by at most 0.0 %",
        "every element against float64",
        "sensors",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn config_options_that_no_candidate_has_are_bad_input() {
    let output = bench("vector-add --n 1000 --stages 97 --candidates 4");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        err(&output),
        "error: no candidate of vector-add agrees with the config options given\n"
    );
}
