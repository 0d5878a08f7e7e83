//! The JSON output of `check`.

use serde_json::Value;
use std::collections::HashSet;
use warpline_cli::run;
use warpline_kernels::vector_add::VectorAdd;

/// Returns the JSON output and the exit code of a command.
fn json_output(command: &str) -> (Value, u8) {
    let words = format!("mine {command} --json");
    let words: Vec<_> = words.split(' ').map(Into::into).collect();
    let output = run(&[&VectorAdd], &words);
    (
        serde_json::from_str(&output.stdout).unwrap(),
        output.exit_code,
    )
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

#[test]
fn check_reports_every_kernel_of_a_family() {
    let (found, exit) = json_output("check vector-add --schedule specialized --stages 2");
    assert_eq!((exit, &found["proved"]), (0, &true.into()));
    assert_eq!(found["config"]["stages"], 2);
    let [report] = list(&found["reports"]) else {
        panic!("one kernel: {found}");
    };
    assert_eq!(report["kernel"], "vector_add");
    assert_eq!(report["outcome"], "proved");
    assert!(list(&report["diagnostics"]).is_empty());
    let [assumption] = list(&report["assumptions"]) else {
        panic!("one assumption: {report}");
    };
    assert_eq!(assumption["code"], "A.writer");
    assert!(report["time_s"].as_f64() > Some(0.0));
    assert!(found["lints"].is_null());
}

#[test]
fn lint_reports_every_check() {
    let (found, exit) = json_output("check vector-add --schedule specialized --lint");
    assert_eq!(exit, 0);
    let checks: HashSet<&str> = list(&found["lints"])
        .iter()
        .map(|lint| lint["check"].as_str().unwrap())
        .collect();
    assert_eq!(
        checks,
        HashSet::from_iter(warpline_lint::checks::ALL.iter().copied())
    );
}

#[test]
fn check_all_reports_every_program_once() {
    let (found, exit) = json_output("check --all");
    assert_eq!((exit, &found["proved"]), (0, &true.into()));
    let kernels = list(&found["kernels"]);
    for kernel in kernels {
        assert_eq!(kernel["outcome"], "proved", "{kernel:#}");
    }
    let hashes: HashSet<&str> = kernels
        .iter()
        .map(|k| k["hash"].as_str().unwrap())
        .collect();
    assert_eq!(hashes.len(), kernels.len());
    let schedules: HashSet<&str> = kernels
        .iter()
        .map(|k| k["config"]["schedule"].as_str().unwrap())
        .collect();
    assert_eq!(schedules.len(), 4, "every schedule: {schedules:?}");
    let [row] = list(&found["families"]) else {
        panic!("one family: {found}");
    };
    assert_eq!(row["family"], "vector-add");
    assert_eq!(row["kernels"], kernels.len());
    assert_eq!(row["proved"], kernels.len());
    assert_eq!((&row["refuted"], &row["undecided"]), (&0.into(), &0.into()));
}

#[test]
fn check_all_prints_counts_by_family() {
    let words = ["mine", "check", "--all"].map(Into::into);
    let output = run(&[&VectorAdd], &words);
    let lines: Vec<&str> = output.stdout.lines().collect();
    let [header, row, "", .., last] = lines.as_slice() else {
        panic!("a table of one family:\n{}", output.stdout);
    };
    let columns = "FAMILY KERNELS PROVED REFUTED UNDECIDED MAX STATES MAX TIME";
    assert_eq!(
        header.split_whitespace().collect::<Vec<_>>().join(" "),
        columns
    );
    let cells: Vec<&str> = row.split_whitespace().collect();
    let (kernels, proved) = (cells[1], cells[2]);
    assert_eq!((proved, cells[3], cells[4]), (kernels, "0", "0"));
    assert_eq!(*last, format!("proved: {kernels} of {kernels} kernels"));
    assert_eq!(output.exit_code, 0);
}

#[test]
fn check_corpus_refutes_every_bug() {
    let (found, exit) = json_output("check --corpus");
    let bugs = list(&found["bugs"]);
    assert_eq!(bugs.len(), warpline_corpus::all().len());
    for bug in bugs {
        let codes = list(&bug["broken"]["diagnostics"])
            .iter()
            .map(|r| &r["code"]);
        assert!(
            codes.into_iter().any(|code| *code == bug["rule"]),
            "{bug:#}"
        );
        assert_eq!(bug["repaired"]["outcome"], "proved", "{bug:#}");
        assert_eq!(bug["expected"], true, "{bug:#}");
    }
    assert_eq!((exit, &found["expected"]), (0, &true.into()));
}
