//! Sums over points: of what each lane weighed, by the lanes or by the tensor cores.

use super::texel::{Texel, Words};
use half::f16;
use warpline_ir::F16x2;
use warpline_ir::build::*;

/// What was added so far.
pub(super) enum Sums {
    /// The channels of a lane, by itself.
    Threads(Vec<Reg<f32>>),
    /// What a lane has of the products of [`ones`] with the words of all lanes:
    /// of words 0 and 2, and of words 1 and 3.
    Tensor([[Reg<f32>; 4]; 2]),
}

impl Sums {
    /// Nothing, of a lane's channels.
    #[track_caller]
    pub(super) fn threads<E: Texel>() -> Self {
        Self::Threads(vec![0.0f32.reg(); 4 * E::CHANNELS as usize])
    }

    /// Nothing.
    #[track_caller]
    pub(super) fn tensor() -> Self {
        Self::Tensor([[0.0f32.reg(); 4]; 2])
    }

    /// Adds weighed words of some corners.
    #[track_caller]
    pub(super) fn add<E: Texel>(
        &mut self,
        ones: Option<[Reg<F16x2>; 4]>,
        corners: &[(Words<E>, E::Weight)],
    ) {
        match (self, ones) {
            (Self::Threads(sums), _) => E::add(sums, corners),
            (Self::Tensor(sums), Some(ones)) => {
                if let Some([a, b, c, d]) = E::halves(corners) {
                    sums[0] = mma_sync(sums[0], ones, [a, c]);
                    sums[1] = mma_sync(sums[1], ones, [b, d]);
                }
            }
            (Self::Tensor(_), None) => {}
        }
    }
}

/// The left factor of a product that adds words of two f16 to f32, and brings
/// them to other lanes.
///
/// A right factor has a word of lane 4n + t in column n, rows 2t and 2t + 1; its
/// second word 8 rows below. The product's rows g and g + 8 are in the lanes
/// 4g + t, for columns 2t and 2t + 1. This factor has the halves of the first
/// word of t in rows 2t and 2t + 8, and those of the second in 2t + 1 and 2t + 9:
/// so the lanes of g get neighbours, of every column.
#[track_caller]
pub(super) fn ones() -> [Reg<F16x2>; 4] {
    let (row, pair) = (lane_id() >> 2, (lane_id() & 3) * 2);
    let bits = f16::ONE.to_bits().into();
    let word = |there: Reg<bool>, bits: u32| select(there, bits, 0u32).bitcast::<F16x2>();
    let (first, second) = (row.eq(pair), row.eq(pair + 1));
    [
        word(first, bits),
        word(first, bits << 16),
        word(second, bits),
        word(second, bits << 16),
    ]
}
