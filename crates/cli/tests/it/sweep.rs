//! `warpline sweep` over a stub of the CUDA driver, which accepts every launch,
//! runs none, and reports 1.5 ms for each.

use crate::common::with_driver_stub;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Output;
use std::str;

fn sweep(args: &str) -> Output {
    with_driver_stub("sweep", args)
}

fn json_output(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}

#[test]
fn points_keep_their_order_and_rejected_points_are_rows() {
    // The problem is empty, so every result passes.
    let line = "vector-add --n 0 --schedule specialized --vary stages=4,999,2 --vary warps=4,8";
    let output = sweep(&format!("{line} --rounds 15 --json"));
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    let found = json_output(&output);
    assert_eq!(
        (&found["command"], &found["passed"], &found["rounds"]),
        (&json!("sweep"), &json!(true), &json!(15))
    );
    let points = found["points"].as_array().unwrap();
    let values: Vec<_> = points.iter().map(|p| &p["values"]).collect();
    let expected = [[4, 4], [4, 8], [999, 4], [999, 8], [2, 4], [2, 8]];
    let expected = expected.map(|[s, w]| json!({ "stages": s, "warps": w }));
    assert_eq!(values, expected.iter().collect::<Vec<_>>());
    for point in points {
        assert!(point["counted"].is_null());
        if point["values"]["stages"] == 999 {
            let why = point["failure"]["message"].as_str().unwrap();
            assert!(why.starts_with("999 stages of "), "{why}");
            assert!(point["timed"].is_null() && point["problem"].is_null());
            continue;
        }
        assert_eq!(point["config"]["stages"], point["values"]["stages"]);
        assert_eq!(point["config"]["warps"], point["values"]["warps"]);
        let timed = &point["timed"];
        assert_eq!(
            (&timed["seconds"]["count"], &timed["of_fastest"]),
            (&15.into(), &1.0.into())
        );
        let kernel = &timed["kernels"][0];
        assert_eq!(kernel["name"], "vector_add");
        assert!(kernel["registers"].is_u64() && kernel["shared_bytes"].as_u64() > Some(0));
    }
}

#[test]
fn problem_fields_can_vary_and_a_plot_is_written() {
    let svg = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sweep.svg");
    let output = sweep(&format!(
        "softmax --rows 0 --vary cols=64,128 --vary dtype=f32,bf16 --rounds 15 --svg {}",
        svg.display()
    ));
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    let table = text(&output.stdout);
    for part in [
        " COLS  DTYPE  MEDIAN TIME  SPREAD  OF FASTEST  RATE",
        " 128   bf16   1500.0 µs    0.0 %   × 1.000",
        "median of 15 rounds in random order",
        "problem  rows 0\n",
        "plot written to ",
    ] {
        assert!(table.contains(part), "{part:?} is not in\n{table}");
    }
    let plot = fs::read_to_string(svg).unwrap();
    for part in [
        ">cols</text>",
        ">dtype bf16</text>",
        "median time in µs",
        "softmax on cuda:0",
    ] {
        assert!(plot.contains(part), "{part}");
    }
}

#[test]
fn a_wrong_point_is_reported_and_not_timed() {
    // The stub computes nothing, so the outputs keep the poison.
    let output = sweep("vector-add --n 1000 --schedule specialized --vary stages=2,3,999");
    assert_eq!(output.status.code(), Some(1));
    let start =
        "error: 2 of 3 points FAIL; the first, stages 2: 1000 of 1000 elements are wrong: element ";
    assert!(
        text(&output.stderr).starts_with(start),
        "{}",
        text(&output.stderr)
    );
    let table = text(&output.stdout);
    assert_eq!(table.matches("FAIL: ").count(), 2, "{table}");
    assert_eq!(table.matches("rejected: 999 stages").count(), 1, "{table}");
}
