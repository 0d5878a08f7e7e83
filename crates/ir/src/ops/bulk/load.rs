//! From global to shared memory.

use super::{
    BulkJob, CacheHint, check_global, check_run, hint_asm, hint_effects, hint_name, legal_copy,
    multicast_asm, receivers, touch,
};
use crate::job::{Done, Job, Span};
use crate::lanes::lanes_of;
use crate::machine::{Access, Asm, Completion, Effects, Exec, Machine, Memory, Step, Touch};
use crate::ops::{Exactness, Info, Instr};
use crate::target::Target;
use crate::types::Type;
use crate::value::{At, BarRef, Operand, Place};

/// Copies a run of bytes from global to shared memory.
#[derive(Clone, PartialEq, Debug)]
pub struct BulkLoad {
    /// Where to.
    pub dst: Place,
    /// The global address (`u64`).
    pub src: Operand,
    /// How many bytes (`u32`).
    pub bytes: Operand,
    /// The barrier that counts them, in the CTA that receives.
    pub bar: BarRef,
    /// The CTAs of the cluster that receive, each at the same place and with
    /// its own barrier (`u32`, bit r = rank r); `None`: the one named.
    pub multicast: Option<Operand>,
    /// How long the L2 shall keep the bytes.
    pub hint: Option<CacheHint>,
}

impl Instr for BulkLoad {
    const INFO: Info = Info {
        name: "bulk_load",
        ptx: "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes{.multicast::cluster}{.L2::cache_hint}",
        doc: "copies a run of bytes from global to shared memory, counted by an mbarrier",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("bulk_load{}", hint_name(self.hint))
    }
    fn effects(&self, e: &mut dyn Effects) {
        let done = Completion::Bytes(self.bar);
        e.touch(&Touch {
            multicast: self.multicast,
            ..touch(Memory::Run(self.dst, self.bytes), Access::Write, done)
        });
        e.touch(&touch(
            Memory::Global(self.src, self.bytes),
            Access::Read,
            done,
        ));
        hint_effects(e, self.hint);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let dst = a.address(&At::Shared(self.dst));
        let (src, bytes) = (
            a.in_reg(self.src, Type::U64),
            a.operand(self.bytes, Type::U32),
        );
        let bar = a.barrier(&self.bar);
        let (many, mask) = multicast_asm(a, self.multicast);
        let (hint, policy) = hint_asm(a, self.hint);
        a.emit(format!(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes{many}{hint} \
             [{dst}], [{src}], {bytes}, [{bar}]{mask}{policy}"
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let (src, bytes) = (m.get::<u64>(self.src), m.get::<u32>(self.bytes));
        let mask = self.multicast.map(|o| m.get::<u32>(o));
        for lane in lanes_of(m.active()) {
            let dst = m.resolve(&self.dst, lane, bytes[lane] as usize)?;
            check_run(dst, bytes[lane])?;
            check_global(src[lane])?;
            let bar = m.resolve_bar(&self.bar, lane)?;
            for (dst, bar) in receivers(m, dst, bar, mask.map(|v| v[lane]))? {
                let job = BulkJob {
                    done: Done::Bytes(bar),
                    from: Span::Global(src[lane], bytes[lane]),
                    to: Span::Shared(dst, bytes[lane]),
                    reduce: None,
                };
                m.submit(1 << lane, Job::Bulk(job))?;
            }
        }
        Ok(Step::Next)
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_copy(target, self.multicast.is_some() || self.dst.peer.is_some())
    }
}
