//! The beginnings and ends of products on the simulator: loaders that bring the
//! first steps before the CTA meets, consumers that take the last ones in turn.

use warpline::kernels::gemm::{Choice, Factor, Form, Gemm, Problem};
use warpline::kernels::{AnyWork, Float, HostTensor, Work};
use warpline::{Device, RunData, RunOptions, Timing, run};

/// A product of more tiles than CTAs, over so many steps of K, is right however copies come.
fn is_right(form: Form, consumers: u32, stages: u32, steps: u32) {
    let device = Device::cpu();
    let choice = Choice {
        form: Some(form),
        tile_m: Some(64 * consumers.min(2)),
        tile_n: Some(32),
        consumers: Some(consumers),
        stages: Some(stages),
        ctas: Some(2),
        ..Choice::default()
    };
    // The last step of K is not whole.
    let problem = Problem::new(136, 72, (64 * steps).saturating_sub(8), Factor::Bf16);
    let work = Work::<Gemm>::new(problem, &choice, &device.target()).unwrap();
    for (timing, seed) in [
        (Timing::Eager, 1),
        (Timing::Late, 1),
        (Timing::Random, 1),
        (Timing::Random, 2),
    ] {
        let mut options = RunOptions::default();
        (options.timing, options.seed) = (timing, seed);
        let what = format!("{form:?}, {consumers} consumers, {stages} stages, {steps} steps");
        match run(&work, &device, &options) {
            Ok(outcome) => assert!(outcome.passed(), "{what}, {timing}: {:?}", outcome.outputs),
            Err(e) => panic!("{what}, {timing}: {e}"),
        }
    }
}

/// Up to three steps are taken in turn, and more than three stages make room for that.
#[test]
fn consumers_of_a_tile_end_one_after_the_other() {
    for (consumers, stages) in [(1, 4), (2, 3), (2, 4), (2, 5)] {
        for steps in [0, 1, 2, 3, 4, stages + 1, 2 * stages + 1] {
            is_right(Form::Cooperative, consumers, stages, steps);
        }
    }
}

/// Two steps are brought early, if there are so many.
#[test]
fn the_first_steps_are_brought_before_the_cta_meets() {
    for form in [Form::PingPong, Form::Storer] {
        for stages in [2, 3] {
            for steps in [0, 1, 2, 3] {
                is_right(form, 2, stages, steps);
            }
        }
    }
}

/// What is reduced from C where one row of A is `odd`, and C is the sum of 16 products of it with 1.
fn reduced(odd: f64, swap: bool) -> [Vec<f64>; 3] {
    let device = Device::cpu();
    let choice = Choice {
        form: Some(Form::Cooperative),
        swap: Some(swap),
        tile_m: Some(if swap { 16 } else { 64 }),
        tile_n: Some(64),
        consumers: Some(1),
        ctas: Some(2),
        ..Choice::default()
    };
    let problem = Problem {
        row_sums: true,
        col_sums: true,
        amax: true,
        out: Some(Float::F32),
        ..Problem::new(20, 72, 16, Factor::Bf16)
    };
    let work = Work::<Gemm>::new(problem, &choice, &device.target()).unwrap();
    // The rows of A are 0, 1, 2 … times 1/16, and the fourth is odd.
    let row = |i: usize| if i == 3 { odd } else { i as f64 };
    let values = [
        (0..20 * 16).map(|i| row(i / 16) / 16.0).collect::<Vec<_>>(),
        vec![1.0; 72 * 16],
    ];
    let specs = AnyWork::inputs(&work).into_iter().zip(values);
    let inputs = specs.map(|(spec, values)| HostTensor::round(spec, values));
    let sum: f64 = (0..20).map(row).sum();
    let most = (0..20).map(|i| row(i).abs()).fold(0.0, |x: f64, y| {
        if x.is_nan() || y.is_nan() {
            f64::NAN
        } else {
            x.max(y)
        }
    });
    let expected = [
        (0..20).map(|i| 72.0 * row(i)).collect(),
        vec![sum; 72],
        vec![most],
    ];
    let exact = |values: &Vec<f64>| values.iter().map(|&x| (x, 0.0)).collect::<Vec<_>>();
    let c = (0..20).flat_map(|i| vec![(row(i), 0.0); 72]).collect();
    let reference = [c].into_iter().chain(expected.iter().map(exact));
    let data = RunData::new(inputs.collect()).with_reference(reference.collect());
    let outcome = run(&work, &device, &RunOptions::with_data(data)).unwrap();
    assert!(
        outcome.passed(),
        "{odd}, swap {swap}: {:?}",
        outcome.outputs
    );
    expected
}

#[test]
fn reductions_are_exact_and_keep_what_is_no_number() {
    for swap in [false, true] {
        let [rows, cols, most] = reduced(-40.0, swap);
        assert_eq!((rows[3], cols[0], most[0]), (-2880.0, 147.0, 40.0));
        let [rows, cols, most] = reduced(f64::INFINITY, swap);
        assert!(rows[3].is_infinite() && cols[0].is_infinite() && most[0].is_infinite());
        let [rows, _, most] = reduced(f64::NAN, swap);
        assert!(rows[3].is_nan() && most[0].is_nan() && rows[4] == 288.0);
    }
}
