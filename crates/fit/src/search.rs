//! The search for constants: each constant in turn takes a step up or down, as long as the loss falls.

use crate::loss::loss;
use crate::samples::Sample;
use warpline_kernels::gemm::fitting::Constants;

/// Relative steps; a sweep over all constants without progress halves them.
const FIRST_STEP: f64 = 0.25;
const LAST_STEP: f64 = 0.01;
/// The relative progress of a step that counts.
const PROGRESS: f64 = 1e-5;

/// Returns constants rounded to powers of two: a start that knows little of what they were fitted to.
pub fn rounded(constants: &Constants) -> Constants {
    let round = |x: f64| x.log2().round().exp2();
    Constants::from_values(constants.values().into_iter().map(round))
}

/// Fits constants to samples from a start. Calls `progress` with the step and the loss after each sweep.
pub fn fit(
    start: &Constants,
    samples: &[Sample],
    max_sweeps: usize,
    progress: &dyn Fn(f64, f64),
) -> Constants {
    let mut values = start.values();
    let evaluate = |values: &[f64]| loss(&Constants::from_values(values.iter().copied()), samples);
    let mut best = evaluate(&values);
    let mut step = FIRST_STEP;
    for _ in 0..max_sweeps {
        if step < LAST_STEP {
            break;
        }
        let before = best;
        for i in 0..values.len() {
            for factor in [1.0 + step, 1.0 / (1.0 + step)] {
                let mut moved = false;
                loop {
                    let mut trial = values.clone();
                    trial[i] *= factor;
                    let trial_loss = evaluate(&trial);
                    if trial_loss >= best * (1.0 - PROGRESS) {
                        break;
                    }
                    (best, values, moved) = (trial_loss, trial, true);
                }
                if moved {
                    break;
                }
            }
        }
        progress(step, best);
        if best > before * (1.0 - 10.0 * PROGRESS) {
            step /= 2.0;
        }
    }
    Constants::from_values(values)
}
