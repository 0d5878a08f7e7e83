//! Products of one warp: a register tile, and tiles of shared memory through `ldmatrix`.

use super::frag::{Frag, Team};
use super::mma::{Mixes, mma_sync};
use super::operand::Multiplied;
use super::reg::{Coord, Reg, Value};
use super::state::{error, here};
use super::tile::{TileRef, add};
use super::warp::lane_id;

impl Frag {
    /// `m` × `n` zeros in every warp of the role: 16 rows at a time, 16 columns at a time.
    #[track_caller]
    pub fn warp_zeros(m: u32, n: u32) -> Self {
        let _at = here();
        if m == 0 || n == 0 || !m.is_multiple_of(16) || !n.is_multiple_of(16) {
            error(
                "warp-tile-shape",
                format!("a warp's tile has multiples of 16 rows and columns, not {m} x {n}"),
            );
            return Self::warp_zeros(16, 16);
        }
        let values = (0..m / 16 * n / 2).map(|_| 0.0f32.reg()).collect();
        Frag::new(Team::Warp, m, n, values)
    }

    /// Adds `a · bᵀ` by each warp for itself (`mma.sync`): as many rows of `a`
    /// from `a_row` on as the tile has rows, as many of `b` from `b_row` on as
    /// it has columns, over all columns of both.
    #[track_caller]
    pub fn mma_sync<T: Multiplied<Word: Mixes<T::Word>>>(
        self,
        a: &TileRef<T>,
        a_row: impl Coord,
        b: &TileRef<T>,
        b_row: impl Coord,
    ) -> Frag {
        let _at = here();
        let (m, n, k) = (self.rows(), self.cols(), a.cols());
        // 16 bytes of a row, of any type, are one row of a matrix.
        let half = 16 / T::DTYPE.bytes() as u32;
        if self.team() != Team::Warp || b.cols() != k || !k.is_multiple_of(2 * half) {
            error(
                "warp-product-shape",
                format!(
                    "a warp's tile takes products over the same multiple of {} columns, not of {} x {k} and {} x {}",
                    2 * half,
                    a.rows(),
                    b.rows(),
                    b.cols()
                ),
            );
            return self;
        }
        // Lane l names a row of one of four 8 × 8 matrices: of A the upper and
        // lower left, then right; of B the left and right of 8 rows, then of the next 8.
        let lane = lane_id();
        let (a_row, a_col) = (add(a_row.coord(), 0) + (lane & 15), (lane >> 4) * half);
        let b_row = add(b_row.coord(), 0) + ((lane >> 4) * 8 + (lane & 7));
        let b_col = ((lane >> 3) & 1) * half;
        let mut sums = self.values().to_vec();
        for k in (0..k).step_by(2 * half as usize) {
            let a: Vec<[Reg<T::Word>; 4]> = (0..m)
                .step_by(16)
                .map(|r| a.load_matrix(a_row + r, a_col + k, false))
                .collect();
            for col in (0..n).step_by(16) {
                let [b0, b1, b2, b3] = b.load_matrix(b_row + col, b_col + k, false);
                for (block, &a) in a.iter().enumerate() {
                    for (j, b) in [[b0, b1], [b2, b3]].into_iter().enumerate() {
                        let at = block * (n / 2) as usize + col as usize / 2 + 4 * j;
                        let c: [Reg<f32>; 4] = std::array::from_fn(|i| sums[at + i]);
                        sums[at..at + 4].copy_from_slice(&mma_sync(c, a, b));
                    }
                }
            }
        }
        Frag::new(Team::Warp, m, n, sums)
    }
}
