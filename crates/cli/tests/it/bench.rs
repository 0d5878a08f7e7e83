//! `warpline bench` over a stub of the CUDA driver, which accepts every launch,
//! runs none, and reports 1.5 ms for each.

use crate::common::with_driver_stub;
use serde_json::Value;
use std::process::Output;
use std::str;

fn bench(args: &str) -> Output {
    with_driver_stub("bench", args)
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

fn err(output: &Output) -> &str {
    str::from_utf8(&output.stderr).unwrap()
}

#[test]
fn candidates_are_timed_with_a_device_copy() {
    // The problem is empty, so every result passes.
    let output = bench("vector-add --n 0 --schedules --rounds 15 --json");
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

    let [group] = report["groups"].as_array().unwrap().as_slice() else {
        panic!("one group: {report}");
    };
    assert_eq!(
        (&group["family"], &group["bound"]),
        (&"vector-add".into(), &"memory".into())
    );
    assert_eq!(group["noise"]["relative_difference"], 0.0);
    assert_eq!(group["limit"]["seconds"]["count"], 15);
    // The copy reads and writes an eighth of the free memory in 1.5 ms.
    let rate = group["limit"]["rate"].as_f64().unwrap();
    assert!(
        (rate / (2.0 * 2097152.0 / 1.5e-3) - 1.0).abs() < 1e-6,
        "{rate}"
    );
    let rows = group["rows"].as_array().unwrap();
    let mut schedules: Vec<_> = rows
        .iter()
        .map(|r| r["config"]["schedule"].as_str())
        .collect();
    schedules.sort();
    assert_eq!(
        schedules,
        [
            Some("double-buffer"),
            Some("grid-stride"),
            Some("specialized")
        ]
    );
    assert_eq!(
        rows.iter().filter(|r| r["from_heuristic"] == true).count(),
        1
    );
    for row in rows {
        assert_eq!(row["measured"]["seconds"]["count"], 15);
        assert!((row["measured"]["seconds"]["median"].as_f64().unwrap() - 1.5e-3).abs() < 1e-9);
        assert!(row["failure"].is_null() && row["limit_fraction"] == 0.0);
        assert!(row["measured"]["sm_mhz"].is_null() && row["sustained"].is_null());
    }
}

#[test]
fn a_wrong_result_is_not_timed() {
    // The stub computes nothing, so the outputs keep the poison.
    let output = bench("vector-add --n 1000 --candidates 4 --json");
    assert_eq!(output.status.code(), Some(1));
    let message = "error: 4 of 4 candidates were not timed; the first, vector-add: \
                    1000 of 1000 elements are wrong: element ";
    assert!(err(&output).starts_with(message), "{}", err(&output));
    let group = &json(&output)["groups"][0];
    assert!(group["limit"].is_null() && group["noise"].is_null());
    let rows = group["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for row in rows {
        assert_eq!(row["check"]["failed"], 1000);
        assert!(row["measured"].is_null());
    }
}

#[test]
fn out_of_memory_is_reported_per_candidate() {
    let output = bench("vector-add --n 100000000 --json");
    assert_eq!(output.status.code(), Some(1));
    let row = &json(&output)["groups"][0]["rows"][0];
    let why = row["failure"].as_str().unwrap();
    let expected = "out of memory on cuda:0: 1200000000 bytes requested, 16777216 of ";
    assert!(why.starts_with(expected), "{why}");
}

#[test]
fn the_report_describes_the_method() {
    let output = bench("vector-add --n 0 --rounds 15 --sustained");
    let text = str::from_utf8(&output.stdout).unwrap();
    for part in [
        "OF LIMIT",
        "1500.0 µs",
        "(sustained)",
        "median of 15 rounds in random order",
        "by reading 4 MiB",
        "differ by at most 0.0 %",
        "every element against float64",
        "sensors",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn config_options_without_a_matching_candidate_are_rejected() {
    let output = bench("vector-add --n 1000 --stages 97 --candidates 4");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        err(&output),
        "error: no candidate of vector-add matches the given config options\n"
    );
}
