//! `check` as programs read it.

use serde_json::Value;
use std::collections::HashSet;
use warpline_cli::call;
use warpline_kernels::vector_add::VectorAdd;

/// The answer to a command with `--json`, and its exit code.
fn answer(command: &str) -> (Value, u8) {
    let words = format!("mine {command} --json");
    let words: Vec<_> = words.split(' ').map(Into::into).collect();
    let reply = call(&[&VectorAdd], &words);
    (serde_json::from_str(&reply.out).unwrap(), reply.exit)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

#[test]
fn a_family_is_reported_kernel_by_kernel() {
    let (found, exit) = answer("check vector-add --form specialized --stages 2");
    assert_eq!((exit, &found["proved"]), (0, &true.into()));
    assert_eq!(found["config"]["stages"], 2);
    let [report] = list(&found["reports"]) else {
        panic!("one kernel: {found}");
    };
    assert_eq!(report["kernel"], "vector_add");
    assert_eq!(report["outcome"], "proved");
    assert!(list(&report["refusals"]).is_empty());
    let [assumed] = list(&report["assumptions"]) else {
        panic!("one assumption: {report}");
    };
    assert_eq!(assumed["code"], "A.writer");
    assert!(report["time_s"].as_f64() > Some(0.0));
    assert!(found["lints"].is_null());
}

#[test]
fn lints_answer_every_check() {
    let (found, exit) = answer("check vector-add --form specialized --lint");
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
fn all_reports_every_program_once() {
    let (found, exit) = answer("check --all");
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
    let forms: HashSet<&str> = kernels
        .iter()
        .map(|k| k["config"]["form"].as_str().unwrap())
        .collect();
    assert_eq!(forms.len(), 4, "every form: {forms:?}");
    let [row] = list(&found["families"]) else {
        panic!("one family: {found}");
    };
    assert_eq!(row["family"], "vector-add");
    assert_eq!(row["kernels"], kernels.len());
    assert_eq!(row["proved"], kernels.len());
    assert_eq!((&row["refuted"], &row["undecided"]), (&0.into(), &0.into()));
}

#[test]
fn the_table_counts_by_family() {
    let words = ["mine", "check", "--all"].map(Into::into);
    let reply = call(&[&VectorAdd], &words);
    let lines: Vec<&str> = reply.out.lines().collect();
    let [header, row, "", .., last] = lines.as_slice() else {
        panic!("a table of one family:\n{}", reply.out);
    };
    let columns = "FAMILY KERNELS PROVED REFUTED UNDECIDED MOST STATES SLOWEST";
    assert_eq!(
        header.split_whitespace().collect::<Vec<_>>().join(" "),
        columns
    );
    let cells: Vec<&str> = row.split_whitespace().collect();
    let (kernels, proved) = (cells[1], cells[2]);
    assert_eq!((proved, cells[3], cells[4]), (kernels, "0", "0"));
    assert_eq!(*last, format!("{kernels} of {kernels} kernels are proved"));
    assert_eq!(reply.exit, 0);
}

#[test]
fn the_corpus_is_refused_bug_by_bug() {
    let (found, exit) = answer("check --corpus");
    let bugs = list(&found["bugs"]);
    assert_eq!(bugs.len(), warpline_corpus::all().len());
    for bug in bugs {
        let codes = list(&bug["broken"]["refusals"]).iter().map(|r| &r["code"]);
        assert!(
            codes.into_iter().any(|code| *code == bug["rule"]),
            "{bug:#}"
        );
        assert_eq!(bug["repaired"]["outcome"], "proved", "{bug:#}");
        assert_eq!(bug["expected"], true, "{bug:#}");
    }
    assert_eq!((exit, &found["expected"]), (0, &true.into()));
}
