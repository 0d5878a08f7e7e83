//! Copies of single lanes from global memory into tiles (`cp.async`).
//!
//! Each lane names its own bytes. They are on their way until the lane waits
//! for them; other threads see them after a barrier behind that wait:
//!
//! ```
//! use warpline_ir::{Kernel, Target, build::*};
//! # Kernel::build("k", &Target::SM_90A, |k| {
//! let (x, tile) = (k.pointer::<f32>("x"), k.tile::<f32>("x", 8, 16).declare());
//! k.role("all").body(|| {
//!     let (row, col) = (lane_id() / 4, lane_id() % 4 * 4);
//!     tile.whole().copy_from(row, col, x.address(row * 16 + col), 16);
//!     copy_commit();
//!     copy_wait(0);
//!     warp_sync();
//!     // Every lane may read the tile.
//! });
//! # }).unwrap();
//! ```

use super::korder::KOrder;
use super::raw::BarHandle;
use super::reg::{Coord, Reg, Value};
use super::ring::copy_use;
use super::state::{emit, here};
use super::tile::TileRef;
use crate::ops::copy::{CopyArrive, CopyAsync, CopyCommit, CopyWait};
use crate::ops::memory::Fetch;
use crate::ops::policy::CacheHint;
use crate::types::Element;
use crate::value::Operand;

/// How a copy of single lanes uses the caches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CopyCache {
    /// Through the L1 even where it could be left out (16 bytes).
    pub through_l1: bool,
    /// What the L2 fetches on the way.
    pub fetch: Option<Fetch>,
    /// How long the L2 keeps it.
    pub hint: Option<CacheHint>,
}

impl<T: Element, K: KOrder> TileRef<T, K> {
    /// Copies `bytes` (4, 8 or 16) from a global address to an element and those after it in its row.
    #[track_caller]
    pub fn copy_from(self, row: impl Coord, col: impl Coord, from: Reg<u64>, bytes: u32) {
        let _at = here();
        self.copy(row, col, from, bytes, None, CopyCache::default());
    }

    /// As [`copy_from`](Self::copy_from), but reads only the first `valid` bytes; the rest is zero.
    #[track_caller]
    pub fn copy_some_from(
        self,
        row: impl Coord,
        col: impl Coord,
        from: Reg<u64>,
        bytes: u32,
        valid: impl Value<u32>,
    ) {
        let _at = here();
        let valid = Some(valid.operand());
        self.copy(row, col, from, bytes, valid, CopyCache::default());
    }

    /// As [`copy_some_from`](Self::copy_some_from), with a use of the caches; `None` reads all bytes.
    #[track_caller]
    pub fn copy_with(
        self,
        row: impl Coord,
        col: impl Coord,
        from: Reg<u64>,
        bytes: u32,
        valid: Option<Reg<u32>>,
        cache: CopyCache,
    ) {
        let _at = here();
        let valid = valid.map(|v| v.operand());
        self.copy(row, col, from, bytes, valid, cache);
    }

    #[track_caller]
    fn copy(
        self,
        row: impl Coord,
        col: impl Coord,
        from: Reg<u64>,
        bytes: u32,
        valid: Option<Operand>,
        cache: CopyCache,
    ) {
        emit(CopyAsync {
            dst: self.place(row, col),
            src: from.operand(),
            bytes,
            valid,
            bypass: bytes == 16 && !cache.through_l1,
            fetch: cache.fetch,
            hint: cache.hint,
        });
        copy_use(self.view.tile);
    }
}

/// Closes the copies this thread has issued into one group, which may be empty.
#[track_caller]
pub fn copy_commit() {
    emit(CopyCommit);
}

/// Waits until at most `pending` of this thread's copy groups are open; it sees what they brought.
#[track_caller]
pub fn copy_wait(pending: u32) {
    let pending = Some(pending);
    emit(CopyWait { pending });
}

/// Waits for all copies of this thread, committed or not.
#[track_caller]
pub fn copy_wait_all() {
    emit(CopyWait { pending: None });
}

impl BarHandle {
    /// Every active lane arrives once all copies it has issued are done; the
    /// barrier expects these arrivals. Only the copies are handed on.
    #[track_caller]
    pub fn arrive_after_copies(self) {
        let (bar, counted) = (self.0, true);
        emit(CopyArrive { bar, counted });
    }

    /// As [`arrive_after_copies`](Self::arrive_after_copies), by arrivals that
    /// the barrier expects on top in the current phase: it cannot complete
    /// before the copies are done, and its count need not know of them.
    #[track_caller]
    pub fn hold_for_copies(self) {
        let (bar, counted) = (self.0, false);
        emit(CopyArrive { bar, counted });
    }
}
