//! The mainloop: the ring slot of A and B, its loads and its products.
//!
//! | where | what |
//! |---|---|
//! | `k_major` | B as [N, K]: K innermost, as in A |
//! | `n_major` | B as [K, N]: N innermost |
//! | `gated` | gate and up: two operands beside A, accumulated side by side |
//! | `swap_ab` | B times A: the rows of B are those of the tensor cores' tile |
//! | `accumulate` | the products of a consumer, k-tile by k-tile |
//! | `order` | which k-tiles a consumer takes, and when |

mod accumulate;
mod gated;
mod k_major;
mod n_major;
mod order;
mod swap_ab;

pub(super) use order::{MainloopOrder, TAIL};

use super::config::{Config, Schedule};
use super::offset::Offset;
use super::problem::{Class, Layout, Matrix, Problem};
use super::tile_scheduler::Cluster;
use gated::Gated;
use k_major::KMajor;
use n_major::NMajor;
use std::ops::Range as Span;
use warpline_family::error::FamilyError;
use warpline_family::plan::{Address, Buffer, Step, TensorArg};
use warpline_family::tensor::TensorSpec;
use warpline_ir::build::*;
use warpline_ir::ops::policy::CacheHint;
use warpline_ir::{DType, Element, TensorMapDecl};

/// The ring of A and B.
pub(super) type Stage<A, B> = Ring<(Tile<A>, Tile<B>)>;

/// A slot of the ring that is being filled.
type Filled<A, B> = Slot<(Tile<A>, Tile<B>), Filling>;

/// The operands of a GEMM: where they are, and how they are multiplied.
pub(super) struct Mainloop {
    class: Class,
    config: Config,
    a: Map,
    b: Operand,
}

/// B, as the problem has it in memory.
enum Operand {
    KMajor(KMajor),
    NMajor(NMajor),
    Gated(Gated),
}

/// The k-tile of a CTA's tile that is loaded: its first row of A, its first column of C, its
/// first element of K.
#[derive(Clone, Copy)]
struct KTile {
    m: Reg<u32>,
    n: Reg<u32>,
    k: Reg<u32>,
    batch: Option<Reg<u32>>,
}

/// One of equal parts of a k-tile.
#[derive(Clone, Copy)]
pub(super) struct Part {
    /// Which one.
    pub(super) index: u32,
    /// How many there are.
    pub(super) of: u32,
}

impl Part {
    /// The whole k-tile.
    pub(super) const WHOLE: Self = Self { index: 0, of: 1 };

    /// Its rows of so many.
    fn rows(self, whole: u32) -> Span<u32> {
        self.index * whole / self.of..(self.index + 1) * whole / self.of
    }
}

impl Mainloop {
    /// Declares the tensor maps of the operands.
    pub(super) fn declare(k: Builder, class: &Class, c: &Config) -> Self {
        let a = boxes(
            class,
            class.factor.dtype(),
            width(class, c),
            c.tile_m / parts(c)[0],
        );
        Self {
            class: *class,
            config: *c,
            a: k.tensor_map("a", a),
            b: match (class.up, class.layout) {
                (Some(weights), _) => Operand::Gated(Gated::declare(k, class, c, weights)),
                (None, Layout::Nk) => Operand::KMajor(KMajor::declare(k, class, c)),
                (None, Layout::Kn) => Operand::NMajor(NMajor::declare(k, class, c)),
            },
        }
    }

    /// Binds the operands, for some columns of C.
    pub(super) fn bind_args(
        step: Step,
        p: &Problem,
        inputs: &[TensorSpec],
        cols: &Span<u32>,
        tensor: impl Fn(Address, Matrix) -> TensorArg,
    ) -> Result<Step, FamilyError> {
        let a = Buffer::named(inputs, "a")?;
        let step = step.tensor("a", tensor(a.into(), p.a()));
        match (p.up, p.layout) {
            (Some(weights), _) => Gated::bind_args(step, p, inputs, cols, weights, tensor),
            (None, Layout::Nk) => KMajor::bind_args(step, p, inputs, cols, tensor),
            (None, Layout::Kn) => NMajor::bind_args(step, p, inputs, cols, tensor),
        }
    }

    /// Declares the ring of A and B.
    pub(super) fn ring<A: Element, B: Element>(&self, k: Builder) -> Stage<A, B> {
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
        slot: &Filled<A, B>,
        at: Offset,
        k_tile: Reg<u32>,
        part: Part,
    ) {
        let c = &self.config;
        let [m, n] = match c.swap_ab() {
            false => [at.row, at.col],
            true => [at.col, at.row],
        };
        let tile = KTile {
            m,
            n,
            k: k_tile * c.tile_k,
            batch: at.batch,
        };
        let width = width(&self.class, c);
        let rows = part.rows(c.tile_m);
        for k in (0..c.tile_k).step_by(width as usize) {
            let to = slot.0.slice(rows.clone(), k..k + width);
            let origin = [tile.k + k, tile.m + rows.start];
            let shared = c.cluster() == Cluster::Cols;
            copy(slot, self.a, to, origin, tile.batch, shared, self.keep());
        }
        match &self.b {
            Operand::KMajor(b) => b.load(self, slot, tile, part),
            Operand::NMajor(b) => b.load(self, slot, tile, part),
            Operand::Gated(b) => b.load(self, slot, tile, part),
        }
    }

    /// The L2 cache hint of A: every tile of its row reads it again.
    fn keep(&self) -> Option<CacheHint> {
        self.config.hints.then_some(CacheHint::EvictLast)
    }

    /// The L2 cache hint of B, where it is streamed.
    fn stream(&self) -> Option<CacheHint> {
        self.config.hints.then_some(CacheHint::EvictFirst)
    }
}

/// Elements of K that one copy loads: 128 bytes, or a whole k-tile if that is less.
fn width(class: &Class, c: &Config) -> u32 {
    c.tile_k.min(128 / class.factor.dtype().bytes() as u32)
}

/// Equal parts in which the rows of A and of B are loaded: by the CTAs that share them, or by
/// every warpgroup.
fn parts(c: &Config) -> [u32; 2] {
    match (c.schedule, c.cluster()) {
        (Schedule::DoubleBuffer { consumers, .. }, _) => [consumers; 2],
        (_, Cluster::One) => [1, 1],
        (_, Cluster::Rows) => [1, 2],
        (_, Cluster::Cols) => [2, 1],
    }
}

/// Bytes from the start of an operand to one of its elements. K == 0: no operand is read, and the
/// start will do.
fn bytes_to(p: &Problem, m: Matrix, element: u64) -> u64 {
    match p.k {
        0 => 0,
        _ => element * m.dtype.bytes() as u64,
    }
}

/// A tensor map whose boxes are `rows` rows of `cols` elements of one matrix.
pub(super) fn boxes(class: &Class, dtype: DType, cols: u32, rows: u32) -> TensorMapDecl {
    match class.batched {
        false => TensorMapDecl::tiled(dtype, [cols, rows]),
        true => TensorMapDecl::tiled(dtype, [cols, rows, 1]),
    }
}

/// Copies a box, to this CTA or to the whole cluster.
#[track_caller]
fn copy<A: Element, B: Element, E: Element>(
    slot: &Filled<A, B>,
    map: Map,
    to: TileRef<E>,
    [x, y]: [Reg<u32>; 2],
    batch: Option<Reg<u32>>,
    shared: bool,
    hint: Option<CacheHint>,
) {
    match (shared, batch) {
        (false, None) => slot.load_with(map, to, [x, y], None, hint),
        (false, Some(z)) => slot.load_with(map, to, [x, y, z], None, hint),
        (true, None) => slot.load_multicast_with(map, to, [x, y], hint),
        (true, Some(z)) => slot.load_multicast_with(map, to, [x, y, z], hint),
    }
}
