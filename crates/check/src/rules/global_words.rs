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
    pub(super) fn unknown_in(param: ParamId) -> Self {
        let offset = None;
        Self { param, offset }
    }

    /// Returns the byte offset, if it is constant.
    pub(super) fn offset(self) -> Option<i64> {
        self.offset
    }

    /// May two words be the same?
    pub(super) fn may_equal(self, other: Self) -> bool {
        let are_different = self.offset.zip(other.offset).is_some_and(|(a, b)| a != b);
        self.param == other.param && !are_different
    }
}

/// By register: the word of global memory that it addresses.
pub(super) struct Pointers(Vec<RegContent>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum RegContent {
    NoPointer,
    Pointer(GlobalWord),
    /// Pointers of several parameters.
    AnyPointer,
}

impl Pointers {
    /// Tracks pointer parameters through moves and arithmetic.
    pub(super) fn of(kernel: &Kernel, ops: &[OpSite]) -> Self {
        let mut all = Self(vec![RegContent::NoPointer; kernel.regs.len()]);
        let is_64_bit = |r: RegId| matches!(kernel.ty(r), Type::U64 | Type::I64);
        let mut changed = true;
        while changed {
            changed = false;
            for op in ops {
                for &dst in op.facts.defs.iter().filter(|r| is_64_bit(**r)) {
                    let value = all.value(kernel, op);
                    changed |= all.join_into(dst, value);
                }
            }
        }
        all
    }

    /// Returns the word that an access addresses, if its parameter is known.
    pub(super) fn word(&self, addr: Operand, offset: i32) -> Option<GlobalWord> {
        match self.operand(addr) {
            RegContent::Pointer(word) => Some(GlobalWord {
                offset: word.offset.map(|o| o.saturating_add(offset.into())),
                ..word
            }),
            _ => None,
        }
    }

    fn operand(&self, o: Operand) -> RegContent {
        o.as_reg()
            .map_or(RegContent::NoPointer, |r| self.0[r.index()])
    }

    /// Returns the pointer that an op computes.
    fn value(&self, kernel: &Kernel, op: &OpSite) -> RegContent {
        match op.op {
            Op::ReadParam(read) => match kernel.param(read.param).kind {
                ParamKind::Pointer(_) => RegContent::Pointer(GlobalWord {
                    param: read.param,
                    offset: Some(0),
                }),
                _ => RegContent::NoPointer,
            },
            Op::Mov(o) => self.operand(o.src),
            Op::Add(o) => match (self.operand(o.a), o.b.as_imm()) {
                (RegContent::Pointer(word), Some(by)) => RegContent::Pointer(GlobalWord {
                    offset: word.offset.map(|x| x.saturating_add(by as i64)),
                    ..word
                }),
                _ => self.with_unknown_offset(op),
            },
            _ if op.facts.touches.is_empty() => self.with_unknown_offset(op),
            // Values loaded from memory are not tracked as pointers.
            _ => RegContent::NoPointer,
        }
    }

    /// Returns the pointer among the operands of an op, with an unknown offset.
    fn with_unknown_offset(&self, op: &OpSite) -> RegContent {
        let operands = op.facts.named_reads().map(|r| self.0[r.index()]);
        operands.fold(RegContent::NoPointer, |a, b| match (a, b) {
            (RegContent::NoPointer, RegContent::Pointer(word)) => RegContent::Pointer(GlobalWord {
                offset: None,
                ..word
            }),
            (a, b) => join(a, b),
        })
    }

    /// Joins a content into a register; returns whether that changed it.
    fn join_into(&mut self, dst: RegId, value: RegContent) -> bool {
        let reg = &mut self.0[dst.index()];
        let before = *reg;
        *reg = join(before, value);
        *reg != before
    }
}

/// Joins two possible contents of a register.
fn join(a: RegContent, b: RegContent) -> RegContent {
    match (a, b) {
        (RegContent::NoPointer, x) | (x, RegContent::NoPointer) => x,
        (RegContent::Pointer(x), RegContent::Pointer(y)) if x.param == y.param => {
            RegContent::Pointer(GlobalWord {
                offset: x.offset.filter(|o| Some(*o) == y.offset),
                ..x
            })
        }
        _ => RegContent::AnyPointer,
    }
}
