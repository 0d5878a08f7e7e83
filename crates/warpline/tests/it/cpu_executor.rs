//! Runs on the CPU executor: repeats, seeds, progress and rejected calls.

use warpline::kernels::Workload;
use warpline::kernels::vector_add::{Choice, FloatType, Problem, Schedule, VectorAdd};
use warpline::{Device, RunOptions, RunPhase, Timing, run};

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};

fn work(n: u64, schedule: Schedule) -> Workload<VectorAdd> {
    let choice = Choice {
        schedule: Some(schedule),
        ..Choice::default()
    };
    let problem = Problem {
        n,
        dtype: FloatType::F32,
    };
    Workload::new(problem, &choice, &Device::cpu().target()).unwrap()
}

#[test]
fn random_timings_give_the_same_bits() {
    let mut options = RunOptions::default();
    options.timing = Timing::Random;
    options.repeat = NonZeroU32::new(5);
    let report = run(
        &work(10_000, Schedule::Specialized),
        &Device::cpu(),
        &options,
    )
    .unwrap();
    assert!(report.passed() && report.same_bits);
    assert_eq!(report.times.all_s.len(), 5);
    let stats = report.kernels[0].stats.as_ref().unwrap();
    let roles: Vec<&str> = stats.roles.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(roles, ["compute", "load", "store"]);
}

#[test]
fn the_seed_determines_the_inputs() {
    let worst_expected = |seed| {
        let mut options = RunOptions::default();
        options.seed = seed;
        let report = run(&work(100, Schedule::GridStride), &Device::cpu(), &options).unwrap();
        assert!(report.passed());
        report.outputs[0].worst.clone().unwrap().expected
    };
    assert_eq!(worst_expected(1), worst_expected(1));
    assert_ne!(worst_expected(1), worst_expected(2));
}

#[test]
fn a_long_simulation_is_rejected() {
    let result = run(
        &work(1_000_000_000, Schedule::GridStride),
        &Device::cpu(),
        &RunOptions::default(),
    );
    let error = result.unwrap_err();
    assert_eq!((error.code(), error.exit_code()), ("too-long", 2));
    assert!(error.to_string().contains("`simulate`"), "{error}");
}

#[test]
fn progress_covers_inputs_to_comparison() {
    let phases: Arc<Mutex<Vec<RunPhase>>> = Arc::default();
    let mut options = RunOptions::default();
    let to = phases.clone();
    options.progress = Some(Arc::new(move |phase| to.lock().unwrap().push(phase)));
    run(
        &work(10_000, Schedule::Specialized),
        &Device::cpu(),
        &options,
    )
    .unwrap();
    let phases = phases.lock().unwrap();
    assert_eq!(phases.first(), Some(&RunPhase::Inputs));
    assert_eq!(phases.last(), Some(&RunPhase::Compare));
    let total = 3;
    assert!(
        phases.contains(&RunPhase::Kernels { done: total, total }),
        "{phases:?}"
    );
}

#[test]
fn a_report_is_valid_json() {
    let report = run(
        &work(100, Schedule::Specialized),
        &Device::cpu(),
        &RunOptions::default(),
    );
    let text = serde_json::to_string(&report.unwrap()).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["device"]["name"], "cpu");
    assert_eq!(value["outputs"][0]["failed"], 0);
    assert!(value["kernels"][0]["stats"]["roles"][0]["instructions"].as_u64() > Some(0));
    assert!(value["rates"].is_null());
}
