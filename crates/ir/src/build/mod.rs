//! What authors write with.
//!
//! [`Kernel::build`] opens a builder for the current thread; everything in
//! this module writes into it. Handles ([`Reg`], [`Tile`], [`Ring`], …) are
//! `Copy` names of what was declared.
//!
//! ```
//! use warpline_ir::{Kernel, Target, build::*};
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
mod bits;
mod bounds;
mod compare;
mod copy;
mod declare;
mod divisor;
mod eights;
mod finish;
mod flight;
mod flow;
mod frag;
mod global;
mod korder;
mod math;
mod meet;
mod mma;
mod nibbles;
mod operand;
mod order;
mod outbox;
mod pack;
mod partial;
mod queue;
mod raw;
mod reg;
mod resources;
mod ring;
mod rows;
mod slot;
mod state;
mod stream;
mod tile;
mod turn;
mod warp;
mod warp_mma;
mod word;

pub use acc::Acc;
pub use bits::{funnel_left, funnel_right, lop3, prmt};
pub use bounds::extent;
pub use copy::{CopyCache, copy_commit, copy_wait, copy_wait_all};
pub use declare::{Builder, RoleDecl};
pub use divisor::Divisor;
pub use eights::Eights;
pub use flow::{Carry, Range, elect, elect_lane, if_, if_else, range, select, steps, while_};
pub use frag::{Cell, Frag, Team, col_pairs};
pub use global::{Flags, Global, Index, cache_policy, range_policy};
pub use korder::{ByWords, KOrder, Natural, Nibbles, Pairs, Quads};
pub use math::*;
pub use meet::meet;
pub use mma::{Fragment, MatrixPair, MatrixWord, Mixes, mma_sync, mma_sync_half};
pub use nibbles::{NibbleGroup, NibbleSeat, RegNibbles};
pub use operand::{Half, Left, Multiplied, RegBytes, RegOperand, Right, Transposed, Words};
pub use order::{DealtTiles, Order, TileAt, Tiles};
pub use outbox::{Outbox, Stored};
pub use pack::{Packed, Rounded};
pub use partial::PartialTiles;
pub use queue::WorkQueue;
pub use raw::*;
pub use reg::{Arith, Bits, Compare, Coord, Coords, Float, Int, Reg, Value, Var};
pub use resources::{Resources, RoleResources};
pub use ring::{Ring, RingTiles, Stages};
pub use rows::Rows;
pub use slot::{CarriedSlot, Filling, Reading, Slot};
pub use stream::{Share, Stream};
pub use tile::{Spot, Tile, TileDecl, TileRef};
pub use turn::Turn;
pub use warp::*;
pub use word::Word;

use crate::error::BuildErrors;
use crate::program::Kernel;
use crate::target::Target;

impl Kernel {
    /// Builds a kernel for a target: `body` declares what the roles share, and the roles.
    ///
    /// All errors are returned, in program order; none panics.
    pub fn build(
        name: &str,
        target: &Target,
        body: impl FnOnce(Builder),
    ) -> Result<Kernel, BuildErrors> {
        let open = state::open(name, target);
        body(Builder::new());
        finish::finish(open.close())
    }
}
