//! Comparisons, selection and predicate logic.

use super::arith::register_bits;
use super::{Exactness, Instr, OpInfo};
use crate::domain::Domain;
use crate::lanes::{HalfFloat, lane_types, printed_operand, test2};
use crate::machine::{Asm, Effects, Exec, ExecStatus, Machine, WARP};
use crate::types::Type;
use crate::value::{Operand, RegId};
use half::{bf16, f16};

/// A comparison operator.
///
/// With a NaN operand, [`Cmp::Ne`] is true and all other comparisons are false.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cmp {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
}

impl Cmp {
    /// Returns the name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            Cmp::Eq => "eq",
            Cmp::Ne => "ne",
            Cmp::Lt => "lt",
            Cmp::Le => "le",
            Cmp::Gt => "gt",
            Cmp::Ge => "ge",
        }
    }

    /// Returns the PTX name. PTX's `ne` is false for a NaN, `neu` is true.
    const fn ptx(self, ty: Type) -> &'static str {
        match self {
            Cmp::Ne if ty.is_float() => "neu",
            cmp => cmp.name(),
        }
    }
}

/// Compares two numbers.
#[derive(Clone, PartialEq, Debug)]
pub struct Setp {
    /// The comparison operator.
    pub cmp: Cmp,
    /// Operand type: an integer, `F32`, `F16` or `Bf16`.
    pub ty: Type,
    /// Result, a predicate.
    pub dst: RegId,
    /// Left operand.
    pub a: Operand,
    /// Right operand.
    pub b: Operand,
}

/// Maps a number to a type that Rust compares like the GPU.
trait Comparable {
    type Key: PartialOrd;
    fn key(self) -> Self::Key;
}
macro_rules! comparable {
    ($($t:ty => $key:ty, $f:expr;)*) => {$(
        impl Comparable for $t {
            type Key = $key;
            #[inline]
            fn key(self) -> $key { $f(self) }
        }
    )*};
}
comparable! {
    u8 => u8, |x| x;
    u16 => u16, |x| x;
    u32 => u32, |x| x;
    i32 => i32, |x| x;
    u64 => u64, |x| x;
    i64 => i64, |x| x;
    f32 => f32, |x| x;
    f16 => f32, HalfFloat::widen;
    bf16 => f32, HalfFloat::widen;
}

impl Instr for Setp {
    const INFO: OpInfo = OpInfo {
        name: "setp",
        ptx: "setp.{eq,ne,neu,lt,le,gt,ge}.{u16,u32,s32,u64,s64,f32,f16,bf16}",
        doc: "compares two numbers; with a NaN only ne is true",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("setp.{}.{}", self.cmp.name(), self.ty)
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        e.arg(self.a, self.ty);
        e.arg(self.b, self.ty);
    }
    fn asm(&self, a: &mut dyn Asm) {
        // A u8 is zero-extended in its 16-bit register.
        let suffix = if self.ty == Type::U8 {
            "u16"
        } else {
            self.ty.ptx()
        };
        let (d, x, y) = (
            a.reg(self.dst),
            printed_operand(a, self.a, self.ty),
            printed_operand(a, self.b, self.ty),
        );
        a.emit(format!(
            "setp.{}.{suffix} {d}, {x}, {y}",
            self.cmp.ptx(self.ty)
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let (d, a, b) = (self.dst, self.a, self.b);
        lane_types!(self.ty, [U8, U16, U32, I32, U64, I64, F32, F16, Bf16], T => match self.cmp {
            Cmp::Eq => test2(m, d, a, b, |a: T, b: T| a.key() == b.key()),
            Cmp::Ne => test2(m, d, a, b, |a: T, b: T| a.key() != b.key()),
            Cmp::Lt => test2(m, d, a, b, |a: T, b: T| a.key() < b.key()),
            Cmp::Le => test2(m, d, a, b, |a: T, b: T| a.key() <= b.key()),
            Cmp::Gt => test2(m, d, a, b, |a: T, b: T| a.key() > b.key()),
            Cmp::Ge => test2(m, d, a, b, |a: T, b: T| a.key() >= b.key()),
        });
        Ok(ExecStatus::Completed)
    }
    fn transfer<D: Domain>(&self, d: &mut D) {
        let (a, b) = (d.read(self.a, self.ty), d.read(self.b, self.ty));
        let holds = match self.ty.is_int() {
            true => d.compare(self.cmp, self.ty, a, b),
            false => d.function(&[a, b]),
        };
        d.write(self.dst, holds);
    }
    fn legal(&self, _: &crate::target::Target) -> Result<(), String> {
        use Type::{Bf16, F16, F32, I32, I64, U8, U16, U32, U64};
        super::require_type(
            "setp",
            self.ty,
            &[U8, U16, U32, I32, U64, I64, F32, F16, Bf16],
        )
    }
}

/// Selects `a` where the condition is true, `b` elsewhere.
#[derive(Clone, PartialEq, Debug)]
pub struct Select {
    /// Any type except a predicate.
    pub ty: Type,
    /// Result.
    pub dst: RegId,
    /// The condition, a predicate.
    pub cond: Operand,
    /// Value where the condition is true.
    pub a: Operand,
    /// Value where the condition is false.
    pub b: Operand,
}

impl Select {
    fn pick<T: crate::machine::Lane, M: Machine>(&self, m: &mut M) {
        let cond = m.pred(self.cond);
        let (a, mut r) = (m.get::<T>(self.a), m.get::<T>(self.b));
        for i in 0..WARP {
            r[i] = if cond >> i & 1 == 1 { a[i] } else { r[i] };
        }
        m.set(self.dst, &r);
    }
}

impl Instr for Select {
    const INFO: OpInfo = OpInfo {
        name: "select",
        ptx: "selp.{b16,b32,b64,f32}",
        doc: "selects a where the condition is true, b elsewhere",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("select.{}", self.ty)
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        e.arg(self.cond, Type::Pred);
        e.arg(self.a, self.ty);
        e.arg(self.b, self.ty);
    }
    fn asm(&self, a: &mut dyn Asm) {
        // The suffix `f32` permits float constants.
        let suffix = if self.ty == Type::F32 {
            "f32"
        } else {
            register_bits(self.ty)
        };
        let (d, x, y) = (
            a.reg(self.dst),
            printed_operand(a, self.a, self.ty),
            printed_operand(a, self.b, self.ty),
        );
        let p = predicate(a, self.cond);
        a.emit(format!("selp.{suffix} {d}, {x}, {y}, {p}"));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        match self.ty.bytes() {
            0 => return Err(crate::lanes::unsupported_type(self.ty)),
            1 => self.pick::<u8, M>(m),
            2 => self.pick::<u16, M>(m),
            4 => self.pick::<u32, M>(m),
            _ => self.pick::<u64, M>(m),
        }
        Ok(ExecStatus::Completed)
    }
    fn transfer<D: Domain>(&self, d: &mut D) {
        let cond = d.read(self.cond, Type::Pred);
        let (a, b) = (d.read(self.a, self.ty), d.read(self.b, self.ty));
        let v = d.select(cond, a, b);
        d.write(self.dst, v);
    }
    fn legal(&self, _: &crate::target::Target) -> Result<(), String> {
        match self.ty {
            Type::Pred => Err("select does not support pred".into()),
            _ => Ok(()),
        }
    }
}

/// Prints a predicate operand as a register, because PTX has no predicate constants.
pub(crate) fn predicate(a: &mut dyn Asm, o: Operand) -> String {
    match o {
        Operand::Reg(r) => a.reg(r),
        Operand::Imm(x) => {
            let p = a.temp(Type::Pred);
            a.emit(format!("setp.ne.u32 {p}, {}, 0", u32::from(x != 0)));
            p
        }
    }
}

/// Declares an op on predicates.
macro_rules! predicates {
    ($($name:ident $text:literal: $doc:literal, ptx $ptx:literal, |$($arg:ident),*| $meaning:expr, transfer $transfer:ident;)*) => {$(
        #[doc = concat!("`", $ptx, "`: ", $doc, ".")]
        #[derive(Clone, PartialEq, Debug)]
        pub struct $name {
            /// Result, a predicate.
            pub dst: RegId,
            $(
                #[doc = concat!("Operand `", stringify!($arg), "`, a predicate.")]
                pub $arg: Operand,
            )*
        }

        impl Instr for $name {
            const INFO: OpInfo = OpInfo {
                name: $text,
                ptx: $ptx,
                doc: $doc,
                exactness: Exactness::Exact,
            };
            fn name(&self) -> String {
                $text.into()
            }
            fn effects(&self, e: &mut dyn Effects) {
                e.def(self.dst);
                $(e.arg(self.$arg, Type::Pred);)*
            }
            fn asm(&self, a: &mut dyn Asm) {
                let operands = [a.reg(self.dst), $(predicate(a, self.$arg)),*];
                a.emit(format!(concat!($ptx, " {}"), operands.join(", ")));
            }
            fn exec<M: Machine>(&self, m: &mut M) -> Exec {
                $(let $arg = m.pred(self.$arg);)*
                m.set_pred(self.dst, $meaning);
                Ok(ExecStatus::Completed)
            }
            fn transfer<D: Domain>(&self, d: &mut D) {
                $(let $arg = d.read(self.$arg, Type::Pred);)*
                let v = d.$transfer($($arg),*);
                d.write(self.dst, v);
            }
        }
    )*};
}

predicates! {
    PredAnd "pred_and": "conjunction of two predicates", ptx "and.pred", |a, b| a & b, transfer both;
    PredOr "pred_or": "disjunction of two predicates", ptx "or.pred", |a, b| a | b, transfer either;
    PredNot "pred_not": "negation of a predicate", ptx "not.pred", |a| !a, transfer not;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::fake::{Warp, arg, ptx, reg};
    use crate::machine::Lane;
    use crate::target::Target;

    const ALL: [Cmp; 6] = [Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge];

    fn setp(cmp: Cmp, ty: Type) -> Setp {
        Setp {
            cmp,
            ty,
            dst: reg(0),
            a: arg(1),
            b: arg(2),
        }
    }

    /// Compares with eq, ne, lt, le, gt, ge, in this order.
    fn compare_all<T: Lane>(ty: Type, a: T, b: T) -> [bool; 6] {
        ALL.map(|cmp| {
            let warp = Warp::new().with(1, &[a]).with(2, &[b]);
            warp.run(&setp(cmp, ty)).read_pred(0) & 1 == 1
        })
    }
    const LESS: [bool; 6] = [false, true, true, true, false, false];
    const EQUAL: [bool; 6] = [true, false, false, true, false, true];
    const GREATER: [bool; 6] = [false, true, false, false, true, true];
    const UNORDERED: [bool; 6] = [false, true, false, false, false, false];

    #[test]
    fn comparisons_follow_the_signedness_of_the_type() {
        assert_eq!(compare_all(Type::U32, u32::MAX, 1), GREATER);
        assert_eq!(compare_all(Type::I32, -1, 1), LESS);
        assert_eq!(compare_all(Type::U64, 1u64 << 63, 1), GREATER);
        assert_eq!(compare_all(Type::I64, 1i64 << 63, 1), LESS);
        assert_eq!(compare_all(Type::U16, 0xffffu16, 1), GREATER);
        assert_eq!(compare_all(Type::U8, 0xffu8, 0xff), EQUAL);
        assert_eq!(compare_all(Type::F32, -0.0f32, 0.0), EQUAL);
        assert_eq!(compare_all(Type::F32, f32::from_bits(1), 0.0), GREATER);
        assert_eq!(compare_all(Type::F32, f32::NEG_INFINITY, f32::MIN), LESS);
        assert_eq!(
            compare_all(Type::F16, f16::from_bits(0x8000), f16::ZERO),
            EQUAL
        );
        assert_eq!(
            compare_all(Type::F16, f16::from_bits(0x0001), f16::from_bits(0x0002)),
            LESS
        );
        assert_eq!(compare_all(Type::Bf16, bf16::ONE, bf16::NEG_ONE), GREATER);
    }

    #[test]
    fn with_a_nan_only_ne_is_true() {
        assert_eq!(compare_all(Type::F32, f32::NAN, 1.0), UNORDERED);
        assert_eq!(compare_all(Type::F32, f32::NAN, f32::NAN), UNORDERED);
        assert_eq!(compare_all(Type::F16, f16::ONE, f16::NAN), UNORDERED);
        assert_eq!(compare_all(Type::Bf16, bf16::NAN, bf16::NAN), UNORDERED);
    }

    #[test]
    fn inactive_lanes_keep_their_predicate() {
        let a: [u32; 32] = std::array::from_fn(|i| i as u32);
        let warp = Warp::new()
            .with(1, &a)
            .with(2, &[8u32; 32])
            .with_pred(0, 1 << 31);
        let warp = warp.with_active(0x0fff_fffe).run(&setp(Cmp::Lt, Type::U32));
        assert_eq!(warp.read_pred(0), 1 << 31 | 0xfe);
    }

    #[test]
    fn comparisons_print_their_operator_and_type() {
        let print = |cmp, ty| ptx(&setp(cmp, ty)).join("; ");
        assert_eq!(print(Cmp::Ne, Type::F32), "setp.neu.f32 %0, %1, %2");
        assert_eq!(print(Cmp::Ne, Type::U32), "setp.ne.u32 %0, %1, %2");
        assert_eq!(print(Cmp::Ge, Type::I64), "setp.ge.s64 %0, %1, %2");
        assert_eq!(print(Cmp::Eq, Type::U8), "setp.eq.u16 %0, %1, %2");
        assert_eq!(print(Cmp::Lt, Type::Bf16), "setp.lt.bf16 %0, %1, %2");
        let rejected = setp(Cmp::Lt, Type::F16x2).legal(&Target::SM_90A);
        assert!(rejected.is_err_and(|e| e.starts_with("setp does not support ")));
    }

    #[test]
    fn select_returns_a_where_the_condition_is_true() {
        let select = |ty, cond, a| Select {
            ty,
            dst: reg(0),
            cond,
            a,
            b: arg(2),
        };
        let warp = Warp::new()
            .with(1, &[1u64 << 40; 32])
            .with(2, &[2u64; 32])
            .with_pred(3, 0b0101);
        let got = warp
            .clone()
            .run(&select(Type::U64, arg(3), arg(1)))
            .read::<u64>(0);
        assert_eq!(got[..4], [1 << 40, 2, 1 << 40, 2]);
        let got = warp
            .run(&select(Type::U8, Operand::imm(true), Operand::imm(9u8)))
            .read::<u8>(0);
        assert_eq!(got, [9; 32]);

        let print = |ty, cond, a| ptx(&select(ty, cond, a)).join("; ");
        assert_eq!(print(Type::U8, arg(3), arg(1)), "selp.b16 %0, %1, %2, %3");
        assert_eq!(
            print(Type::F32, arg(3), Operand::imm(1f32)),
            "selp.f32 %0, 0f3F800000, %2, %3"
        );
        assert_eq!(
            print(Type::Bf16x2, arg(3), arg(1)),
            "selp.b32 %0, %1, %2, %3"
        );
        assert_eq!(
            print(Type::U64, Operand::imm(false), arg(1)),
            "setp.ne.u32 %t0, 0, 0; selp.b64 %0, %1, %2, %t0"
        );
        assert!(
            select(Type::Pred, arg(3), arg(1))
                .legal(&Target::SM_90A)
                .is_err()
        );
    }

    #[test]
    fn predicate_ops_combine_lanes_bitwise() {
        let (dst, a, b) = (reg(0), arg(1), arg(2));
        let warp = Warp::new().with_pred(1, 0b1100).with_pred(2, 0b1010);
        assert_eq!(
            warp.clone().run(&PredAnd { dst, a, b }).read_pred(0),
            0b1000
        );
        assert_eq!(warp.clone().run(&PredOr { dst, a, b }).read_pred(0), 0b1110);
        assert_eq!(warp.clone().run(&PredNot { dst, a }).read_pred(0), !0b1100);
        let one = Operand::imm(true);
        assert_eq!(warp.run(&PredAnd { dst, a, b: one }).read_pred(0), 0b1100);
        assert_eq!(ptx(&PredOr { dst, a, b }), ["or.pred %0, %1, %2"]);
        assert_eq!(
            ptx(&PredAnd { dst, a, b: one }),
            ["setp.ne.u32 %t0, 1, 0", "and.pred %0, %1, %t0"]
        );
    }
}
