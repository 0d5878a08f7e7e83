//! mbarriers and named barriers.

use crate::build::reg::{Reg, Value};
use crate::build::state::{Count, emit, with};
use crate::ops::control::{NamedArrive, NamedSync, NamedTally};
use crate::ops::mbarrier::{
    MbarrierArrive, MbarrierExpectTx, MbarrierInit, MbarrierInval, MbarrierTest, MbarrierWait,
};
use crate::sync::{Scope, Tally};
use crate::types::Scalar;
use crate::value::{BarId, BarRef, NamedId, Operand};

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
        emit(self.arrival());
    }

    /// Every active lane arrives `count` times.
    #[track_caller]
    pub fn arrive_many(self, count: impl Value<u32>) {
        emit(MbarrierArrive {
            count: count.operand(),
            ..self.arrival()
        });
    }

    /// Every active lane arrives, releasing to the cluster.
    #[track_caller]
    pub fn arrive_cluster(self) {
        emit(MbarrierArrive {
            scope: Scope::Cluster,
            ..self.arrival()
        });
    }

    /// Every active lane expects bytes and arrives.
    #[track_caller]
    pub fn arrive_expect(self, bytes: impl Value<u32>) {
        emit(MbarrierArrive {
            tx: Some(bytes.operand()),
            ..self.arrival()
        });
    }

    /// As [`arrive_expect`](Self::arrive_expect), releasing to the cluster.
    #[track_caller]
    pub fn arrive_expect_cluster(self, bytes: impl Value<u32>) {
        emit(MbarrierArrive {
            tx: Some(bytes.operand()),
            scope: Scope::Cluster,
            ..self.arrival()
        });
    }

    /// Every active lane arrives for the last time: from the next phase on the
    /// barrier expects that many arrivals fewer.
    #[track_caller]
    pub fn arrive_drop(self) {
        emit(MbarrierArrive {
            leave: true,
            ..self.arrival()
        });
    }

    /// One plain arrival.
    fn arrival(self) -> MbarrierArrive {
        MbarrierArrive {
            bar: self.0,
            count: Operand::imm(1u32),
            tx: None,
            scope: Scope::Cta,
            leave: false,
        }
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
        self.ask(parity.operand(), Scope::Cta, false)
    }

    /// As [`test`](Self::test), acquiring what the cluster released.
    #[track_caller]
    pub fn test_cluster(self, parity: impl Value<u32>) -> Reg<bool> {
        self.ask(parity.operand(), Scope::Cluster, false)
    }

    /// As [`test`](Self::test), but the thread may sleep for a while before a no.
    #[track_caller]
    pub fn try_wait(self, parity: impl Value<u32>) -> Reg<bool> {
        self.ask(parity.operand(), Scope::Cta, true)
    }

    /// As [`try_wait`](Self::try_wait), acquiring what the cluster released.
    #[track_caller]
    pub fn try_wait_cluster(self, parity: impl Value<u32>) -> Reg<bool> {
        self.ask(parity.operand(), Scope::Cluster, true)
    }

    #[track_caller]
    fn ask(self, parity: Operand, scope: Scope, sleep: bool) -> Reg<bool> {
        let dst = Reg::fresh();
        emit(MbarrierTest {
            dst: dst.id(),
            bar: self.0,
            parity,
            scope,
            sleep,
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

    /// As [`sync`](Self::sync), which nobody may mix with this; in how many threads `pred` holds.
    #[track_caller]
    pub fn count(self, threads: u32, pred: impl Value<bool>) -> Reg<u32> {
        self.tally(Tally::Count, threads, pred.operand())
    }

    /// As [`count`](Self::count): whether `pred` holds in all threads.
    #[track_caller]
    pub fn all(self, threads: u32, pred: impl Value<bool>) -> Reg<bool> {
        self.tally(Tally::All, threads, pred.operand())
    }

    /// As [`count`](Self::count): whether `pred` holds in any thread.
    #[track_caller]
    pub fn any(self, threads: u32, pred: impl Value<bool>) -> Reg<bool> {
        self.tally(Tally::Any, threads, pred.operand())
    }

    #[track_caller]
    fn tally<T: Scalar>(self, tally: Tally, threads: u32, pred: Operand) -> Reg<T> {
        let dst = Reg::fresh();
        emit(NamedTally {
            bar: self.id,
            threads,
            tally,
            pred,
            dst: dst.id(),
        });
        dst
    }
}
