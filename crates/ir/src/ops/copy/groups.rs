//! `cp.async` groups, and mbarrier arrivals triggered by copies.

use crate::machine::Asm;
use crate::ops::control::sync_instr;
use crate::ops::{Exactness, Instr, OpInfo};
use crate::sync::SyncOp;
use crate::target::Target;
use crate::value::BarRef;

/// Commits the uncommitted `cp.async` copies of each thread to one group, which may be empty.
#[derive(Clone, PartialEq, Debug)]
pub struct CopyCommit;

impl CopyCommit {
    fn sync_op(&self) -> SyncOp {
        SyncOp::CopyCommit
    }
}

impl Instr for CopyCommit {
    const INFO: OpInfo = OpInfo {
        name: "copy_commit",
        ptx: "cp.async.commit_group",
        doc: "commits the uncommitted cp.async copies of a thread to one group",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "copy_commit".into()
    }
    fn asm(&self, a: &mut dyn Asm) {
        a.emit("cp.async.commit_group".into());
    }
    sync_instr!();
}

/// Waits for `cp.async` copies of the thread and makes them visible to it.
#[derive(Clone, PartialEq, Debug)]
pub struct CopyWait {
    /// Number of most recent groups that may stay pending; `None`: waits for
    /// all copies, committed or not.
    pub pending: Option<u32>,
}

impl CopyWait {
    fn sync_op(&self) -> SyncOp {
        SyncOp::CopyWait {
            pending: self.pending,
        }
    }
}

impl Instr for CopyWait {
    const INFO: OpInfo = OpInfo {
        name: "copy_wait",
        ptx: "cp.async.{wait_group,wait_all}",
        doc: "waits until at most n cp.async groups of the thread are pending, or until all its copies complete",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "copy_wait".into()
    }
    fn asm(&self, a: &mut dyn Asm) {
        a.emit(match self.pending {
            Some(n) => format!("cp.async.wait_group {n}"),
            None => "cp.async.wait_all".into(),
        });
    }
    sync_instr!();
}

/// Makes each thread arrive on an mbarrier when all its earlier copies complete.
///
/// The arrival publishes the copies, but no other writes of the thread.
#[derive(Clone, PartialEq, Debug)]
pub struct CopyArrive {
    /// The barrier, in the same CTA.
    pub bar: BarRef,
    /// `.noinc`: the arrival count of the barrier includes this arrival.
    /// Otherwise the op also increments the pending count, so that its net
    /// effect on the phase is zero.
    pub noinc: bool,
}

impl CopyArrive {
    fn sync_op(&self) -> SyncOp {
        SyncOp::CopyArrive {
            bar: self.bar,
            noinc: self.noinc,
        }
    }

    fn suffix(&self) -> &'static str {
        if self.noinc { ".noinc" } else { "" }
    }
}

impl Instr for CopyArrive {
    const INFO: OpInfo = OpInfo {
        name: "copy_arrive",
        ptx: "cp.async.mbarrier.arrive{.noinc}.shared.b64",
        doc: "makes each thread arrive on an mbarrier when all its earlier cp.async copies complete",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("copy_arrive{}", self.suffix())
    }
    fn asm(&self, a: &mut dyn Asm) {
        let bar = a.barrier(&self.bar);
        a.emit(format!(
            "cp.async.mbarrier.arrive{}.shared.b64 [{bar}]",
            self.suffix()
        ));
    }
    sync_instr!();
    fn legal(&self, _: &Target) -> Result<(), String> {
        match self.bar.peer {
            None => Ok(()),
            Some(_) => Err(
                "copy_arrive on an mbarrier of a peer; the barrier must be in the same CTA".into(),
            ),
        }
    }
}
