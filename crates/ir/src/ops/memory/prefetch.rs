//! Prefetches of single lines.

use crate::machine::{Asm, Effects, Exec, Machine, Step};
use crate::ops::{Exactness, Info, Instr};
use crate::types::Type;
use crate::value::Operand;

/// Where a prefetch brings a line.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PrefetchTo {
    /// Into the L1.
    L1,
    /// Into the L2.
    L2,
    /// Into the L2, where it goes after others.
    L2EvictLast,
    /// Into the L2, where it is as other lines.
    L2EvictNormal,
}

impl PrefetchTo {
    fn suffix(self) -> &'static str {
        match self {
            PrefetchTo::L1 => "L1",
            PrefetchTo::L2 => "L2",
            PrefetchTo::L2EvictLast => "L2::evict_last",
            PrefetchTo::L2EvictNormal => "L2::evict_normal",
        }
    }
}

/// Brings a line of global memory close; nothing waits for it, and no address is wrong.
#[derive(Clone, PartialEq, Debug)]
pub struct Prefetch {
    /// An address in the line (`u64`).
    pub addr: Operand,
    /// How close.
    pub to: PrefetchTo,
}

impl Instr for Prefetch {
    const INFO: Info = Info {
        name: "prefetch",
        ptx: "prefetch.global.{L1,L2,L2::evict_last,L2::evict_normal}",
        doc: "brings a line of global memory close",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("prefetch.{}", self.to.suffix())
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.arg(self.addr, Type::U64);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let addr = a.in_reg(self.addr, Type::U64);
        a.emit(format!("prefetch.global.{} [{addr}]", self.to.suffix()));
    }
    fn exec<M: Machine>(&self, _: &mut M) -> Exec {
        Ok(Step::Next)
    }
}
