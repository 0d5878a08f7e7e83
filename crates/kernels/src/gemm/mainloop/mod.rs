//! The mainloop: the ring slot of A and B, its loads and its wgmmas.
//!
//! | where | what |
//! |---|---|
//! | `k_major` | B as [N, K]: K innermost, as in A |
//! | `n_major` | B as [K, N]: N innermost |
//! | `gated` | gate and up: two B operands, accumulated side by side |
//! | `swap_ab` | swap-AB: B is the left operand |
//! | `accumulate` | the wgmmas of a consumer, k-tile by k-tile |
//! | `order` | the k-tiles of a consumer, and the turn that it needs for them |

mod accumulate;
mod gated;
mod k_major;
mod n_major;
mod order;
mod swap_ab;

pub(super) use order::{MainloopOrder, TAIL};

use super::config::{Config, Schedule};
use super::offset::Offset;
use super::problem::{Class, Matrix, OperandLayout, Problem};
use super::tile_scheduler::Cluster;
use gated::Gated;
use k_major::KMajor;
use n_major::NMajor;
use std::ops::Range as Span;
use warpline_family::error::FamilyError;
use warpline_family::plan::{Address, Buffer, LaunchStep, TensorArg};
use warpline_family::tensor::TensorSpec;
use warpline_ir::builder::*;
use warpline_ir::ops::policy::CacheHint;
use warpline_ir::{DType, Element, TensorMapDecl};

/// The ring of A and B.
pub(super) type AbRing<A, B> = Ring<(Tile<A>, Tile<B>)>;

/// A slot of the ring that the producer fills.
type FillSlot<A, B> = Slot<(Tile<A>, Tile<B>), Producing>;

/// The operands of a GEMM: tensor maps, loads and wgmmas.
pub(super) struct Mainloop {
    class: Class,
    config: Config,
    a: TensorMap,
    b: Operand,
}

/// B by its memory layout.
enum Operand {
    KMajor(KMajor),
    NMajor(NMajor),
    Gated(Gated),
}

/// The k-tile to load: its first row of A, first column of C and first element of K.
#[derive(Clone, Copy)]
struct KTile {
    m: Reg<u32>,
    n: Reg<u32>,
    k: Reg<u32>,
    batch: Option<Reg<u32>>,
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
    /// Declares the tensor maps of the operands.
    pub(super) fn declare(k: Builder, class: &Class, c: &Config) -> Self {
        let a = tiled_map(
            class,
            class.dtype.a_dtype(),
            box_cols(class, c),
            c.tile_m / load_parts(c)[0],
        );
        Self {
            class: *class,
            config: *c,
            a: k.tensor_map("a", a),
            b: match (class.up, class.layout) {
                (Some(weights), _) => Operand::Gated(Gated::declare(k, class, c, weights)),
                (None, OperandLayout::Nk) => Operand::KMajor(KMajor::declare(k, class, c)),
                (None, OperandLayout::Kn) => Operand::NMajor(NMajor::declare(k, class, c)),
            },
        }
    }

    /// Binds the operands for the columns `cols` of C.
    pub(super) fn bind_args(
        step: LaunchStep,
        p: &Problem,
        inputs: &[TensorSpec],
        cols: &Span<u32>,
        tensor: impl Fn(Address, Matrix) -> TensorArg,
    ) -> Result<LaunchStep, FamilyError> {
        let a = Buffer::named(inputs, "a")?;
        let step = step.tensor("a", tensor(a.into(), p.a()));
        match (p.up, p.layout) {
            (Some(weights), _) => Gated::bind_args(step, p, inputs, cols, weights, tensor),
            (None, OperandLayout::Nk) => KMajor::bind_args(step, p, inputs, cols, tensor),
            (None, OperandLayout::Kn) => NMajor::bind_args(step, p, inputs, cols, tensor),
        }
    }

    /// Declares the ring of A and B.
    pub(super) fn ring<A: Element, B: Element>(&self, k: Builder) -> AbRing<A, B> {
        let c = &self.config;
        k.ring("ab", c.stages, |s| {
            let b = match self.b {
                Operand::KMajor(_) => s.tile(c.tile_n, c.tile_k),
                Operand::NMajor(_) => s.tile(c.tile_k, c.tile_n),
                Operand::Gated(_) => s.tile(2 * c.tile_n, c.tile_k),
            };
            (s.tile(c.tile_m, c.tile_k), b)
        })
    }

    /// Issues the loads of a k-tile, or of one of its equal parts.
    #[track_caller]
    pub(super) fn load<A: Element, B: Element>(
        &self,
        slot: &FillSlot<A, B>,
        offset: Offset,
        k_tile: Reg<u32>,
        part: LoadPart,
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
        let width = box_cols(&self.class, c);
        let rows = part.rows(c.tile_m);
        for k in (0..c.tile_k).step_by(width as usize) {
            let to = slot.0.slice(rows.clone(), k..k + width);
            let origin = [tile.k + k, tile.m + rows.start];
            let multicast = c.cluster() == Cluster::Cols;
            load_box(
                slot,
                self.a,
                to,
                origin,
                tile.batch,
                multicast,
                self.a_hint(),
            );
        }
        match &self.b {
            Operand::KMajor(b) => b.load(self, slot, tile, part),
            Operand::NMajor(b) => b.load(self, slot, tile, part),
            Operand::Gated(b) => b.load(self, slot, tile, part),
        }
    }

    /// Returns the L2 cache hint of A: all tiles of the same tile row read it again.
    fn a_hint(&self) -> Option<CacheHint> {
        self.config.cache_hints.then_some(CacheHint::EvictLast)
    }

    /// Returns the L2 cache hint of B: it is streamed.
    fn b_hint(&self) -> Option<CacheHint> {
        self.config.cache_hints.then_some(CacheHint::EvictFirst)
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

/// Returns the byte offset of an element of an operand. K == 0: no operand is read, so 0 will do.
fn byte_offset(p: &Problem, m: Matrix, element: u64) -> u64 {
    match p.k {
        0 => 0,
        _ => element * m.dtype.bytes() as u64,
    }
}

/// Declares a tensor map with boxes of `rows` rows of `cols` elements of one matrix.
pub(super) fn tiled_map(class: &Class, dtype: DType, cols: u32, rows: u32) -> TensorMapDecl {
    match class.batched {
        false => TensorMapDecl::tiled(dtype, [cols, rows]),
        true => TensorMapDecl::tiled(dtype, [cols, rows, 1]),
    }
}

/// Loads a box into this CTA, or by multicast into the whole cluster.
#[track_caller]
fn load_box<A: Element, B: Element, E: Element>(
    slot: &FillSlot<A, B>,
    map: TensorMap,
    to: TileRef<E>,
    [x, y]: [Reg<u32>; 2],
    batch: Option<Reg<u32>>,
    multicast: bool,
    hint: Option<CacheHint>,
) {
    match (multicast, batch) {
        (false, None) => slot.load_with(map, to, [x, y], None, hint),
        (false, Some(z)) => slot.load_with(map, to, [x, y, z], None, hint),
        (true, None) => slot.load_multicast_with(map, to, [x, y], hint),
        (true, Some(z)) => slot.load_multicast_with(map, to, [x, y, z], hint),
    }
}
