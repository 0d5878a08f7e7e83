//! Functions of the special-function unit, and the exact square root.
//!
//! The hardware approximates; the CPU computes in `f64` and rounds once. Each
//! op states the PTX ISA's bound on the difference.

use super::{Exactness, Info, Instr};
use crate::lanes::{Narrow, map1, no_such_type, value};
use crate::machine::{Asm, Effects, Exec, Machine, Step};
use crate::target::Target;
use crate::types::{Bf16x2, F16x2, Type};
use crate::value::{Operand, RegId};
use half::{bf16, f16};

/// The number, or a zero of its sign in place of a subnormal.
#[inline]
fn flush(x: f32) -> f32 {
    if x.abs() < f32::MIN_POSITIVE { 0f32.copysign(x) } else { x }
}

/// `f` of an `f32`, with a canonical NaN; subnormals flushed on both sides if `ftz`.
#[inline]
fn approximate(x: f32, ftz: bool, f: impl Fn(f64) -> f64) -> f32 {
    let x = if ftz { flush(x) } else { x };
    let y = f(f64::from(x)) as f32;
    let y = if ftz { flush(y) } else { y };
    if y.is_nan() { f32::from_bits(0x7fff_ffff) } else { y }
}

/// `.ftz` where it is asked for.
fn suffix(ftz: bool) -> &'static str {
    if ftz { ".ftz" } else { "" }
}

/// Two to the power `a`.
#[derive(Clone, PartialEq, Debug)]
pub struct Ex2 {
    /// `F32`, `F16x2` or `Bf16x2`.
    pub ty: Type,
    /// Result.
    pub dst: RegId,
    /// The power.
    pub a: Operand,
    /// Flush subnormals to zero. Of `F32` only: `F16x2` never does, `Bf16x2` always does.
    pub ftz: bool,
}

impl Ex2 {
    fn flushes(&self) -> bool {
        match self.ty {
            Type::F32 => self.ftz,
            ty => ty == Type::Bf16x2,
        }
    }
}

impl Instr for Ex2 {
    const INFO: Info = Info {
        name: "ex2",
        ptx: "ex2.approx{.ftz}.{f32,f16x2,bf16x2}",
        doc: "two to the power a",
        exactness: Exactness::Within(
            "2^-22 of the result for f32 (the fraction is within 2^-22.5), 2^-9.9 for f16x2, 2^-7 for bf16x2",
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
        let (d, x) = (a.reg(self.dst), value(a, self.a, self.ty));
        a.emit(format!("ex2.approx{}.{} {d}, {x}", suffix(self.flushes()), self.ty.ptx()));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let (d, a, ftz) = (self.dst, self.a, self.ftz);
        match self.ty {
            Type::F32 => map1(m, d, a, |x| approximate(x, ftz, f64::exp2)),
            Type::F16x2 => map1(m, d, a, |x: F16x2| {
                x.map(|h| f16::round_f64(f64::from(h.widen()).exp2()))
            }),
            Type::Bf16x2 => map1(m, d, a, |x: Bf16x2| {
                x.map(|h| bf16::round(flush(bf16::round_f64(f64::from(h.widen()).exp2()).widen())))
            }),
            ty => return Err(no_such_type(ty)),
        }
        Ok(Step::Next)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        super::only("ex2", self.ty, &[Type::F32, Type::F16x2, Type::Bf16x2])
    }
}

/// Declares an approximation of `f32` that may flush subnormals.
macro_rules! approximations {
    ($($name:ident $text:literal: $doc:literal, within $bound:literal, $f:expr;)*) => {$(
        #[doc = concat!("`", $text, ".approx{.ftz}.f32`: ", $doc, ".")]
        #[derive(Clone, PartialEq, Debug)]
        pub struct $name {
            /// Result (`F32`).
            pub dst: RegId,
            /// Operand (`F32`).
            pub a: Operand,
            /// Flush subnormals to zero, of the operand and of the result.
            pub ftz: bool,
        }

        impl Instr for $name {
            const INFO: Info = Info {
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
                Ok(Step::Next)
            }
        }
    )*};
}

approximations! {
    Lg2 "lg2": "the logarithm to base two",
        within "2^-22.6 for an operand between 0.5 and 2, 2^-22 of the result elsewhere", f64::log2;
    Rcp "rcp": "one over a",
        within "2^-23 over the range 1 to 2, one unit in the last place everywhere", f64::recip;
    Rsqrt "rsqrt": "one over the square root of a",
        within "2^-22.4 over the range 1 to 4", |x| x.sqrt().recip();
}

/// `sqrt.rn.f32`: the square root, rounded to nearest even.
#[derive(Clone, PartialEq, Debug)]
pub struct Sqrt {
    /// Result (`F32`).
    pub dst: RegId,
    /// Operand (`F32`).
    pub a: Operand,
}

impl Instr for Sqrt {
    const INFO: Info = Info {
        name: "sqrt",
        ptx: "sqrt.rn.f32",
        doc: "the square root, rounded to nearest even",
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
        // 53 bits are 2·24 + 2 and more: rounding twice is rounding once.
        map1(m, self.dst, self.a, |x| approximate(x, false, f64::sqrt));
        Ok(Step::Next)
    }
}

/// The hyperbolic tangent.
#[derive(Clone, PartialEq, Debug)]
pub struct Tanh {
    /// `F32`, `F16x2` or `Bf16x2`.
    pub ty: Type,
    /// Result.
    pub dst: RegId,
    /// Operand.
    pub a: Operand,
}

impl Instr for Tanh {
    const INFO: Info = Info {
        name: "tanh",
        ptx: "tanh.approx.{f32,f16x2,bf16x2}",
        doc: "the hyperbolic tangent",
        exactness: Exactness::Within(
            "2^-11 of the result for f32, 2^-10.987 for f16x2, 2^-8 for bf16x2",
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
        let (d, x) = (a.reg(self.dst), value(a, self.a, self.ty));
        a.emit(format!("tanh.approx.{} {d}, {x}", self.ty.ptx()));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let (d, a) = (self.dst, self.a);
        match self.ty {
            Type::F32 => map1(m, d, a, |x| approximate(x, false, f64::tanh)),
            Type::F16x2 => map1(m, d, a, |x: F16x2| {
                x.map(|h| f16::round_f64(f64::from(h.widen()).tanh()))
            }),
            Type::Bf16x2 => map1(m, d, a, |x: Bf16x2| {
                x.map(|h| bf16::round_f64(f64::from(h.widen()).tanh()))
            }),
            ty => return Err(no_such_type(ty)),
        }
        Ok(Step::Next)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        super::only("tanh", self.ty, &[Type::F32, Type::F16x2, Type::Bf16x2])
    }
}
