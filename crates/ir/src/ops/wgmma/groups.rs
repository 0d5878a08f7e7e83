//! Groups of warpgroup products: fence, commit, wait.

use super::legal_wgmma;
use crate::machine::Asm;
use crate::ops::control::acts;
use crate::ops::{Exactness, Info, Instr};
use crate::sync::Sync;
use crate::target::Target;

/// Orders register accesses before the warpgroup's next products.
#[derive(Clone, PartialEq, Debug)]
pub struct WgmmaFence;

impl WgmmaFence {
    fn act(&self) -> Sync {
        Sync::WgmmaFence
    }
}

impl Instr for WgmmaFence {
    const INFO: Info = Info {
        name: "wgmma_fence",
        ptx: "wgmma.fence.sync.aligned",
        doc: "orders register accesses before the warpgroup's next products",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "wgmma_fence".into()
    }
    fn asm(&self, a: &mut dyn Asm) {
        a.emit("wgmma.fence.sync.aligned".into());
    }
    acts!(whole_warpgroup);
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_wgmma(target)
    }
}

/// Closes the warpgroup's products into one group.
#[derive(Clone, PartialEq, Debug)]
pub struct WgmmaCommit;

impl WgmmaCommit {
    fn act(&self) -> Sync {
        Sync::WgmmaCommit
    }
}

impl Instr for WgmmaCommit {
    const INFO: Info = Info {
        name: "wgmma_commit",
        ptx: "wgmma.commit_group.sync.aligned",
        doc: "closes the warpgroup's products into one group",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "wgmma_commit".into()
    }
    fn asm(&self, a: &mut dyn Asm) {
        a.emit("wgmma.commit_group.sync.aligned".into());
    }
    acts!(whole_warpgroup);
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_wgmma(target)
    }
}

/// Waits for the warpgroup's products.
#[derive(Clone, PartialEq, Debug)]
pub struct WgmmaWait {
    /// Groups that may stay open, the youngest ones.
    pub pending: u32,
}

impl WgmmaWait {
    fn act(&self) -> Sync {
        Sync::WgmmaWait {
            pending: self.pending,
        }
    }
}

impl Instr for WgmmaWait {
    const INFO: Info = Info {
        name: "wgmma_wait",
        ptx: "wgmma.wait_group.sync.aligned",
        doc: "waits until the warpgroup has at most some groups of products open",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "wgmma_wait".into()
    }
    fn asm(&self, a: &mut dyn Asm) {
        a.emit(format!("wgmma.wait_group.sync.aligned {}", self.pending));
    }
    acts!(whole_warpgroup);
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_wgmma(target)
    }
}
