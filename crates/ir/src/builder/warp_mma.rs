//! Warp-level GEMM: `mma.sync` on tiles of shared memory, loaded by `ldmatrix`.

use super::frag::{Frag, FragOwner};
use super::mma::{MmaWith, mma_sync};
use super::operand::MmaElement;
use super::reg::{Coord, Reg, Value};
use super::state::{caller_scope, error};
use super::tile::{TileRef, add_constant};
use super::warp::lane_id;

impl Frag {
    /// Returns an `m` × `n` fragment of zeros in every warp; `m` and `n` are multiples of 16.
    #[track_caller]
    pub fn warp_zeros(m: u32, n: u32) -> Self {
        let _caller = caller_scope();
        if m == 0 || n == 0 || !m.is_multiple_of(16) || !n.is_multiple_of(16) {
            error(
                "warp-tile-shape",
                format!(
                    "a warp fragment of {m} x {n} is invalid; rows and columns must be multiples of 16"
                ),
            );
            return Self::warp_zeros(16, 16);
        }
        let values = (0..m / 16 * n / 2).map(|_| 0.0f32.reg()).collect();
        Frag::new(FragOwner::Warp, m, n, values)
    }

    /// Adds `a · bᵀ` in each warp (`mma.sync`), over all columns of `a` and `b`.
    ///
    /// Row i of the fragment uses row `a_row + i` of `a`; column j uses row `b_row + j` of `b`.
    #[track_caller]
    pub fn mma_sync<T: MmaElement<Word: MmaWith<T::Word>>>(
        self,
        a: &TileRef<T>,
        a_row: impl Coord,
        b: &TileRef<T>,
        b_row: impl Coord,
    ) -> Frag {
        let _caller = caller_scope();
        let (m, n, k) = (self.rows(), self.cols(), a.cols());
        // A matrix row is 16 bytes of a tile row, for any element type.
        let matrix_cols = 16 / T::DTYPE.bytes() as u32;
        if self.owner() != FragOwner::Warp || b.cols() != k || !k.is_multiple_of(2 * matrix_cols) {
            error(
                "warp-mma-shape",
                format!(
                    "a warp-level mma needs a warp fragment and operands with the same K, a multiple of {}; the operands are {} x {k} and {} x {}",
                    2 * matrix_cols,
                    a.rows(),
                    b.rows(),
                    b.cols()
                ),
            );
            return self;
        }
        // Lane l addresses a row of one of four 8 × 8 matrices. A: upper left, lower left,
        // upper right, lower right. B: left and right of 8 rows, then of the next 8 rows.
        let lane = lane_id();
        let (a_row, a_col) = (
            add_constant(a_row.coord(), 0) + (lane & 15),
            (lane >> 4) * matrix_cols,
        );
        let b_row = add_constant(b_row.coord(), 0) + ((lane >> 4) * 8 + (lane & 7));
        let b_col = ((lane >> 3) & 1) * matrix_cols;
        let mut acc = self.values().to_vec();
        for k in (0..k).step_by(2 * matrix_cols as usize) {
            let a: Vec<[Reg<T::Word>; 4]> = (0..m)
                .step_by(16)
                .map(|r| a.load_matrix(a_row + r, a_col + k, false))
                .collect();
            for col in (0..n).step_by(16) {
                let [b0, b1, b2, b3] = b.load_matrix(b_row + col, b_col + k, false);
                for (block, &a) in a.iter().enumerate() {
                    for (j, b) in [[b0, b1], [b2, b3]].into_iter().enumerate() {
                        let first = block * (n / 2) as usize + col as usize / 2 + 4 * j;
                        let c: [Reg<f32>; 4] = std::array::from_fn(|i| acc[first + i]);
                        acc[first..first + 4].copy_from_slice(&mma_sync(c, a, b));
                    }
                }
            }
        }
        Frag::new(FragOwner::Warp, m, n, acc)
    }
}
