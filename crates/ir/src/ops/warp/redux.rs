//! Warp-wide reductions.

use super::{converged_masks, uniformity_in_mask};
use crate::lanes::{Integer, Number, lane_types, lanes_of};
use crate::machine::{Asm, Effects, Exec, ExecStatus, Machine, Mask, PerLane, WARP};
use crate::ops::{Exactness, Instr, OpInfo, Uniform};
use crate::target::Target;
use crate::types::Type;
use crate::value::{Operand, RegId};

/// The operation of a [`Redux`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReduxMode {
    /// Sum; wraps.
    Add,
    /// Minimum.
    Min,
    /// Maximum.
    Max,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
}

impl ReduxMode {
    /// All modes.
    pub const ALL: [ReduxMode; 6] = [
        ReduxMode::Add,
        ReduxMode::Min,
        ReduxMode::Max,
        ReduxMode::And,
        ReduxMode::Or,
        ReduxMode::Xor,
    ];

    /// Returns the name in PTX and in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            ReduxMode::Add => "add",
            ReduxMode::Min => "min",
            ReduxMode::Max => "max",
            ReduxMode::And => "and",
            ReduxMode::Or => "or",
            ReduxMode::Xor => "xor",
        }
    }

    fn combine<T: Integer>(self, a: T, b: T) -> T {
        match self {
            ReduxMode::Add => Number::add(a, b),
            ReduxMode::Min => Number::min(a, b),
            ReduxMode::Max => Number::max(a, b),
            ReduxMode::And => Integer::and(a, b),
            ReduxMode::Or => Integer::or(a, b),
            ReduxMode::Xor => Integer::xor(a, b),
        }
    }
}

/// Reduces the values of all lanes of the mask; every lane receives the result.
#[derive(Clone, PartialEq, Debug)]
pub struct Redux {
    /// The operation.
    pub mode: ReduxMode,
    /// `U32` or `I32`.
    pub ty: Type,
    /// Result.
    pub dst: RegId,
    /// The value of each lane.
    pub src: Operand,
    /// The member mask (`u32`).
    pub mask: Operand,
}

impl Redux {
    fn reduce<T: Integer, M: Machine>(&self, m: &mut M, masks: &PerLane<Mask>) {
        let src = m.get::<T>(self.src);
        let mut r = [T::default(); WARP];
        for i in lanes_of(m.active()) {
            let first = masks[i].trailing_zeros() as usize;
            r[i] = if i == first {
                lanes_of(masks[i] & !(1 << i)).fold(src[i], |a, j| self.mode.combine(a, src[j]))
            } else {
                r[first]
            };
        }
        m.set(self.dst, &r);
    }
}

impl Instr for Redux {
    const INFO: OpInfo = OpInfo {
        name: "redux",
        ptx: "redux.sync.{add,min,max}.{u32,s32}, redux.sync.{and,or,xor}.b32",
        doc: "reduces the integers of all lanes of the member mask; every lane receives the result",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("redux.{}.{}", self.mode.name(), self.ty)
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        e.arg(self.src, self.ty);
        e.arg(self.mask, Type::U32);
    }
    fn uniform(&self, operands: Uniform) -> Uniform {
        uniformity_in_mask(self.mask, operands)
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (d, s) = (a.reg(self.dst), a.in_reg(self.src, self.ty));
        let mask = a.operand(self.mask, Type::U32);
        let suffix = match self.mode {
            ReduxMode::Add | ReduxMode::Min | ReduxMode::Max => self.ty.ptx(),
            ReduxMode::And | ReduxMode::Or | ReduxMode::Xor => self.ty.bits(),
        };
        a.emit(format!(
            "redux.sync.{}.{suffix} {d}, {s}, {mask}",
            self.mode.name()
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let masks = converged_masks(m, self.mask)?;
        lane_types!(self.ty, [U32, I32], T => self.reduce::<T, M>(m, &masks));
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        crate::ops::require_type("redux", self.ty, &[Type::U32, Type::I32])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::fake::{Warp, arg, ptx, reg};
    use crate::machine::FaultKind;

    fn redux(mode: ReduxMode, ty: Type, mask: Operand) -> Redux {
        Redux {
            mode,
            ty,
            dst: reg(0),
            src: arg(1),
            mask,
        }
    }

    #[test]
    fn every_lane_receives_the_reduction_of_its_mask() {
        // Lane i holds i − 9; two groups of sixteen.
        let values: [i32; 32] = std::array::from_fn(|i| i as i32 - 9);
        let groups: [u32; 32] = std::array::from_fn(|i| if i < 16 { 0xffff } else { 0xffff_0000 });
        let warp = Warp::new().with(1, &values).with(2, &groups);
        let reduce = |mode, ty| {
            let got = warp.clone().run(&redux(mode, ty, arg(2))).read::<i32>(0);
            assert!(got[..16].iter().all(|&x| x == got[0]));
            assert!(got[16..].iter().all(|&x| x == got[16]));
            (got[0], got[16])
        };
        let fold = |f: fn(i32, i32) -> i32| {
            let group = |lanes: &[i32]| lanes[1..].iter().fold(lanes[0], |a, &b| f(a, b));
            (group(&values[..16]), group(&values[16..]))
        };
        use ReduxMode::*;
        assert_eq!(reduce(Add, Type::I32), fold(|a, b| a + b));
        assert_eq!(reduce(Min, Type::I32), (-9, 7));
        assert_eq!(reduce(Min, Type::U32), (0, 7));
        assert_eq!(reduce(Max, Type::I32), (6, 22));
        assert_eq!(reduce(Max, Type::U32), (-1, 22));
        assert_eq!(reduce(And, Type::U32), fold(|a, b| a & b));
        assert_eq!(reduce(Or, Type::U32), fold(|a, b| a | b));
        assert_eq!(reduce(Xor, Type::I32), fold(|a, b| a ^ b));
    }

    #[test]
    fn sums_wrap_and_members_must_be_active() {
        let full = Operand::Imm(0xffff_ffff);
        let op = redux(ReduxMode::Add, Type::U32, full);
        let warp = Warp::new().with(1, &[1u32 << 28; 32]).run(&op);
        assert_eq!(warp.read::<u32>(0)[5], 0);
        let fault = Warp::new().with_active(0xff).fault(&op);
        assert_eq!(fault.kind, FaultKind::Convergence);
        assert_eq!(op.uniform(Uniform::Lane), Uniform::Warp);
    }

    #[test]
    fn redux_prints_its_operation_and_rejects_f32() {
        let print = |mode, ty| ptx(&redux(mode, ty, arg(2))).join("; ");
        assert_eq!(
            print(ReduxMode::Min, Type::I32),
            "redux.sync.min.s32 %0, %1, %2"
        );
        assert_eq!(
            print(ReduxMode::Xor, Type::I32),
            "redux.sync.xor.b32 %0, %1, %2"
        );
        let op = redux(ReduxMode::Max, Type::F32, arg(2));
        assert_eq!(
            op.legal(&Target::SM_90A),
            Err("redux does not support f32; supported types: u32, i32".into())
        );
    }
}
