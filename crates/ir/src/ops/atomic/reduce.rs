//! Atomic reductions: atomics without a result.

use super::{
    AtomicOp, get_word, legal_order, legal_words, strong_access, word_address, words_ptx_version,
};
use crate::machine::{Asm, Effects, Exec, ExecStatus, Machine};
use crate::ops::memory::{space, vector, vector_suffix};
use crate::ops::{Exactness, Instr, OpInfo};
use crate::sync::{MemoryOrder, Semantics};
use crate::target::Target;
use crate::types::Type;
use crate::value::{MemoryAddress, Operand};

/// Atomically updates words in memory.
#[derive(Clone, PartialEq, Debug)]
pub struct AtomicReduce {
    /// The operation.
    pub op: AtomicOp,
    /// Type of each word.
    pub ty: Type,
    /// The address, aligned to the size of the access.
    pub at: MemoryAddress,
    /// The operands, one per word; several words only for float additions in global memory.
    pub values: Vec<Operand>,
    /// Semantics and scope.
    pub order: MemoryOrder,
}

impl AtomicReduce {
    fn bytes(&self) -> usize {
        self.ty.bytes() * self.values.len()
    }
}

impl Instr for AtomicReduce {
    const INFO: OpInfo = OpInfo {
        name: "reduce",
        ptx: "red.{relaxed,release}.{cta,cluster,gpu,sys}.{global,shared,shared::cluster}.{add,min,max,and,or,xor,inc,dec}{.v2,.v4,.v8}",
        doc: "atomically updates a word in memory; vectors are float additions in global memory, atomic per word",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!(
            "reduce.{}{}{}.{}",
            self.op.name(),
            self.order.suffix(),
            vector_suffix(self.values.len()),
            self.ty
        )
    }
    fn effects(&self, e: &mut dyn Effects) {
        strong_access(e, self.at, self.bytes(), self.order);
        self.values.iter().for_each(|&o| e.arg(o, self.ty));
    }
    fn asm(&self, a: &mut dyn Asm) {
        let at = a.address(&self.at);
        let values: Vec<_> = self.values.iter().map(|&o| a.in_reg(o, self.ty)).collect();
        a.emit(format!(
            "red{}.{}.{}{}.{} [{at}], {}",
            self.order.suffix(),
            space(&self.at),
            self.op.ptx_op(self.ty),
            vector_suffix(values.len()),
            self.op.suffix(self.ty),
            vector(&values)
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let size = self.ty.bytes();
        let global = matches!(self.at, MemoryAddress::Global { .. });
        for (i, &o) in self.values.iter().enumerate() {
            let value = get_word(m, o, self.ty);
            let at = word_address(self.at, self.ty, i);
            m.atomic(&at, size, self.order, &mut |lane, old| {
                self.op.apply(self.ty, old, value[lane], global)
            })?;
        }
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        let semantics = [Semantics::Relaxed, Semantics::Release];
        legal_order("a reduction", self.order, &semantics)?;
        if matches!(self.op, AtomicOp::Exch | AtomicOp::Cas) {
            return Err(format!(
                "red does not support {}\nhelp: use atomic",
                self.op.name()
            ));
        }
        self.op.legal(self.ty)?;
        legal_words(self.op, self.ty, &self.at, self.values.len())
    }
    fn ptx_version(&self) -> (u32, u32) {
        words_ptx_version(self.values.len())
    }
}
