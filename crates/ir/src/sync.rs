//! The acts of synchronisation, as values.
//!
//! An op that synchronises *is* one of these: the executor performs it
//! ([`Machine::sync`](crate::Machine::sync)), the checker judges it
//! ([`Effects::sync`](crate::Effects::sync)), and neither knows the op.

use crate::types::Type;
use crate::value::{BarRef, NamedId, Operand, RegId};

/// Which threads a release or acquire reaches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Scope {
    /// The CTA.
    Cta,
    /// The cluster.
    Cluster,
    /// The device.
    Gpu,
    /// The device, the host and other devices.
    Sys,
}

impl Scope {
    /// The suffix in PTX.
    pub const fn ptx(self) -> &'static str {
        match self {
            Scope::Cta => "cta",
            Scope::Cluster => "cluster",
            Scope::Gpu => "gpu",
            Scope::Sys => "sys",
        }
    }
}

/// What a strong access orders around it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Semantics {
    /// Nothing.
    Relaxed,
    /// What was released where its value comes from is seen after it.
    Acquire,
    /// What came before it is seen by who acquires its value.
    Release,
    /// Both.
    AcqRel,
}

impl Semantics {
    /// The suffix in PTX.
    pub const fn ptx(self) -> &'static str {
        match self {
            Semantics::Relaxed => "relaxed",
            Semantics::Acquire => "acquire",
            Semantics::Release => "release",
            Semantics::AcqRel => "acq_rel",
        }
    }

    /// Does it acquire?
    pub const fn acquires(self) -> bool {
        matches!(self, Semantics::Acquire | Semantics::AcqRel)
    }

    /// Does it release?
    pub const fn releases(self) -> bool {
        matches!(self, Semantics::Release | Semantics::AcqRel)
    }
}

/// The order of a strong access: what it orders, and among which threads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MemoryOrder {
    /// What it orders.
    pub sem: Semantics,
    /// Among which threads it is one step, and orders.
    pub scope: Scope,
}

impl MemoryOrder {
    /// One step, and no order.
    pub const fn relaxed(scope: Scope) -> Self {
        let sem = Semantics::Relaxed;
        Self { sem, scope }
    }

    /// An acquire.
    pub const fn acquire(scope: Scope) -> Self {
        let sem = Semantics::Acquire;
        Self { sem, scope }
    }

    /// A release.
    pub const fn release(scope: Scope) -> Self {
        let sem = Semantics::Release;
        Self { sem, scope }
    }

    /// Both.
    pub const fn acq_rel(scope: Scope) -> Self {
        let sem = Semantics::AcqRel;
        Self { sem, scope }
    }

    /// The suffix in PTX and in text: `.acquire.gpu`.
    pub fn suffix(self) -> String {
        format!(".{}.{}", self.sem.ptx(), self.scope.ptx())
    }
}

/// A fence.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fence {
    /// `fence.proxy.async`, the CTA's shared memory: this thread's generic accesses come before later async ones.
    ProxyAsyncShared,
    /// `fence.proxy.async`, the shared memory of the cluster.
    ProxyAsyncCluster,
    /// `fence.proxy.async`, global memory.
    ProxyAsyncGlobal,
    /// `fence.proxy.async`, all memory.
    ProxyAsync,
    /// `fence.proxy.async::generic.release`: this thread's generic accesses to
    /// the CTA's shared memory come before async ones behind an acquire of the
    /// same kind.
    ProxyAsyncRelease,
    /// `fence.proxy.async::generic.acquire`: async accesses to the cluster's
    /// shared memory come after generic ones that were released so.
    ProxyAsyncAcquire,
    /// `fence.proxy.tensormap::generic.release` at a scope: tensor maps that
    /// this thread wrote come before copies behind an acquire of the same kind.
    TensorMapRelease(Scope),
    /// `fence.proxy.tensormap::generic.acquire` at a scope, of the map at an
    /// address of global memory (`u64`). Maps that are launch parameters need
    /// none: nothing on the device writes them.
    TensorMapAcquire(Scope, Operand),
    /// `fence.proxy.alias`: accesses to one place by different addresses.
    ProxyAlias,
    /// `fence.mbarrier_init`: this thread's barrier inits are seen by the cluster.
    MbarrierInit,
    /// `fence.acq_rel` at a scope.
    AcqRel(Scope),
    /// `fence.acquire` at a scope: that half of [`Fence::AcqRel`] alone.
    Acquire(Scope),
    /// `fence.release` at a scope: that half of [`Fence::AcqRel`] alone.
    Release(Scope),
    /// `fence.acquire` at the scope of the cluster, for its shared memory alone.
    AcquireShared,
    /// `fence.release` at the scope of the cluster, for the CTA's shared memory alone.
    ReleaseShared,
    /// `fence.sc` at a scope: in one order that all threads agree on.
    Sc(Scope),
}

impl Fence {
    /// What follows `fence.` in PTX.
    pub fn ptx(self) -> String {
        match self {
            Fence::ProxyAsyncShared => "proxy.async.shared::cta".into(),
            Fence::ProxyAsyncCluster => "proxy.async.shared::cluster".into(),
            Fence::ProxyAsyncGlobal => "proxy.async.global".into(),
            Fence::ProxyAsync => "proxy.async".into(),
            Fence::ProxyAsyncRelease => {
                "proxy.async::generic.release.sync_restrict::shared::cta.cluster".into()
            }
            Fence::ProxyAsyncAcquire => {
                "proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster".into()
            }
            Fence::TensorMapRelease(scope) => {
                format!("proxy.tensormap::generic.release.{}", scope.ptx())
            }
            Fence::TensorMapAcquire(scope, _) => {
                format!("proxy.tensormap::generic.acquire.{}", scope.ptx())
            }
            Fence::ProxyAlias => "proxy.alias".into(),
            Fence::MbarrierInit => "mbarrier_init.release.cluster".into(),
            Fence::AcqRel(scope) => format!("acq_rel.{}", scope.ptx()),
            Fence::Acquire(scope) => format!("acquire.{}", scope.ptx()),
            Fence::Release(scope) => format!("release.{}", scope.ptx()),
            Fence::AcquireShared => "acquire.sync_restrict::shared::cluster.cluster".into(),
            Fence::ReleaseShared => "release.sync_restrict::shared::cta.cluster".into(),
            Fence::Sc(scope) => format!("sc.{}", scope.ptx()),
        }
    }

    /// The PTX version it needs at least.
    pub const fn ptx_version(self) -> (u32, u32) {
        match self {
            Fence::TensorMapRelease(_) | Fence::TensorMapAcquire(..) => (8, 3),
            Fence::ProxyAsyncRelease
            | Fence::ProxyAsyncAcquire
            | Fence::Acquire(_)
            | Fence::Release(_)
            | Fence::AcquireShared
            | Fence::ReleaseShared => (8, 6),
            _ => (8, 0),
        }
    }

    /// The address it is about, if it is about one (`u64`).
    pub const fn address(self) -> Option<Operand> {
        match self {
            Fence::TensorMapAcquire(_, addr) => Some(addr),
            _ => None,
        }
    }

    /// What it makes of relaxed accesses around it, if anything.
    pub const fn order(self) -> Option<MemoryOrder> {
        match self {
            Fence::AcqRel(scope) | Fence::Sc(scope) => Some(MemoryOrder::acq_rel(scope)),
            Fence::Acquire(scope) => Some(MemoryOrder::acquire(scope)),
            Fence::Release(scope) => Some(MemoryOrder::release(scope)),
            Fence::AcquireShared => Some(MemoryOrder::acquire(Scope::Cluster)),
            Fence::ReleaseShared => Some(MemoryOrder::release(Scope::Cluster)),
            _ => None,
        }
    }

    /// Is its order one of shared memory alone?
    pub const fn is_shared_only(self) -> bool {
        matches!(self, Fence::AcquireShared | Fence::ReleaseShared)
    }

    /// Does it order generic accesses to shared memory before async ones, by itself?
    pub const fn is_proxy_shared(self) -> bool {
        matches!(
            self,
            Fence::ProxyAsyncShared | Fence::ProxyAsyncCluster | Fence::ProxyAsync
        )
    }
}

/// What the threads that meet at a barrier learn of each other's predicates.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Tally {
    /// In how many threads it holds (`u32`).
    Count,
    /// Whether it holds in all (a predicate).
    All,
    /// Whether it holds in any (a predicate).
    Any,
}

impl Tally {
    /// The operator and type in PTX.
    pub const fn ptx(self) -> (&'static str, &'static str) {
        match self {
            Tally::Count => ("popc", "u32"),
            Tally::All => ("and", "pred"),
            Tally::Any => ("or", "pred"),
        }
    }

    /// The name in text.
    pub const fn name(self) -> &'static str {
        match self {
            Tally::Count => "count",
            Tally::All => "all",
            Tally::Any => "any",
        }
    }
}

/// One act of synchronisation.
///
/// Operands are evaluated lane by lane; each active lane acts once unless a
/// variant says that the whole warp acts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Sync {
    /// The lanes of `mask` meet, and see each other's memory (whole warp).
    Warp {
        /// The lanes (`u32`).
        mask: Operand,
    },
    /// An mbarrier comes to life, expecting `count` arrivals per phase.
    Init {
        /// The barrier.
        bar: BarRef,
        /// Arrivals per phase.
        count: u32,
    },
    /// An mbarrier ends; its bytes may be reused.
    Inval {
        /// The barrier.
        bar: BarRef,
    },
    /// Arrives `count` times, after raising the expected bytes by `tx`.
    Arrive {
        /// The barrier.
        bar: BarRef,
        /// How many arrivals (`u32`).
        count: Operand,
        /// Bytes to expect on top (`u32`).
        tx: Option<Operand>,
        /// The scope of the release.
        scope: Scope,
        /// Does the thread leave the barrier, which expects as many arrivals fewer from then on?
        leave: bool,
    },
    /// Raises the expected bytes of the current phase without arriving.
    ExpectTx {
        /// The barrier.
        bar: BarRef,
        /// Bytes (`u32`).
        tx: Operand,
    },
    /// Waits until the phase of the given parity is complete.
    Wait {
        /// The barrier.
        bar: BarRef,
        /// The parity (`u32`, 0 or 1).
        parity: Operand,
        /// The scope of the acquire.
        scope: Scope,
    },
    /// Asks whether the phase of the given parity is complete: `Next` says
    /// yes and is a wait that passed, `Blocked` says no. The lanes ask of one barrier.
    Test {
        /// The barrier.
        bar: BarRef,
        /// The parity (`u32`, 0 or 1).
        parity: Operand,
        /// The scope of the acquire.
        scope: Scope,
    },
    /// Arrives at a named barrier and waits for the rest (whole warp).
    NamedSync {
        /// The barrier.
        bar: NamedId,
        /// Threads that take part.
        threads: u32,
    },
    /// Arrives at a named barrier and goes on (whole warp).
    NamedArrive {
        /// The barrier.
        bar: NamedId,
        /// Threads that take part.
        threads: u32,
    },
    /// As `NamedSync`; every thread that waits learns of the others' predicates (whole warp).
    NamedTally {
        /// The barrier.
        bar: NamedId,
        /// Threads that take part, all of them so.
        threads: u32,
        /// What is counted.
        tally: Tally,
        /// The predicate.
        pred: Operand,
        /// The answer.
        dst: RegId,
    },
    /// All threads of the CTA meet (whole warp).
    Cta,
    /// Arrives at the cluster's barrier (whole warp).
    ClusterArrive {
        /// Does it release this thread's writes?
        release: bool,
    },
    /// Waits for all threads of the cluster (whole warp).
    ClusterWait,
    /// A fence of each active lane.
    Fence(Fence),
    /// Closes the bulk copies issued by each active lane into one group.
    BulkCommit,
    /// Waits until at most `pending` of the lane's bulk groups are open.
    BulkWait {
        /// Groups that may stay open.
        pending: u32,
        /// Only the reads of the source must be done.
        read: bool,
    },
    /// Closes the `cp.async` copies issued by each active lane into one group.
    CopyCommit,
    /// Waits until at most `pending` of the lane's copy groups are open;
    /// `None`: until all its copies are done, committed or not.
    CopyWait {
        /// Groups that may stay open.
        pending: Option<u32>,
    },
    /// Each active lane arrives on an mbarrier of its CTA once all copies it
    /// has issued are done.
    CopyArrive {
        /// The barrier.
        bar: BarRef,
        /// Is the arrival one of those that the barrier expects? If not, it
        /// expects one more in the current phase.
        counted: bool,
    },
    /// Orders register accesses before the warpgroup's next wgmma (whole warp).
    WgmmaFence,
    /// Closes the warpgroup's wgmmas into one group (whole warp).
    WgmmaCommit,
    /// Waits until at most `pending` of the warpgroup's wgmma groups are open (whole warp).
    WgmmaWait {
        /// Groups that may stay open.
        pending: u32,
    },
    /// Changes the registers of each thread of the warpgroup (whole warp).
    SetMaxRegs {
        /// The new number.
        count: u32,
        /// Growing (may wait for registers) or shrinking.
        grow: bool,
    },
    /// The threads end (whole warp).
    Exit,
}

impl Sync {
    /// Every operand inside it, and its type.
    pub fn operands(&self, each: &mut dyn FnMut(Operand, Type)) {
        let mut word = |o| each(o, Type::U32);
        match self {
            Sync::Warp { mask } => word(*mask),
            Sync::Init { bar, .. } | Sync::Inval { bar } | Sync::CopyArrive { bar, .. } => {
                bar.operands(&mut word);
            }
            Sync::Arrive { bar, count, tx, .. } => {
                bar.operands(&mut word);
                word(*count);
                tx.iter().copied().for_each(word);
            }
            Sync::ExpectTx { bar, tx } => {
                bar.operands(&mut word);
                word(*tx);
            }
            Sync::Wait { bar, parity, .. } | Sync::Test { bar, parity, .. } => {
                bar.operands(&mut word);
                word(*parity);
            }
            Sync::NamedTally { pred, .. } => each(*pred, Type::Pred),
            Sync::Fence(fence) => {
                let about = fence.address();
                about.into_iter().for_each(|o| each(o, Type::U64));
            }
            _ => {}
        }
    }
}
