//! Reductions: atomics whose old word nobody wants.

use super::{AtomicOp, legal_order, legal_words, nth, touch, words, words_since};
use crate::machine::{Asm, Effects, Exec, Machine, Step};
use crate::ops::memory::{space, vector, width};
use crate::ops::{Exactness, Info, Instr};
use crate::sync::{MemoryOrder, Semantics};
use crate::target::Target;
use crate::types::Type;
use crate::value::{At, Operand};

/// Changes words in memory, each in one step.
#[derive(Clone, PartialEq, Debug)]
pub struct Reduce {
    /// What it does.
    pub op: AtomicOp,
    /// Type of each word.
    pub ty: Type,
    /// Where; a multiple of the bytes changed.
    pub at: At,
    /// The operands, one per word: several for float sums in global memory alone.
    pub values: Vec<Operand>,
    /// Among which threads it is one step, and what it orders.
    pub order: MemoryOrder,
}

impl Reduce {
    fn bytes(&self) -> usize {
        self.ty.bytes() * self.values.len()
    }
}

impl Instr for Reduce {
    const INFO: Info = Info {
        name: "reduce",
        ptx: "red.{relaxed,release}.{cta,cluster,gpu,sys}.{global,shared,shared::cluster}.{add,min,max,and,or,xor,inc,dec}{.v2,.v4,.v8}",
        doc: "changes words in memory, each in one step; several words are float sums in global memory",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!(
            "reduce.{}{}{}.{}",
            self.op.name(),
            self.order.suffix(),
            width(self.values.len()),
            self.ty
        )
    }
    fn effects(&self, e: &mut dyn Effects) {
        touch(e, self.at, self.bytes(), self.order);
        self.values.iter().for_each(|&o| e.arg(o, self.ty));
    }
    fn asm(&self, a: &mut dyn Asm) {
        let at = a.address(&self.at);
        let values: Vec<_> = self.values.iter().map(|&o| a.in_reg(o, self.ty)).collect();
        a.emit(format!(
            "red{}.{}.{}{}.{} [{at}], {}",
            self.order.suffix(),
            space(&self.at),
            self.op.spelled(self.ty),
            width(values.len()),
            self.op.suffix(self.ty),
            vector(&values)
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let size = self.ty.bytes();
        let global = matches!(self.at, At::Global { .. });
        for (i, &o) in self.values.iter().enumerate() {
            let value = words(m, o, self.ty);
            let at = nth(self.at, self.ty, i);
            m.atomic(&at, size, self.order, &mut |lane, old| {
                self.op.apply(self.ty, old, value[lane], global)
            })?;
        }
        Ok(Step::Next)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        let semantics = [Semantics::Relaxed, Semantics::Release];
        legal_order("a reduction", self.order, &semantics)?;
        if matches!(self.op, AtomicOp::Exch | AtomicOp::Cas) {
            return Err(format!(
                "a reduction adds, counts, takes the smaller or larger, or joins bits; {} needs atomic",
                self.op.name()
            ));
        }
        self.op.legal(self.ty)?;
        legal_words(self.op, self.ty, &self.at, self.values.len())
    }
    fn ptx_version(&self) -> (u32, u32) {
        words_since(self.values.len())
    }
}
