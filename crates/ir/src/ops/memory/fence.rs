//! Fences.

use crate::machine::Asm;
use crate::ops::{Exactness, Info, Instr};
use crate::sync::Sync;
use crate::types::Type;

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
        ptx: "fence.{proxy.async{.shared::cta,.shared::cluster,.global},proxy.alias,mbarrier_init.release.cluster,{acq_rel,acquire,release,sc,proxy.tensormap::generic.{acquire,release}}.{cta,cluster,gpu,sys},{proxy.async::generic.,}{acquire.sync_restrict::shared::cluster,release.sync_restrict::shared::cta}.cluster}",
        doc: "orders this thread's memory accesses",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("fence.{}", self.fence.ptx())
    }
    fn asm(&self, a: &mut dyn Asm) {
        let about = self.fence.address().map(|o| a.in_reg(o, Type::U64));
        let about = about.map_or(String::new(), |addr| format!(" [{addr}], 128"));
        a.emit(format!("fence.{}{about}", self.fence.ptx()));
    }
    fn ptx_version(&self) -> (u32, u32) {
        self.fence.ptx_version()
    }
    crate::ops::control::acts!();
}
