//! Bulk prefetches into the L2.

use super::{
    CacheHint, check_aligned, check_global, hint_asm, hint_effects, hint_name, legal_copy,
};
use crate::lanes::lanes_of;
use crate::machine::{Asm, Effects, Exec, ExecStatus, Machine};
use crate::ops::{Exactness, Instr, OpInfo};
use crate::target::Target;
use crate::types::Type;
use crate::value::Operand;

/// Prefetches consecutive bytes of global memory into the L2.
#[derive(Clone, PartialEq, Debug)]
pub struct BulkPrefetch {
    /// Global address (`u64`).
    pub src: Operand,
    /// Number of bytes (`u32`).
    pub bytes: Operand,
    /// L2 cache hint.
    pub hint: Option<CacheHint>,
}

impl Instr for BulkPrefetch {
    const INFO: OpInfo = OpInfo {
        name: "bulk_prefetch",
        ptx: "cp.async.bulk.prefetch.L2.global{.L2::cache_hint}",
        doc: "prefetches consecutive bytes of global memory into the L2; the CPU executor only checks the operands",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("bulk_prefetch{}", hint_name(self.hint))
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.arg(self.src, Type::U64);
        e.arg(self.bytes, Type::U32);
        hint_effects(e, self.hint);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let src = a.in_reg(self.src, Type::U64);
        let bytes = a.operand(self.bytes, Type::U32);
        let (hint, policy) = hint_asm(a, self.hint);
        a.emit(format!(
            "cp.async.bulk.prefetch.L2.global{hint} [{src}], {bytes}{policy}"
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let (src, bytes) = (m.get::<u64>(self.src), m.get::<u32>(self.bytes));
        for lane in lanes_of(m.active()) {
            check_global(src[lane])?;
            check_aligned("length", bytes[lane].into(), 16)?;
        }
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_copy(target, false)
    }
}
