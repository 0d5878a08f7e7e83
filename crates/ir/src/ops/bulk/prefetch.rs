//! From global memory to the L2 cache.

use super::{CacheHint, aligned, check_global, hint_asm, hint_effects, hint_name, legal_copy};
use crate::lanes::lanes_of;
use crate::machine::{Asm, Effects, Exec, Machine, Step};
use crate::ops::{Exactness, Info, Instr};
use crate::target::Target;
use crate::types::Type;
use crate::value::Operand;

/// Brings a run of global memory to the L2, before it is copied.
#[derive(Clone, PartialEq, Debug)]
pub struct BulkPrefetch {
    /// The global address (`u64`).
    pub src: Operand,
    /// How many bytes (`u32`).
    pub bytes: Operand,
    /// How long the L2 shall keep the bytes.
    pub hint: Option<CacheHint>,
}

impl Instr for BulkPrefetch {
    const INFO: Info = Info {
        name: "bulk_prefetch",
        ptx: "cp.async.bulk.prefetch.L2.global{.L2::cache_hint}",
        doc: "brings a run of global memory to the L2; the CPU checks its operands and moves nothing",
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
            aligned("the length of a bulk copy", bytes[lane].into(), 16)?;
        }
        Ok(Step::Next)
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_copy(target, false)
    }
}
