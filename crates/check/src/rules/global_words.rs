//! The parameters that addresses of global memory come from.

use super::OpSite;
use warpline_ir::{Kernel, Op, Operand, ParamId, ParamKind, RegId, Type};

/// A word of global memory: a parameter, and the byte offset if it is constant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct GlobalWord {
    pub(super) param: ParamId,
    /// The byte offset, if it is constant.
    offset: Option<i64>,
}

impl GlobalWord {
    /// Returns an unknown word of a parameter's memory.
    pub(super) fn behind(param: ParamId) -> Self {
        let offset = None;
        Self { param, offset }
    }

    /// Returns the byte offset, if it is constant.
    pub(super) fn offset(self) -> Option<i64> {
        self.offset
    }

    /// May two words be the same?
    pub(super) fn may_be(self, other: Self) -> bool {
        let apart = self.offset.zip(other.offset).is_some_and(|(a, b)| a != b);
        self.param == other.param && !apart
    }
}

/// By register: the word of global memory that it addresses.
pub(super) struct Pointers(Vec<Known>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    /// The register holds no pointer.
    Nothing,
    GlobalWord(GlobalWord),
    /// The register may hold several pointers.
    Several,
}

impl Pointers {
    /// Follows pointer parameters through additions.
    pub(super) fn of(kernel: &Kernel, ops: &[OpSite]) -> Self {
        let mut all = Self(vec![Known::Nothing; kernel.regs.len()]);
        let wide = |r: RegId| matches!(kernel.ty(r), Type::U64 | Type::I64);
        let mut changed = true;
        while changed {
            changed = false;
            for op in ops {
                for &dst in op.facts.defs.iter().filter(|r| wide(**r)) {
                    let value = all.value(kernel, op);
                    changed |= all.put(dst, value);
                }
            }
        }
        all
    }

    /// Returns the word of an access.
    pub(super) fn at(&self, addr: Operand, offset: i32) -> Option<GlobalWord> {
        match self.operand(addr) {
            Known::GlobalWord(spot) => Some(GlobalWord {
                offset: spot.offset.map(|o| o.saturating_add(offset.into())),
                ..spot
            }),
            _ => None,
        }
    }

    fn operand(&self, o: Operand) -> Known {
        o.as_reg().map_or(Known::Nothing, |r| self.0[r.index()])
    }

    /// Returns the pointer that an op computes.
    fn value(&self, kernel: &Kernel, op: &OpSite) -> Known {
        match op.op {
            Op::ReadParam(read) => match kernel.param(read.param).kind {
                ParamKind::Pointer(_) => Known::GlobalWord(GlobalWord {
                    param: read.param,
                    offset: Some(0),
                }),
                _ => Known::Nothing,
            },
            Op::Mov(o) => self.operand(o.src),
            Op::Add(o) => match (self.operand(o.a), o.b.as_imm()) {
                (Known::GlobalWord(spot), Some(by)) => Known::GlobalWord(GlobalWord {
                    offset: spot.offset.map(|x| x.saturating_add(by as i64)),
                    ..spot
                }),
                _ => self.blurred(op),
            },
            _ if op.facts.touches.is_empty() => self.blurred(op),
            // Values loaded from memory are not tracked as pointers.
            _ => Known::Nothing,
        }
    }

    /// Returns the pointer among the operands of an op, with an unknown offset.
    fn blurred(&self, op: &OpSite) -> Known {
        let operands = op.facts.named_reads().map(|r| self.0[r.index()]);
        operands.fold(Known::Nothing, |a, b| match (a, b) {
            (Known::Nothing, Known::GlobalWord(spot)) => Known::GlobalWord(GlobalWord {
                offset: None,
                ..spot
            }),
            (a, b) => meet(a, b),
        })
    }

    fn put(&mut self, dst: RegId, value: Known) -> bool {
        let reg = &mut self.0[dst.index()];
        let before = *reg;
        *reg = meet(before, value);
        *reg != before
    }
}

/// Joins two possible contents of a register.
fn meet(a: Known, b: Known) -> Known {
    match (a, b) {
        (Known::Nothing, x) | (x, Known::Nothing) => x,
        (Known::GlobalWord(x), Known::GlobalWord(y)) if x.param == y.param => {
            Known::GlobalWord(GlobalWord {
                offset: x.offset.filter(|o| Some(*o) == y.offset),
                ..x
            })
        }
        _ => Known::Several,
    }
}
