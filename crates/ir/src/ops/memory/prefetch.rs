//! Prefetches of single cache lines.

use crate::machine::{Asm, Effects, Exec, ExecStatus, Machine};
use crate::ops::{Exactness, Instr, OpInfo};
use crate::types::Type;
use crate::value::Operand;

/// The destination cache of a prefetch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PrefetchLevel {
    /// The L1.
    L1,
    /// The L2.
    L2,
    /// The L2, with priority `evict_last`.
    L2EvictLast,
    /// The L2, with priority `evict_normal`.
    L2EvictNormal,
}

impl PrefetchLevel {
    fn suffix(self) -> &'static str {
        match self {
            PrefetchLevel::L1 => "L1",
            PrefetchLevel::L2 => "L2",
            PrefetchLevel::L2EvictLast => "L2::evict_last",
            PrefetchLevel::L2EvictNormal => "L2::evict_normal",
        }
    }
}

/// Prefetches a line of global memory. It has no completion, and any address is valid.
#[derive(Clone, PartialEq, Debug)]
pub struct Prefetch {
    /// An address in the line (`u64`).
    pub addr: Operand,
    /// The destination cache.
    pub to: PrefetchLevel,
}

impl Instr for Prefetch {
    const INFO: OpInfo = OpInfo {
        name: "prefetch",
        ptx: "prefetch.global.{L1,L2,L2::evict_last,L2::evict_normal}",
        doc: "prefetches a line of global memory into the L1 or L2",
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
        Ok(ExecStatus::Completed)
    }
}
