//! The numbered waits of a kernel.

use crate::status::WarpStatus;
use warpline_ir::{BarId, Kernel, Loc, NamedId, Op, OpLocation, SyncOp, WaitReason};

/// A wait of the original kernel.
#[derive(Clone, Debug)]
pub(crate) struct WaitSite {
    /// The op's name.
    pub(crate) op: String,
    pub(crate) loc: Loc,
    pub(crate) kind: WaitKind,
}

/// The kind of a wait; the status word has the index and the parity.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum WaitKind {
    Mbarrier(BarId),
    Named(NamedId),
    Cta,
    Cluster,
    BulkGroup { pending: u32 },
    Copies,
    Wgmma,
    Registers { count: u32 },
    Poll,
}

impl WaitKind {
    /// Returns whether this is a barrier of warps, which completes when the missing warps exit.
    pub(crate) fn is_barrier(self) -> bool {
        matches!(self, WaitKind::Named(_) | WaitKind::Cta | WaitKind::Cluster)
    }

    /// Returns the kind of a synchronization op, if it waits.
    pub(crate) fn of_sync(s: &SyncOp) -> Option<Self> {
        Some(match *s {
            SyncOp::Wait { bar, .. } => WaitKind::Mbarrier(bar.bar),
            SyncOp::NamedSync { bar, .. } | SyncOp::NamedReduce { bar, .. } => WaitKind::Named(bar),
            SyncOp::Cta => WaitKind::Cta,
            SyncOp::ClusterWait => WaitKind::Cluster,
            SyncOp::BulkWait { pending, .. } => WaitKind::BulkGroup { pending },
            SyncOp::CopyWait { .. } => WaitKind::Copies,
            SyncOp::WgmmaWait { .. } => WaitKind::Wgmma,
            SyncOp::SetMaxRegs { count, grow: true } => WaitKind::Registers { count },
            _ => return None,
        })
    }
}

impl WaitSite {
    pub(crate) fn new(op: &Op, loc: Loc, kind: WaitKind) -> Self {
        let op = op.name();
        Self { op, loc, kind }
    }

    /// Returns the reason of the wait, with the values of the status word.
    pub(crate) fn wait_reason(&self, kernel: &Kernel, status: &WarpStatus) -> WaitReason {
        match self.kind {
            WaitKind::Mbarrier(bar) => WaitReason::Mbarrier {
                name: kernel.barrier(bar).name.clone(),
                index: status.index,
                parity: status.parity,
            },
            WaitKind::Named(named) => WaitReason::Named {
                name: kernel.named(named).name.clone(),
            },
            WaitKind::Cta => WaitReason::Cta,
            WaitKind::Cluster => WaitReason::Cluster,
            WaitKind::BulkGroup { pending } => WaitReason::BulkGroup { pending },
            WaitKind::Copies => WaitReason::Copies,
            WaitKind::Wgmma => WaitReason::Wgmma,
            WaitKind::Registers { count } => WaitReason::Registers { count },
            WaitKind::Poll => WaitReason::Poll,
        }
    }

    /// Returns the location of this wait in one warp of a CTA.
    pub(crate) fn location(&self, kernel: &Kernel, cta: [u32; 3], warp: u32) -> OpLocation {
        OpLocation {
            role: kernel.roles[kernel.role_of_warp(warp).index()].name.clone(),
            warp,
            cta,
            op: self.op.clone(),
            frame: kernel.locs.author(self.loc),
            stack: kernel.locs.stack(self.loc).to_vec(),
        }
    }
}
