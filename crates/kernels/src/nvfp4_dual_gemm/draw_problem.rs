//! Random problems of the documented domain.

use super::problem::Problem;
use crate::gemm::Activation;
use crate::gemm::problem::MAX_EXTENT;
use crate::nvfp4::{BLOCK, ScaleLayout};
use crate::weights::WeightLayout;
use warpline_family::float::FloatType;
use warpline_family::numbers::Random;

/// The maximum elements of A, and of each weight.
const MAX_ELEMENTS: [u64; 2] = [(1 << 36) - 1, (1 << 35) - 1];
/// The maximum elements of C.
const MAX_C_ELEMENTS: u64 = 1 << 39;

/// Draws a problem: K in multiples of 16, N in multiples of 8, and up to 2³⁶ elements of A and 2³⁵ of
/// each weight.
pub(super) fn draw(random: &mut Random) -> Problem {
    let scale_layout = random.pick(ScaleLayout::ALL);
    let weights = random.pick(&[WeightLayout::Separate, WeightLayout::Concatenated]);
    let n_unit = match (scale_layout, weights) {
        (ScaleLayout::Block, WeightLayout::Concatenated) => 128,
        _ => 8,
    };
    let max = u64::from(MAX_EXTENT);
    let extent =
        |random: &mut Random, unit: u64, max: u64| (unit * random.extent(1..=max / unit)) as u32;
    let k = extent(random, BLOCK as u64, max.min(MAX_ELEMENTS[1] / n_unit));
    // Kernels widen A and align rows of weights in whole blocks of 64 elements of K.
    let padded_k = u64::from(k.next_multiple_of(64));
    let n = extent(
        random,
        n_unit,
        max.min((MAX_ELEMENTS[1] / padded_k).max(n_unit)),
    );
    let m = extent(
        random,
        1,
        max.min(MAX_ELEMENTS[0] / padded_k)
            .min(MAX_C_ELEMENTS / u64::from(n)),
    );
    let activations = random
        .percent(60)
        .then(|| random.pick(&[FloatType::F16, FloatType::Bf16]));
    let padded = |random: &mut Random, cols: u32| {
        let stride = u64::from(cols.next_multiple_of(8)) + 8 * random.below(300);
        random.percent(25).then_some(stride)
    };
    let out = activations.unwrap_or(FloatType::F16);
    Problem {
        scale_layout,
        activations,
        out: random.percent(30).then_some(out),
        gate: random.pick(Activation::ALL),
        weights,
        scales: random.percent(50),
        // Only an A in f16 or bf16 has a row stride.
        a_stride: activations.and_then(|_| padded(random, k)),
        c_stride: padded(random, n),
        ..Problem::new(m, n, k)
    }
}
