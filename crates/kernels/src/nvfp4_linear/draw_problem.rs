//! Random problems of the documented domain.

use super::problem::Problem;
use crate::gemm::draw_problem::padded;
use crate::nvfp4::ScaleLayout;
use crate::nvfp4_dual_gemm::draw_problem::extents;
use warpline_family::float::FloatType;
use warpline_family::numbers::Random;

/// Draws a problem: K in multiples of 16, N in multiples of 8, and up to 2³⁶ elements of A and 2³⁵ of
/// the weight.
pub(super) fn draw(random: &mut Random) -> Problem {
    let [m, n, k] = extents(random, 8);
    // A and C have rows of whole 16 bytes.
    let mut stride = |cols: u32| padded(random, cols.next_multiple_of(8).into(), 2, m.into());
    let (a_stride, c_stride) = (stride(k), stride(n));
    Problem {
        dtype: random.pick(&[FloatType::F16, FloatType::Bf16]),
        scale_layout: random.pick(ScaleLayout::ALL),
        scale: random.percent(50),
        bias: random.percent(50),
        a_stride,
        c_stride,
        ..Problem::new(m, n, k)
    }
}
