//! Loads and stores of a word that are strong: they race with no other strong access.

use super::{legal_order, set_words, touch, words};
use crate::machine::{Asm, Effects, Exec, Machine, Step};
use crate::ops::memory::space;
use crate::ops::{Exactness, Info, Instr, Uniform, only};
use crate::sync::{MemoryOrder, Semantics};
use crate::target::Target;
use crate::types::Type;
use crate::value::{At, Operand, RegId};

/// Refuses a word that has no strong load or store.
fn legal_word(name: &str, ty: Type) -> Result<(), String> {
    use Type::*;
    only(name, ty, &[U32, I32, U64, I64, F32, F16x2, Bf16x2])
}

/// Loads a word; if it acquires, what its writer released before is seen after.
#[derive(Clone, PartialEq, Debug)]
pub struct StrongLoad {
    /// Type of the word.
    pub ty: Type,
    /// Result.
    pub dst: RegId,
    /// Where from.
    pub at: At,
    /// Relaxed or acquire, and among which threads.
    pub order: MemoryOrder,
}

impl Instr for StrongLoad {
    const INFO: Info = Info {
        name: "strong_load",
        ptx: "ld.{relaxed,acquire}.{cta,cluster,gpu,sys}.{global,shared,shared::cluster}.{b32,b64}",
        doc: "loads a word; if it acquires, what its writer released before is seen after",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("strong_load{}.{}", self.order.suffix(), self.ty)
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        touch(e, self.at, self.ty.bytes(), self.order);
    }
    fn uniform(&self, _: Uniform) -> Uniform {
        Uniform::Lane
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (dst, at) = (a.reg(self.dst), a.address(&self.at));
        a.emit(format!(
            "ld{}.{}.{} {dst}, [{at}]",
            self.order.suffix(),
            space(&self.at),
            self.ty.bits()
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let word = m.atomic(&self.at, self.ty.bytes(), self.order, &mut |_, old| old)?;
        set_words(m, self.dst, self.ty, &word);
        Ok(Step::Next)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        let semantics = [Semantics::Relaxed, Semantics::Acquire];
        legal_order("a strong load", self.order, &semantics)?;
        legal_word("strong_load", self.ty)
    }
}

/// Stores a word; if it releases, who acquires the word sees what was written before.
#[derive(Clone, PartialEq, Debug)]
pub struct StrongStore {
    /// Type of the word.
    pub ty: Type,
    /// The word.
    pub src: Operand,
    /// Where to.
    pub at: At,
    /// Relaxed or release, and among which threads.
    pub order: MemoryOrder,
}

impl Instr for StrongStore {
    const INFO: Info = Info {
        name: "strong_store",
        ptx: "st.{relaxed,release}.{cta,cluster,gpu,sys}.{global,shared,shared::cluster}.{b32,b64}",
        doc: "stores a word; if it releases, who acquires the word sees what was written before",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("strong_store{}.{}", self.order.suffix(), self.ty)
    }
    fn effects(&self, e: &mut dyn Effects) {
        touch(e, self.at, self.ty.bytes(), self.order);
        e.arg(self.src, self.ty);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (at, src) = (a.address(&self.at), a.in_reg(self.src, self.ty));
        a.emit(format!(
            "st{}.{}.{} [{at}], {src}",
            self.order.suffix(),
            space(&self.at),
            self.ty.bits()
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let word = words(m, self.src, self.ty);
        m.atomic(&self.at, self.ty.bytes(), self.order, &mut |lane, _| {
            word[lane]
        })?;
        Ok(Step::Next)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        let semantics = [Semantics::Relaxed, Semantics::Release];
        legal_order("a strong store", self.order, &semantics)?;
        legal_word("strong_store", self.ty)
    }
}
