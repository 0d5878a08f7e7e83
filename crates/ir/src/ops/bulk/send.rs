//! From the shared memory of one CTA to that of another.

use super::reduce::ReduceInto;
use super::{BulkJob, Reduce, check_run, legal_copy, receivers, touch};
use crate::job::{Done, Job, Span};
use crate::lanes::lanes_of;
use crate::machine::{Access, Asm, Completion, Effects, Exec, Machine, Memory, Step};
use crate::ops::{Exactness, Info, Instr};
use crate::target::Target;
use crate::types::Type;
use crate::value::{At, BarRef, Operand, Place};

/// Copies a run of bytes to the shared memory of a CTA of the cluster, or combines it with what is there.
///
/// Only the receiver is told, by its barrier: the source may be written again
/// once the receiver has passed that on.
#[derive(Clone, PartialEq, Debug)]
pub struct BulkSend {
    /// Where from, in the CTA itself.
    pub src: Place,
    /// Where to.
    pub dst: Place,
    /// How many bytes (`u32`).
    pub bytes: Operand,
    /// The barrier that counts them, in the CTA that receives.
    pub bar: BarRef,
    /// How the numbers in the run are combined with those in memory; `None`: they replace them.
    pub reduce: Option<Reduce>,
}

impl Instr for BulkSend {
    const INFO: Info = Info {
        name: "bulk_send",
        ptx: "cp{.reduce}.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes{.add,.min,.max,.inc,.dec,.and,.or,.xor}",
        doc: "copies a run of bytes to the shared memory of a peer, or combines it with what is there, counted by an mbarrier of the peer",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!(
            "bulk_send{}",
            self.reduce.map_or(String::new(), Reduce::name)
        )
    }
    fn effects(&self, e: &mut dyn Effects) {
        let done = Completion::Bytes(self.bar);
        let access = match self.reduce {
            None => Access::Write,
            Some(_) => Access::Atomic,
        };
        e.touch(&touch(Memory::Run(self.dst, self.bytes), access, done));
        e.touch(&touch(
            Memory::Run(self.src, self.bytes),
            Access::Read,
            done,
        ));
    }
    fn asm(&self, a: &mut dyn Asm) {
        let dst = a.address(&At::Shared(self.dst));
        let src = a.address(&At::Shared(self.src));
        let bytes = a.operand(self.bytes, Type::U32);
        let bar = a.barrier(&self.bar);
        let (verb, how) = match self.reduce {
            None => ("cp", String::new()),
            Some(r) => ("cp.reduce", r.ptx()),
        };
        a.emit(format!(
            "{verb}.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes{how} \
             [{dst}], [{src}], {bytes}, [{bar}]"
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let bytes = m.get::<u32>(self.bytes);
        for lane in lanes_of(m.active()) {
            let len = bytes[lane];
            let src = m.resolve(&self.src, lane, len as usize)?;
            let dst = m.resolve(&self.dst, lane, len as usize)?;
            check_run(src, len)?;
            check_run(dst, len)?;
            let bar = m.resolve_bar(&self.bar, lane)?;
            for (dst, bar) in receivers(m, dst, bar, None)? {
                let job = BulkJob {
                    done: Done::Bytes(bar),
                    from: Span::Shared(src, len),
                    to: Span::Shared(dst, len),
                    reduce: self.reduce,
                };
                m.submit(1 << lane, Job::Bulk(job))?;
            }
        }
        Ok(Step::Next)
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        if self.src.peer.is_some() {
            return Err("bulk_send takes a tile of the CTA itself, not of a peer".into());
        }
        if let Some(r) = self.reduce {
            r.op.legal(r.dtype, ReduceInto::Shared)?;
        }
        legal_copy(target, true)
    }
}
