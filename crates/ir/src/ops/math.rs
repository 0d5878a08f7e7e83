//! Functions of the special function unit (SFU), and the correctly rounded square root.
//!
//! The hardware approximates; the CPU computes in `f64` and rounds once. Each
//! op states the error bound of the PTX ISA.

use super::{Exactness, Instr, OpInfo};
use crate::lanes::{FloatBits, HalfFloat, map1, printed_operand, unsupported_type};
use crate::machine::{Asm, Effects, Exec, ExecStatus, Machine};
use crate::target::Target;
use crate::types::{Bf16x2, F16x2, Type};
use crate::value::{Operand, RegId};
use half::{bf16, f16};

/// Flushes a subnormal to zero of the same sign.
#[inline]
fn flush(x: f32) -> f32 {
    if x.abs() < f32::MIN_POSITIVE {
        0f32.copysign(x)
    } else {
        x
    }
}

/// Applies `f` to an `f32`; NaNs become canonical, and `ftz` flushes a subnormal operand and result.
#[inline]
fn approximate(x: f32, ftz: bool, f: impl Fn(f64) -> f64) -> f32 {
    let x = if ftz { flush(x) } else { x };
    let y = f(f64::from(x)) as f32;
    let y = if ftz { flush(y) } else { y };
    y.canonical()
}

/// Applies `f` to a 16-bit float and rounds once.
#[inline]
fn approximate_16_bit<T: HalfFloat>(x: T, f: impl Fn(f64) -> f64) -> T {
    T::round_f64(f(f64::from(x.widen())))
}

/// `ex2` of a `bf16`: flushes a subnormal result.
#[inline]
fn ex2_bf16(x: bf16) -> bf16 {
    bf16::round(flush(approximate_16_bit(x, f64::exp2).widen()))
}

/// The types of [`Ex2`] and [`Tanh`].
const FLOATS: [Type; 5] = [Type::F32, Type::F16, Type::Bf16, Type::F16x2, Type::Bf16x2];

/// Returns `.ftz` or nothing.
fn suffix(ftz: bool) -> &'static str {
    if ftz { ".ftz" } else { "" }
}

/// Computes 2 to the power `a`.
#[derive(Clone, PartialEq, Debug)]
pub struct Ex2 {
    /// Any float.
    pub ty: Type,
    /// Result.
    pub dst: RegId,
    /// The exponent.
    pub a: Operand,
    /// Flush subnormals to zero, for `F32`. `F16` never flushes, `Bf16` always does.
    pub ftz: bool,
}

impl Ex2 {
    fn flushes(&self) -> bool {
        match self.ty {
            Type::F32 => self.ftz,
            ty => matches!(ty, Type::Bf16 | Type::Bf16x2),
        }
    }
}

impl Instr for Ex2 {
    const INFO: OpInfo = OpInfo {
        name: "ex2",
        ptx: "ex2.approx{.ftz}.{f32,f16,bf16,f16x2,bf16x2}",
        doc: "2 to the power a",
        exactness: Exactness::Within(
            "relative error 2^-22 for f32, 2^-9.9 for f16, 2^-7 for bf16; 1 ulp if the result is subnormal",
        ),
    };
    fn name(&self) -> String {
        format!("ex2{}.{}", suffix(self.flushes()), self.ty)
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        e.arg(self.a, self.ty);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (d, x) = (a.reg(self.dst), printed_operand(a, self.a, self.ty));
        a.emit(format!(
            "ex2.approx{}.{} {d}, {x}",
            suffix(self.flushes()),
            self.ty.ptx()
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let (d, a, ftz) = (self.dst, self.a, self.ftz);
        match self.ty {
            Type::F32 => map1(m, d, a, |x| approximate(x, ftz, f64::exp2)),
            Type::F16 => map1(m, d, a, |h: f16| approximate_16_bit(h, f64::exp2)),
            Type::F16x2 => map1(m, d, a, |x: F16x2| {
                x.map(|h| approximate_16_bit(h, f64::exp2))
            }),
            Type::Bf16 => map1(m, d, a, ex2_bf16),
            Type::Bf16x2 => map1(m, d, a, |x: Bf16x2| x.map(ex2_bf16)),
            ty => return Err(unsupported_type(ty)),
        }
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        super::require_type("ex2", self.ty, &FLOATS)
    }
}

/// Declares an `f32` approximation with optional `.ftz`.
macro_rules! approximations {
    ($($name:ident $text:literal: $doc:literal, within $bound:literal, $f:expr;)*) => {$(
        #[doc = concat!("`", $text, ".approx{.ftz}.f32`: ", $doc, ".")]
        #[derive(Clone, PartialEq, Debug)]
        pub struct $name {
            /// Result (`F32`).
            pub dst: RegId,
            /// Operand (`F32`).
            pub a: Operand,
            /// Flush a subnormal operand and result to zero.
            pub ftz: bool,
        }

        impl Instr for $name {
            const INFO: OpInfo = OpInfo {
                name: $text,
                ptx: concat!($text, ".approx{.ftz}.f32"),
                doc: $doc,
                exactness: Exactness::Within($bound),
            };
            fn name(&self) -> String {
                format!(concat!($text, "{}.f32"), suffix(self.ftz))
            }
            fn effects(&self, e: &mut dyn Effects) {
                e.def(self.dst);
                e.arg(self.a, Type::F32);
            }
            fn asm(&self, a: &mut dyn Asm) {
                let (d, x) = (a.reg(self.dst), a.operand(self.a, Type::F32));
                a.emit(format!(concat!($text, ".approx{}.f32 {}, {}"), suffix(self.ftz), d, x));
            }
            fn exec<M: Machine>(&self, m: &mut M) -> Exec {
                let ftz = self.ftz;
                map1(m, self.dst, self.a, |x| approximate(x, ftz, $f));
                Ok(ExecStatus::Completed)
            }
        }
    )*};
}

approximations! {
    Lg2 "lg2": "base-2 logarithm",
        within "absolute error 2^-22 for operands from 0.5 to 2, relative error 2^-22 elsewhere", f64::log2;
    Rcp "rcp": "reciprocal",
        within "absolute error 2^-23 for operands from 1 to 2 (1 ulp)", f64::recip;
    Rsqrt "rsqrt": "reciprocal square root",
        within "absolute error 2^-22.4 for operands from 1 to 4 (2 ulp)", |x| x.sqrt().recip();
}

/// `sqrt.rn.f32`: square root, rounded to nearest even.
#[derive(Clone, PartialEq, Debug)]
pub struct Sqrt {
    /// Result (`F32`).
    pub dst: RegId,
    /// Operand (`F32`).
    pub a: Operand,
}

impl Instr for Sqrt {
    const INFO: OpInfo = OpInfo {
        name: "sqrt",
        ptx: "sqrt.rn.f32",
        doc: "square root, rounded to nearest even",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "sqrt.f32".into()
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        e.arg(self.a, Type::F32);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (d, x) = (a.reg(self.dst), a.operand(self.a, Type::F32));
        a.emit(format!("sqrt.rn.f32 {d}, {x}"));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        map1(m, self.dst, self.a, |x: f32| x.sqrt().canonical());
        Ok(ExecStatus::Completed)
    }
}

/// Computes the hyperbolic tangent.
#[derive(Clone, PartialEq, Debug)]
pub struct Tanh {
    /// Any float.
    pub ty: Type,
    /// Result.
    pub dst: RegId,
    /// Operand.
    pub a: Operand,
}

impl Instr for Tanh {
    const INFO: OpInfo = OpInfo {
        name: "tanh",
        ptx: "tanh.approx.{f32,f16,bf16,f16x2,bf16x2}",
        doc: "hyperbolic tangent",
        exactness: Exactness::Within(
            "relative error 2^-11 for f32; absolute error 2^-10.987 for f16, 2^-8 for bf16",
        ),
    };
    fn name(&self) -> String {
        format!("tanh.{}", self.ty)
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        e.arg(self.a, self.ty);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (d, x) = (a.reg(self.dst), printed_operand(a, self.a, self.ty));
        a.emit(format!("tanh.approx.{} {d}, {x}", self.ty.ptx()));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let (d, a) = (self.dst, self.a);
        match self.ty {
            Type::F32 => map1(m, d, a, |x| approximate(x, false, f64::tanh)),
            Type::F16 => map1(m, d, a, |h: f16| approximate_16_bit(h, f64::tanh)),
            Type::Bf16 => map1(m, d, a, |h: bf16| approximate_16_bit(h, f64::tanh)),
            Type::F16x2 => map1(m, d, a, |x: F16x2| {
                x.map(|h| approximate_16_bit(h, f64::tanh))
            }),
            Type::Bf16x2 => map1(m, d, a, |x: Bf16x2| {
                x.map(|h| approximate_16_bit(h, f64::tanh))
            }),
            ty => return Err(unsupported_type(ty)),
        }
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        super::require_type("tanh", self.ty, &FLOATS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::fake::{arg, eval, ptx, reg};

    const NAN: u32 = 0x7fff_ffff;
    const INF: f32 = f32::INFINITY;
    const TINY: f32 = f32::from_bits(1);

    fn f32s(op: &impl Instr, xs: &[f32]) -> Vec<f32> {
        let rows: Vec<_> = xs.iter().map(|&x| [x]).collect();
        eval(op, &rows)
    }
    fn bits(op: &impl Instr, xs: &[f32]) -> Vec<u32> {
        f32s(op, xs).into_iter().map(f32::to_bits).collect()
    }
    fn ex2(ty: Type, ftz: bool) -> Ex2 {
        Ex2 {
            ty,
            dst: reg(0),
            a: arg(1),
            ftz,
        }
    }

    #[test]
    fn ex2_is_exact_for_integers_and_flushes_by_type() {
        let got = f32s(
            &ex2(Type::F32, false),
            &[0.0, -0.0, 10.0, -1.0, 128.0, -INF, INF, TINY],
        );
        assert_eq!(got, [1.0, 1.0, 1024.0, 0.5, INF, 0.0, INF, 1.0]);
        assert_eq!(
            f32s(&ex2(Type::F32, false), &[0.5]),
            [std::f32::consts::SQRT_2]
        );
        assert_eq!(
            bits(&ex2(Type::F32, false), &[-149.0, -151.0, f32::NAN]),
            [1, 0, NAN]
        );
        assert_eq!(
            bits(&ex2(Type::F32, true), &[-126.0, -126.5, -149.0]),
            [0x0080_0000, 0, 0]
        );
        let eval_pair = |ty, x: u32| eval::<u32, u32, 1>(&ex2(ty, false), &[[x]])[0];
        assert_eq!(eval_pair(Type::F16x2, 0x4000_bc00), 0x4400_3800); // 2, -1
        assert_eq!(eval_pair(Type::F16x2, 0xce00_7e00), 0x0001_7fff); // -24: subnormal; NaN
        assert_eq!(eval_pair(Type::Bf16x2, 0x4040_fc80), 0x4100_0000); // 3, -2^122
        assert_eq!(eval_pair(Type::Bf16x2, 0xc2fe_c2fc), 0x0000_0080); // -127 is flushed, -126 is not
        let eval_16_bit = |ty, x: u16| eval::<u16, u16, 1>(&ex2(ty, false), &[[x]])[0];
        assert_eq!(
            (
                eval_16_bit(Type::F16, 0xbc00),
                eval_16_bit(Type::F16, 0xce00)
            ),
            (0x3800, 1)
        );
        assert_eq!(
            (
                eval_16_bit(Type::Bf16, 0x4040),
                eval_16_bit(Type::Bf16, 0xc2fe)
            ),
            (0x4100, 0)
        );
    }

    #[test]
    fn lg2_handles_zeros_negatives_and_subnormals() {
        let lg2 = |ftz| Lg2 {
            dst: reg(0),
            a: arg(1),
            ftz,
        };
        let got = f32s(&lg2(false), &[1.0, 8.0, 0.125, 0.0, -0.0, INF, TINY]);
        assert_eq!(got, [0.0, 3.0, -3.0, -INF, -INF, INF, -149.0]);
        assert_eq!(bits(&lg2(false), &[-1.0, -INF]), [NAN; 2]);
        assert_eq!(f32s(&lg2(true), &[TINY, -TINY, 2.0]), [-INF, -INF, 1.0]);
    }

    #[test]
    fn rcp_and_rsqrt_handle_zeros_infinities_and_subnormals() {
        let rcp = |ftz| Rcp {
            dst: reg(0),
            a: arg(1),
            ftz,
        };
        let big = 2f32.powi(127);
        let got = f32s(&rcp(false), &[4.0, -0.0, 0.0, INF, big, TINY]);
        assert_eq!(got, [0.25, -INF, INF, 0.0, 2f32.powi(-127), INF]);
        assert_eq!(
            bits(&rcp(false), &[3.0, -INF, f32::NAN]),
            [0x3eaa_aaab, 1 << 31, NAN]
        );
        assert_eq!(bits(&rcp(true), &[-big]), [1 << 31]);
        let rsqrt = |ftz| Rsqrt {
            dst: reg(0),
            a: arg(1),
            ftz,
        };
        let got = f32s(&rsqrt(false), &[4.0, 0.0, -0.0, INF, 2f32.powi(-148)]);
        assert_eq!(got, [0.5, INF, -INF, 0.0, 2f32.powi(74)]);
        assert_eq!(bits(&rsqrt(false), &[-1.0]), [NAN]);
        assert_eq!(f32s(&rsqrt(true), &[TINY, -TINY]), [INF, -INF]);
    }

    #[test]
    fn sqrt_is_correctly_rounded() {
        let sqrt = Sqrt {
            dst: reg(0),
            a: arg(1),
        };
        let xs: Vec<f32> = crate::lanes::fake::random_words(5)
            .take(10_000)
            .map(|x| f32::from_bits(x as u32 >> 1 & 0x7f7f_ffff))
            .collect();
        for (x, got) in xs.iter().zip(f32s(&sqrt, &xs)) {
            assert_eq!(got.to_bits(), x.sqrt().to_bits());
        }
        assert_eq!(bits(&sqrt, &[-0.0, -1.0, INF]), [1 << 31, NAN, 0x7f80_0000]);
    }

    #[test]
    fn tanh_saturates_and_keeps_subnormals() {
        let tanh = |ty| Tanh {
            ty,
            dst: reg(0),
            a: arg(1),
        };
        let got = f32s(&tanh(Type::F32), &[0.5, INF, -INF, 30.0, TINY]);
        assert_eq!(got, [0.462_117_17, 1.0, -1.0, 1.0, TINY]);
        assert_eq!(bits(&tanh(Type::F32), &[-0.0, f32::NAN]), [1 << 31, NAN]);
        let eval_pair = |ty, x: u32| eval::<u32, u32, 1>(&tanh(ty), &[[x]])[0];
        assert_eq!(eval_pair(Type::F16x2, 0x3800_fc00), 0x3765_bc00); // 0.5, -inf
        assert_eq!(eval_pair(Type::Bf16x2, 0x3f00_8001), 0x3eed_8001); // 0.5, a subnormal
        let eval_16_bit = |ty, x: u16| eval::<u16, u16, 1>(&tanh(ty), &[[x]])[0];
        assert_eq!(
            (
                eval_16_bit(Type::F16, 0x3800),
                eval_16_bit(Type::Bf16, 0x3f00)
            ),
            (0x3765, 0x3eed)
        );
    }

    #[test]
    fn approximations_print_ftz_and_type() {
        let print = |ty, ftz| ptx(&ex2(ty, ftz)).join("; ");
        assert_eq!(print(Type::F32, true), "ex2.approx.ftz.f32 %0, %1");
        assert_eq!(print(Type::F32, false), "ex2.approx.f32 %0, %1");
        assert_eq!(print(Type::F16x2, true), "ex2.approx.f16x2 %0, %1");
        assert_eq!(print(Type::Bf16x2, false), "ex2.approx.ftz.bf16x2 %0, %1");
        let (dst, a) = (reg(0), arg(1));
        assert_eq!(
            ptx(&Rcp { dst, a, ftz: true }),
            ["rcp.approx.ftz.f32 %0, %1"]
        );
        assert_eq!(Lg2 { dst, a, ftz: true }.name(), "lg2.ftz.f32");
        assert_eq!(ptx(&Sqrt { dst, a }), ["sqrt.rn.f32 %0, %1"]);
        let tanh = Tanh {
            ty: Type::Bf16x2,
            dst,
            a,
        };
        assert_eq!(ptx(&tanh), ["tanh.approx.bf16x2 %0, %1"]);
        assert_eq!(print(Type::Bf16, false), "ex2.approx.ftz.bf16 %0, %1");
        assert!(ex2(Type::F16, false).legal(&Target::SM_90A).is_ok());
        assert!(ex2(Type::Tf32, false).legal(&Target::SM_90A).is_err());
    }
}
