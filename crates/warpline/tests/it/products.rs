//! The beginnings and ends of products on the simulator: loaders that bring the
//! first steps before the CTA meets, consumers that take the last ones in turn.

use warpline::kernels::Work;
use warpline::kernels::gemm::{Choice, Factor, Form, Gemm, Problem};
use warpline::{Device, RunOptions, Timing, run};

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
