//! Atomics that give the old word.

use super::{AtomicOp, legal_words, nth, set_words, touch, words, words_since};
use crate::machine::{Asm, Effects, Exec, Machine, Step};
use crate::ops::memory::{space, vector, width};
use crate::ops::{Exactness, Info, Instr, Uniform};
use crate::sync::MemoryOrder;
use crate::target::Target;
use crate::types::Type;
use crate::value::{At, Operand, RegId};

/// Changes words in memory, each in one step, and gives the old ones.
#[derive(Clone, PartialEq, Debug)]
pub struct Atomic {
    /// What it does.
    pub op: AtomicOp,
    /// Type of each word.
    pub ty: Type,
    /// The old words, from ascending addresses.
    pub dst: Vec<RegId>,
    /// Where; a multiple of the bytes changed.
    pub at: At,
    /// The operands, one per word: several for float sums in global memory alone.
    pub values: Vec<Operand>,
    /// What the old word must be ([`AtomicOp::Cas`] alone).
    pub compare: Option<Operand>,
    /// Among which threads it is one step, and what it orders.
    pub order: MemoryOrder,
}

impl Instr for Atomic {
    const INFO: Info = Info {
        name: "atomic",
        ptx: "atom.{relaxed,acquire,release,acq_rel}.{cta,cluster,gpu,sys}.{global,shared,shared::cluster}.{add,min,max,and,or,xor,inc,dec,exch,cas}{.v2,.v4,.v8}",
        doc: "changes words in memory, each in one step, and gives the old ones; lanes follow one another; several words are float sums in global memory",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        let (op, order) = (self.op.name(), self.order.suffix());
        format!("atomic.{op}{order}{}.{}", width(self.dst.len()), self.ty)
    }
    fn effects(&self, e: &mut dyn Effects) {
        self.dst.iter().for_each(|&r| e.def(r));
        let bytes = self.ty.bytes() * self.dst.len();
        touch(e, self.at, bytes, self.order);
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
            self.op.spelled(self.ty),
            width(dst.len()),
            self.op.suffix(self.ty),
            vector(&dst),
            vector(&values)
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let values: Vec<_> = self.values.iter().map(|&o| words(m, o, self.ty)).collect();
        let compare = self.compare.map(|o| words(m, o, self.ty));
        let global = matches!(self.at, At::Global { .. });
        for (i, (&dst, value)) in self.dst.iter().zip(&values).enumerate() {
            let mut change = |lane: usize, old| match compare {
                Some(c) if c[lane] != old => old,
                _ => self.op.apply(self.ty, old, value[lane], global),
            };
            let at = nth(self.at, self.ty, i);
            let old = m.atomic(&at, self.ty.bytes(), self.order, &mut change)?;
            set_words(m, dst, self.ty, &old);
        }
        Ok(Step::Next)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        self.op.legal(self.ty)?;
        legal_words(self.op, self.ty, &self.at, self.dst.len())?;
        if self.dst.len() != self.values.len() {
            return Err(format!(
                "an atomic takes as many operands as it gives words, not {} for {}",
                self.values.len(),
                self.dst.len()
            ));
        }
        if self.compare.is_some() == (self.op == AtomicOp::Cas) {
            return Ok(());
        }
        Err(format!(
            "atomic cas, and no other, compares; this is atomic {}",
            self.op.name()
        ))
    }
    fn ptx_version(&self) -> (u32, u32) {
        words_since(self.dst.len())
    }
}
