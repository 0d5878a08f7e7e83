//! Row families with special values: infinities, NaN, denormals, large means, zero variance.

use warpline::kernels::rows::{Choice, Problem, RowFamily, RowOp, Schedule};
use warpline::kernels::softmax::Softmax;
use warpline::kernels::{AnyWorkload, FloatType, HostTensor, Workload};
use warpline::kernels::{layer_norm, rms_norm, softmax};
use warpline::{Device, RunData, RunOptions, RunReport, run};

const INF: f64 = f64::INFINITY;

/// Runs one row with a schedule.
fn run_row<K: RowOp>(
    x: &[f64],
    dtype: FloatType,
    schedule: Schedule,
    options: K::Options,
) -> RunReport {
    let problem = Problem::dense(1, x.len() as u64, dtype, options);
    let choice = Choice {
        schedule: Some(schedule),
        ..Choice::default()
    };
    let device = Device::cpu();
    let work = Workload::<RowFamily<K>>::new(problem, &choice, &device.target());
    let work = work.unwrap_or_else(|e| panic!("{e}"));
    let mut inputs = work.draw(0);
    inputs[0] = HostTensor::round(inputs[0].spec.clone(), x.iter().copied());
    let options = RunOptions::with_data(RunData::new(inputs));
    run(&work, &device, &options).unwrap_or_else(|e| panic!("{e}"))
}

/// Checks a row with every schedule and type.
fn check<K: RowOp>(name: &str, x: &[f64]) {
    for schedule in [Schedule::Direct, Schedule::Specialized, Schedule::TwoPass] {
        for &dtype in FloatType::ALL {
            let report = run_row::<K>(x, dtype, schedule, K::Options::default());
            let found = &report.outputs[0];
            assert!(
                found.passed(),
                "{} of {name}, {schedule:?}, {dtype:?}: {found:?}",
                K::NAME
            );
        }
    }
}

/// Returns 1024 values of a function.
fn numbers(f: impl Fn(usize) -> f64) -> Vec<f64> {
    (0..1024).map(f).collect()
}

/// Returns a pseudorandom value between -1 and 1.
fn noise(i: usize) -> f64 {
    ((i * 2_654_435_761) % 65_537) as f64 / 32_768.5 - 1.0
}

#[test]
fn special_values_pass_in_every_row_family() {
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
        ("zero variance", numbers(|_| 3.25)),
        (
            "one outlier in front",
            numbers(|i| if i == 0 { 1000.0 } else { noise(i) }),
        ),
        (
            "one outlier at the end",
            numbers(|i| if i == 1023 { -1000.0 } else { noise(i) }),
        ),
    ];
    for (name, x) in &rows {
        check::<softmax::SoftmaxOp>(name, x);
        check::<layer_norm::LayerNormOp>(name, x);
        check::<rms_norm::RmsNormOp>(name, x);
    }
    let half = numbers(|i| if i % 2 == 0 { -INF } else { noise(i) });
    check::<softmax::SoftmaxOp>("many negative infinities", &half);
    check::<softmax::SoftmaxOp>("only -∞", &numbers(|_| -INF));
}

#[test]
fn a_large_mean_loses_no_precision() {
    // The deviation is about 1 and the mean up to 2¹⁹; a sum of squares would lose all digits.
    for mean in [1e2, 1e4, 524_288.0] {
        let x = numbers(|i| mean + noise(i) * 1.7);
        for schedule in [Schedule::Direct, Schedule::Specialized, Schedule::TwoPass] {
            let options = layer_norm::LayerNormOptions::default();
            let report = run_row::<layer_norm::LayerNormOp>(&x, FloatType::F32, schedule, options);
            assert!(
                report.passed(),
                "mean {mean}, {schedule:?}: {:?}",
                report.outputs
            );
        }
    }
}

#[test]
fn four_times_the_tolerance_fails() {
    use warpline::compare::{DeviceOutput, compare};
    let device = Device::cpu();
    let options = softmax::SoftmaxOptions::default();
    let problem = Problem::dense(1, 1024, FloatType::Bf16, options);
    let work = Workload::<Softmax>::new(problem, &Choice::default(), &device.target()).unwrap();
    let inputs = work.draw(0);
    let reference = &work.reference(&inputs)[0];
    let spec = &work.outputs()[0];
    let exact = HostTensor::round(spec.clone(), reference.iter().map(|r| r.0));
    let failures = |data: Vec<u8>| {
        let produced = DeviceOutput {
            bytes: data,
            never_written: vec![],
        };
        compare(spec, &produced, reference).failed
    };
    assert_eq!(failures(exact.data), 0);
    let perturb = |i: usize, (v, bound): (f64, f64)| if i == 17 { v + 4.0 * bound } else { v };
    let values = reference.iter().enumerate().map(|(i, &r)| perturb(i, r));
    assert_eq!(failures(HostTensor::round(spec.clone(), values).data), 1);
}
