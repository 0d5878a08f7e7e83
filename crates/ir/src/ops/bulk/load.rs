//! Bulk copies from global to shared memory.

use super::{
    BulkJob, CacheHint, async_access, check_global, check_shared, hint_asm, hint_effects,
    hint_name, legal_copy, multicast_asm, receivers,
};
use crate::job::{Job, JobCompletion, Span};
use crate::lanes::lanes_of;
use crate::machine::{
    AccessKind, Asm, Completion, Effects, Exec, ExecStatus, Machine, MemoryAccess, MemoryRegion,
};
use crate::ops::{Exactness, Instr, OpInfo};
use crate::target::Target;
use crate::types::Type;
use crate::value::{BarRef, MemoryAddress, Operand, SharedAddress};

/// Copies consecutive bytes from global to shared memory, asynchronously.
#[derive(Clone, PartialEq, Debug)]
pub struct BulkLoad {
    /// Destination.
    pub dst: SharedAddress,
    /// Global address (`u64`).
    pub src: Operand,
    /// Number of bytes (`u32`).
    pub bytes: Operand,
    /// The mbarrier that counts the bytes, in the receiving CTA.
    pub bar: BarRef,
    /// The CTAs of the cluster that receive the bytes, each at the same offset and
    /// with its own mbarrier (`u32`, bit r = rank r); `None`: the CTA of `dst`.
    pub multicast: Option<Operand>,
    /// L2 cache hint.
    pub hint: Option<CacheHint>,
}

impl Instr for BulkLoad {
    const INFO: OpInfo = OpInfo {
        name: "bulk_load",
        ptx: "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes{.multicast::cluster}{.L2::cache_hint}",
        doc: "asynchronously copies consecutive bytes from global to shared memory; completes on an mbarrier",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("bulk_load{}", hint_name(self.hint))
    }
    fn effects(&self, e: &mut dyn Effects) {
        let completion = Completion::Bytes(self.bar);
        e.access(&MemoryAccess {
            multicast: self.multicast,
            ..async_access(
                MemoryRegion::Shared(self.dst, self.bytes),
                AccessKind::Write,
                completion,
            )
        });
        e.access(&async_access(
            MemoryRegion::Global(self.src, self.bytes),
            AccessKind::Read,
            completion,
        ));
        hint_effects(e, self.hint);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let dst = a.address(&MemoryAddress::Shared(self.dst));
        let (src, bytes) = (
            a.in_reg(self.src, Type::U64),
            a.operand(self.bytes, Type::U32),
        );
        let bar = a.barrier(&self.bar);
        let (multicast, mask) = multicast_asm(a, self.multicast);
        let (hint, policy) = hint_asm(a, self.hint);
        a.emit(format!(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes{multicast}{hint} \
             [{dst}], [{src}], {bytes}, [{bar}]{mask}{policy}"
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let (src, bytes) = (m.get::<u64>(self.src), m.get::<u32>(self.bytes));
        let mask = self.multicast.map(|o| m.get::<u32>(o));
        for lane in lanes_of(m.active()) {
            let dst = m.resolve(&self.dst, lane, bytes[lane] as usize)?;
            check_shared(dst, bytes[lane])?;
            check_global(src[lane])?;
            let bar = m.resolve_bar(&self.bar, lane)?;
            for (dst, bar) in receivers(m, dst, bar, mask.map(|v| v[lane]))? {
                let job = BulkJob {
                    completion: JobCompletion::Bytes(bar),
                    from: Span::Global(src[lane], bytes[lane]),
                    to: Span::Shared(dst, bytes[lane]),
                    reduce: None,
                };
                m.submit(1 << lane, Job::Bulk(job))?;
            }
        }
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_copy(target, self.multicast.is_some() || self.dst.peer.is_some())
    }
}
