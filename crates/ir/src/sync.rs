//! The acts of synchronisation, as values.
//!
//! An op that synchronises *is* one of these: the executor performs it
//! ([`Machine::sync`](crate::Machine::sync)), the checker judges it
//! ([`Effects::sync`](crate::Effects::sync)), and neither knows the op.

use crate::value::{BarRef, NamedId, Operand};

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
///
/// There is none for the tensor-map proxy: maps are launch parameters, which
/// nothing on the device writes.
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
    /// `fence.proxy.alias`: accesses to one place by different addresses.
    ProxyAlias,
    /// `fence.mbarrier_init`: this thread's barrier inits are seen by the cluster.
    MbarrierInit,
    /// `fence.acq_rel` at a scope.
    AcqRel(Scope),
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
            Fence::ProxyAlias => "proxy.alias".into(),
            Fence::MbarrierInit => "mbarrier_init.release.cluster".into(),
            Fence::AcqRel(scope) => format!("acq_rel.{}", scope.ptx()),
            Fence::Sc(scope) => format!("sc.{}", scope.ptx()),
        }
    }

    /// Does it order generic accesses to shared memory before async ones?
    pub const fn is_proxy_shared(self) -> bool {
        matches!(
            self,
            Fence::ProxyAsyncShared | Fence::ProxyAsyncCluster | Fence::ProxyAsync
        )
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
}

impl Sync {
    /// Every operand inside it.
    pub fn operands(&self, each: &mut dyn FnMut(Operand)) {
        match self {
            Sync::Warp { mask } => each(*mask),
            Sync::Init { bar, .. } | Sync::Inval { bar } | Sync::CopyArrive { bar, .. } => {
                bar.operands(each);
            }
            Sync::Arrive { bar, count, tx, .. } => {
                bar.operands(each);
                each(*count);
                tx.iter().copied().for_each(each);
            }
            Sync::ExpectTx { bar, tx } => {
                bar.operands(each);
                each(*tx);
            }
            Sync::Wait { bar, parity, .. } | Sync::Test { bar, parity, .. } => {
                bar.operands(each);
                each(*parity);
            }
            _ => {}
        }
    }
}
