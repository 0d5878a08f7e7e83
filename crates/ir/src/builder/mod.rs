//! The kernel builder: the API that kernel authors use.
//!
//! [`Kernel::build`] opens a builder for the current thread, and every function in
//! this module appends to it. Handles ([`Reg`], [`Tile`], [`Ring`], …) are `Copy`.
//!
//! | topic | items |
//! |---|---|
//! | declarations | [`Builder`], [`RoleDecl`], [`TileDecl`], [`SlotLayout`] |
//! | pipelines between roles | [`Ring`], [`Slot`], [`Turn`], [`prologue_barrier`], [`WorkQueue`] |
//! | matrix instructions | [`Acc`], [`Frag`], [`RowVector`], [`RegOperand`], [`mma_sync()`] |
//! | epilogue stores | [`Outbox`], [`PartialTiles`] |
//! | tile schedules | [`Rasterization`], [`TileGrid`], [`StreamK`] |
//! | memory | [`Global`], [`TileRef`], [`AtomicRef`], [`Flags`], `copy_*`, `bulk_*` |
//! | control flow | [`if_`], [`range`], [`while_`], [`elect`] |
//! | raw mbarriers, TMA and fences | [`MbarrierArray`], [`NamedBarrierHandle`], [`TensorMap`], `fence_*` |
//!
//! ```
//! use warpline_ir::{Kernel, Target, builder::*};
//!
//! let kernel = Kernel::build("scale", &Target::SM_90A, |k| {
//!     let (n, x) = (k.param::<u32>("n"), k.pointer::<f32>("x"));
//!     k.role("all").warps(4).body(|| {
//!         let i = cta_id() * 128 + thread_id();
//!         if_(i.lt(n), || x.store(i, x.load(i) * 2.0));
//!     });
//! })?;
//! assert_eq!(kernel.threads(), 128);
//! # Ok::<(), warpline_ir::BuildErrors>(())
//! ```

mod acc;
mod atomic_ref;
mod bits;
mod bounds;
mod compare;
mod copy;
mod declare;
mod divisor;
mod finalize;
mod flow;
mod folded_frag;
mod frag;
mod global;
mod k_order;
mod math;
mod mma;
mod nibbles;
mod operand;
mod outbox;
mod pack;
mod partial_tiles;
mod prologue_barrier;
mod rasterization;
mod raw;
mod reg;
mod resources;
mod ring;
mod row_vector;
mod slot;
mod state;
mod stream_k;
mod tile;
mod turn;
mod warp;
mod warp_mma;
mod wgmma_groups;
mod work_queue;

pub use acc::Acc;
pub use atomic_ref::AtomicRef;
pub use bits::{funnel_left, funnel_right, lop3, prmt};
pub use bounds::extent;
pub use copy::{CopyCache, copy_commit, copy_wait, copy_wait_all};
pub use declare::{Builder, RoleDecl};
pub use divisor::FastDivisor;
pub use flow::{Carry, Range, elect, elect_lane, if_, if_else, range, select, steps, while_};
pub use folded_frag::FoldedFrag;
pub use frag::{Frag, FragCoord, FragOwner, map_col_pairs};
pub use global::{ElementIndex, Flags, Global, cache_policy, range_policy};
pub use k_order::{KOrder, Natural, Nibbles, Pairs, Quads, WordLoadableOrder};
pub use math::*;
pub use mma::{MatrixPair, MatrixWord, MmaWith, MmaWord, mma_sync, mma_sync_half};
pub use nibbles::{NibbleGroup, NibbleOffsets, NibbleOrder, RegNibbles};
pub use operand::{
    FragOperand, Half, MmaElement, OperandA, OperandB, RegBytes, RegOperand, Transposed,
};
pub use outbox::{Outbox, OutboxElement};
pub use pack::{Packed, RoundedPair};
pub use partial_tiles::PartialTiles;
pub use prologue_barrier::prologue_barrier;
pub use rasterization::{Rasterization, RoundRobinTiles, TileGrid, TileIndex};
pub use raw::*;
pub use reg::{Arith, Bits, Compare, Coord, Coords, Float, Int, Reg, Value, Var};
pub use resources::{Resources, RoleResources};
pub use ring::{Ring, RingTiles, SlotLayout};
pub use row_vector::RowVector;
pub use slot::{CarriedSlot, Consuming, Producing, Slot};
pub use stream_k::{StreamK, StreamKShare};
pub use tile::{SwizzledOffset, Tile, TileDecl, TileRef};
pub use turn::Turn;
pub use warp::*;
pub use work_queue::WorkQueue;

use crate::error::BuildErrors;
use crate::program::Kernel;
use crate::target::Target;

impl Kernel {
    /// Builds a kernel for a target. `body` declares the parameters, the shared memory and
    /// the roles.
    ///
    /// Returns all errors in program order; the builder never panics.
    pub fn build(
        name: &str,
        target: &Target,
        body: impl FnOnce(Builder),
    ) -> Result<Kernel, BuildErrors> {
        let open = state::open(name, target);
        body(Builder::new());
        finalize::finalize(open.close())
    }
}
