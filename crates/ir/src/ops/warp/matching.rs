//! Search for lanes with equal values.

use super::{converged_masks, uniformity_in_mask};
use crate::lanes::{lanes_of, mask_of};
use crate::machine::{Asm, Effects, Exec, ExecStatus, Machine, Mask, PerLane, WARP};
use crate::ops::{Exactness, Instr, OpInfo, Uniform};
use crate::target::Target;
use crate::types::Type;
use crate::value::{Operand, RegId};

/// Reads the bits of a 32- or 64-bit register in every lane.
fn get_bits<M: Machine>(m: &mut M, ty: Type, src: Operand) -> PerLane<u64> {
    match ty.bytes() {
        8 => m.get::<u64>(src),
        _ => m.get::<u32>(src).map(u64::from),
    }
}

/// Returns the lanes of `mask` with the same bits as lane `i`.
fn matching_lanes(bits: &PerLane<u64>, i: usize, mask: Mask) -> Mask {
    mask & mask_of(&bits.map(|b| b == bits[i]))
}

/// Rejects a type that is not 32 or 64 bits wide.
fn legal_word(name: &str, ty: Type) -> Result<(), String> {
    match ty.bytes() {
        4 | 8 => Ok(()),
        _ => Err(format!(
            "{name} does not support {ty}; the type must have 32 or 64 bits"
        )),
    }
}

/// Finds the lanes of the mask with the same bits as this lane.
#[derive(Clone, PartialEq, Debug)]
pub struct MatchAny {
    /// Any type of 32 or 64 bits.
    pub ty: Type,
    /// The mask of matching lanes (`U32`).
    pub dst: RegId,
    /// The compared value.
    pub src: Operand,
    /// The member mask (`u32`).
    pub mask: Operand,
}

impl Instr for MatchAny {
    const INFO: OpInfo = OpInfo {
        name: "match_any",
        ptx: "match.any.sync.{b32,b64}",
        doc: "finds the lanes of the member mask with the same bits as this lane",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("match_any.{}", self.ty)
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        e.arg(self.src, self.ty);
        e.arg(self.mask, Type::U32);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (d, s) = (a.reg(self.dst), a.in_reg(self.src, self.ty));
        let mask = a.operand(self.mask, Type::U32);
        a.emit(format!(
            "match.any.sync.{} {d}, {s}, {mask}",
            self.ty.bits()
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let masks = converged_masks(m, self.mask)?;
        let bits = get_bits(m, self.ty, self.src);
        let mut r = [0; WARP];
        for i in lanes_of(m.active()) {
            r[i] = matching_lanes(&bits, i, masks[i]);
        }
        m.set(self.dst, &r);
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        legal_word("match_any", self.ty)
    }
}

/// Tests whether all lanes of the mask have the same bits.
#[derive(Clone, PartialEq, Debug)]
pub struct MatchAll {
    /// Any type of 32 or 64 bits.
    pub ty: Type,
    /// The member mask if all values are equal, otherwise 0 (`U32`).
    pub dst: RegId,
    /// Whether all values are equal, a predicate.
    pub all: RegId,
    /// The compared value.
    pub src: Operand,
    /// The member mask (`u32`).
    pub mask: Operand,
}

impl Instr for MatchAll {
    const INFO: OpInfo = OpInfo {
        name: "match_all",
        ptx: "match.all.sync.{b32,b64}",
        doc: "tests whether all lanes of the member mask have the same bits; returns the mask (or 0) and a predicate",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("match_all.{}", self.ty)
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        e.def(self.all);
        e.arg(self.src, self.ty);
        e.arg(self.mask, Type::U32);
    }
    fn uniform(&self, operands: Uniform) -> Uniform {
        uniformity_in_mask(self.mask, operands)
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (d, p) = (a.reg(self.dst), a.reg(self.all));
        let (s, mask) = (a.in_reg(self.src, self.ty), a.operand(self.mask, Type::U32));
        a.emit(format!(
            "match.all.sync.{} {d}|{p}, {s}, {mask}",
            self.ty.bits()
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let masks = converged_masks(m, self.mask)?;
        let bits = get_bits(m, self.ty, self.src);
        let mut r = [0; WARP];
        for i in lanes_of(m.active()) {
            if matching_lanes(&bits, i, masks[i]) == masks[i] {
                r[i] = masks[i];
            }
        }
        m.set(self.dst, &r);
        m.set_pred(self.all, mask_of(&r.map(|r| r != 0)));
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        legal_word("match_all", self.ty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::fake::{Warp, arg, ptx, reg};
    use crate::machine::FaultKind;

    const ALL_LANES: Operand = Operand::Imm(0xffff_ffff);

    fn any(ty: Type, mask: Operand) -> MatchAny {
        MatchAny {
            ty,
            dst: reg(0),
            src: arg(1),
            mask,
        }
    }
    fn all(ty: Type, mask: Operand) -> MatchAll {
        MatchAll {
            ty,
            dst: reg(0),
            all: reg(4),
            src: arg(1),
            mask,
        }
    }

    #[test]
    fn match_any_returns_the_lanes_with_equal_values() {
        let thirds: [u32; 32] = std::array::from_fn(|i| i as u32 / 3);
        let got = Warp::new().with(1, &thirds).run(&any(Type::U32, ALL_LANES));
        let got = got.read::<u32>(0);
        assert_eq!((got[0], got[2], got[3], got[31]), (7, 7, 0x38, 0xc000_0000));

        // The high word matters, and groups are independent.
        let odd: [u64; 32] = std::array::from_fn(|i| (i as u64 & 1) << 40);
        let groups: [u32; 32] = std::array::from_fn(|i| if i < 16 { 0xffff } else { 0xffff_0000 });
        let warp = Warp::new().with(1, &odd).with(2, &groups);
        let got = warp.run(&any(Type::U64, arg(2))).read::<u32>(0);
        assert_eq!((got[0], got[1], got[16]), (0x5555, 0xaaaa, 0x5555_0000));
    }

    #[test]
    fn match_compares_bits_not_numbers() {
        let zeros: [f32; 32] = std::array::from_fn(|i| if i == 3 { -0.0 } else { 0.0 });
        let warp = Warp::new().with(1, &zeros).run(&any(Type::F32, ALL_LANES));
        assert_eq!(warp.read::<u32>(0)[3], 1 << 3);
    }

    #[test]
    fn match_all_returns_the_mask_or_zero() {
        let groups: [u32; 32] = std::array::from_fn(|i| if i < 16 { 0xffff } else { 0xffff_0000 });
        let mut values = [5u64 << 40; 32];
        values[31] += 1;
        let warp = Warp::new().with(1, &values).with(2, &groups);
        let warp = warp.run(&all(Type::U64, arg(2)));
        let got = warp.read::<u32>(0);
        assert_eq!((got[0], got[15], got[16], got[31]), (0xffff, 0xffff, 0, 0));
        assert_eq!(warp.read_pred(4), 0xffff);
        let warp = Warp::new()
            .with(1, &[7u32; 32])
            .run(&all(Type::U32, ALL_LANES));
        assert_eq!((warp.read::<u32>(0)[9], warp.read_pred(4)), (!0, !0));
    }

    #[test]
    fn match_ops_require_32_or_64_bits_and_converged_lanes() {
        assert_eq!(
            ptx(&any(Type::F32, Operand::Imm(3))),
            ["match.any.sync.b32 %0, %1, 3"]
        );
        assert_eq!(
            ptx(&all(Type::I64, arg(2))),
            ["match.all.sync.b64 %0|%4, %1, %2"]
        );
        assert_eq!(
            any(Type::F16, ALL_LANES).legal(&Target::SM_90A),
            Err("match_any does not support f16; the type must have 32 or 64 bits".into())
        );
        assert!(all(Type::Pred, ALL_LANES).legal(&Target::SM_90A).is_err());
        let fault = Warp::new().with_active(1).fault(&any(Type::U32, ALL_LANES));
        assert_eq!(fault.kind, FaultKind::Convergence);
        assert_eq!(
            all(Type::U32, ALL_LANES).uniform(Uniform::Lane),
            Uniform::Warp
        );
        assert_eq!(
            any(Type::U32, ALL_LANES).uniform(Uniform::Lane),
            Uniform::Lane
        );
    }
}
