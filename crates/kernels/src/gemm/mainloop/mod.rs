//! The mainloop: the ring slot of A and B, its loads and its wgmmas.
//!
//! | where | what |
//! |---|---|
//! | `k_major` | an operand with K innermost: A as [M, K], B as [N, K] |
//! | `mn_major` | an operand with M or N innermost: A as [K, M], B as [K, N] |
//! | `gated` | gate and up: two B operands, accumulated side by side |
//! | `source` | an operand in global memory: a tensor map, or addresses for a gather |
//! | `gather` | loads of an operand that TMA cannot address |
//! | `accumulate` | the wgmmas of a consumer, k-tile by k-tile |
//! | `mma` | the wgmmas of one k-tile |
//! | `order` | the k-tiles of a consumer, and the turn that it needs for them |

mod accumulate;
mod gated;
pub(super) mod gather;
mod k_major;
mod mma;
mod mn_major;
mod order;
mod source;

pub(super) use order::{MainloopOrder, TAIL};
pub(super) use source::{Extents, LoadBy};

use super::config::{Config, Schedule};
use super::offset::Offset;
use super::problem::{ALayout, Class, Matrix, OperandLayout, Problem};
use super::tile_scheduler::Cluster;
use gated::Gated;
use k_major::KMajor;
use mn_major::MnMajor;
use source::{Side, Source};
use std::ops::Range as Span;
use warpline_family::error::FamilyError;
use warpline_family::plan::{Address, LaunchStep, TensorArg};
use warpline_ir::builder::*;
use warpline_ir::{DType, Element, TensorMapDecl};

/// The ring of A and B.
pub(super) type AbRing<A, B> = Ring<(Tile<A>, Tile<B>)>;

/// A slot of the ring that the producer fills.
type FillSlot<A, B> = Slot<(Tile<A>, Tile<B>), Producing>;

/// The operands of a GEMM: their parameters, loads and wgmmas.
pub(super) struct Mainloop {
    class: Class,
    config: Config,
    a: Operand,
    b: Operand,
}

/// An operand by its layout in shared memory.
enum Operand {
    KMajor(KMajor),
    MnMajor(MnMajor),
    Gated(Gated),
}

impl Operand {
    /// Declares the parameters of a single operand.
    fn declare(k: Builder, class: &Class, c: &Config, side: Side, extents: Extents) -> Self {
        match side.access(class).k_major {
            true => Operand::KMajor(KMajor::declare(k, class, c, side, extents)),
            false => Operand::MnMajor(MnMajor::declare(k, class, c, side, extents)),
        }
    }

    /// Loads a k-tile into a tile of the slot.
    #[track_caller]
    fn load<A: Element, B: Element, E: Element>(
        &self,
        mainloop: &Mainloop,
        to: (&FillSlot<A, B>, TileRef<E>),
        tile: KTile,
        part: LoadPart,
        by: LoadBy,
    ) {
        match self {
            Operand::KMajor(x) => x.load(mainloop, to, tile, part, by),
            Operand::MnMajor(x) => x.load(mainloop, to, tile, part, by),
            Operand::Gated(x) => x.load(mainloop, to, tile, part, by),
        }
    }
}

/// The k-tile to load: its first row of A, first column of C and first element of K.
#[derive(Clone, Copy)]
struct KTile {
    m: Reg<u32>,
    n: Reg<u32>,
    k: Reg<u32>,
    batch: Option<Reg<u32>>,
}

impl KTile {
    /// Returns the first row of A or column of C.
    fn mn(self, side: Side) -> Reg<u32> {
        match side {
            Side::A => self.m,
            Side::B => self.n,
        }
    }
}

/// One of equal parts of a k-tile.
#[derive(Clone, Copy)]
pub(super) struct LoadPart {
    /// Index of the part.
    pub(super) index: u32,
    /// Number of parts.
    pub(super) count: u32,
}

impl LoadPart {
    /// The whole k-tile.
    pub(super) const WHOLE: Self = Self { index: 0, count: 1 };

    /// Returns the range of this part in `rows` rows.
    fn rows(self, rows: u32) -> Span<u32> {
        self.index * rows / self.count..(self.index + 1) * rows / self.count
    }
}

impl Mainloop {
    /// Declares the parameters of the operands.
    pub(super) fn declare(k: Builder, class: &Class, c: &Config, extents: Extents) -> Self {
        Self {
            class: *class,
            config: *c,
            a: Operand::declare(k, class, c, Side::A, extents),
            b: match class.up {
                Some(weights) => Operand::Gated(Gated::declare(k, class, c, weights, extents)),
                None => Operand::declare(k, class, c, Side::B, extents),
            },
        }
    }

    /// Binds the operands for the columns `cols` of C; `address` returns where an operand starts.
    pub(super) fn bind_args(
        step: LaunchStep,
        p: &Problem,
        address: impl Fn(&str) -> Result<Address, FamilyError>,
        cols: &Span<u32>,
        tensor: impl Fn(Address, Matrix) -> TensorArg,
    ) -> Result<LaunchStep, FamilyError> {
        let class = &p.class();
        let bind = |step, side: Side, first: u64, matrix: Matrix, k_innermost| {
            let first_byte = byte_offset(p, matrix, first);
            let address = advance(address(side.name())?, first_byte);
            let names = (side, side.name());
            let source = (address, matrix);
            let step = Source::bind_args(step, class, names, source, k_innermost, &tensor);
            Ok::<_, FamilyError>(step)
        };
        let step = bind(step, Side::A, 0, p.a(), p.a_layout == ALayout::Mk)?;
        let (first, len, b) = (u64::from(cols.start), cols.len() as u64, p.b());
        match (p.up, p.layout) {
            (Some(weights), _) => Gated::bind_args(step, p, address, cols, weights, tensor),
            (None, OperandLayout::Nk) => {
                let part = Matrix { rows: len, ..b };
                bind(step, Side::B, first * b.stride, part, true)
            }
            (None, OperandLayout::Kn) => {
                let part = Matrix { cols: len, ..b };
                bind(step, Side::B, first * b.inner_stride, part, false)
            }
        }
    }

    /// Declares the ring of A and B.
    pub(super) fn ring<A: Element, B: Element>(&self, k: Builder) -> AbRing<A, B> {
        let c = &self.config;
        k.ring("ab", c.stages, |s| {
            let b = match self.b {
                Operand::KMajor(_) => s.tile(c.tile_n, c.tile_k),
                Operand::MnMajor(_) => s.tile(c.tile_k, c.tile_n),
                Operand::Gated(_) => s.tile(2 * c.tile_n, c.tile_k),
            };
            let a = match self.class.a.k_major {
                true => s.tile(c.tile_m, c.tile_k),
                false => s.tile(c.tile_k, c.tile_m),
            };
            (a, b)
        })
    }

    /// Loads a k-tile, or one of its equal parts. `by` names the threads that run this call; operands
    /// that other threads load are left out.
    #[track_caller]
    pub(super) fn load<A: Element, B: Element>(
        &self,
        slot: &FillSlot<A, B>,
        offset: Offset,
        k_tile: Reg<u32>,
        part: LoadPart,
        by: LoadBy,
    ) {
        let c = &self.config;
        let [m, n] = match c.swap_ab() {
            false => [offset.row, offset.col],
            true => [offset.col, offset.row],
        };
        let tile = KTile {
            m,
            n,
            k: k_tile * c.tile_k,
            batch: offset.batch,
        };
        self.a.load(self, (slot, slot.0), tile, part, by);
        self.b.load(self, (slot, slot.1), tile, part, by);
    }

    /// Returns the index of the matrix in the batch; `None` if all GEMMs share the operand.
    fn batch(&self, side: Side, tile: KTile) -> Option<Reg<u32>> {
        tile.batch.filter(|_| !side.access(&self.class).is_shared)
    }

    /// Loads a box of an operand by TMA, into this CTA or into the whole cluster.
    #[track_caller]
    fn load_box<A: Element, B: Element, E: Element>(
        &self,
        slot: &FillSlot<A, B>,
        (side, source): (Side, Source),
        to: TileRef<E>,
        [x, y]: [Reg<u32>; 2],
        batch: Option<Reg<u32>>,
        by: LoadBy,
    ) {
        let (Source::Tma(map), LoadBy::OneThread) = (source, by) else {
            return;
        };
        let hint = side.cache_hint(&self.config);
        match (side.is_multicast(&self.config), batch) {
            (false, None) => slot.load_with(map, to, [x, y], None, hint),
            (false, Some(z)) => slot.load_with(map, to, [x, y, z], None, hint),
            (true, None) => slot.load_multicast_with(map, to, [x, y], hint),
            (true, Some(z)) => slot.load_multicast_with(map, to, [x, y, z], hint),
        }
    }
}

/// Returns the elements of K in one TMA box: 128 bytes, or a whole k-tile if that is less.
fn box_cols(class: &Class, c: &Config) -> u32 {
    c.tile_k.min(128 / class.dtype.a_dtype().bytes() as u32)
}

/// Returns the number of equal parts in which the rows of A and of B are loaded: one per CTA that
/// shares them, or one per warpgroup.
fn load_parts(c: &Config) -> [u32; 2] {
    match (c.schedule, c.cluster()) {
        (Schedule::DoubleBuffer { consumers, .. }, _) => [consumers; 2],
        (_, Cluster::One) => [1, 1],
        (_, Cluster::Rows) => [1, 2],
        (_, Cluster::Cols) => [2, 1],
    }
}

/// Returns an address advanced by `bytes`.
fn advance(address: Address, bytes: u64) -> Address {
    address.buffer.at(address.offset + bytes)
}

/// Returns the byte offset of an element of an operand. K == 0: no operand is read, so 0 will do.
fn byte_offset(p: &Problem, m: Matrix, element: u64) -> u64 {
    match p.k {
        0 => 0,
        _ => element * m.dtype.bytes() as u64,
    }
}

/// Declares a tensor map of an operand with boxes of `rows` rows of `cols` elements of one matrix.
fn tiled_map(class: &Class, side: Side, dtype: DType, cols: u32, rows: u32) -> TensorMapDecl {
    matrix_map(
        class.batched && !side.access(class).is_shared,
        dtype,
        cols,
        rows,
    )
}

/// Declares a tensor map with boxes of `rows` rows of `cols` elements of one matrix.
pub(super) fn matrix_map(batched: bool, dtype: DType, cols: u32, rows: u32) -> TensorMapDecl {
    match batched {
        false => TensorMapDecl::tiled(dtype, [cols, rows]),
        true => TensorMapDecl::tiled(dtype, [cols, rows, 1]),
    }
}
