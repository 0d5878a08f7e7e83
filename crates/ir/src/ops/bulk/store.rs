//! Bulk copies from shared to global memory.

use super::reduce::ReduceInto;
use super::{
    BulkJob, BulkReduce, CacheHint, async_access, check_global, check_shared, hint_asm,
    hint_effects, hint_name, legal_copy,
};
use crate::job::{Job, JobCompletion, Span};
use crate::lanes::lanes_of;
use crate::machine::{
    AccessKind, Asm, Completion, Effects, Exec, ExecStatus, Machine, MemoryRegion,
};
use crate::ops::{Exactness, Instr, OpInfo};
use crate::target::Target;
use crate::types::Type;
use crate::value::{MemoryAddress, Operand, SharedAddress};

/// Copies consecutive bytes from shared to global memory, or reduces them into it, asynchronously.
#[derive(Clone, PartialEq, Debug)]
pub struct BulkStore {
    /// Source, in the same CTA.
    pub src: SharedAddress,
    /// Global address (`u64`).
    pub dst: Operand,
    /// Number of bytes (`u32`).
    pub bytes: Operand,
    /// The reduction into global memory; `None`: a copy.
    pub reduce: Option<BulkReduce>,
    /// L2 cache hint.
    pub hint: Option<CacheHint>,
}

impl Instr for BulkStore {
    const INFO: OpInfo = OpInfo {
        name: "bulk_store",
        ptx: "cp{.reduce}.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}{.add,.min,.max,.inc,.dec,.and,.or,.xor}",
        doc: "asynchronously copies consecutive bytes from shared to global memory, or reduces them into it; completes in the lane's bulk async-group",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        let reduce = self.reduce.map_or(String::new(), BulkReduce::name);
        format!("bulk_store{reduce}{}", hint_name(self.hint))
    }
    fn effects(&self, e: &mut dyn Effects) {
        let completion = Completion::BulkGroup;
        let access = match self.reduce {
            None => AccessKind::Write,
            Some(_) => AccessKind::Atomic,
        };
        e.access(&async_access(
            MemoryRegion::Global(self.dst, self.bytes),
            access,
            completion,
        ));
        e.access(&async_access(
            MemoryRegion::Shared(self.src, self.bytes),
            AccessKind::Read,
            completion,
        ));
        hint_effects(e, self.hint);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let dst = a.in_reg(self.dst, Type::U64);
        let src = a.address(&MemoryAddress::Shared(self.src));
        let bytes = a.operand(self.bytes, Type::U32);
        let (hint, policy) = hint_asm(a, self.hint);
        let (verb, reduction) = match self.reduce {
            None => ("cp", String::new()),
            Some(r) => ("cp.reduce", r.ptx()),
        };
        a.emit(format!(
            "{verb}.async.bulk.global.shared::cta.bulk_group{hint}{reduction} [{dst}], [{src}], {bytes}{policy}"
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let (dst, bytes) = (m.get::<u64>(self.dst), m.get::<u32>(self.bytes));
        for lane in lanes_of(m.active()) {
            let src = m.resolve(&self.src, lane, bytes[lane] as usize)?;
            check_shared(src, bytes[lane])?;
            check_global(dst[lane])?;
            let job = BulkJob {
                completion: JobCompletion::BulkGroup { lane: lane as u32 },
                from: Span::Shared(src, bytes[lane]),
                to: Span::Global(dst[lane], bytes[lane]),
                reduce: self.reduce,
            };
            m.submit(1 << lane, Job::Bulk(job))?;
        }
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        if self.src.peer.is_some() {
            return Err(
                "bulk_store from a tile of a peer; the source must be in the same CTA".into(),
            );
        }
        if let Some(r) = self.reduce {
            r.op.legal(r.dtype, ReduceInto::Global)
                .map_err(|why| format!("bulk_store {why}"))?;
        }
        legal_copy(target, false)
    }
}
