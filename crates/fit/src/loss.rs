//! The slowdown of the selected configs.

use crate::samples::Sample;
use rayon::prelude::*;
use warpline_kernels::gemm::fitting::Constants;

/// Configs slower than this multiple of the fastest one hardly count.
const RELEVANT: f64 = 1.5;
/// The temperature of the soft minimum: a difference of estimates that is not significant.
const TEMPERATURE: f64 = 0.03;
/// The weight of the estimates' errors beside the slowdowns.
const ERROR_WEIGHT: f64 = 1.0;

/// Returns the loss of constants: the expected slowdown if estimates are uncertain, and the errors of the
/// estimates.
pub fn loss(constants: &Constants, samples: &[Sample]) -> f64 {
    let sum: f64 = samples
        .par_iter()
        .map(|sample| sample_loss(constants, sample))
        .sum();
    sum / samples.len().max(1) as f64
}

fn sample_loss(constants: &Constants, sample: &Sample) -> f64 {
    let best = sample.best();
    let points: Vec<(f64, f64)> = (sample.timings.iter())
        .map(|timing| {
            let estimate = timing.features.seconds(constants);
            (estimate.ln(), (timing.seconds / best).ln())
        })
        .collect();
    let least = points
        .iter()
        .fold(f64::INFINITY, |least, (x, _)| least.min(*x));
    let (mut weights, mut slowdown, mut error, mut relevant) = (0.0, 0.0, 0.0, 0.0);
    for (estimate, log_slowdown) in &points {
        let weight = (-(estimate - least) / TEMPERATURE).exp();
        weights += weight;
        slowdown += weight * log_slowdown * (1.0 + 3.0 * log_slowdown);
        let relevance = (-log_slowdown / RELEVANT.ln()).exp();
        relevant += relevance;
        error += relevance * (estimate - best.ln() - log_slowdown).powi(2);
    }
    match points.len() {
        0 => 0.0,
        _ => slowdown / weights + ERROR_WEIGHT * error / relevant,
    }
}

/// The distribution of slowdowns.
#[derive(Clone, Copy, Debug)]
pub struct Slowdowns {
    /// The number of problems.
    pub count: usize,
    /// The geometric mean.
    pub mean: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The largest.
    pub worst: f64,
    /// The root mean square of the logarithmic errors of estimates near the best config.
    pub error: f64,
}

impl Slowdowns {
    /// Computes the slowdowns of the selected configs.
    pub fn of(constants: &Constants, samples: &[&Sample]) -> Self {
        let mut all: Vec<f64> = (samples.par_iter())
            .map(|sample| sample.slowdown(constants))
            .collect();
        all.sort_by(f64::total_cmp);
        let errors: Vec<f64> = (samples.par_iter())
            .flat_map_iter(|sample| {
                let best = sample.best();
                let near = sample
                    .timings
                    .iter()
                    .filter(move |x| x.seconds < 1.2 * best);
                near.map(|x| (x.features.seconds(constants) / x.seconds).ln().powi(2))
            })
            .collect();
        let at = |share: f64| {
            let i = (share * all.len() as f64) as usize;
            all.get(i.min(all.len().saturating_sub(1)))
                .copied()
                .unwrap_or(1.0)
        };
        let log_sum: f64 = all.iter().map(|x| x.ln()).sum();
        Self {
            count: all.len(),
            mean: (log_sum / all.len().max(1) as f64).exp(),
            p95: at(0.95),
            worst: at(1.0),
            error: (errors.iter().sum::<f64>() / errors.len().max(1) as f64).sqrt(),
        }
    }
}
