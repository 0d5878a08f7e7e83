//! Fences.

use crate::machine::Asm;
use crate::ops::{Exactness, Info, Instr};
use crate::sync::Sync;

/// Orders this thread's memory accesses.
#[derive(Clone, PartialEq, Debug)]
pub struct Fence {
    /// Which accesses, and for whom.
    pub fence: crate::sync::Fence,
}

impl Fence {
    fn act(&self) -> Sync {
        Sync::Fence(self.fence)
    }
}

impl Instr for Fence {
    const INFO: Info = Info {
        name: "fence",
        ptx: "fence.{proxy.async{.shared::cta,.shared::cluster,.global},proxy.alias,mbarrier_init.release.cluster,{acq_rel,sc}.{cta,cluster,gpu,sys}}",
        doc: "orders this thread's memory accesses",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("fence.{}", self.fence.ptx())
    }
    fn asm(&self, a: &mut dyn Asm) {
        a.emit(format!("fence.{}", self.fence.ptx()));
    }
    crate::ops::control::acts!();
}
