//! Atomic read-modify-write operations.

use super::{
    AtomicOp, get_word, legal_words, set_word, strong_access, word_address, words_ptx_version,
};
use crate::machine::{Asm, Effects, Exec, ExecStatus, Machine};
use crate::ops::memory::{space, vector, vector_suffix};
use crate::ops::{Exactness, Instr, OpInfo, Uniform};
use crate::sync::MemoryOrder;
use crate::target::Target;
use crate::types::Type;
use crate::value::{MemoryAddress, Operand, RegId};

/// Atomically updates words in memory and returns the old words.
#[derive(Clone, PartialEq, Debug)]
pub struct Atomic {
    /// The operation.
    pub op: AtomicOp,
    /// Type of each word.
    pub ty: Type,
    /// The old words, in ascending address order.
    pub dst: Vec<RegId>,
    /// The address, aligned to the size of the access.
    pub at: MemoryAddress,
    /// The operands, one per word; several words only for float additions in global memory.
    pub values: Vec<Operand>,
    /// The compare operand of [`AtomicOp::Cas`].
    pub compare: Option<Operand>,
    /// Semantics and scope.
    pub order: MemoryOrder,
}

impl Instr for Atomic {
    const INFO: OpInfo = OpInfo {
        name: "atomic",
        ptx: "atom.{relaxed,acquire,release,acq_rel}.{cta,cluster,gpu,sys}.{global,shared,shared::cluster}.{add,min,max,and,or,xor,inc,dec,exch,cas}{.v2,.v4,.v8}",
        doc: "atomically updates a word and returns the old one, lane after lane; vectors are float additions in global memory, atomic per word",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        let (op, order) = (self.op.name(), self.order.suffix());
        format!(
            "atomic.{op}{order}{}.{}",
            vector_suffix(self.dst.len()),
            self.ty
        )
    }
    fn effects(&self, e: &mut dyn Effects) {
        self.dst.iter().for_each(|&r| e.def(r));
        let bytes = self.ty.bytes() * self.dst.len();
        strong_access(e, self.at, bytes, self.order);
        let values = self.compare.iter().chain(&self.values);
        values.for_each(|&o| e.arg(o, self.ty));
    }
    fn uniform(&self, _: Uniform) -> Uniform {
        Uniform::Lane
    }
    fn asm(&self, a: &mut dyn Asm) {
        let dst: Vec<_> = self.dst.iter().map(|&r| a.reg(r)).collect();
        let at = a.address(&self.at);
        let compare = self.compare.map(|o| a.in_reg(o, self.ty));
        let values: Vec<_> = self.values.iter().map(|&o| a.in_reg(o, self.ty)).collect();
        let compare = compare.map_or(String::new(), |c| format!("{c}, "));
        a.emit(format!(
            "atom{}.{}.{}{}.{} {}, [{at}], {compare}{}",
            self.order.suffix(),
            space(&self.at),
            self.op.ptx_op(self.ty),
            vector_suffix(dst.len()),
            self.op.suffix(self.ty),
            vector(&dst),
            vector(&values)
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let values: Vec<_> = self
            .values
            .iter()
            .map(|&o| get_word(m, o, self.ty))
            .collect();
        let compare = self.compare.map(|o| get_word(m, o, self.ty));
        let global = matches!(self.at, MemoryAddress::Global { .. });
        for (i, (&dst, value)) in self.dst.iter().zip(&values).enumerate() {
            let mut change = |lane: usize, old| match compare {
                Some(c) if c[lane] != old => old,
                _ => self.op.apply(self.ty, old, value[lane], global),
            };
            let at = word_address(self.at, self.ty, i);
            let old = m.atomic(&at, self.ty.bytes(), self.order, &mut change)?;
            set_word(m, dst, self.ty, &old);
        }
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        self.op.legal(self.ty)?;
        legal_words(self.op, self.ty, &self.at, self.dst.len())?;
        if self.dst.len() != self.values.len() {
            return Err(format!(
                "atomic has {} operands for {} results; the numbers must be equal",
                self.values.len(),
                self.dst.len()
            ));
        }
        if self.compare.is_some() == (self.op == AtomicOp::Cas) {
            return Ok(());
        }
        Err(format!(
            "atomic {}: atomic cas requires a compare operand, and no other atomic has one",
            self.op.name()
        ))
    }
    fn ptx_version(&self) -> (u32, u32) {
        words_ptx_version(self.dst.len())
    }
}
