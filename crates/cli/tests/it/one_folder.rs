//! A family is one folder (`double`) and one line ([`FAMILIES`]); every tool supports it.

use crate::common::assert_cases_pass;
use crate::double::Double;
use serde_json::{Value, json};
use warpline::bench::suite;
use warpline_cli::run;
use warpline_family::op::TensorView;
use warpline_family::{AnyFamily, DeviceKind, Request, docs, shipped};
use warpline_ir::DType;
use warpline_testkit::assemble::assembled;
use warpline_testkit::kernel::TARGET;

/// The registry of a program with this family.
const FAMILIES: &[&dyn AnyFamily] = &[&Double];

fn family() -> &'static dyn AnyFamily {
    FAMILIES[0]
}

/// Returns the output of a command.
fn stdout_of(line: &str) -> String {
    let words: Vec<_> = line.split(' ').map(Into::into).collect();
    let output = run(FAMILIES, &words);
    assert_eq!(
        (output.exit_code, output.stderr.as_str()),
        (0, ""),
        "{line}"
    );
    output.stdout
}

fn json_output(line: &str) -> Value {
    serde_json::from_str(&stdout_of(&format!("{line} --json"))).unwrap()
}

#[test]
fn every_command_supports_the_family() {
    let list = json_output("mine list");
    assert_eq!(list["families"][0]["name"], "double");
    assert_eq!(list["families"][0]["configs"].as_array().unwrap().len(), 2);
    let run = json_output("mine run double --n 77 --warps 2 --device cpu");
    assert_eq!(run["problem"], json!({ "n": 77 }));
    assert_eq!(run["config"], json!({ "warps": 2 }));
    assert_eq!(run["passed"], true, "{run}");
    assert!(stdout_of("mine check double").starts_with("kernel double: proved"));
    let fuzz = stdout_of("mine check double --fuzz 9 --seed 1");
    assert!(
        fuzz.starts_with("9 problems: 9 proved, 0 undecided, 0 refuted, 0 rejected\n"),
        "{fuzz}"
    );
    assert!(stdout_of("mine check --all").ends_with("proved: 3 of 3 kernels\n"));
    assert!(stdout_of("mine emit double --ptx").contains(".visible .entry double("));
    assert!(stdout_of("mine emit double --ir").starts_with("kernel double"));
    let sweep = json_output("mine sweep double --device cpu --n 100 --vary warps=1,2");
    assert_eq!(sweep["points"].as_array().unwrap().len(), 2, "{sweep}");
    let tune = stdout_of("mine tune double --n 100 --device cpu");
    assert!(tune.contains("warps 8"), "{tune}");
    let help = stdout_of("mine run double --help");
    assert!(help.contains("--warps <COUNT>"), "{help}");
    assert!(suite::names(FAMILIES).contains(&"memory"));
}

#[test]
fn bad_values_are_rejected_by_the_declared_rules() {
    for (flags, message) in [
        ("--n x", "--n must be a whole number, not x"),
        (
            "--n 2000000000",
            "--n must be a whole number of at most 1073741824, not 2000000000",
        ),
        (
            "--warps 0",
            "--warps must be a whole number of at least 1, not 0",
        ),
    ] {
        let line = format!("mine run double --device cpu {flags}");
        let words: Vec<_> = line.split(' ').map(Into::into).collect();
        let output = run(FAMILIES, &words);
        assert_eq!(output.stderr, format!("error: {message}\n"));
    }
}

#[test]
fn test_cases_pass_and_programs_assemble() {
    assert_cases_pass(family());
    for work in shipped::workloads(family(), &TARGET).unwrap() {
        for step in work.plan(&TARGET).unwrap().steps {
            let proof = step.kernel.proof(&TARGET).unwrap_or_else(|e| panic!("{e}"));
            assembled(&proof.kernel).unwrap_or_else(|e| panic!("{e}"));
        }
    }
}

#[test]
fn the_tuning_key_is_complete_and_configs_round_trip() {
    let request = Request::default().with("n", 100).with("warps", 8);
    let work = family()
        .workload(&request, DeviceKind::Cpu, None, &TARGET)
        .unwrap();
    let tuning = work.tuning().unwrap();
    assert_eq!(tuning.class, json!({ "n": 100 }));
    assert_eq!(tuning.fixed, json!({ "warps": 8 }));
    let work = family().default_workload(DeviceKind::Gpu, &TARGET).unwrap();
    for alternative in work.alternatives(&TARGET).unwrap() {
        let restored = work.with_config(&alternative.config(), &TARGET).unwrap();
        assert_eq!(restored.config(), alternative.config());
    }
}

#[test]
fn the_op_is_declared_for_python_and_the_docs() {
    let [op] = &family().ops()[..] else {
        panic!("one op");
    };
    let declared = op.to_json();
    assert_eq!(declared["schema"], "double(Tensor x) -> Tensor");
    assert_eq!(declared["family"], "double");
    let stub = declared["stub"].as_str().unwrap();
    assert!(
        stub.starts_with("def double(\n    x: _A,\n    *,\n"),
        "{stub}"
    );
    assert!(stub.ends_with(") -> _A: ...\n"), "{stub}");
    let calls = family().bench_calls(&TARGET).unwrap();
    let measured = calls[0].to_json(&op.signature.params);
    assert_eq!(measured["suite"], "memory");
    assert_eq!(measured["bytes"], f64::from(2 * 4 * (1 << 26)));
    assert_eq!(measured["args"][0]["tensor"]["shape"], json!([1 << 26]));

    let view = |address| TensorView::dense(DType::F32, &[5, 20], address);
    let work = op.workload(&[view(0).into()], &[view(4096)], &TARGET);
    assert_eq!(work.unwrap().unwrap().problem(), json!({ "n": 100 }));

    let section = docs::markdown(family());
    assert!(section.starts_with("## double\n\ny = 2 x, element by element.\n"));
    let row = "| `--warps` | count, at least 1 | Warps of a CTA |";
    assert!(section.contains(row), "{section}");
}
