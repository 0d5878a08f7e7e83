//! mbarriers and named barriers.

use crate::builder::reg::{Reg, Value};
use crate::builder::state::{ArrivalCount, emit, with};
use crate::ops::control::{NamedArrive, NamedReduce, NamedSync};
use crate::ops::mbarrier::{
    MbarrierArrive, MbarrierExpectTx, MbarrierInit, MbarrierInval, MbarrierTest, MbarrierWait,
};
use crate::sync::{BarrierReduction, Scope};
use crate::types::Scalar;
use crate::value::{BarId, BarRef, NamedId, Operand};

/// A declared array of mbarriers.
#[derive(Clone, Copy, Debug)]
pub struct MbarrierArray {
    pub(crate) id: BarId,
    pub(crate) len: u32,
}

impl MbarrierArray {
    /// Initializes every mbarrier of the array at kernel start with `count` arrivals per phase.
    pub fn arrivals(self, count: u32) -> Self {
        with(|s| s.counts[self.id.index()] = ArrivalCount::Fixed(count));
        self
    }

    /// Returns the number of mbarriers.
    pub fn len(self) -> u32 {
        self.len
    }

    /// Returns whether the array is empty.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Returns one mbarrier of the array.
    #[track_caller]
    pub fn at(self, index: impl Value<u32>) -> MbarrierHandle {
        MbarrierHandle(BarRef {
            bar: self.id,
            index: index.operand(),
            peer: None,
        })
    }
}

/// A reference to one mbarrier.
#[derive(Clone, Copy, Debug)]
pub struct MbarrierHandle(pub(crate) BarRef);

impl MbarrierHandle {
    /// Returns the same mbarrier in the CTA with cluster rank `rank`.
    #[track_caller]
    pub fn peer(mut self, rank: impl Value<u32>) -> Self {
        self.0.peer = Some(rank.operand());
        with(|s| s.accesses_peers = true);
        self
    }

    /// Initializes the mbarrier with `count` arrivals per phase (`mbarrier.init`).
    #[track_caller]
    pub fn init(self, count: u32) {
        emit(MbarrierInit { bar: self.0, count });
    }

    /// Invalidates the mbarrier (`mbarrier.inval`).
    #[track_caller]
    pub fn inval(self) {
        emit(MbarrierInval { bar: self.0 });
    }

    /// Arrives once for every active lane (`mbarrier.arrive`).
    #[track_caller]
    pub fn arrive(self) {
        emit(self.arrival());
    }

    /// Arrives `count` times for every active lane.
    #[track_caller]
    pub fn arrive_many(self, count: impl Value<u32>) {
        emit(MbarrierArrive {
            count: count.operand(),
            ..self.arrival()
        });
    }

    /// Arrives once for every active lane, with release at cluster scope.
    #[track_caller]
    pub fn arrive_cluster(self) {
        emit(MbarrierArrive {
            scope: Scope::Cluster,
            ..self.arrival()
        });
    }

    /// Adds expected transaction bytes and arrives, for every active lane
    /// (`mbarrier.arrive.expect_tx`).
    #[track_caller]
    pub fn arrive_expect(self, bytes: impl Value<u32>) {
        emit(MbarrierArrive {
            tx: Some(bytes.operand()),
            ..self.arrival()
        });
    }

    /// Like [`arrive_expect`](Self::arrive_expect), with release at cluster scope.
    #[track_caller]
    pub fn arrive_expect_cluster(self, bytes: impl Value<u32>) {
        emit(MbarrierArrive {
            tx: Some(bytes.operand()),
            scope: Scope::Cluster,
            ..self.arrival()
        });
    }

    /// Arrives for every active lane, and reduces the arrival count of all later phases
    /// (`mbarrier.arrive_drop`).
    #[track_caller]
    pub fn arrive_drop(self) {
        emit(MbarrierArrive {
            drop: true,
            ..self.arrival()
        });
    }

    /// Returns an arrival with default options.
    fn arrival(self) -> MbarrierArrive {
        MbarrierArrive {
            bar: self.0,
            count: Operand::imm(1u32),
            tx: None,
            scope: Scope::Cta,
            drop: false,
        }
    }

    /// Adds expected transaction bytes for every active lane, without arriving
    /// (`mbarrier.expect_tx`).
    #[track_caller]
    pub fn expect(self, bytes: impl Value<u32>) {
        emit(MbarrierExpectTx {
            bar: self.0,
            tx: bytes.operand(),
        });
    }

    /// Waits until the phase with this parity completes (`mbarrier.try_wait.parity` in a loop).
    #[track_caller]
    pub fn wait(self, parity: impl Value<u32>) {
        emit(MbarrierWait {
            bar: self.0,
            parity: parity.operand(),
            scope: Scope::Cta,
        });
    }

    /// Like [`wait`](Self::wait), with acquire at cluster scope.
    #[track_caller]
    pub fn wait_cluster(self, parity: impl Value<u32>) {
        emit(MbarrierWait {
            bar: self.0,
            parity: parity.operand(),
            scope: Scope::Cluster,
        });
    }

    /// Returns whether the phase with this parity is complete (`mbarrier.test_wait.parity`).
    #[track_caller]
    pub fn test(self, parity: impl Value<u32>) -> Reg<bool> {
        self.test_parity(parity.operand(), Scope::Cta, false)
    }

    /// Like [`test`](Self::test), with acquire at cluster scope.
    #[track_caller]
    pub fn test_cluster(self, parity: impl Value<u32>) -> Reg<bool> {
        self.test_parity(parity.operand(), Scope::Cluster, false)
    }

    /// Like [`test`](Self::test), but the thread may suspend for a limited time
    /// (`mbarrier.try_wait.parity`).
    #[track_caller]
    pub fn try_wait(self, parity: impl Value<u32>) -> Reg<bool> {
        self.test_parity(parity.operand(), Scope::Cta, true)
    }

    /// Like [`try_wait`](Self::try_wait), with acquire at cluster scope.
    #[track_caller]
    pub fn try_wait_cluster(self, parity: impl Value<u32>) -> Reg<bool> {
        self.test_parity(parity.operand(), Scope::Cluster, true)
    }

    #[track_caller]
    fn test_parity(self, parity: Operand, scope: Scope, may_suspend: bool) -> Reg<bool> {
        let dst = Reg::fresh();
        emit(MbarrierTest {
            dst: dst.id(),
            bar: self.0,
            parity,
            scope,
            may_suspend,
        });
        dst
    }
}

/// A named barrier of the CTA (`barrier`, ids 1 to 15).
#[derive(Clone, Copy, Debug)]
pub struct NamedBarrierHandle {
    pub(crate) id: NamedId,
}

impl NamedBarrierHandle {
    /// Arrives and waits until `threads` threads have arrived (`barrier.sync`).
    #[track_caller]
    pub fn sync(self, threads: u32) {
        emit(NamedSync {
            bar: self.id,
            threads,
        });
    }

    /// Arrives without waiting; `threads` threads complete the barrier (`barrier.arrive`).
    #[track_caller]
    pub fn arrive(self, threads: u32) {
        emit(NamedArrive {
            bar: self.id,
            threads,
        });
    }

    /// Synchronizes `threads` threads and returns the number with a true `pred`
    /// (`barrier.red.popc`). All threads must call the same reduction.
    #[track_caller]
    pub fn count(self, threads: u32, pred: impl Value<bool>) -> Reg<u32> {
        self.sync_reduce(BarrierReduction::Count, threads, pred.operand())
    }

    /// Synchronizes `threads` threads and returns whether `pred` is true in all
    /// (`barrier.red.and`).
    #[track_caller]
    pub fn all(self, threads: u32, pred: impl Value<bool>) -> Reg<bool> {
        self.sync_reduce(BarrierReduction::All, threads, pred.operand())
    }

    /// Synchronizes `threads` threads and returns whether `pred` is true in any
    /// (`barrier.red.or`).
    #[track_caller]
    pub fn any(self, threads: u32, pred: impl Value<bool>) -> Reg<bool> {
        self.sync_reduce(BarrierReduction::Any, threads, pred.operand())
    }

    #[track_caller]
    fn sync_reduce<T: Scalar>(
        self,
        reduction: BarrierReduction,
        threads: u32,
        pred: Operand,
    ) -> Reg<T> {
        let dst = Reg::fresh();
        emit(NamedReduce {
            bar: self.id,
            threads,
            reduction,
            pred,
            dst: dst.id(),
        });
        dst
    }
}
