//! From shared to global memory.

use super::reduce::ReduceInto;
use super::{
    BulkJob, CacheHint, Reduce, check_global, check_run, hint_asm, hint_effects, hint_name,
    legal_copy, touch,
};
use crate::job::{Done, Job, Span};
use crate::lanes::lanes_of;
use crate::machine::{Access, Asm, Completion, Effects, Exec, Machine, Memory, Step};
use crate::ops::{Exactness, Info, Instr};
use crate::target::Target;
use crate::types::Type;
use crate::value::{At, Operand, Place};

/// Copies a run of bytes from shared to global memory, or combines it with what is there.
#[derive(Clone, PartialEq, Debug)]
pub struct BulkStore {
    /// Where from.
    pub src: Place,
    /// The global address (`u64`).
    pub dst: Operand,
    /// How many bytes (`u32`).
    pub bytes: Operand,
    /// How the numbers in the run are combined with those in memory; `None`: they replace them.
    pub reduce: Option<Reduce>,
    /// How long the L2 shall keep the bytes.
    pub hint: Option<CacheHint>,
}

impl Instr for BulkStore {
    const INFO: Info = Info {
        name: "bulk_store",
        ptx: "cp{.reduce}.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}{.add,.min,.max,.inc,.dec,.and,.or,.xor}",
        doc: "copies a run of bytes from shared to global memory, or combines it with what is there, in the lane's bulk group",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        let reduce = self.reduce.map_or(String::new(), Reduce::name);
        format!("bulk_store{reduce}{}", hint_name(self.hint))
    }
    fn effects(&self, e: &mut dyn Effects) {
        let done = Completion::BulkGroup;
        let access = match self.reduce {
            None => Access::Write,
            Some(_) => Access::Atomic,
        };
        e.touch(&touch(Memory::Global(self.dst, self.bytes), access, done));
        e.touch(&touch(
            Memory::Run(self.src, self.bytes),
            Access::Read,
            done,
        ));
        hint_effects(e, self.hint);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let dst = a.in_reg(self.dst, Type::U64);
        let src = a.address(&At::Shared(self.src));
        let bytes = a.operand(self.bytes, Type::U32);
        let (hint, policy) = hint_asm(a, self.hint);
        let (verb, how) = match self.reduce {
            None => ("cp", String::new()),
            Some(r) => ("cp.reduce", r.ptx()),
        };
        a.emit(format!(
            "{verb}.async.bulk.global.shared::cta.bulk_group{hint}{how} [{dst}], [{src}], {bytes}{policy}"
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let (dst, bytes) = (m.get::<u64>(self.dst), m.get::<u32>(self.bytes));
        for lane in lanes_of(m.active()) {
            let src = m.resolve(&self.src, lane, bytes[lane] as usize)?;
            check_run(src, bytes[lane])?;
            check_global(dst[lane])?;
            let job = BulkJob {
                done: Done::BulkGroup { lane: lane as u32 },
                from: Span::Shared(src, bytes[lane]),
                to: Span::Global(dst[lane], bytes[lane]),
                reduce: self.reduce,
            };
            m.submit(1 << lane, Job::Bulk(job))?;
        }
        Ok(Step::Next)
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        if self.src.peer.is_some() {
            return Err("bulk_store takes a tile of the CTA itself, not of a peer".into());
        }
        if let Some(r) = self.reduce {
            r.op.legal(r.dtype, ReduceInto::Global)?;
        }
        legal_copy(target, false)
    }
}
