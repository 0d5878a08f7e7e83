//! Groups of copies, and arrivals that follow them.

use crate::machine::Asm;
use crate::ops::control::acts;
use crate::ops::{Exactness, Info, Instr};
use crate::sync::Sync;
use crate::target::Target;
use crate::value::BarRef;

/// Closes the copies a thread has issued into one group, which may be empty.
#[derive(Clone, PartialEq, Debug)]
pub struct CopyCommit;

impl CopyCommit {
    fn act(&self) -> Sync {
        Sync::CopyCommit
    }
}

impl Instr for CopyCommit {
    const INFO: Info = Info {
        name: "copy_commit",
        ptx: "cp.async.commit_group",
        doc: "closes the copies a thread has issued into one group",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "copy_commit".into()
    }
    fn asm(&self, a: &mut dyn Asm) {
        a.emit("cp.async.commit_group".into());
    }
    acts!();
}

/// Waits for a thread's copies; it sees what they brought.
#[derive(Clone, PartialEq, Debug)]
pub struct CopyWait {
    /// Groups that may stay open, the youngest ones; `None`: waits for all
    /// copies, committed or not.
    pub pending: Option<u32>,
}

impl CopyWait {
    fn act(&self) -> Sync {
        Sync::CopyWait {
            pending: self.pending,
        }
    }
}

impl Instr for CopyWait {
    const INFO: Info = Info {
        name: "copy_wait",
        ptx: "cp.async.{wait_group,wait_all}",
        doc: "waits until a thread has at most some copy groups open, or until all its copies are done",
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
    acts!();
}

/// Has each thread arrive on an mbarrier once all copies it has issued are done.
///
/// The arrival hands on the copies, and nothing else that the thread wrote.
#[derive(Clone, PartialEq, Debug)]
pub struct CopyArrive {
    /// The barrier, in the CTA itself.
    pub bar: BarRef,
    /// Is the arrival one of those that the barrier expects (`.noinc`)? If
    /// not, it expects one more in the current phase, and comes out even.
    pub counted: bool,
}

impl CopyArrive {
    fn act(&self) -> Sync {
        Sync::CopyArrive {
            bar: self.bar,
            counted: self.counted,
        }
    }

    fn suffix(&self) -> &'static str {
        if self.counted { ".noinc" } else { "" }
    }
}

impl Instr for CopyArrive {
    const INFO: Info = Info {
        name: "copy_arrive",
        ptx: "cp.async.mbarrier.arrive{.noinc}.shared.b64",
        doc: "has each thread arrive on an mbarrier once all copies it has issued are done",
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
    acts!();
    fn legal(&self, _: &Target) -> Result<(), String> {
        match self.bar.peer {
            None => Ok(()),
            Some(_) => Err("copy_arrive takes a barrier of the CTA itself, not of a peer".into()),
        }
    }
}
