//! Tiles of which two stood together in one accumulator, eight rows of each in turn.

use super::frag::{Frag, Team};
use super::operand::Half;
use super::reg::Reg;
use super::state::{error, here};
use super::tile::TileRef;
use super::warp::{lane_id, warp_in_role};

/// A tile of `f32` in a warpgroup's registers that was half of a [`Frag`]: of
/// every 16 rows there eight, so eight for each warp.
///
/// Two weights that stand in eights ([`RegNibbles::beside`](super::RegNibbles::beside)) leave their sums
/// in the same thread, in rows that are eight apart: what becomes of both is
/// worked out without a message ([`Frag::fold_eights`]).
#[derive(Clone, Debug)]
pub struct Eights {
    m: u32,
    n: u32,
    /// For each 32 rows and 8 columns: a lane's pair.
    values: Vec<Reg<f32>>,
}

impl Frag {
    /// Of every 16 rows, the upper eight with the lower eight: `f` of both.
    #[track_caller]
    pub fn fold_eights(&self, mut f: impl FnMut(Reg<f32>, Reg<f32>) -> Reg<f32>) -> Eights {
        let _at = here();
        if self.team() != Team::Warpgroup {
            error(
                "fragment-slice",
                format!(
                    "eights are those of a warpgroup's tile, not of a {}'s",
                    self.team().name()
                ),
            );
        }
        let pairs = self.values().chunks(4);
        Eights {
            m: self.rows() / 2,
            n: self.cols(),
            values: pairs.flat_map(|v| [f(v[0], v[2]), f(v[1], v[3])]).collect(),
        }
    }
}

impl Eights {
    /// Rows.
    pub fn rows(&self) -> u32 {
        self.m
    }

    /// Columns.
    pub fn cols(&self) -> u32 {
        self.n
    }

    pub(super) fn values(&self) -> &[Reg<f32>] {
        &self.values
    }

    /// Rounds to 16 bits and writes the tile to shared memory with rows and
    /// columns exchanged (`stmatrix`): `to` is n × m.
    #[track_caller]
    pub fn store_transposed<T: Half>(&self, to: &TileRef<T>) {
        let _at = here();
        if (to.rows(), to.cols()) != (self.n, self.m) {
            error(
                "fragment-store",
                format!(
                    "a tile of {} x {} is stored, rows and columns exchanged, to a view of {} x {}, not of {} x {}",
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
        // A matrix has eight columns; lane l names the l-th column of four, two or one.
        let (lane, first) = (lane_id(), (warp_in_role() & 3) * 8);
        for (block, v) in (0..).zip(self.values.chunks(self.n as usize / 4)) {
            let col = first + block * 32;
            let pairs: Vec<Reg<T::Pair>> = v.chunks(2).map(|v| Reg::round(v[0], v[1])).collect();
            let mut done = 0;
            for four in pairs.chunks(4) {
                let row = |lanes: u32| (lane & (lanes - 1)) + 8 * done;
                match *four {
                    [a, b, c, d] => to.store_matrix(row(32), col, [a, b, c, d], true),
                    [a, b, c] => {
                        to.store_matrix(row(16), col, [a, b], true);
                        to.store_matrix(row(8) + 16, col, [c], true);
                    }
                    [a, b] => to.store_matrix(row(16), col, [a, b], true),
                    [a] => to.store_matrix(row(8), col, [a], true),
                    _ => {}
                }
                done += 4;
            }
        }
    }
}
