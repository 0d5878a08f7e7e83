//! Random problems of the documented domain.

use super::problem::Problem;
use crate::gemm::draw_problem::{extents, padded};
use crate::gemm::{Activation, OperandType};
use crate::weights::WeightLayout;
use warpline_family::float::FloatType;
use warpline_family::numbers::Random;

/// Draws a gated GEMM: any extents, types, weight layouts and strides.
pub(super) fn draw(random: &mut Random) -> Problem {
    let weights = random.pick(WeightLayout::ALL);
    let problem = Problem {
        dtype: random.pick(OperandType::ALL),
        out: random.percent(50).then(|| random.pick(FloatType::ALL)),
        gate: random.pick(Activation::ALL),
        weights,
        scales: random.percent(30),
        ..Problem::new(1, 1, 1)
    };
    let size = problem.dtype.a_dtype().bytes() as u64;
    let out_size = problem.gated().out().dtype().bytes() as u64;
    // Whether TMA can address all tensors.
    let aligned = random.percent(50);
    // Interleaved weights alternate in blocks of 8 rows.
    let n_unit = match (weights, aligned) {
        (WeightLayout::Interleaved, _) => 8,
        (_, true) => 16 / out_size,
        (_, false) => 1,
    };
    let k_unit = if aligned { 16 / size } else { 1 };
    let [m, n, k, _] = extents(random, [1, n_unit, k_unit], 1, [2 * size, out_size]);
    let padded = |random: &mut Random, dense: u64, size: u64, repeats: u64| match aligned {
        true => padded(random, dense, size, repeats),
        false => random.percent(25).then(|| dense + random.extent(0..=100)),
    };
    let align = |random: &mut Random, size: u64| match !aligned && random.percent(20) {
        true => Some(size as u32 * random.pick(&[1, 2])),
        false => None,
    };
    // Packed weights have the rows of both weights.
    let weight_rows = match weights {
        WeightLayout::Separate => n,
        _ => 2 * n,
    };
    Problem {
        a_stride: padded(random, k, size, m),
        weight_stride: padded(random, k, size, weight_rows),
        up_stride: match weights {
            WeightLayout::Separate => padded(random, k, size, n),
            _ => None,
        },
        c_stride: padded(random, n, out_size, m),
        a_align: align(random, size),
        weight_align: align(random, size),
        c_align: align(random, out_size),
        ..problem.with_extents([m, n, k].map(|extent| extent as u32))
    }
}
