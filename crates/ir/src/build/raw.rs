//! The raw layer: barriers, fences and copies as the machine has them.
//!
//! Rings and turns lower to these. Here nothing is derived: counts, bytes and
//! parities are what the author writes, and the checker judges the result.

use super::reg::{Coord, Reg, Value};
use super::state::{Count, emit, here, with};
use super::tile::TileRef;
use crate::ops::bulk::{BulkCommit, BulkLoad, BulkStore, BulkWait, CacheHint};
use crate::ops::cluster::{ClusterArrive, ClusterWait};
use crate::ops::control::{CtaSync, NamedArrive, NamedSync, Nanosleep, Trap};
use crate::ops::mbarrier::{
    MbarrierArrive, MbarrierExpectTx, MbarrierInit, MbarrierInval, MbarrierTest, MbarrierWait,
};
use crate::ops::memory::Fence as FenceOp;
use crate::ops::tensor::{TensorLoad, TensorPrefetch, TensorStore};
use crate::sync::{Fence, Scope};
use crate::types::Element;
use crate::value::{BarId, BarRef, NamedId, Operand, ParamId};

/// A declared array of mbarriers.
#[derive(Clone, Copy, Debug)]
pub struct Bar {
    pub(crate) id: BarId,
    pub(crate) len: u32,
}

impl Bar {
    /// Has the kernel initialise every barrier of the array at its start,
    /// expecting `count` arrivals per phase, and make that visible.
    pub fn count(self, count: u32) -> Self {
        with(|s| s.counts[self.id.index()] = Count::Fixed(count));
        self
    }

    /// How many barriers.
    pub fn len(self) -> u32 {
        self.len
    }

    /// Is the array empty?
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// One barrier of the array.
    #[track_caller]
    pub fn at(self, index: impl Value<u32>) -> BarHandle {
        BarHandle(BarRef {
            bar: self.id,
            index: index.operand(),
            peer: None,
        })
    }
}

/// One mbarrier.
#[derive(Clone, Copy, Debug)]
pub struct BarHandle(pub(crate) BarRef);

impl BarHandle {
    /// The same barrier in another CTA of the cluster.
    #[track_caller]
    pub fn peer(mut self, rank: impl Value<u32>) -> Self {
        self.0.peer = Some(rank.operand());
        with(|s| s.remote = true);
        self
    }

    /// Initialises it, expecting `count` arrivals per phase.
    #[track_caller]
    pub fn init(self, count: u32) {
        emit(MbarrierInit { bar: self.0, count });
    }

    /// Ends it.
    #[track_caller]
    pub fn inval(self) {
        emit(MbarrierInval { bar: self.0 });
    }

    /// Every active lane arrives.
    #[track_caller]
    pub fn arrive(self) {
        self.arrive_with(Scope::Cta, None);
    }

    /// Every active lane arrives, releasing to the cluster.
    #[track_caller]
    pub fn arrive_cluster(self) {
        self.arrive_with(Scope::Cluster, None);
    }

    /// Every active lane expects bytes and arrives.
    #[track_caller]
    pub fn arrive_expect(self, bytes: impl Value<u32>) {
        self.arrive_with(Scope::Cta, Some(bytes.operand()));
    }

    #[track_caller]
    fn arrive_with(self, scope: Scope, tx: Option<Operand>) {
        emit(MbarrierArrive {
            bar: self.0,
            count: 1,
            tx,
            scope,
        });
    }

    /// Every active lane expects bytes, without arriving.
    #[track_caller]
    pub fn expect(self, bytes: impl Value<u32>) {
        emit(MbarrierExpectTx {
            bar: self.0,
            tx: bytes.operand(),
        });
    }

    /// Waits for the phase of a parity to complete.
    #[track_caller]
    pub fn wait(self, parity: impl Value<u32>) {
        emit(MbarrierWait {
            bar: self.0,
            parity: parity.operand(),
            scope: Scope::Cta,
        });
    }

    /// As [`wait`](Self::wait), acquiring what the cluster released.
    #[track_caller]
    pub fn wait_cluster(self, parity: impl Value<u32>) {
        emit(MbarrierWait {
            bar: self.0,
            parity: parity.operand(),
            scope: Scope::Cluster,
        });
    }

    /// Is the phase of a parity complete?
    #[track_caller]
    pub fn test(self, parity: impl Value<u32>) -> Reg<bool> {
        let dst = Reg::fresh();
        emit(MbarrierTest {
            dst: dst.id(),
            bar: self.0,
            parity: parity.operand(),
            scope: Scope::Cta,
        });
        dst
    }
}

/// A declared named barrier.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    pub(crate) id: NamedId,
}

impl Named {
    /// Arrives and waits for `threads` threads in all.
    #[track_caller]
    pub fn sync(self, threads: u32) {
        emit(NamedSync {
            bar: self.id,
            threads,
        });
    }

    /// Arrives for `threads` threads in all, and goes on.
    #[track_caller]
    pub fn arrive(self, threads: u32) {
        emit(NamedArrive {
            bar: self.id,
            threads,
        });
    }
}

/// A declared tensor map.
#[derive(Clone, Copy, Debug)]
pub struct Map {
    pub(crate) id: ParamId,
    pub(crate) bytes: u32,
}

impl Map {
    /// Bytes that one copy moves.
    pub fn bytes(self) -> u32 {
        self.bytes
    }

    /// Brings the map itself close (`prefetch.tensormap`).
    #[track_caller]
    pub fn prefetch(self) {
        emit(TensorPrefetch { map: self.id });
    }

    /// Copies the box at `coords` (innermost first) into a view; its bytes complete on `bar`.
    #[track_caller]
    pub fn load<T: Element, const R: usize>(
        self,
        to: TileRef<T>,
        coords: [impl Coord; R],
        bar: BarHandle,
    ) {
        self.load_with(to, coords, bar, None, None);
    }

    /// As [`load`](Self::load), to every CTA of the cluster in `mask`, with a cache hint.
    #[track_caller]
    pub fn load_with<T: Element, const R: usize>(
        self,
        to: TileRef<T>,
        coords: [impl Coord; R],
        bar: BarHandle,
        mask: Option<Operand>,
        hint: Option<CacheHint>,
    ) {
        if mask.is_some() {
            with(|s| s.remote = true);
        }
        emit(TensorLoad {
            map: self.id,
            dst: to.view,
            coords: coords.iter().map(|c| c.coord()).collect(),
            offsets: Vec::new(),
            bar: bar.0,
            multicast: mask,
            hint,
        });
    }

    /// Copies an im2col window: `coords` as for a tile, `offsets` inside the window.
    #[track_caller]
    pub fn load_im2col<T: Element, const R: usize, const O: usize>(
        self,
        to: TileRef<T>,
        coords: [impl Coord; R],
        offsets: [impl Coord; O],
        bar: BarHandle,
    ) {
        emit(TensorLoad {
            map: self.id,
            dst: to.view,
            coords: coords.iter().map(|c| c.coord()).collect(),
            offsets: offsets.iter().map(|c| c.coord()).collect(),
            bar: bar.0,
            multicast: None,
            hint: None,
        });
    }

    /// Copies a view to the box at `coords`, as part of the thread's bulk group.
    #[track_caller]
    pub fn store<T: Element, const R: usize>(self, from: TileRef<T>, coords: [impl Coord; R]) {
        emit(TensorStore {
            map: self.id,
            src: from.view,
            coords: coords.iter().map(|c| c.coord()).collect(),
            hint: None,
        });
    }
}

/// Copies `bytes` from global memory into the start of a view; they complete on `bar`.
#[track_caller]
pub fn bulk_load<T: Element>(
    to: TileRef<T>,
    from: Reg<u64>,
    bytes: impl Value<u32>,
    bar: BarHandle,
) {
    let _at = here();
    let dst = to.place(0u32, 0u32);
    emit(BulkLoad {
        dst,
        src: from.operand(),
        bytes: bytes.operand(),
        bar: bar.0,
        multicast: None,
        hint: None,
    });
}

/// Copies `bytes` from the start of a view to global memory, as part of the thread's bulk group.
#[track_caller]
pub fn bulk_store<T: Element>(from: TileRef<T>, to: Reg<u64>, bytes: impl Value<u32>) {
    let _at = here();
    let src = from.place(0u32, 0u32);
    emit(BulkStore {
        src,
        dst: to.operand(),
        bytes: bytes.operand(),
        hint: None,
    });
}

/// Closes this thread's bulk stores into one group.
#[track_caller]
pub fn bulk_commit() {
    emit(BulkCommit);
}

/// Waits until at most `pending` of this thread's bulk groups still read their source.
#[track_caller]
pub fn bulk_wait_read(pending: u32) {
    emit(BulkWait {
        pending,
        read: true,
    });
}

/// Waits until at most `pending` of this thread's bulk groups are not done.
#[track_caller]
pub fn bulk_wait(pending: u32) {
    emit(BulkWait {
        pending,
        read: false,
    });
}

/// Orders this thread's generic accesses to shared memory before later async ones.
#[track_caller]
pub fn fence_async() {
    emit(FenceOp {
        fence: Fence::ProxyAsyncShared,
    });
}

/// As [`fence_async`], for global memory.
#[track_caller]
pub fn fence_async_global() {
    emit(FenceOp {
        fence: Fence::ProxyAsyncGlobal,
    });
}

/// Makes this thread's barrier inits visible to the cluster.
#[track_caller]
pub fn fence_mbarrier_init() {
    emit(FenceOp {
        fence: Fence::MbarrierInit,
    });
}

/// Orders this thread's memory accesses for the threads of a scope.
#[track_caller]
pub fn fence(scope: Scope) {
    emit(FenceOp {
        fence: Fence::AcqRel(scope),
    });
}

/// All threads of the CTA meet.
#[track_caller]
pub fn cta_sync() {
    emit(CtaSync);
}

/// All threads of the cluster meet and see each other's memory.
#[track_caller]
pub fn cluster_sync() {
    emit(ClusterArrive { release: true });
    emit(ClusterWait);
}

/// Arrives at the cluster's barrier.
#[track_caller]
pub fn cluster_arrive() {
    emit(ClusterArrive { release: true });
}

/// Waits for all threads of the cluster to arrive.
#[track_caller]
pub fn cluster_wait() {
    emit(ClusterWait);
}

/// Lets the warp rest for about `ns` nanoseconds.
#[track_caller]
pub fn nanosleep(ns: u32) {
    emit(Nanosleep { ns });
}

/// Stops the kernel with an error.
#[track_caller]
pub fn trap() {
    emit(Trap);
}
