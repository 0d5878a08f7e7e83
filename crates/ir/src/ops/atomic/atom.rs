//! Atomics that give the old word.

use super::{AtomicOp, set_words, touch, words};
use crate::machine::{Asm, Effects, Exec, Machine, Step};
use crate::ops::memory::space;
use crate::ops::{Exactness, Info, Instr, Uniform};
use crate::sync::MemoryOrder;
use crate::target::Target;
use crate::types::Type;
use crate::value::{At, Operand, RegId};

/// Changes a word in memory in one step and gives the old one.
#[derive(Clone, PartialEq, Debug)]
pub struct Atomic {
    /// What it does.
    pub op: AtomicOp,
    /// Type of the word.
    pub ty: Type,
    /// The old word.
    pub dst: RegId,
    /// Where.
    pub at: At,
    /// The operand.
    pub value: Operand,
    /// What the old word must be ([`AtomicOp::Cas`] alone).
    pub compare: Option<Operand>,
    /// Among which threads it is one step, and what it orders.
    pub order: MemoryOrder,
}

impl Instr for Atomic {
    const INFO: Info = Info {
        name: "atomic",
        ptx: "atom.{relaxed,acquire,release,acq_rel}.{cta,cluster,gpu,sys}.{global,shared,shared::cluster}.{add,min,max,and,or,xor,inc,dec,exch,cas}",
        doc: "changes a word in memory in one step and gives the old one; lanes follow one another",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        let (op, order) = (self.op.name(), self.order.suffix());
        format!("atomic.{op}{order}.{}", self.ty)
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        touch(e, self.at, self.ty.bytes(), self.order);
        self.compare.iter().for_each(|&o| e.arg(o, self.ty));
        e.arg(self.value, self.ty);
    }
    fn uniform(&self, _: Uniform) -> Uniform {
        Uniform::Lane
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (dst, at) = (a.reg(self.dst), a.address(&self.at));
        let compare = self.compare.map(|o| a.in_reg(o, self.ty));
        let value = a.in_reg(self.value, self.ty);
        let compare = compare.map_or(String::new(), |c| format!("{c}, "));
        a.emit(format!(
            "atom{}.{}.{}.{} {dst}, [{at}], {compare}{value}",
            self.order.suffix(),
            space(&self.at),
            self.op.spelled(self.ty),
            self.op.suffix(self.ty)
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let value = words(m, self.value, self.ty);
        let compare = self.compare.map(|o| words(m, o, self.ty));
        let global = matches!(self.at, At::Global { .. });
        let mut change = |lane: usize, old| match compare {
            Some(c) if c[lane] != old => old,
            _ => self.op.apply(self.ty, old, value[lane], global),
        };
        let old = m.atomic(&self.at, self.ty.bytes(), self.order, &mut change)?;
        set_words(m, self.dst, self.ty, &old);
        Ok(Step::Next)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        self.op.legal(self.ty)?;
        if self.compare.is_some() == (self.op == AtomicOp::Cas) {
            return Ok(());
        }
        Err(format!(
            "atomic cas, and no other, compares; this is atomic {}",
            self.op.name()
        ))
    }
}
