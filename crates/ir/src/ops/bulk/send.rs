//! Bulk copies from the shared memory of one CTA to that of another.

use super::reduce::ReduceInto;
use super::{BulkJob, BulkReduce, async_access, check_shared, legal_copy, receivers};
use crate::job::{Job, JobCompletion, Span};
use crate::lanes::lanes_of;
use crate::machine::{
    AccessKind, Asm, Completion, Effects, Exec, ExecStatus, Machine, MemoryRegion,
};
use crate::ops::{Exactness, Instr, OpInfo};
use crate::target::Target;
use crate::types::Type;
use crate::value::{BarRef, MemoryAddress, Operand, SharedAddress};

/// Copies consecutive bytes to the shared memory of a CTA of the cluster, or reduces them into it, asynchronously.
///
/// Only the mbarrier of the receiver signals completion. The sender may
/// overwrite the source after the receiver has forwarded this signal.
#[derive(Clone, PartialEq, Debug)]
pub struct BulkSend {
    /// Source, in the same CTA.
    pub src: SharedAddress,
    /// Destination.
    pub dst: SharedAddress,
    /// Number of bytes (`u32`).
    pub bytes: Operand,
    /// The mbarrier that counts the bytes, in the receiving CTA.
    pub bar: BarRef,
    /// The reduction into the destination; `None`: a copy.
    pub reduce: Option<BulkReduce>,
}

impl Instr for BulkSend {
    const INFO: OpInfo = OpInfo {
        name: "bulk_send",
        ptx: "cp{.reduce}.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes{.add,.min,.max,.inc,.dec,.and,.or,.xor}",
        doc: "asynchronously copies consecutive bytes to the shared memory of a peer, or reduces them into it; completes on an mbarrier of the peer",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!(
            "bulk_send{}",
            self.reduce.map_or(String::new(), BulkReduce::name)
        )
    }
    fn effects(&self, e: &mut dyn Effects) {
        let completion = Completion::Bytes(self.bar);
        let access = match self.reduce {
            None => AccessKind::Write,
            Some(_) => AccessKind::Atomic,
        };
        e.access(&async_access(
            MemoryRegion::Shared(self.dst, self.bytes),
            access,
            completion,
        ));
        e.access(&async_access(
            MemoryRegion::Shared(self.src, self.bytes),
            AccessKind::Read,
            completion,
        ));
    }
    fn asm(&self, a: &mut dyn Asm) {
        let dst = a.address(&MemoryAddress::Shared(self.dst));
        let src = a.address(&MemoryAddress::Shared(self.src));
        let bytes = a.operand(self.bytes, Type::U32);
        let bar = a.barrier(&self.bar);
        let (verb, reduction) = match self.reduce {
            None => ("cp", String::new()),
            Some(r) => ("cp.reduce", r.ptx()),
        };
        a.emit(format!(
            "{verb}.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes{reduction} \
             [{dst}], [{src}], {bytes}, [{bar}]"
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let bytes = m.get::<u32>(self.bytes);
        for lane in lanes_of(m.active()) {
            let len = bytes[lane];
            let src = m.resolve(&self.src, lane, len as usize)?;
            let dst = m.resolve(&self.dst, lane, len as usize)?;
            check_shared(src, len)?;
            check_shared(dst, len)?;
            let bar = m.resolve_bar(&self.bar, lane)?;
            for (dst, bar) in receivers(m, dst, bar, None)? {
                let job = BulkJob {
                    completion: JobCompletion::Bytes(bar),
                    from: Span::Shared(src, len),
                    to: Span::Shared(dst, len),
                    reduce: self.reduce,
                };
                m.submit(1 << lane, Job::Bulk(job))?;
            }
        }
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        if self.src.peer.is_some() {
            return Err(
                "bulk_send from a tile of a peer; the source must be in the same CTA".into(),
            );
        }
        if let Some(r) = self.reduce {
            r.op.legal(r.dtype, ReduceInto::Shared)
                .map_err(|why| format!("bulk_send {why}"))?;
        }
        legal_copy(target, true)
    }
}
