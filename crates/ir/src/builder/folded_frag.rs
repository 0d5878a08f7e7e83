//! Folded fragments: one f32 tile from an accumulator of two interleaved tiles.

use super::frag::{Frag, FragOwner};
use super::operand::Half;
use super::reg::Reg;
use super::state::{caller_scope, error};
use super::tile::TileRef;
use super::warp::{lane_id, warp_in_role};

/// A fragment with 8 rows for each warp, the result of [`Frag::fold_rows_8`].
///
/// Interleaved operands ([`RegNibbles::load_interleaved`](super::RegNibbles::load_interleaved)),
/// such as a gate and an up projection, leave corresponding results in the same thread, in
/// rows that are 8 apart. Combining them needs no shuffle.
#[derive(Clone, Debug)]
pub struct FoldedFrag {
    m: u32,
    n: u32,
    /// One pair of the lane for each 32 rows and 8 columns.
    values: Vec<Reg<f32>>,
}

impl Frag {
    /// Combines rows r and r + 8 of every 16 rows with `f`.
    #[track_caller]
    pub fn fold_rows_8(&self, mut f: impl FnMut(Reg<f32>, Reg<f32>) -> Reg<f32>) -> FoldedFrag {
        let _caller = caller_scope();
        if self.owner() != FragOwner::Warpgroup {
            error(
                "fragment-slice",
                format!(
                    "fold_rows_8() needs a warpgroup fragment, not one of a {}",
                    self.owner().name()
                ),
            );
        }
        let pairs = self.values().chunks(4);
        FoldedFrag {
            m: self.rows() / 2,
            n: self.cols(),
            values: pairs.flat_map(|v| [f(v[0], v[2]), f(v[1], v[3])]).collect(),
        }
    }
}

impl FoldedFrag {
    /// Returns the number of rows.
    pub fn rows(&self) -> u32 {
        self.m
    }

    /// Returns the number of columns.
    pub fn cols(&self) -> u32 {
        self.n
    }

    pub(super) fn values(&self) -> &[Reg<f32>] {
        &self.values
    }

    /// Rounds the fragment to 16 bits and stores it transposed to shared memory (`stmatrix`):
    /// `to` is n × m.
    #[track_caller]
    pub fn store_transposed<T: Half>(&self, to: &TileRef<T>) {
        let _caller = caller_scope();
        if (to.rows(), to.cols()) != (self.n, self.m) {
            error(
                "fragment-store",
                format!(
                    "the transposed store of a {} x {} fragment needs a view of {} x {}; this view has {} x {}",
                    self.m,
                    self.n,
                    self.n,
                    self.m,
                    to.rows(),
                    to.cols()
                ),
            );
            return;
        }
        // A matrix has 8 columns; lane l addresses column l of four, two or one matrices.
        let (lane, first) = (lane_id(), (warp_in_role() & 3) * 8);
        for (block, v) in (0..).zip(self.values.chunks(self.n as usize / 4)) {
            let col = first + block * 32;
            let pairs: Vec<Reg<T::Pair>> = v.chunks(2).map(|v| Reg::round(v[0], v[1])).collect();
            let mut first_matrix = 0;
            for group in pairs.chunks(4) {
                let row = |lanes: u32| (lane & (lanes - 1)) + 8 * first_matrix;
                match *group {
                    [a, b, c, d] => to.store_matrix(row(32), col, [a, b, c, d], true),
                    [a, b, c] => {
                        to.store_matrix(row(16), col, [a, b], true);
                        to.store_matrix(row(8) + 16, col, [c], true);
                    }
                    [a, b] => to.store_matrix(row(16), col, [a, b], true),
                    [a] => to.store_matrix(row(8), col, [a], true),
                    _ => {}
                }
                first_matrix += 4;
            }
        }
    }
}
