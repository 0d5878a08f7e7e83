//! Which parameter an address of global memory comes from.

use super::OpSite;
use warpline_ir::{Kernel, Op, Operand, ParamId, ParamKind, RegId, Type};

/// A word of global memory, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Spot {
    pub(super) param: ParamId,
    /// Bytes from there, if constant.
    offset: Option<i64>,
}

impl Spot {
    /// Some word behind a parameter.
    pub(super) fn behind(param: ParamId) -> Self {
        let offset = None;
        Self { param, offset }
    }

    /// Bytes from the parameter on, if constant.
    pub(super) fn offset(self) -> Option<i64> {
        self.offset
    }

    /// May two spots be the same?
    pub(super) fn may_be(self, other: Self) -> bool {
        let apart = self.offset.zip(other.offset).is_some_and(|(a, b)| a != b);
        self.param == other.param && !apart
    }
}

/// By register, the place in global memory it is the address of.
pub(super) struct Pointers(Vec<Known>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    /// Nothing was put into it that comes from a pointer.
    Nothing,
    Spot(Spot),
    /// Several pointers were.
    Several,
}

impl Pointers {
    /// Follows the pointers among the parameters through sums.
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

    /// The place of an access.
    pub(super) fn at(&self, addr: Operand, offset: i32) -> Option<Spot> {
        match self.operand(addr) {
            Known::Spot(spot) => Some(Spot {
                offset: spot.offset.map(|o| o.saturating_add(offset.into())),
                ..spot
            }),
            _ => None,
        }
    }

    fn operand(&self, o: Operand) -> Known {
        o.as_reg().map_or(Known::Nothing, |r| self.0[r.index()])
    }

    /// What an op computes.
    fn value(&self, kernel: &Kernel, op: &OpSite) -> Known {
        match op.op {
            Op::ReadParam(read) => match kernel.param(read.param).kind {
                ParamKind::Pointer(_) => Known::Spot(Spot {
                    param: read.param,
                    offset: Some(0),
                }),
                _ => Known::Nothing,
            },
            Op::Mov(o) => self.operand(o.src),
            Op::Add(o) => match (self.operand(o.a), o.b.as_imm()) {
                (Known::Spot(spot), Some(by)) => Known::Spot(Spot {
                    offset: spot.offset.map(|x| x.saturating_add(by as i64)),
                    ..spot
                }),
                _ => self.blurred(op),
            },
            _ if op.facts.touches.is_empty() => self.blurred(op),
            // What lies in memory is no address of ours.
            _ => Known::Nothing,
        }
    }

    /// The pointer among an op's operands, somewhere from there on.
    fn blurred(&self, op: &OpSite) -> Known {
        let operands = op.facts.named_reads().map(|r| self.0[r.index()]);
        operands.fold(Known::Nothing, |a, b| match (a, b) {
            (Known::Nothing, Known::Spot(spot)) => Known::Spot(Spot {
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

/// What is known of a register that holds one or the other.
fn meet(a: Known, b: Known) -> Known {
    match (a, b) {
        (Known::Nothing, x) | (x, Known::Nothing) => x,
        (Known::Spot(x), Known::Spot(y)) if x.param == y.param => Known::Spot(Spot {
            offset: x.offset.filter(|o| Some(*o) == y.offset),
            ..x
        }),
        _ => Known::Several,
    }
}
