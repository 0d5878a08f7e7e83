//! Synchronization operations as values.
//!
//! A synchronizing op declares one [`SyncOp`]. The executor performs it
//! ([`Machine::sync`](crate::Machine::sync)) and the checker analyzes it
//! ([`Effects::sync`](crate::Effects::sync)); neither depends on the op.

use crate::types::Type;
use crate::value::{BarRef, NamedId, Operand, RegId};

/// The scope of a release, acquire or atomic access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Scope {
    /// The CTA.
    Cta,
    /// The cluster.
    Cluster,
    /// The GPU.
    Gpu,
    /// The GPU, the host and other GPUs.
    Sys,
}

impl Scope {
    /// Returns the PTX suffix.
    pub const fn ptx(self) -> &'static str {
        match self {
            Scope::Cta => "cta",
            Scope::Cluster => "cluster",
            Scope::Gpu => "gpu",
            Scope::Sys => "sys",
        }
    }
}

/// The memory-ordering semantics of a strong access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Semantics {
    /// No ordering.
    Relaxed,
    /// Later accesses are ordered after the release whose value this access reads.
    Acquire,
    /// Earlier accesses are ordered before an acquire that reads the value written here.
    Release,
    /// Acquire and release.
    AcqRel,
}

impl Semantics {
    /// Returns the PTX suffix.
    pub const fn ptx(self) -> &'static str {
        match self {
            Semantics::Relaxed => "relaxed",
            Semantics::Acquire => "acquire",
            Semantics::Release => "release",
            Semantics::AcqRel => "acq_rel",
        }
    }

    /// Returns whether the access acquires.
    pub const fn acquires(self) -> bool {
        matches!(self, Semantics::Acquire | Semantics::AcqRel)
    }

    /// Returns whether the access releases.
    pub const fn releases(self) -> bool {
        matches!(self, Semantics::Release | Semantics::AcqRel)
    }
}

/// The memory order of a strong access: semantics and scope.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MemoryOrder {
    /// The semantics.
    pub sem: Semantics,
    /// The scope of atomicity and ordering.
    pub scope: Scope,
}

impl MemoryOrder {
    /// Returns a relaxed order: atomic, without ordering.
    pub const fn relaxed(scope: Scope) -> Self {
        let sem = Semantics::Relaxed;
        Self { sem, scope }
    }

    /// Returns an acquire order.
    pub const fn acquire(scope: Scope) -> Self {
        let sem = Semantics::Acquire;
        Self { sem, scope }
    }

    /// Returns a release order.
    pub const fn release(scope: Scope) -> Self {
        let sem = Semantics::Release;
        Self { sem, scope }
    }

    /// Returns an order that acquires and releases.
    pub const fn acq_rel(scope: Scope) -> Self {
        let sem = Semantics::AcqRel;
        Self { sem, scope }
    }

    /// Returns the suffix in PTX and in the text form: `.acquire.gpu`.
    pub fn suffix(self) -> String {
        format!(".{}.{}", self.sem.ptx(), self.scope.ptx())
    }
}

/// A kind of fence, with its operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FenceKind {
    /// `fence.proxy.async` on the CTA's shared memory: orders this thread's
    /// generic-proxy accesses before later async-proxy accesses.
    ProxyAsyncShared,
    /// `fence.proxy.async` on the shared memory of the cluster.
    ProxyAsyncCluster,
    /// `fence.proxy.async` on global memory.
    ProxyAsyncGlobal,
    /// `fence.proxy.async` on all memory.
    ProxyAsync,
    /// `fence.proxy.async::generic.release`: orders this thread's generic-proxy
    /// accesses to the CTA's shared memory before async-proxy accesses that
    /// follow the matching acquire fence.
    ProxyAsyncRelease,
    /// `fence.proxy.async::generic.acquire`: orders later async-proxy accesses to
    /// the cluster's shared memory after the released generic-proxy accesses.
    ProxyAsyncAcquire,
    /// `fence.proxy.tensormap::generic.release` at a scope: orders this thread's
    /// writes to tensor maps before copies that follow the matching acquire fence.
    TensorMapRelease(Scope),
    /// `fence.proxy.tensormap::generic.acquire` at a scope, for the tensor map at
    /// a global address (`u64`). Tensor maps passed as launch parameters need no
    /// such fence, because no device code writes them.
    TensorMapAcquire(Scope, Operand),
    /// `fence.proxy.alias`: orders accesses to one location through different virtual addresses.
    ProxyAlias,
    /// `fence.mbarrier_init`: makes this thread's `mbarrier.init` visible to the cluster.
    MbarrierInit,
    /// `fence.acq_rel` at a scope.
    AcqRel(Scope),
    /// `fence.acquire` at a scope.
    Acquire(Scope),
    /// `fence.release` at a scope.
    Release(Scope),
    /// `fence.acquire` at cluster scope, restricted to `shared::cluster`.
    AcquireShared,
    /// `fence.release` at cluster scope, restricted to `shared::cta`.
    ReleaseShared,
    /// `fence.sc` at a scope: sequentially consistent.
    Sc(Scope),
}

impl FenceKind {
    /// Returns the PTX suffix after `fence.`.
    pub fn ptx(self) -> String {
        match self {
            FenceKind::ProxyAsyncShared => "proxy.async.shared::cta".into(),
            FenceKind::ProxyAsyncCluster => "proxy.async.shared::cluster".into(),
            FenceKind::ProxyAsyncGlobal => "proxy.async.global".into(),
            FenceKind::ProxyAsync => "proxy.async".into(),
            FenceKind::ProxyAsyncRelease => {
                "proxy.async::generic.release.sync_restrict::shared::cta.cluster".into()
            }
            FenceKind::ProxyAsyncAcquire => {
                "proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster".into()
            }
            FenceKind::TensorMapRelease(scope) => {
                format!("proxy.tensormap::generic.release.{}", scope.ptx())
            }
            FenceKind::TensorMapAcquire(scope, _) => {
                format!("proxy.tensormap::generic.acquire.{}", scope.ptx())
            }
            FenceKind::ProxyAlias => "proxy.alias".into(),
            FenceKind::MbarrierInit => "mbarrier_init.release.cluster".into(),
            FenceKind::AcqRel(scope) => format!("acq_rel.{}", scope.ptx()),
            FenceKind::Acquire(scope) => format!("acquire.{}", scope.ptx()),
            FenceKind::Release(scope) => format!("release.{}", scope.ptx()),
            FenceKind::AcquireShared => "acquire.sync_restrict::shared::cluster.cluster".into(),
            FenceKind::ReleaseShared => "release.sync_restrict::shared::cta.cluster".into(),
            FenceKind::Sc(scope) => format!("sc.{}", scope.ptx()),
        }
    }

    /// Returns the minimum PTX version.
    pub const fn ptx_version(self) -> (u32, u32) {
        match self {
            FenceKind::TensorMapRelease(_) | FenceKind::TensorMapAcquire(..) => (8, 3),
            FenceKind::ProxyAsyncRelease
            | FenceKind::ProxyAsyncAcquire
            | FenceKind::Acquire(_)
            | FenceKind::Release(_)
            | FenceKind::AcquireShared
            | FenceKind::ReleaseShared => (8, 6),
            _ => (8, 0),
        }
    }

    /// Returns the address operand (`u64`), if the fence has one.
    pub const fn address(self) -> Option<Operand> {
        match self {
            FenceKind::TensorMapAcquire(_, addr) => Some(addr),
            _ => None,
        }
    }

    /// Returns the memory order that the fence gives to relaxed accesses around it.
    pub const fn order(self) -> Option<MemoryOrder> {
        match self {
            FenceKind::AcqRel(scope) | FenceKind::Sc(scope) => Some(MemoryOrder::acq_rel(scope)),
            FenceKind::Acquire(scope) => Some(MemoryOrder::acquire(scope)),
            FenceKind::Release(scope) => Some(MemoryOrder::release(scope)),
            FenceKind::AcquireShared => Some(MemoryOrder::acquire(Scope::Cluster)),
            FenceKind::ReleaseShared => Some(MemoryOrder::release(Scope::Cluster)),
            _ => None,
        }
    }

    /// Returns whether the fence orders only shared memory.
    pub const fn is_shared_only(self) -> bool {
        matches!(self, FenceKind::AcquireShared | FenceKind::ReleaseShared)
    }

    /// Returns whether the fence alone orders generic-proxy accesses to shared memory before
    /// async-proxy accesses.
    pub const fn is_proxy_shared(self) -> bool {
        matches!(
            self,
            FenceKind::ProxyAsyncShared | FenceKind::ProxyAsyncCluster | FenceKind::ProxyAsync
        )
    }
}

/// The reduction of a predicate across the threads of a barrier (`barrier.red`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BarrierReduction {
    /// The number of threads with a true predicate (`u32`, `.popc`).
    Count,
    /// Whether the predicate is true in all threads (a predicate, `.and`).
    All,
    /// Whether the predicate is true in any thread (a predicate, `.or`).
    Any,
}

impl BarrierReduction {
    /// Returns the PTX operation and type.
    pub const fn ptx(self) -> (&'static str, &'static str) {
        match self {
            BarrierReduction::Count => ("popc", "u32"),
            BarrierReduction::All => ("and", "pred"),
            BarrierReduction::Any => ("or", "pred"),
        }
    }

    /// Returns the name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            BarrierReduction::Count => "count",
            BarrierReduction::All => "all",
            BarrierReduction::Any => "any",
        }
    }
}

/// One synchronization operation.
///
/// Operands are evaluated per lane. Each active lane performs the operation
/// once; variants marked "whole warp" are performed once per warp.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum SyncOp {
    /// `bar.warp.sync`: synchronizes the lanes of `mask` and their memory accesses (whole warp).
    Warp {
        /// The lanes (`u32`).
        mask: Operand,
    },
    /// Initializes an mbarrier with an arrival count.
    Init {
        /// The barrier.
        bar: BarRef,
        /// Arrival count of each phase.
        count: u32,
    },
    /// Invalidates an mbarrier, so that its bytes may be reused.
    Inval {
        /// The barrier.
        bar: BarRef,
    },
    /// Increases the expected transaction bytes by `tx`, then arrives `count` times.
    Arrive {
        /// The barrier.
        bar: BarRef,
        /// Number of arrivals (`u32`).
        count: Operand,
        /// Transaction bytes to add (`u32`).
        tx: Option<Operand>,
        /// The scope of the release.
        scope: Scope,
        /// `arrive_drop`: the arrival count of later phases decreases by `count`.
        drop: bool,
    },
    /// Increases the expected transaction bytes of the current phase without arriving.
    ExpectTx {
        /// The barrier.
        bar: BarRef,
        /// Transaction bytes to add (`u32`).
        tx: Operand,
    },
    /// Waits until the phase of the given parity completes.
    Wait {
        /// The barrier.
        bar: BarRef,
        /// The parity (`u32`, 0 or 1).
        parity: Operand,
        /// The scope of the acquire.
        scope: Scope,
    },
    /// Tests whether the phase of the given parity is complete. `Completed` is a
    /// successful wait and acquires; `Blocked` means that the phase is incomplete.
    /// All active lanes name the same barrier.
    Test {
        /// The barrier.
        bar: BarRef,
        /// The parity (`u32`, 0 or 1).
        parity: Operand,
        /// The scope of the acquire.
        scope: Scope,
    },
    /// Arrives at a named barrier and waits for the other participants (whole warp).
    NamedSync {
        /// The barrier.
        bar: NamedId,
        /// Number of participating threads.
        threads: u32,
    },
    /// Arrives at a named barrier without waiting (whole warp).
    NamedArrive {
        /// The barrier.
        bar: NamedId,
        /// Number of participating threads.
        threads: u32,
    },
    /// Like `NamedSync`, and reduces a predicate across the participants (whole warp).
    NamedReduce {
        /// The barrier.
        bar: NamedId,
        /// Number of participating threads; all of them perform the reduction.
        threads: u32,
        /// The reduction.
        reduction: BarrierReduction,
        /// The predicate.
        pred: Operand,
        /// The result.
        dst: RegId,
    },
    /// Synchronizes all threads of the CTA (whole warp).
    Cta,
    /// Arrives at the cluster barrier (whole warp).
    ClusterArrive {
        /// Whether the arrival releases this thread's writes.
        release: bool,
    },
    /// Waits for all threads of the cluster (whole warp).
    ClusterWait,
    /// A fence in each active lane.
    Fence(FenceKind),
    /// Commits the uncommitted bulk copies of each active lane to one bulk async-group.
    BulkCommit,
    /// Waits until at most `pending` bulk async-groups of the lane are pending.
    BulkWait {
        /// Number of groups that may stay pending.
        pending: u32,
        /// Waits only until the source has been read (`.read`).
        read: bool,
    },
    /// Commits the uncommitted `cp.async` copies of each active lane to one group.
    CopyCommit,
    /// Waits until at most `pending` copy groups of the lane are pending;
    /// `None`: until all its copies complete, committed or not.
    CopyWait {
        /// Number of groups that may stay pending.
        pending: Option<u32>,
    },
    /// Each active lane arrives on an mbarrier of its CTA when all its earlier
    /// `cp.async` copies complete.
    CopyArrive {
        /// The barrier.
        bar: BarRef,
        /// `.noinc`: the arrival count of the barrier includes this arrival. Otherwise
        /// the pending count of the current phase increases by one.
        noinc: bool,
    },
    /// Orders register accesses before the next `wgmma` of the warpgroup (whole warp).
    WgmmaFence,
    /// Commits the uncommitted `wgmma`s of the warpgroup to one wgmma-group (whole warp).
    WgmmaCommit,
    /// Waits until at most `pending` wgmma-groups of the warpgroup are pending (whole warp).
    WgmmaWait {
        /// Number of groups that may stay pending.
        pending: u32,
    },
    /// Changes the register budget of the warpgroup (whole warp).
    SetMaxRegs {
        /// Registers per thread.
        count: u32,
        /// `setmaxnreg.inc`, which may wait for free registers; otherwise `dec`.
        grow: bool,
    },
    /// The threads exit (whole warp).
    Exit,
}

impl SyncOp {
    /// Calls `each` with every operand and its type.
    pub fn operands(&self, each: &mut dyn FnMut(Operand, Type)) {
        let mut word = |o| each(o, Type::U32);
        match self {
            SyncOp::Warp { mask } => word(*mask),
            SyncOp::Init { bar, .. } | SyncOp::Inval { bar } | SyncOp::CopyArrive { bar, .. } => {
                bar.operands(&mut word);
            }
            SyncOp::Arrive { bar, count, tx, .. } => {
                bar.operands(&mut word);
                word(*count);
                tx.iter().copied().for_each(word);
            }
            SyncOp::ExpectTx { bar, tx } => {
                bar.operands(&mut word);
                word(*tx);
            }
            SyncOp::Wait { bar, parity, .. } | SyncOp::Test { bar, parity, .. } => {
                bar.operands(&mut word);
                word(*parity);
            }
            SyncOp::NamedReduce { pred, .. } => each(*pred, Type::Pred),
            SyncOp::Fence(fence) => {
                let address = fence.address();
                address.into_iter().for_each(|o| each(o, Type::U64));
            }
            _ => {}
        }
    }
}
