//! wgmma-groups: fence, commit, wait.

use super::legal_wgmma;
use crate::machine::Asm;
use crate::ops::control::sync_instr;
use crate::ops::{Exactness, Instr, OpInfo};
use crate::sync::SyncOp;
use crate::target::Target;

/// Orders register accesses before the next `wgmma` of the warpgroup.
#[derive(Clone, PartialEq, Debug)]
pub struct WgmmaFence;

impl WgmmaFence {
    fn sync_op(&self) -> SyncOp {
        SyncOp::WgmmaFence
    }
}

impl Instr for WgmmaFence {
    const INFO: OpInfo = OpInfo {
        name: "wgmma_fence",
        ptx: "wgmma.fence.sync.aligned",
        doc: "orders register accesses before the next wgmma of the warpgroup",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "wgmma_fence".into()
    }
    fn asm(&self, a: &mut dyn Asm) {
        a.emit("wgmma.fence.sync.aligned".into());
    }
    sync_instr!(whole_warpgroup);
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_wgmma(target)
    }
}

/// Commits the uncommitted `wgmma`s of the warpgroup to one wgmma-group.
#[derive(Clone, PartialEq, Debug)]
pub struct WgmmaCommit;

impl WgmmaCommit {
    fn sync_op(&self) -> SyncOp {
        SyncOp::WgmmaCommit
    }
}

impl Instr for WgmmaCommit {
    const INFO: OpInfo = OpInfo {
        name: "wgmma_commit",
        ptx: "wgmma.commit_group.sync.aligned",
        doc: "commits the uncommitted wgmmas of the warpgroup to one wgmma-group",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "wgmma_commit".into()
    }
    fn asm(&self, a: &mut dyn Asm) {
        a.emit("wgmma.commit_group.sync.aligned".into());
    }
    sync_instr!(whole_warpgroup);
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_wgmma(target)
    }
}

/// Waits for wgmma-groups of the warpgroup.
#[derive(Clone, PartialEq, Debug)]
pub struct WgmmaWait {
    /// Number of most recent groups that may stay pending.
    pub pending: u32,
}

impl WgmmaWait {
    fn sync_op(&self) -> SyncOp {
        SyncOp::WgmmaWait {
            pending: self.pending,
        }
    }
}

impl Instr for WgmmaWait {
    const INFO: OpInfo = OpInfo {
        name: "wgmma_wait",
        ptx: "wgmma.wait_group.sync.aligned",
        doc: "waits until at most n wgmma-groups of the warpgroup are pending",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "wgmma_wait".into()
    }
    fn asm(&self, a: &mut dyn Asm) {
        a.emit(format!("wgmma.wait_group.sync.aligned {}", self.pending));
    }
    sync_instr!(whole_warpgroup);
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_wgmma(target)
    }
}
