//! Per-lane asynchronous copies from global memory into tiles (`cp.async`).
//!
//! Each lane copies its own bytes. The lane waits for its copies; other threads
//! may read them after a barrier that follows this wait:
//!
//! ```
//! use warpline_ir::{Kernel, Target, builder::*};
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

use super::k_order::KOrder;
use super::raw::MbarrierHandle;
use super::reg::{Coord, Reg, Value};
use super::ring::record_lane_copy;
use super::state::{caller_scope, emit};
use super::tile::TileRef;
use crate::ops::copy::{CopyArrive, CopyAsync, CopyCommit, CopyWait};
use crate::ops::memory::L2Prefetch;
use crate::ops::policy::CacheHint;
use crate::types::Element;
use crate::value::Operand;

/// The cache options of a `cp.async` copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CopyCache {
    /// Uses L1 for 16-byte copies too (`.ca`); the default bypasses it (`.cg`).
    pub through_l1: bool,
    /// The L2 prefetch size.
    pub l2_prefetch: Option<L2Prefetch>,
    /// The L2 cache hint.
    pub hint: Option<CacheHint>,
}

impl<T: Element, K: KOrder> TileRef<T, K> {
    /// Copies `bytes` (4, 8 or 16) from a global address to an element and the following elements
    /// of its row (`cp.async`).
    #[track_caller]
    pub fn copy_from(self, row: impl Coord, col: impl Coord, from: Reg<u64>, bytes: u32) {
        let _caller = caller_scope();
        self.copy(row, col, from, bytes, None, CopyCache::default());
    }

    /// Like [`copy_from`](Self::copy_from), but reads only the first `src_size` bytes and fills
    /// the rest with zeros.
    #[track_caller]
    pub fn copy_zfill_from(
        self,
        row: impl Coord,
        col: impl Coord,
        from: Reg<u64>,
        bytes: u32,
        src_size: impl Value<u32>,
    ) {
        let _caller = caller_scope();
        let src_size = Some(src_size.operand());
        self.copy(row, col, from, bytes, src_size, CopyCache::default());
    }

    /// Like [`copy_zfill_from`](Self::copy_zfill_from), with cache options; `src_size` of
    /// `None` reads all bytes.
    #[track_caller]
    pub fn copy_with(
        self,
        row: impl Coord,
        col: impl Coord,
        from: Reg<u64>,
        bytes: u32,
        src_size: Option<Reg<u32>>,
        cache: CopyCache,
    ) {
        let _caller = caller_scope();
        let src_size = src_size.map(|v| v.operand());
        self.copy(row, col, from, bytes, src_size, cache);
    }

    #[track_caller]
    fn copy(
        self,
        row: impl Coord,
        col: impl Coord,
        from: Reg<u64>,
        bytes: u32,
        src_size: Option<Operand>,
        cache: CopyCache,
    ) {
        emit(CopyAsync {
            dst: self.address(row, col),
            src: from.operand(),
            bytes,
            src_size,
            bypass_l1: bytes == 16 && !cache.through_l1,
            l2_prefetch: cache.l2_prefetch,
            hint: cache.hint,
        });
        record_lane_copy(self.view.tile);
    }
}

/// Commits this thread's copies to a group, which may be empty (`cp.async.commit_group`).
#[track_caller]
pub fn copy_commit() {
    emit(CopyCommit);
}

/// Waits until at most `pending` of this thread's copy groups are in flight; the thread may
/// then read the bytes of the complete groups (`cp.async.wait_group`).
#[track_caller]
pub fn copy_wait(pending: u32) {
    let pending = Some(pending);
    emit(CopyWait { pending });
}

/// Waits for all copies of this thread, committed or not (`cp.async.wait_all`).
#[track_caller]
pub fn copy_wait_all() {
    emit(CopyWait { pending: None });
}

impl MbarrierHandle {
    /// Arrives, for every active lane, when all its copies are complete. The arrival count of
    /// the mbarrier includes these arrivals (`cp.async.mbarrier.arrive.noinc`).
    ///
    /// The arrival publishes only the copies.
    #[track_caller]
    pub fn arrive_after_copies(self) {
        let (bar, noinc) = (self.0, true);
        emit(CopyArrive { bar, noinc });
    }

    /// Adds one pending arrival to the current phase for every active lane, and arrives when all
    /// its copies are complete. The arrival count of the mbarrier does not include these
    /// arrivals (`cp.async.mbarrier.arrive` without `.noinc`).
    #[track_caller]
    pub fn add_arrival_after_copies(self) {
        let (bar, noinc) = (self.0, false);
        emit(CopyArrive { bar, noinc });
    }
}
