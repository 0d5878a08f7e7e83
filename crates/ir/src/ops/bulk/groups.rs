//! Bulk async-groups.

use super::legal_copy;
use crate::machine::Asm;
use crate::ops::control::sync_instr;
use crate::ops::{Exactness, Instr, OpInfo};
use crate::sync::SyncOp;
use crate::target::Target;

/// Commits the uncommitted bulk stores of each thread to one bulk async-group.
#[derive(Clone, PartialEq, Debug)]
pub struct BulkCommit;

impl BulkCommit {
    fn sync_op(&self) -> SyncOp {
        SyncOp::BulkCommit
    }
}

impl Instr for BulkCommit {
    const INFO: OpInfo = OpInfo {
        name: "bulk_commit",
        ptx: "cp.async.bulk.commit_group",
        doc: "commits the uncommitted bulk stores of a thread to one bulk async-group",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "bulk_commit".into()
    }
    fn asm(&self, a: &mut dyn Asm) {
        a.emit("cp.async.bulk.commit_group".into());
    }
    sync_instr!();
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_copy(target, false)
    }
}

/// Waits for bulk async-groups of the thread.
#[derive(Clone, PartialEq, Debug)]
pub struct BulkWait {
    /// Number of most recent groups that may stay pending.
    pub pending: u32,
    /// Waits only until the copies have read their sources (`.read`).
    pub read: bool,
}

impl BulkWait {
    fn sync_op(&self) -> SyncOp {
        SyncOp::BulkWait {
            pending: self.pending,
            read: self.read,
        }
    }

    fn suffix(&self) -> &'static str {
        if self.read { ".read" } else { "" }
    }
}

impl Instr for BulkWait {
    const INFO: OpInfo = OpInfo {
        name: "bulk_wait",
        ptx: "cp.async.bulk.wait_group{.read}",
        doc: "waits until at most n bulk async-groups of the thread are pending; with .read, until their sources have been read",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("bulk_wait{}", self.suffix())
    }
    fn asm(&self, a: &mut dyn Asm) {
        a.emit(format!(
            "cp.async.bulk.wait_group{} {}",
            self.suffix(),
            self.pending
        ));
    }
    sync_instr!();
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_copy(target, false)
    }
}
