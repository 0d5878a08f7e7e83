//! Runs on the simulator: repeats, seeds, progress, and what an API call refuses.

use warpline::kernels::Work;
use warpline::kernels::vector_add::{Choice, Float, Form, Problem, VectorAdd};
use warpline::{Device, Phase, RunOptions, Timing, run};

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};

fn work(n: u64, form: Form) -> Work<VectorAdd> {
    let choice = Choice {
        form: Some(form),
        ..Choice::default()
    };
    let problem = Problem {
        n,
        dtype: Float::F32,
    };
    Work::new(problem, &choice, &Device::cpu().target()).unwrap()
}

#[test]
fn repeats_with_other_moments_give_the_same_bits() {
    let mut options = RunOptions::default();
    options.timing = Timing::Random;
    options.repeat = NonZeroU32::new(5);
    let outcome = run(&work(10_000, Form::Specialized), &Device::cpu(), &options).unwrap();
    assert!(outcome.passed() && outcome.same_bits);
    assert_eq!(outcome.times.all_s.len(), 5);
    let stats = outcome.kernels[0].stats.as_ref().unwrap();
    let roles: Vec<&str> = stats.roles.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(roles, ["compute", "load", "store"]);
}

#[test]
fn another_seed_draws_other_inputs() {
    let worst = |seed| {
        let mut options = RunOptions::default();
        options.seed = seed;
        let outcome = run(&work(100, Form::GridStride), &Device::cpu(), &options).unwrap();
        assert!(outcome.passed());
        outcome.outputs[0].worst.clone().unwrap().expected
    };
    assert_eq!(worst(1), worst(1));
    assert_ne!(worst(1), worst(2));
}

#[test]
fn long_work_is_refused_unless_it_is_asked_for() {
    let refused = run(
        &work(1_000_000_000, Form::GridStride),
        &Device::cpu(),
        &RunOptions::default(),
    );
    let refused = refused.unwrap_err();
    assert_eq!((refused.code(), refused.exit_code()), ("too-long", 2));
    assert!(refused.to_string().contains("`simulate`"), "{refused}");
}

#[test]
fn progress_is_told_from_inputs_to_comparison() {
    let told: Arc<Mutex<Vec<Phase>>> = Arc::default();
    let mut options = RunOptions::default();
    let to = told.clone();
    options.progress = Some(Arc::new(move |phase| to.lock().unwrap().push(phase)));
    run(&work(10_000, Form::Specialized), &Device::cpu(), &options).unwrap();
    let told = told.lock().unwrap();
    assert_eq!(told.first(), Some(&Phase::Inputs));
    assert_eq!(told.last(), Some(&Phase::Compare));
    let total = 3;
    assert!(
        told.contains(&Phase::Kernels { done: total, total }),
        "{told:?}"
    );
}

#[test]
fn an_outcome_is_valid_json() {
    let outcome = run(
        &work(100, Form::Specialized),
        &Device::cpu(),
        &RunOptions::default(),
    );
    let text = serde_json::to_string(&outcome.unwrap()).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["device"]["name"], "cpu");
    assert_eq!(value["outputs"][0]["failed"], 0);
    assert!(value["kernels"][0]["stats"]["roles"][0]["instructions"].as_u64() > Some(0));
    assert!(value["rates"].is_null());
}
