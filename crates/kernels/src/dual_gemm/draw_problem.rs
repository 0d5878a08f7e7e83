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
    // Interleaved weights alternate in blocks of 8 rows.
    let n_unit = match weights {
        WeightLayout::Interleaved => 8,
        _ => 16 / out_size,
    };
    let [m, n, k, _] = extents(random, [1, n_unit, 16 / size], 1, [2 * size, out_size]);
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
        ..problem.with_extents([m, n, k].map(|extent| extent as u32))
    }
}
