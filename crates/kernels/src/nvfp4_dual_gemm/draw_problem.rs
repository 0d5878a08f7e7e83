//! Random problems of the documented domain.

use super::problem::Problem;
use crate::gemm::Activation;
use crate::gemm::draw_problem::padded;
use crate::gemm::problem::MAX_EXTENT;
use crate::nvfp4::{BLOCK, ScaleLayout};
use crate::weights::WeightLayout;
use warpline_family::float::FloatType;
use warpline_family::numbers::Random;

/// The maximum elements of A, and of each weight.
const MAX_ELEMENTS: [u64; 2] = [(1 << 36) - 1, (1 << 35) - 1];
/// The rows of a scale tile.
const SCALE_ROWS: u64 = 128;
/// The maximum elements of C without the padding of its rows.
const MAX_C_ELEMENTS: u64 = 1 << 38;

/// Draws a problem: K in multiples of 16, N in multiples of 8, and up to 2³⁶ elements of A and 2³⁵ of
/// each weight.
pub(super) fn draw(random: &mut Random) -> Problem {
    let scale_layout = random.pick(ScaleLayout::ALL);
    let weights = random.pick(&[WeightLayout::Separate, WeightLayout::Concatenated]);
    let n_unit = match (scale_layout, weights) {
        (ScaleLayout::Block, WeightLayout::Concatenated) => 128,
        _ => 8,
    };
    let [m, n, k] = extents(random, n_unit);
    let activations = random
        .percent(60)
        .then(|| random.pick(&[FloatType::F16, FloatType::Bf16]));
    // The float operand and C have rows of whole 16 bytes; C has N columns, a multiple of 8.
    let mut stride = |cols: u32| padded(random, cols.next_multiple_of(8).into(), 2, m.into());
    let (a_stride, c_stride) = (stride(k), stride(n));
    let out = activations.unwrap_or(FloatType::F16);
    Problem {
        scale_layout,
        activations,
        out: random.percent(30).then_some(out),
        gate: random.pick(Activation::ALL),
        weights,
        scales: random.percent(50),
        // Only an A in f16 or bf16 has a row stride.
        a_stride: a_stride.filter(|_| activations.is_some()),
        c_stride,
        ..Problem::new(m, n, k)
    }
}

/// Draws M, N and K within the limits of A, each weight and C; N is a multiple of `n_unit`.
pub(crate) fn extents(random: &mut Random, n_unit: u64) -> [u32; 3] {
    let max = u64::from(MAX_EXTENT);
    let extent =
        |random: &mut Random, unit: u64, max: u64| (unit * random.extent(1..=max / unit)) as u32;
    // A scale tile has 128 rows, and the kernels that rearrange A and weights work on blocks of 64
    // elements of K.
    let [max_a, max_weight] = MAX_ELEMENTS;
    let k = extent(random, BLOCK as u64, max_weight / SCALE_ROWS / 64 * 64);
    let padded_k = u64::from(k.next_multiple_of(64));
    let max_rows = |elements: u64| (elements / padded_k / SCALE_ROWS * SCALE_ROWS).max(SCALE_ROWS);
    let n = extent(random, n_unit, max.min(max_rows(max_weight)));
    let max_m = (MAX_C_ELEMENTS / u64::from(n)).min(max_rows(max_a));
    let m = extent(random, 1, max.min(max_m));
    [m, n, k]
}
