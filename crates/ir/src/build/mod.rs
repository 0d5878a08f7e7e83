//! What authors write with.
//!
//! [`Kernel::build`] opens a builder for the current thread; everything in
//! this module writes into it. Handles ([`Reg`], [`Tile`], [`Ring`], …) are
//! `Copy` names of what was declared.
//!
//! ```
//! use warpline_ir::{Kernel, build::*};
//!
//! let kernel = Kernel::build("scale", |k| {
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
mod declare;
mod finish;
mod flow;
mod global;
mod math;
mod order;
mod raw;
mod reg;
mod ring;
mod slot;
mod state;
mod tile;
mod turn;
mod warp;

pub use acc::{Acc, Cell, Frag};
pub use declare::{Builder, RoleDecl};
pub use flow::{Carry, Range, elect, elect_lane, if_, if_else, range, select, steps, while_};
pub use global::{Flags, Global, Index, WorkQueue};
pub use math::*;
pub use order::{Order, TileAt, Tiles};
pub use raw::*;
pub use reg::{Arith, Bits, Compare, Coord, Float, Int, Packed, Reg, Value, Var};
pub use ring::{Ring, RingTiles, Stages};
pub use slot::{Filling, Reading, Slot};
pub use tile::{Tile, TileDecl, TileRef};
pub use turn::Turn;
pub use warp::*;

use crate::error::BuildErrors;
use crate::program::Kernel;

impl Kernel {
    /// Builds a kernel: `body` declares what the roles share, and the roles.
    ///
    /// All errors are returned, in program order; none panics.
    pub fn build(name: &str, body: impl FnOnce(Builder)) -> Result<Kernel, BuildErrors> {
        let open = state::open(name);
        body(Builder::new());
        finish::finish(open.close())
    }
}
