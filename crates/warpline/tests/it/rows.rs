//! Rows with numbers that are hard: infinities, NaN, denormals, large means, no spread.

use warpline::kernels::rows::{Choice, Form, Problem, RowOp, Rows};
use warpline::kernels::softmax::Softmax;
use warpline::kernels::{AnyWork, Float, HostTensor, Work};
use warpline::kernels::{layer_norm, rms_norm, softmax};
use warpline::{Device, Outcome, RunData, RunOptions, run};

const INF: f64 = f64::INFINITY;

/// One row of `x`, by a form.
fn row<K: RowOp>(x: &[f64], dtype: Float, form: Form, options: K::Options) -> Outcome {
    let problem = Problem::dense(1, x.len() as u64, dtype, options);
    let choice = Choice {
        form: Some(form),
        ..Choice::default()
    };
    let device = Device::cpu();
    let work = Work::<Rows<K>>::new(problem, &choice, &device.target());
    let work = work.unwrap_or_else(|e| panic!("{e}"));
    let mut inputs = work.draw(0);
    inputs[0] = HostTensor::round(inputs[0].spec.clone(), x.iter().copied());
    let options = RunOptions::with_data(RunData::new(inputs));
    run(&work, &device, &options).unwrap_or_else(|e| panic!("{e}"))
}

/// The row is right in every form and type.
fn holds<K: RowOp>(what: &str, x: &[f64]) {
    for form in [Form::Direct, Form::Specialized, Form::TwoSweeps] {
        for &dtype in Float::ALL {
            let outcome = row::<K>(x, dtype, form, K::Options::default());
            let found = &outcome.outputs[0];
            assert!(
                found.passed(),
                "{} of {what}, {form:?}, {dtype:?}: {found:?}",
                K::NAME
            );
        }
    }
}

/// 1024 numbers from a rule.
fn numbers(f: impl Fn(usize) -> f64) -> Vec<f64> {
    (0..1024).map(f).collect()
}

/// Numbers between -1 and 1 without an order.
fn noise(i: usize) -> f64 {
    ((i * 2_654_435_761) % 65_537) as f64 / 32_768.5 - 1.0
}

#[test]
fn rows_of_every_family_stand_hard_numbers() {
    let rows = [
        (
            "an infinity",
            numbers(|i| if i == 700 { INF } else { noise(i) }),
        ),
        (
            "a negative infinity",
            numbers(|i| if i == 3 { -INF } else { noise(i) }),
        ),
        (
            "a NaN",
            numbers(|i| if i == 1023 { f64::NAN } else { noise(i) }),
        ),
        ("denormals", numbers(|i| noise(i) * 1e-7)),
        ("zeros", numbers(|_| 0.0)),
        ("no spread", numbers(|_| 3.25)),
        (
            "one outlier in front",
            numbers(|i| if i == 0 { 1000.0 } else { noise(i) }),
        ),
        (
            "one outlier at the end",
            numbers(|i| if i == 1023 { -1000.0 } else { noise(i) }),
        ),
    ];
    for (what, x) in &rows {
        holds::<softmax::Op>(what, x);
        holds::<layer_norm::Op>(what, x);
        holds::<rms_norm::Op>(what, x);
    }
    let most = numbers(|i| if i % 2 == 0 { -INF } else { noise(i) });
    holds::<softmax::Op>("many negative infinities", &most);
    holds::<softmax::Op>("nothing but -∞", &numbers(|_| -INF));
}

#[test]
fn a_large_mean_costs_no_digits() {
    // The spread is 1, the mean up to 2¹⁹: a sum of squares would have no digit left.
    for mean in [1e2, 1e4, 524_288.0] {
        let x = numbers(|i| mean + noise(i) * 1.7);
        for form in [Form::Direct, Form::Specialized, Form::TwoSweeps] {
            let options = layer_norm::Options::default();
            let outcome = row::<layer_norm::Op>(&x, Float::F32, form, options);
            assert!(
                outcome.passed(),
                "mean {mean}, {form:?}: {:?}",
                outcome.outputs
            );
        }
    }
}

#[test]
fn four_times_the_bound_is_wrong() {
    use warpline::compare::{Produced, compare};
    let device = Device::cpu();
    let options = softmax::Options::default();
    let problem = Problem::dense(1, 1024, Float::Bf16, options);
    let work = Work::<Softmax>::new(problem, &Choice::default(), &device.target()).unwrap();
    let inputs = work.draw(0);
    let reference = &work.reference(&inputs)[0];
    let spec = &work.outputs()[0];
    let exact = HostTensor::round(spec.clone(), reference.iter().map(|r| r.0));
    let judge = |data: Vec<u8>| {
        let produced = Produced {
            bytes: data,
            never_written: vec![],
        };
        compare(spec, &produced, reference).failed
    };
    assert_eq!(judge(exact.data), 0);
    let off = |i: usize, (v, bound): (f64, f64)| if i == 17 { v + 4.0 * bound } else { v };
    let values = reference.iter().enumerate().map(|(i, &r)| off(i, r));
    assert_eq!(judge(HostTensor::round(spec.clone(), values).data), 1);
}
