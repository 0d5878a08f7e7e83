//! Integer and floating-point arithmetic.
//!
//! Integers wrap. Floats round to nearest even and keep subnormals. The PTX
//! has `.rn`, so that ptxas does not contract multiplications and additions.

use super::{Exactness, Instr, OpInfo};
use crate::domain::Domain;
use crate::lanes::{lanewise, map1};
use crate::machine::{Asm, Effects, Exec, ExecStatus, Machine};
use crate::types::Type;
use crate::value::{Operand, RegId};

/// Copies an operand to a register.
#[derive(Clone, PartialEq, Debug)]
pub struct Mov {
    /// Any type.
    pub ty: Type,
    /// Result.
    pub dst: RegId,
    /// Source.
    pub src: Operand,
}

impl Instr for Mov {
    const INFO: OpInfo = OpInfo {
        name: "mov",
        ptx: "mov.{pred,b16,b32,b64}",
        doc: "copies a register or a constant",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("mov.{}", self.ty)
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        e.arg(self.src, self.ty);
    }
    fn asm(&self, a: &mut dyn Asm) {
        print_copy(a, self.ty, self.dst, self.src);
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        copy(m, self.ty, self.dst, self.src);
        Ok(ExecStatus::Completed)
    }
    fn transfer<D: Domain>(&self, d: &mut D) {
        let v = d.read(self.src, self.ty);
        d.write(self.dst, v);
    }
}

/// Copies a value. The checker treats the copy as an arbitrary value of its type.
///
/// If all lanes have the same source, they have the same copy. The checker does not relate the copy to the
/// source: a proof holds whatever the source is.
#[derive(Clone, PartialEq, Debug)]
pub struct Opaque {
    /// Any type.
    pub ty: Type,
    /// Result.
    pub dst: RegId,
    /// Source.
    pub a: Operand,
}

impl Instr for Opaque {
    const INFO: OpInfo = OpInfo {
        name: "opaque",
        ptx: "mov.{pred,b16,b32,b64}",
        doc: "copies a value; for the checker the copy may be any value",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("opaque.{}", self.ty)
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        e.arg(self.a, self.ty);
    }
    fn asm(&self, a: &mut dyn Asm) {
        print_copy(a, self.ty, self.dst, self.a);
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        copy(m, self.ty, self.dst, self.a);
        Ok(ExecStatus::Completed)
    }
}

/// Returns the untyped suffix of a register move; a `u8` has a 16-bit register.
pub(crate) fn register_bits(ty: Type) -> &'static str {
    match ty {
        Type::U8 => "b16",
        ty => ty.bits(),
    }
}

/// Prints a copy of any type.
fn print_copy(a: &mut dyn Asm, ty: Type, dst: RegId, src: Operand) {
    let d = a.reg(dst);
    match (ty, src) {
        // PTX has no mov of a predicate constant.
        (Type::Pred, Operand::Imm(x)) => {
            a.emit(format!("setp.ne.u32 {d}, {}, 0", u32::from(x != 0)));
        }
        (ty, src) => {
            let s = a.operand(src, ty);
            a.emit(format!("mov.{} {d}, {s}", register_bits(ty)));
        }
    }
}

/// Copies the bits of an operand to a register of the same width.
pub(crate) fn copy<M: Machine>(m: &mut M, ty: Type, dst: RegId, src: Operand) {
    match ty.bytes() {
        0 => {
            let v = m.pred(src);
            m.set_pred(dst, v);
        }
        1 => map1(m, dst, src, |x: u8| x),
        2 => map1(m, dst, src, |x: u16| x),
        4 => map1(m, dst, src, |x: u32| x),
        _ => map1(m, dst, src, |x: u64| x),
    }
}

lanewise! {
    Add "add": "adds; integers wrap, floats round to nearest even",
        ptx "add{.rn}.{u16,u32,s32,u64,s64,f32,f16,bf16,f16x2,bf16x2}",
        types [U16, U32, I32, U64, I64, F32, F16, Bf16, F16x2, Bf16x2],
        (a: T, b: T) => Number::add, transfer add;

    Sub "sub": "subtracts; integers wrap, floats round to nearest even",
        ptx "sub{.rn}.{u16,u32,s32,u64,s64,f32,f16,bf16,f16x2,bf16x2}",
        types [U16, U32, I32, U64, I64, F32, F16, Bf16, F16x2, Bf16x2],
        (a: T, b: T) => Number::sub, transfer sub;

    Mul "mul": "multiplies; the low half for integers, rounded to nearest even for floats",
        ptx "mul{.lo}{.rn}.{u16,u32,s32,u64,s64,f32,f16,bf16,f16x2,bf16x2}",
        types [U16, U32, I32, U64, I64, F32, F16, Bf16, F16x2, Bf16x2],
        (a: T, b: T) => Number::mul, transfer mul;

    MulHi "mul_hi": "multiplies integers and returns the high half",
        ptx "mul.hi.{u32,s32,u64,s64}",
        types [U32, I32, U64, I64],
        (a: T, b: T) => Integer::mul_hi;

    MulWide "mul_wide": "multiplies 32-bit integers to a 64-bit product",
        ptx "mul.wide.{u32,s32}",
        types [U32, I32],
        (a: T, b: T) => WideMultiply::mul_wide, transfer mul_wide;

    Mad "mad": "adds c to the low half of a times b",
        ptx "mad.lo.{u32,s32,u64,s64}",
        types [U32, I32, U64, I64],
        (a: T, b: T, c: T) => Number::mul_add, transfer mad;

    MadWide "mad_wide": "adds a 64-bit c to the 64-bit product of 32-bit integers",
        ptx "mad.wide.{u32,s32}",
        types [U32, I32],
        (a: T, b: T, c: wide) => WideMultiply::mad_wide, transfer mad_wide;

    Fma "fma": "fused multiply-add: a times b plus c with one rounding to nearest even",
        ptx "fma.rn.{f32,f16,bf16,f16x2,bf16x2}",
        types [F32, F16, Bf16, F16x2, Bf16x2],
        (a: T, b: T, c: T) => Number::mul_add;

    Div "div": "divides; integers round toward zero (all ones if b is zero), floats to nearest even",
        ptx "div{.rn}.{u32,s32,u64,s64,f32}",
        types [U32, I32, U64, I64, F32],
        (a: T, b: T) => Divide::div, transfer div;

    Rem "rem": "remainder with the sign of a; all ones if b is zero",
        ptx "rem.{u32,s32,u64,s64}",
        types [U32, I32, U64, I64],
        (a: T, b: T) => Integer::rem, transfer rem;

    Neg "neg": "negates; the minimum integer maps to itself",
        ptx "neg.{s32,s64,f32,f16,bf16,f16x2,bf16x2}",
        types [I32, I64, F32, F16, Bf16, F16x2, Bf16x2],
        (a: T) => Signed::neg;

    Abs "abs": "absolute value; the minimum integer maps to itself",
        ptx "abs.{s32,s64,f32,f16,bf16,f16x2,bf16x2}",
        types [I32, I64, F32, F16, Bf16, F16x2, Bf16x2],
        (a: T) => Signed::abs;

    Min "min": "minimum; if one operand is a NaN, the other; −0 < +0",
        ptx "min.{u16,u32,s32,u64,s64,f32,f16,bf16,f16x2,bf16x2}",
        types [U16, U32, I32, U64, I64, F32, F16, Bf16, F16x2, Bf16x2],
        (a: T, b: T) => Number::min, transfer min;

    Max "max": "maximum; if one operand is a NaN, the other; −0 < +0",
        ptx "max.{u16,u32,s32,u64,s64,f32,f16,bf16,f16x2,bf16x2}",
        types [U16, U32, I32, U64, I64, F32, F16, Bf16, F16x2, Bf16x2],
        (a: T, b: T) => Number::max, transfer max;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::HalfFloat;
    use crate::lanes::fake::{Warp, arg, eval, ptx, reg};
    use crate::target::Target;
    use crate::types::{Bf16x2, F16x2};
    use half::{bf16, f16};

    const TINY: f32 = f32::from_bits(1);
    const NAN: u32 = 0x7fff_ffff;

    macro_rules! binary {
        ($name:ident, $ty:ident) => {
            $name {
                ty: Type::$ty,
                dst: reg(0),
                a: arg(1),
                b: arg(2),
            }
        };
    }
    macro_rules! ternary {
        ($name:ident, $ty:ident) => {
            $name {
                ty: Type::$ty,
                dst: reg(0),
                a: arg(1),
                b: arg(2),
                c: arg(3),
            }
        };
    }
    macro_rules! unary {
        ($name:ident, $ty:ident) => {
            $name {
                ty: Type::$ty,
                dst: reg(0),
                a: arg(1),
            }
        };
    }

    fn f32s(op: &impl Instr, rows: &[[f32; 2]]) -> Vec<u32> {
        eval(op, rows)
    }
    fn bits(x: f32) -> u32 {
        x.to_bits()
    }

    #[test]
    fn a_mov_writes_only_active_lanes() {
        let mov = |ty| Mov {
            ty,
            dst: reg(0),
            src: arg(1),
        };
        let warp = Warp::new().with(1, &[7u64 << 40; 32]).with_active(0b101);
        let got = warp.run(&mov(Type::U64)).read::<u64>(0);
        assert_eq!(got[..4], [7 << 40, 0, 7 << 40, 0]);
        let warp = Warp::new().with_pred(1, 0xf0).with_active(0x33);
        assert_eq!(warp.run(&mov(Type::Pred)).read_pred(0), 0x30);
    }

    #[test]
    fn a_mov_prints_its_width() {
        let mov = |ty, src| {
            ptx(&Mov {
                ty,
                dst: reg(0),
                src,
            })
            .join("; ")
        };
        assert_eq!(mov(Type::U8, arg(1)), "mov.b16 %0, %1");
        assert_eq!(mov(Type::Bf16x2, arg(1)), "mov.b32 %0, %1");
        assert_eq!(mov(Type::F32, Operand::imm(1f32)), "mov.b32 %0, 0f3F800000");
        assert_eq!(mov(Type::Pred, arg(1)), "mov.pred %0, %1");
        assert_eq!(mov(Type::Pred, Operand::imm(true)), "setp.ne.u32 %0, 1, 0");
    }

    #[test]
    fn integers_wrap() {
        assert_eq!(
            eval::<_, u16, 2>(&binary!(Add, U16), &[[0xffffu16, 2]]),
            [1]
        );
        assert_eq!(
            eval::<_, u32, 2>(&binary!(Sub, U32), &[[1u32, 2]]),
            [u32::MAX]
        );
        assert_eq!(
            eval::<_, i32, 2>(&binary!(Add, I32), &[[i32::MAX, 1]]),
            [i32::MIN]
        );
        assert_eq!(eval::<_, u64, 2>(&binary!(Add, U64), &[[u64::MAX, 3]]), [2]);
        assert_eq!(
            eval::<_, i64, 2>(&binary!(Sub, I64), &[[i64::MIN, 1]]),
            [i64::MAX]
        );
        assert_eq!(
            eval::<_, u16, 2>(&binary!(Mul, U16), &[[0x1234u16, 0x100]]),
            [0x3400]
        );
        let big = 0x1_0000_0001u64;
        assert_eq!(
            eval::<_, u64, 2>(&binary!(Mul, U64), &[[big, big]]),
            [0x2_0000_0001]
        );
        assert_eq!(eval::<_, i32, 2>(&binary!(Mul, I32), &[[-3, 7]]), [-21]);
    }

    #[test]
    fn mul_hi_and_mul_form_the_full_product() {
        let max = u32::MAX;
        assert_eq!(
            eval::<_, u32, 2>(&binary!(MulHi, U32), &[[max, max]]),
            [max - 1]
        );
        let hi = binary!(MulHi, I32);
        let rows = [[i32::MIN, i32::MIN], [-1, 1], [i32::MIN, i32::MAX]];
        assert_eq!(eval::<_, i32, 2>(&hi, &rows), [1 << 30, -1, -(1 << 30)]);
        let hi = eval::<_, u64, 2>(&binary!(MulHi, U64), &[[u64::MAX, u64::MAX]]);
        assert_eq!(hi, [u64::MAX - 1]);
        assert_eq!(
            eval::<_, i64, 2>(&binary!(MulHi, I64), &[[i64::MIN, 2]]),
            [-1]
        );
    }

    #[test]
    fn mul_wide_is_exact() {
        let max = u32::MAX;
        let wide = eval::<_, u64, 2>(&binary!(MulWide, U32), &[[max, max]]);
        assert_eq!(wide, [0xffff_fffe_0000_0001]);
        let wide = eval::<_, i64, 2>(&binary!(MulWide, I32), &[[i32::MIN, i32::MIN], [-2, 3]]);
        assert_eq!(wide, [1 << 62, -6]);
        let warp = Warp::new()
            .with(1, &[max, 2])
            .with(2, &[max, 3])
            .with(3, &[u64::MAX, u64::MAX]);
        let got = warp.run(&ternary!(MadWide, U32)).read::<u64>(0);
        assert_eq!(got[..2], [0xffff_fffe_0000_0000, 5]);
    }

    #[test]
    fn mad_wraps() {
        let got = eval::<_, u32, 3>(&ternary!(Mad, U32), &[[1 << 31, 2, 9], [5, 6, 7]]);
        assert_eq!(got, [9, 37]);
        let got = eval::<_, i64, 3>(&ternary!(Mad, I64), &[[i64::MAX, 1, 1], [-5, 6, 7]]);
        assert_eq!(got, [i64::MIN, -23]);
    }

    #[test]
    fn integer_division_truncates_and_division_by_zero_returns_all_ones() {
        let rows = [[7, 2], [-7, 2], [7, -2], [i32::MIN, -1], [5, 0], [-5, 0]];
        assert_eq!(
            eval::<_, i32, 2>(&binary!(Div, I32), &rows),
            [3, -3, -3, i32::MIN, -1, -1]
        );
        assert_eq!(
            eval::<_, i32, 2>(&binary!(Rem, I32), &rows),
            [1, -1, 1, 0, -1, -1]
        );
        let rows = [[u64::MAX, 10], [3, 0]];
        assert_eq!(
            eval::<_, u64, 2>(&binary!(Div, U64), &rows),
            [u64::MAX / 10, u64::MAX]
        );
        assert_eq!(eval::<_, u64, 2>(&binary!(Rem, U64), &rows), [5, u64::MAX]);
    }

    #[test]
    fn f32_rounds_to_even_and_keeps_subnormals() {
        let half_ulp = f32::EPSILON / 2.0;
        let got = f32s(
            &binary!(Add, F32),
            &[
                [1.0, half_ulp],                        // tie, down to even
                [1.0 + f32::EPSILON, half_ulp],         // tie, up to even
                [1.0, half_ulp * (1.0 + f32::EPSILON)], // just above the tie
                [TINY, TINY],
                [f32::MAX, f32::MAX],
                [-0.0, -0.0],
                [-0.0, 0.0],
            ],
        );
        assert_eq!(
            got,
            [
                0x3f80_0000,
                0x3f80_0002,
                0x3f80_0001,
                2,
                0x7f80_0000,
                1 << 31,
                0
            ]
        );
        let got = f32s(&binary!(Sub, F32), &[[1.0, 1.0], [f32::MIN_POSITIVE, TINY]]);
        assert_eq!(got, [0, 0x007f_ffff]);
        let got = f32s(
            &binary!(Mul, F32),
            &[[TINY, 0.5], [TINY, 1.5], [TINY, -0.75], [3.0, -0.0]],
        );
        assert_eq!(got, [0, 2, 1 << 31 | 1, 1 << 31]);
        let got = f32s(
            &binary!(Div, F32),
            &[[1.0, 3.0], [1.0, -0.0], [TINY, 2.0], [2.0, f32::INFINITY]],
        );
        assert_eq!(got, [0x3eaa_aaab, bits(f32::NEG_INFINITY), 0, 0]);
    }

    #[test]
    fn every_nan_result_is_canonical() {
        let (inf, nan) = (f32::INFINITY, f32::from_bits(0xffc1_2345));
        assert_eq!(
            f32s(&binary!(Add, F32), &[[inf, -inf], [nan, 1.0]]),
            [NAN; 2]
        );
        assert_eq!(
            f32s(&binary!(Sub, F32), &[[inf, inf], [1.0, nan]]),
            [NAN; 2]
        );
        assert_eq!(
            f32s(&binary!(Mul, F32), &[[inf, 0.0], [nan, nan]]),
            [NAN; 2]
        );
        assert_eq!(
            f32s(&binary!(Div, F32), &[[0.0, 0.0], [inf, inf]]),
            [NAN; 2]
        );
        let got = eval::<_, u32, 3>(&ternary!(Fma, F32), &[[inf, 0.0, 1.0], [1.0, 1.0, nan]]);
        assert_eq!(got, [NAN; 2]);
        assert_eq!(eval::<_, u32, 1>(&unary!(Neg, F32), &[[nan]]), [NAN]);
        assert_eq!(
            eval::<_, u16, 1>(&unary!(Abs, F16), &[[0xfe01u16]]),
            [0x7fff]
        );
        let half = |x: u16| f16::from_bits(x);
        let got = eval::<_, u16, 2>(&binary!(Sub, F16), &[[half(0x7c00), half(0x7c00)]]);
        assert_eq!(got, [0x7fff]);
        let got = eval::<_, u16, 2>(&binary!(Mul, Bf16), &[[bf16::INFINITY, bf16::ZERO]]);
        assert_eq!(got, [0x7fff]);
    }

    #[test]
    fn fma_rounds_once() {
        // (1 + 2^-12)² = 1 + 2^-11 + 2^-24; an intermediate rounding loses the last term.
        let x = 1.0 + 2f32.powi(-12);
        let row = [x, x, -(1.0 + 2f32.powi(-11))];
        assert_eq!(
            eval::<_, f32, 3>(&ternary!(Fma, F32), &[row]),
            [2f32.powi(-24)]
        );
        // (1 + 2^-6)² = 1 + 2^-5 + 2^-12 in f16.
        let x = f16::from_f32(1.0 + 2f32.powi(-6));
        let row = [x, x, f16::from_f32(-(1.0 + 2f32.powi(-5)))];
        assert_eq!(
            eval::<_, f16, 3>(&ternary!(Fma, F16), &[row]),
            [f16::from_f32(2f32.powi(-12))]
        );
    }

    #[test]
    fn pairs_compute_elementwise() {
        let pair = |lo: f32, hi: f32| F16x2::new(f16::round(lo), f16::round(hi));
        let (a, b, c) = (pair(1.5, -2.0), pair(0.25, 8.0), pair(-1.0, 100.0));
        let assert_pair = |got: Vec<F16x2>, want| assert_eq!(got, [want]);
        assert_pair(eval(&binary!(Add, F16x2), &[[a, b]]), pair(1.75, 6.0));
        assert_pair(eval(&binary!(Sub, F16x2), &[[a, b]]), pair(1.25, -10.0));
        assert_pair(eval(&binary!(Mul, F16x2), &[[a, b]]), pair(0.375, -16.0));
        assert_pair(eval(&binary!(Min, F16x2), &[[a, b]]), pair(0.25, -2.0));
        assert_pair(eval(&binary!(Max, F16x2), &[[a, b]]), pair(1.5, 8.0));
        assert_pair(
            eval(&ternary!(Fma, F16x2), &[[a, b, c]]),
            pair(-0.625, 84.0),
        );
        assert_pair(eval(&unary!(Neg, F16x2), &[[a]]), pair(-1.5, 2.0));
        let pair = |lo: f32, hi: f32| Bf16x2::new(bf16::round(lo), bf16::round(hi));
        let got = eval::<_, Bf16x2, 3>(
            &ternary!(Fma, Bf16x2),
            &[[pair(1.0, 2.0), pair(3.0, 4.0), pair(5.0, -6.0)]],
        );
        assert_eq!(got, [pair(8.0, 2.0)]);
        let got = eval::<_, Bf16x2, 1>(&unary!(Abs, Bf16x2), &[[pair(-3.0, 4.0)]]);
        assert_eq!(got, [pair(3.0, 4.0)]);
    }

    #[test]
    fn min_and_max_prefer_numbers_and_order_zeros() {
        let nan = f32::from_bits(0xffc0_0001);
        let rows = [
            [1.0, 2.0],
            [-0.0, 0.0],
            [0.0, -0.0],
            [nan, 3.0],
            [4.0, nan],
            [nan, nan],
            [-1.0, -2.0],
        ];
        let got = f32s(&binary!(Min, F32), &rows);
        assert_eq!(
            got,
            [
                bits(1.0),
                1 << 31,
                1 << 31,
                bits(3.0),
                bits(4.0),
                NAN,
                bits(-2.0)
            ]
        );
        let got = f32s(&binary!(Max, F32), &rows);
        assert_eq!(
            got,
            [bits(2.0), 0, 0, bits(3.0), bits(4.0), NAN, bits(-1.0)]
        );
        let rows = rows.map(|r| r.map(f16::round));
        let got = eval::<_, u16, 2>(&binary!(Max, F16), &rows);
        assert_eq!(got, [0x4000, 0, 0, 0x4200, 0x4400, 0x7fff, 0xbc00]);
        let rows = rows.map(|r| r.map(|h| bf16::round(h.widen())));
        let got = eval::<_, u16, 2>(&binary!(Min, Bf16), &rows);
        assert_eq!(
            got,
            [0x3f80, 0x8000, 0x8000, 0x4040, 0x4080, 0x7fff, 0xc000]
        );
        assert_eq!(eval::<_, i32, 2>(&binary!(Min, I32), &[[-1, 1]]), [-1]);
        assert_eq!(eval::<_, u32, 2>(&binary!(Min, U32), &[[u32::MAX, 1]]), [1]);
        assert_eq!(
            eval::<_, u16, 2>(&binary!(Max, U16), &[[0x8000u16, 1]]),
            [0x8000]
        );
    }

    #[test]
    fn neg_and_abs_keep_the_minimum_integer() {
        assert_eq!(
            eval::<_, i32, 1>(&unary!(Neg, I32), &[[5], [i32::MIN]]),
            [-5, i32::MIN]
        );
        assert_eq!(
            eval::<_, i64, 1>(&unary!(Abs, I64), &[[-5], [i64::MIN]]),
            [5, i64::MIN]
        );
        assert_eq!(
            eval::<_, u32, 1>(&unary!(Neg, F32), &[[0f32], [-TINY]]),
            [1 << 31, 1]
        );
        assert_eq!(eval::<_, f32, 1>(&unary!(Abs, F32), &[[-2.5f32]]), [2.5]);
        assert_eq!(
            eval::<_, u16, 1>(&unary!(Neg, Bf16), &[[bf16::ONE]]),
            [0xbf80]
        );
    }

    #[test]
    fn arithmetic_prints_its_rounding_and_type() {
        let assert_ptx = |lines: Vec<String>, want: &str| assert_eq!(lines.join("; "), want);
        assert_ptx(ptx(&binary!(Add, U32)), "add.u32 %0, %1, %2");
        assert_ptx(ptx(&binary!(Add, F32)), "add.rn.f32 %0, %1, %2");
        assert_ptx(ptx(&binary!(Sub, Bf16x2)), "sub.rn.bf16x2 %0, %1, %2");
        assert_ptx(ptx(&binary!(Mul, I64)), "mul.lo.s64 %0, %1, %2");
        assert_ptx(ptx(&binary!(Mul, F16)), "mul.rn.f16 %0, %1, %2");
        assert_ptx(ptx(&binary!(MulHi, I32)), "mul.hi.s32 %0, %1, %2");
        assert_ptx(ptx(&binary!(MulWide, U32)), "mul.wide.u32 %0, %1, %2");
        assert_ptx(ptx(&ternary!(Mad, U64)), "mad.lo.u64 %0, %1, %2, %3");
        assert_ptx(ptx(&ternary!(MadWide, I32)), "mad.wide.s32 %0, %1, %2, %3");
        assert_ptx(ptx(&ternary!(Fma, Bf16)), "fma.rn.bf16 %0, %1, %2, %3");
        assert_ptx(ptx(&binary!(Div, I32)), "div.s32 %0, %1, %2");
        assert_ptx(ptx(&binary!(Div, F32)), "div.rn.f32 %0, %1, %2");
        assert_ptx(ptx(&binary!(Min, Bf16)), "min.bf16 %0, %1, %2");
        assert_ptx(ptx(&unary!(Abs, I32)), "abs.s32 %0, %1");
        // PTX has no constants of 16-bit floats.
        let add = |ty, b| {
            ptx(&Add {
                ty,
                dst: reg(0),
                a: arg(1),
                b,
            })
        };
        assert_ptx(
            add(Type::F32, Operand::imm(2f32)),
            "add.rn.f32 %0, %1, 0f40000000",
        );
        assert_ptx(
            add(Type::F16, Operand::imm(f16::ONE)),
            "mov.b16 %t0, 0x3c00; add.rn.f16 %0, %1, %t0",
        );
    }

    #[test]
    fn an_unsupported_type_is_rejected() {
        let op = binary!(Div, F16);
        assert_eq!(
            op.legal(&Target::SM_90A),
            Err("div does not support f16; supported types: u32, i32, u64, i64, f32".into())
        );
        assert_eq!(Warp::new().fault(&op).text, "does not support f16");
        assert_eq!(binary!(Div, F32).legal(&Target::SM_90A), Ok(()));
    }

    #[test]
    fn the_op_table_lists_every_legal_type() {
        fn assert_types_listed<I: Instr>(make: impl Fn(Type) -> I) {
            let (_, choices) = I::INFO.ptx.rsplit_once(".{").unwrap_or_default();
            let choices: Vec<_> = choices.trim_end_matches('}').split(',').collect();
            let legal = Type::ALL
                .map(&make)
                .into_iter()
                .filter(|op| op.legal(&Target::SM_90A).is_ok());
            let mut seen = Vec::new();
            for op in legal {
                let line = ptx(&op).pop().unwrap_or_default();
                let mnemonic = line.split(' ').next().unwrap_or_default();
                let suffix = mnemonic.rsplit('.').next().unwrap_or_default().to_owned();
                assert!(
                    choices.contains(&&*suffix),
                    "{line} is not in {}",
                    I::INFO.ptx
                );
                seen.push(suffix);
            }
            assert!(
                choices.iter().all(|c| seen.contains(&(*c).to_owned())),
                "{}",
                I::INFO.ptx
            );
        }
        macro_rules! for_each_op {
            ($($name:ident($($arg:ident),*))*) => {$(
                assert_types_listed(|ty| $name { ty, dst: reg(0), $($arg: arg(1)),* });
            )*};
        }
        use crate::ops::bits::*;
        for_each_op! {
            Add(a, b) Sub(a, b) Mul(a, b) MulHi(a, b) MulWide(a, b) Mad(a, b, c) MadWide(a, b, c)
            Fma(a, b, c) Div(a, b) Rem(a, b) Neg(a) Abs(a) Min(a, b) Max(a, b)
            And(a, b) Or(a, b) Xor(a, b) Not(a) Shl(a, b) Shr(a, b) Popc(a) Clz(a) Bfind(a) Brev(a)
            Bfe(a, pos, len)
        }
    }
}
