//! Strong loads and stores of a word: they do not race with other strong accesses in scope.

use super::{get_word, legal_order, set_word, strong_access};
use crate::machine::{Asm, Effects, Exec, ExecStatus, Machine};
use crate::ops::memory::space;
use crate::ops::{Exactness, Instr, OpInfo, Uniform, require_type};
use crate::sync::{MemoryOrder, Semantics};
use crate::target::Target;
use crate::types::Type;
use crate::value::{MemoryAddress, Operand, RegId};

/// Rejects a type without strong loads and stores.
fn legal_word(name: &str, ty: Type) -> Result<(), String> {
    use Type::*;
    require_type(name, ty, &[U32, I32, U64, I64, F32, F16x2, Bf16x2])
}

/// Loads a word with relaxed or acquire semantics.
#[derive(Clone, PartialEq, Debug)]
pub struct StrongLoad {
    /// Type of the word.
    pub ty: Type,
    /// Result.
    pub dst: RegId,
    /// Source address.
    pub at: MemoryAddress,
    /// Relaxed or acquire, and the scope.
    pub order: MemoryOrder,
}

impl Instr for StrongLoad {
    const INFO: OpInfo = OpInfo {
        name: "strong_load",
        ptx: "ld.{relaxed,acquire}.{cta,cluster,gpu,sys}.{global,shared,shared::cluster}.{b32,b64}",
        doc: "strong load of a word; an acquire is ordered after the release whose word it reads",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("strong_load{}.{}", self.order.suffix(), self.ty)
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        strong_access(e, self.at, self.ty.bytes(), self.order);
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
        set_word(m, self.dst, self.ty, &word);
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        let semantics = [Semantics::Relaxed, Semantics::Acquire];
        legal_order("a strong load", self.order, &semantics)?;
        legal_word("strong_load", self.ty)
    }
}

/// Stores a word with relaxed or release semantics.
#[derive(Clone, PartialEq, Debug)]
pub struct StrongStore {
    /// Type of the word.
    pub ty: Type,
    /// The word.
    pub src: Operand,
    /// Destination address.
    pub at: MemoryAddress,
    /// Relaxed or release, and the scope.
    pub order: MemoryOrder,
}

impl Instr for StrongStore {
    const INFO: OpInfo = OpInfo {
        name: "strong_store",
        ptx: "st.{relaxed,release}.{cta,cluster,gpu,sys}.{global,shared,shared::cluster}.{b32,b64}",
        doc: "strong store of a word; a release publishes earlier accesses to an acquire that reads the word",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("strong_store{}.{}", self.order.suffix(), self.ty)
    }
    fn effects(&self, e: &mut dyn Effects) {
        strong_access(e, self.at, self.ty.bytes(), self.order);
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
        let word = get_word(m, self.src, self.ty);
        m.atomic(&self.at, self.ty.bytes(), self.order, &mut |lane, _| {
            word[lane]
        })?;
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        let semantics = [Semantics::Relaxed, Semantics::Release];
        legal_order("a strong store", self.order, &semantics)?;
        legal_word("strong_store", self.ty)
    }
}
