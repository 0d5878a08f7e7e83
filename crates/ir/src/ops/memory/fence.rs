//! Memory and proxy fences.

use crate::machine::Asm;
use crate::ops::{Exactness, Instr, OpInfo};
use crate::sync::{FenceKind, SyncOp};
use crate::types::Type;

/// Orders this thread's memory accesses.
#[derive(Clone, PartialEq, Debug)]
pub struct Fence {
    /// The fence, its scope and its operands.
    pub kind: FenceKind,
}

impl Fence {
    fn sync_op(&self) -> SyncOp {
        SyncOp::Fence(self.kind)
    }
}

impl Instr for Fence {
    const INFO: OpInfo = OpInfo {
        name: "fence",
        ptx: "fence.{proxy.async{.shared::cta,.shared::cluster,.global},proxy.alias,mbarrier_init.release.cluster,{acq_rel,acquire,release,sc,proxy.tensormap::generic.{acquire,release}}.{cta,cluster,gpu,sys},{proxy.async::generic.,}{acquire.sync_restrict::shared::cluster,release.sync_restrict::shared::cta}.cluster}",
        doc: "memory, proxy or mbarrier-init fence: orders this thread's memory accesses",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("fence.{}", self.kind.ptx())
    }
    fn asm(&self, a: &mut dyn Asm) {
        let address = self.kind.address().map(|o| a.in_reg(o, Type::U64));
        let address = address.map_or(String::new(), |addr| format!(" [{addr}], 128"));
        a.emit(format!("fence.{}{address}", self.kind.ptx()));
    }
    fn ptx_version(&self) -> (u32, u32) {
        self.kind.ptx_version()
    }
    crate::ops::control::sync_instr!();
}
