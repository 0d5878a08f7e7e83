//! The search for constants: Rprop on their logarithms. Each constant has a step of its own, which grows
//! while the sign of its derivative stays and shrinks when it changes.

use crate::loss::loss;
use crate::samples::Sample;
use warpline_kernels::gemm::fitting::Constants;

/// Steps of the logarithms.
const FIRST_STEP: f64 = 0.03;
const MAX_STEP: f64 = 0.3;
const MIN_STEP: f64 = 1e-4;
/// Factors of a step: the sign of the derivative stays, or changes.
const GROW: f64 = 1.2;
const SHRINK: f64 = 0.5;
/// The difference of logarithms in a derivative.
const DIFFERENCE: f64 = 1e-3;

/// Returns constants rounded to powers of two: a start that knows little of what they were fitted to.
pub fn rounded(constants: &Constants) -> Constants {
    let round = |x: f64| x.log2().round().exp2();
    Constants::from_values(constants.values().into_iter().map(round))
}

/// Fits constants to samples from a start. Calls `progress` with each iteration and its loss.
pub fn fit(
    start: &Constants,
    samples: &[Sample],
    iterations: usize,
    progress: &dyn Fn(usize, f64),
) -> Constants {
    let mut logs: Vec<f64> = start.values().into_iter().map(f64::ln).collect();
    let constants = |logs: &[f64]| Constants::from_values(logs.iter().map(|x| x.exp()));
    let evaluate = |logs: &[f64]| loss(&constants(logs), samples);
    let mut steps = vec![FIRST_STEP; logs.len()];
    let mut signs = vec![0.0; logs.len()];
    let mut best = (f64::INFINITY, logs.clone());
    for iteration in 0..iterations {
        let current = evaluate(&logs);
        if current < best.0 {
            best = (current, logs.clone());
        }
        progress(iteration, current);
        let derivatives: Vec<f64> = (0..logs.len())
            .map(|i| {
                let mut trial = logs.clone();
                trial[i] += DIFFERENCE;
                evaluate(&trial) - current
            })
            .collect();
        for (i, derivative) in derivatives.into_iter().enumerate() {
            let sign = if derivative == 0.0 {
                0.0
            } else {
                derivative.signum()
            };
            steps[i] *= match sign * signs[i] {
                x if x > 0.0 => GROW,
                x if x < 0.0 => SHRINK,
                _ => 1.0,
            };
            steps[i] = steps[i].clamp(MIN_STEP, MAX_STEP);
            logs[i] -= sign * steps[i];
            signs[i] = sign;
        }
    }
    constants(&best.1)
}
