//! Workloads for the tuner: stored configs, buckets, fixed choices.

use serde_json::{Value, json};
use warpline_kernels::vector_add::{Choice, Problem, Schedule, VectorAdd};
use warpline_kernels::{AnyWorkload, FloatType, Workload, registry, shipped};
use warpline_testkit::kernel::TARGET;

fn add(n: u64, choice: &Choice) -> Workload<VectorAdd> {
    let dtype = FloatType::F32;
    Workload::new(Problem { n, dtype }, choice, &TARGET).unwrap()
}

#[test]
fn every_candidate_of_every_benchmark_problem_round_trips_through_json() {
    for family in registry() {
        for work in shipped::bench_workloads(family, &TARGET).unwrap() {
            for other in work.alternatives(&TARGET).unwrap() {
                let text = other.config().to_string();
                let read = serde_json::from_str(&text).unwrap();
                let back = work.with_config(&read, &TARGET).unwrap();
                assert_eq!(back.config(), other.config(), "{}", family.name());
                assert_eq!(back.problem(), work.problem());
            }
        }
    }
}

#[test]
fn a_config_adapts_its_grid_to_another_problem_of_its_bucket() {
    let (large, small) = (
        add(1 << 20, &Choice::default()),
        add(900_000, &Choice::default()),
    );
    let class = |work: &Workload<VectorAdd>| {
        let tuning = work.tuning().unwrap();
        (tuning.class, tuning.bucket)
    };
    assert_eq!(class(&large), class(&small));
    let adapted = small
        .with_config(&AnyWorkload::config(&large), &TARGET)
        .unwrap();
    assert_ne!(
        adapted.config()["ctas"],
        AnyWorkload::config(&large)["ctas"]
    );
    assert_eq!(adapted.config(), AnyWorkload::config(&small));
}

#[test]
fn a_stored_config_with_missing_or_invalid_fields_is_rejected() {
    let work = add(1000, &Choice::default());
    let outcome = |config: Value| match work.with_config(&config, &TARGET) {
        Ok(_) => "PASS".into(),
        Err(e) => e.to_string(),
    };
    let valid = AnyWorkload::config(&work);
    assert_eq!(outcome(valid.clone()), "PASS");
    assert!(outcome(json!({})).starts_with("vector-add rejects the config {}: the field"));
    let mut invalid = valid.clone();
    invalid["warps"] = json!(3);
    assert!(
        outcome(invalid).contains("not"),
        "the family's own rules reject it"
    );
    let mut invalid = valid;
    invalid["schedule"] = json!("no-schedule");
    assert!(outcome(invalid).contains("grid-stride, elements, double-buffer or specialized"));
}

#[test]
fn alternatives_keep_the_callers_choices() {
    let choice = Choice {
        schedule: Some(Schedule::Elements),
        ..Choice::default()
    };
    let work = add(1000, &choice);
    assert_eq!(
        work.tuning().unwrap().fixed,
        json!({ "schedule": "elements" })
    );
    let all = work.alternatives(&TARGET).unwrap();
    assert!(all.iter().all(|w| w.config()["schedule"] == "elements"));
    let other = AnyWorkload::config(&add(1000, &Choice::default()));
    let rejected = work.with_config(&other, &TARGET).err().unwrap();
    assert!(
        rejected
            .to_string()
            .ends_with("it contradicts the caller's choices")
    );
}
