//! The groups in which stores complete.

use super::legal_copy;
use crate::machine::Asm;
use crate::ops::control::acts;
use crate::ops::{Exactness, Info, Instr};
use crate::sync::Sync;
use crate::target::Target;

/// Closes the bulk stores a thread has issued into one group.
#[derive(Clone, PartialEq, Debug)]
pub struct BulkCommit;

impl BulkCommit {
    fn act(&self) -> Sync {
        Sync::BulkCommit
    }
}

impl Instr for BulkCommit {
    const INFO: Info = Info {
        name: "bulk_commit",
        ptx: "cp.async.bulk.commit_group",
        doc: "closes the bulk stores a thread has issued into one group",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "bulk_commit".into()
    }
    fn asm(&self, a: &mut dyn Asm) {
        a.emit("cp.async.bulk.commit_group".into());
    }
    acts!();
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_copy(target, false)
    }
}

/// Waits for a thread's bulk groups.
#[derive(Clone, PartialEq, Debug)]
pub struct BulkWait {
    /// Groups that may stay open, the youngest ones.
    pub pending: u32,
    /// Only the reads of shared memory must be done.
    pub read: bool,
}

impl BulkWait {
    fn act(&self) -> Sync {
        Sync::BulkWait {
            pending: self.pending,
            read: self.read,
        }
    }

    fn suffix(&self) -> &'static str {
        if self.read { ".read" } else { "" }
    }
}

impl Instr for BulkWait {
    const INFO: Info = Info {
        name: "bulk_wait",
        ptx: "cp.async.bulk.wait_group{.read}",
        doc: "waits until a thread has at most some bulk groups open",
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
    acts!();
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_copy(target, false)
    }
}
