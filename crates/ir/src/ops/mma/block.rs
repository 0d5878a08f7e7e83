//! The arithmetic of `mma` and `wgmma`: 16×8 blocks of `f32` accumulators.

use super::MmaType;
use crate::lanes::narrow::HalfFloat;
use crate::layout::accumulator_at;
use crate::machine::{PerLane, WARP};
use crate::types::{E4m3, E5m2, Tf32};
use bytemuck::Pod;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

/// Rows of a block, the rows of one warp.
pub(crate) const ROWS: usize = 16;

/// Columns of a block; each lane holds four of its elements.
pub(crate) const COLS: usize = 8;

/// 32-bit words along K of one instruction, for every type.
pub(crate) const WORDS: usize = 8;

/// A block of accumulators in row-major order.
pub(crate) type Block = [[f32; COLS]; ROWS];

/// The accuracy of `mma` and `wgmma` in the op table.
pub(crate) const EXACTNESS: &str = "exact products, accumulated in f32 in ascending k; the hardware aligns all products of an instruction to the largest term and truncates (fp8: keeps about 14 bits of it)";

impl MmaType {
    /// Converts packed elements of memory or registers to `f32`.
    pub(crate) fn widen(self, words: &[u32], out: &mut [f32]) {
        fn convert<T: Pod>(words: &[u32], out: &mut [f32], number: impl Fn(T) -> f32) {
            for (x, &code) in out.iter_mut().zip(bytemuck::cast_slice::<u32, T>(words)) {
                *x = number(code);
            }
        }
        match self {
            MmaType::Bf16 => convert(words, out, bf16::widen),
            MmaType::F16 => bytemuck::cast_slice::<u32, f16>(words).convert_to_f32_slice(out),
            MmaType::Tf32 => convert(words, out, Tf32::widen),
            MmaType::E4m3 => convert(words, out, E4m3::widen),
            MmaType::E5m2 => convert(words, out, E5m2::widen),
        }
    }
}

/// Returns the row and column in the block of register `i` of a lane.
fn position_in_block(lane: usize, i: usize) -> (usize, usize) {
    let (row, col) = accumulator_at(0, lane as u32, i as u32);
    (row as usize, col as usize)
}

/// Collects a block from its four registers.
pub(crate) fn gather(regs: [PerLane<u32>; 4]) -> Block {
    let mut d = [[0f32; COLS]; ROWS];
    for (i, v) in regs.iter().enumerate() {
        for (lane, &x) in v.iter().enumerate() {
            let (row, col) = position_in_block(lane, i);
            d[row][col] = f32::from_bits(x);
        }
    }
    d
}

/// Distributes a block to its four registers; NaNs become canonical.
pub(crate) fn scatter(d: &Block) -> [PerLane<u32>; 4] {
    std::array::from_fn(|i| {
        let mut v = [0; WARP];
        for (lane, x) in v.iter_mut().enumerate() {
            let (row, col) = position_in_block(lane, i);
            let sum = d[row][col];
            *x = if sum.is_nan() {
                0x7fff_ffff
            } else {
                sum.to_bits()
            };
        }
        v
    })
}

/// Computes `d += a · b` with row-major `a`, and `b` indexed by k, in ascending k.
/// The inner loop over the eight columns vectorizes.
#[inline]
pub(crate) fn multiply<const K: usize>(a: &[f32], b: &[[f32; COLS]; K], d: &mut Block) {
    for (d, a) in d.iter_mut().zip(a.as_chunks::<K>().0) {
        let mut sum = *d;
        for (x, b) in a.iter().zip(b) {
            for c in 0..COLS {
                sum[c] += x * b[c];
            }
        }
        *d = sum;
    }
}
