//! Work as a tuner sees it: configs that are written down, buckets, choices.

use serde_json::{Value, json};
use warpline_kernels::vector_add::{Choice, Form, Problem, VectorAdd};
use warpline_kernels::{AnyWork, Float, Work, registry, shipped};
use warpline_testkit::kernel::TARGET;

fn add(n: u64, choice: &Choice) -> Work<VectorAdd> {
    let dtype = Float::F32;
    Work::new(Problem { n, dtype }, choice, &TARGET).unwrap()
}

#[test]
fn every_config_of_every_measured_problem_comes_back_from_json() {
    for family in registry() {
        for work in shipped::measured(family, &TARGET).unwrap() {
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
fn a_config_follows_the_extents_of_another_problem_of_its_bucket() {
    let (one, two) = (
        add(1 << 20, &Choice::default()),
        add(900_000, &Choice::default()),
    );
    let class = |work: &Work<VectorAdd>| {
        let tuning = work.tuning().unwrap();
        (tuning.class, tuning.bucket)
    };
    assert_eq!(class(&one), class(&two));
    let taken = two.with_config(&AnyWork::config(&one), &TARGET).unwrap();
    assert_ne!(taken.config()["ctas"], AnyWork::config(&one)["ctas"]);
    assert_eq!(taken.config(), AnyWork::config(&two));
}

#[test]
fn what_is_no_config_of_the_family_is_refused_by_a_sentence() {
    let work = add(1000, &Choice::default());
    let said = |config: Value| match work.with_config(&config, &TARGET) {
        Ok(_) => "good".into(),
        Err(e) => e.to_string(),
    };
    let good = AnyWork::config(&work);
    assert_eq!(said(good.clone()), "good");
    assert!(said(json!({})).starts_with("vector-add cannot take the config {}: it has no field"));
    let mut bad = good.clone();
    bad["warps"] = json!(3);
    assert!(
        said(bad).contains("not"),
        "judged by the family's own rules"
    );
    let mut bad = good;
    bad["form"] = json!("no-form");
    assert!(said(bad).contains("grid-stride, elements, double-buffer or specialized"));
}

#[test]
fn what_is_fixed_stays_fixed() {
    let choice = Choice {
        form: Some(Form::Elements),
        ..Choice::default()
    };
    let work = add(1000, &choice);
    assert_eq!(work.tuning().unwrap().fixed, json!({ "form": "elements" }));
    let all = work.alternatives(&TARGET).unwrap();
    assert!(all.iter().all(|w| w.config()["form"] == "elements"));
    let other = AnyWork::config(&add(1000, &Choice::default()));
    let refused = work.with_config(&other, &TARGET).err().unwrap();
    assert!(
        refused
            .to_string()
            .ends_with("it does not agree with the caller's choices")
    );
}
