//! Register tiles: accumulators of warpgroup products, and what is left when they are done.

use super::reg::{Packed, Reg, Value, Var};
use super::state::{Width, emit, error, here, with};
use super::tile::TileRef;
use super::warp::{lane_id, warp_in_role};
use crate::layout::Major;
use crate::ops::wgmma::{MatrixA, MmaType, Wgmma, WgmmaCommit, WgmmaFence, WgmmaWait};
use crate::types::{DType, Element};
use crate::value::{Operand, RegId, View};

/// An accumulator: `m` × `n` sums in the registers of one warpgroup.
///
/// While products are in flight nothing may touch it; [`finish`](Self::finish)
/// waits for them and gives the numbers.
#[derive(Debug)]
pub struct Acc {
    id: u32,
    m: u32,
    n: u32,
    regs: Vec<RegId>,
    started: Var<bool>,
}

impl Acc {
    /// An accumulator of zeros: `m` a multiple of 64, `n` a multiple of 8 up to 256.
    #[track_caller]
    pub fn new(m: u32, n: u32) -> Self {
        let _at = here();
        if m == 0 || !m.is_multiple_of(64) || n == 0 || !n.is_multiple_of(8) || n > 256 {
            error(
                "accumulator-shape",
                format!(
                    "an accumulator has a multiple of 64 rows and a multiple of 8 columns up to 256, not {m} x {n}"
                ),
            );
        }
        let (warps, width) = with(|s| {
            (
                s.role.map_or(0, |r| s.roles[r.index()].warps),
                Some(s.width),
            )
        });
        if warps != 4 || width != Some(Width::Role) {
            error(
                "accumulator-role",
                format!(
                    "an accumulator belongs to a role of one whole warpgroup (4 warps), not of {warps} warps or one lane"
                ),
            );
        }
        // The first product overwrites: nothing has to be zeroed.
        let started = Var::new(false);
        let regs: Vec<RegId> = (0..m / 64 * n / 2)
            .map(|_| Reg::<f32>::fresh().id())
            .collect();
        Self {
            id: regs.first().map_or(0, |r| r.0),
            m,
            n,
            regs,
            started,
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Adds `a · bᵀ` for K-major tiles `a` (m × k) and `b` (n × k), and closes the group.
    #[track_caller]
    pub fn mma<T: Element>(&self, a: &TileRef<T>, b: &TileRef<T>) {
        self.mma_with(a, Major::K, b, Major::K);
    }

    /// As [`mma`](Self::mma), with the contiguous dimension of each tile: an
    /// MN-major tile is k × m or k × n.
    #[track_caller]
    pub fn mma_with<T: Element>(&self, a: &TileRef<T>, am: Major, b: &TileRef<T>, bm: Major) {
        let _at = here();
        let ty = match T::DTYPE {
            DType::Bf16 => MmaType::Bf16,
            DType::F16 => MmaType::F16,
            other => {
                error(
                    "mma-type",
                    format!("wgmma multiplies bf16 or f16 tiles, not {other}"),
                );
                return;
            }
        };
        let shape = |t: &TileRef<T>, major| match major {
            Major::K => (t.rows(), t.cols()),
            Major::Mn => (t.cols(), t.rows()),
        };
        let ((m, ka), (n, kb)) = (shape(a, am), shape(b, bm));
        if m != self.m || n != self.n || ka != kb || ka % 16 != 0 {
            error(
                "mma-shape",
                format!(
                    "a product into {} x {} needs tiles of {} x k and {} x k, k a multiple of 16; not {m} x {ka} and {n} x {kb}",
                    self.m, self.n, self.m, self.n
                ),
            );
            return;
        }
        let part = |v: View, major, mn: u32, mns: u32, k: u32| match major {
            Major::K => View {
                row: v.row + mn,
                rows: mns,
                col: v.col + k,
                cols: 16,
                ..v
            },
            Major::Mn => View {
                row: v.row + k,
                rows: 16,
                col: v.col + mn,
                cols: mns,
                ..v
            },
        };
        let half = (self.n / 2) as usize;
        let first = self.started.get();
        emit(WgmmaFence);
        for k in (0..ka).step_by(16) {
            for (block, d) in self.regs.chunks(half).enumerate() {
                emit(Wgmma {
                    ty,
                    n: self.n,
                    d: d.to_vec(),
                    a: MatrixA::Shared(part(a.view, am, block as u32 * 64, 64, k), am),
                    b: part(b.view, bm, 0, self.n, k),
                    b_major: bm,
                    scale_d: if k == 0 {
                        first.operand()
                    } else {
                        Operand::imm(true)
                    },
                });
            }
        }
        emit(WgmmaCommit);
        self.started.set(true);
    }

    /// Lends every register as it is, products in flight or not (raw layer):
    /// what the hardware forbids before a wait, and the checker refuses.
    pub fn peek(&self, f: impl FnMut(Reg<f32>)) {
        self.regs.iter().map(|&r| Reg::of(r)).for_each(f);
    }

    /// Waits until at most `pending` groups of products are in flight.
    #[track_caller]
    pub(crate) fn wait_pending(&self, pending: u32) {
        emit(WgmmaWait { pending });
    }

    /// Waits for all products, releases the slots that waited for them, and gives the numbers.
    #[track_caller]
    pub fn finish(self) -> Frag {
        let _at = here();
        self.wait_pending(0);
        super::slot::release_held(self.id);
        // With no product at all the sum is zero.
        let zero = 0.0f32.reg();
        let started = self.started.get();
        let values = self
            .regs
            .iter()
            .map(|&r| super::select(started, Reg::<f32>::of(r), zero))
            .collect();
        Frag {
            m: self.m,
            n: self.n,
            values,
        }
    }
}

/// Where one value of a fragment stands in the tile.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// The row inside the tile.
    pub row: Reg<u32>,
    /// The column inside the tile.
    pub col: Reg<u32>,
}

/// A tile of `f32` in the registers of a warpgroup, laid out as wgmma leaves it.
#[derive(Clone, Debug)]
pub struct Frag {
    m: u32,
    n: u32,
    values: Vec<Reg<f32>>,
}

impl Frag {
    /// Rows.
    pub fn rows(&self) -> u32 {
        self.m
    }

    /// Columns.
    pub fn cols(&self) -> u32 {
        self.n
    }

    /// Row and column of every value: a register plus a constant each.
    fn cells(&self) -> impl Fn(usize) -> Cell + use<> {
        let lane = lane_id();
        let row = warp_in_role() * 16 + (lane >> 2);
        let col = (lane & 3) * 2;
        let half = self.n as usize / 2;
        move |i| {
            let (block, i) = (i / half, i % half);
            Cell {
                row: row + (block * 64 + i / 2 % 2 * 8) as u32,
                col: col + (i / 4 * 8 + i % 2) as u32,
            }
        }
    }

    /// Applies `f` to every value.
    #[track_caller]
    pub fn map(self, mut f: impl FnMut(Reg<f32>) -> Reg<f32>) -> Frag {
        let _at = here();
        Frag {
            values: self.values.into_iter().map(&mut f).collect(),
            ..self
        }
    }

    /// Applies `f` to every value and its place.
    #[track_caller]
    pub fn map_at(self, mut f: impl FnMut(Reg<f32>, Cell) -> Reg<f32>) -> Frag {
        let _at = here();
        let cells = self.cells();
        let values = self.values.iter().enumerate();
        let values = values.map(|(i, &x)| f(x, cells(i))).collect();
        Frag { values, ..self }
    }

    /// Combines two tiles of one shape, value by value.
    #[track_caller]
    pub fn zip(self, other: Frag, mut f: impl FnMut(Reg<f32>, Reg<f32>) -> Reg<f32>) -> Frag {
        let _at = here();
        if (self.m, self.n) != (other.m, other.n) {
            error(
                "fragment-shape",
                format!(
                    "tiles of one shape are combined, not {} x {} with {} x {}",
                    self.m, self.n, other.m, other.n
                ),
            );
            return self;
        }
        let values = self.values.iter().zip(&other.values);
        Frag {
            values: values.map(|(&x, &y)| f(x, y)).collect(),
            ..self
        }
    }

    /// Runs `f` for every pair of neighbours in a row: the place of the first, and both.
    #[track_caller]
    pub fn each_pair(&self, mut f: impl FnMut(Cell, [Reg<f32>; 2])) {
        let _at = here();
        let cells = self.cells();
        for (i, pair) in self.values.chunks(2).enumerate() {
            f(cells(2 * i), [pair[0], pair[1]]);
        }
    }

    /// Rounds to 16-bit pairs and writes the tile to shared memory with `stmatrix`.
    #[track_caller]
    pub fn store_matrix<T: Element<Reg = P::Half>, P: Packed>(&self, to: &TileRef<T>) {
        let _at = here();
        if (to.rows(), to.cols()) != (self.m, self.n) || !self.n.is_multiple_of(16) {
            error(
                "fragment-store",
                format!(
                    "a tile of {} x {} is stored to a view of that shape with a multiple of 16 columns, not {} x {}",
                    self.m,
                    self.n,
                    to.rows(),
                    to.cols()
                ),
            );
            return;
        }
        // Lane l names row l % 16 of the left or right half of a 16 × 16 block.
        let lane = lane_id();
        let row = warp_in_role() * 16 + (lane & 15);
        let col = (lane >> 4) * 8;
        for (i, v) in self.values.chunks(8).enumerate() {
            let per_block = (self.n / 16) as usize;
            let (block, j) = ((i / per_block) as u32, (i % per_block) as u32);
            // Registers 0..8 of a 16-wide block: (left: 0,1 | 2,3), (right: 4,5 | 6,7).
            let pairs: [Reg<P>; 4] = std::array::from_fn(|p| Reg::round(v[2 * p], v[2 * p + 1]));
            to.store_matrix(row + block * 64, col + j * 16, pairs, false);
        }
    }
}
