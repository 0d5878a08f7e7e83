//! Comparisons, selection, and the logic of predicates.

use super::arith::register_bits;
use super::{Exactness, Info, Instr};
use crate::lanes::{Narrow, lane_types, test2, value};
use crate::machine::{Asm, Effects, Exec, Machine, Step, WARP};
use crate::types::Type;
use crate::value::{Operand, RegId};
use half::{bf16, f16};

/// How two numbers are compared.
///
/// With a NaN, [`Cmp::Ne`] holds and no other comparison does.
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
    /// The name in the text form.
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

    /// The name in PTX, whose `ne` does not hold for a NaN.
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
    /// How.
    pub cmp: Cmp,
    /// Their type: an integer, `F32`, `F16` or `Bf16`.
    pub ty: Type,
    /// Result, a predicate.
    pub dst: RegId,
    /// Left of the comparison.
    pub a: Operand,
    /// Right of it.
    pub b: Operand,
}

/// A number as it is compared.
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
    f16 => f32, Narrow::widen;
    bf16 => f32, Narrow::widen;
}

impl Instr for Setp {
    const INFO: Info = Info {
        name: "setp",
        ptx: "setp.{eq,ne,neu,lt,le,gt,ge}.{u16,u32,s32,u64,s64,f32,f16,bf16}",
        doc: "compares two numbers; with a NaN only ne holds",
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
        // A u8 stands zero-extended in its 16-bit register.
        let suffix = if self.ty == Type::U8 { "u16" } else { self.ty.ptx() };
        let (d, x, y) = (a.reg(self.dst), value(a, self.a, self.ty), value(a, self.b, self.ty));
        a.emit(format!("setp.{}.{suffix} {d}, {x}, {y}", self.cmp.ptx(self.ty)));
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
        Ok(Step::Next)
    }
    fn legal(&self, _: &crate::target::Target) -> Result<(), String> {
        use Type::{Bf16, F16, F32, I32, I64, U8, U16, U32, U64};
        super::only("setp", self.ty, &[U8, U16, U32, I32, U64, I64, F32, F16, Bf16])
    }
}

/// `a` where the condition holds, `b` elsewhere.
#[derive(Clone, PartialEq, Debug)]
pub struct Select {
    /// Any type but a predicate.
    pub ty: Type,
    /// Result.
    pub dst: RegId,
    /// The condition, a predicate.
    pub cond: Operand,
    /// Where it holds.
    pub a: Operand,
    /// Where it does not.
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
    const INFO: Info = Info {
        name: "select",
        ptx: "selp.{b16,b32,b64,f32}",
        doc: "a where the condition holds, b elsewhere",
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
        // `f32` by name, because its constants are not integers.
        let suffix = if self.ty == Type::F32 { "f32" } else { register_bits(self.ty) };
        let (d, x, y) = (a.reg(self.dst), value(a, self.a, self.ty), value(a, self.b, self.ty));
        let p = predicate(a, self.cond);
        a.emit(format!("selp.{suffix} {d}, {x}, {y}, {p}"));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        match self.ty.bytes() {
            0 => return Err(crate::lanes::no_such_type(self.ty)),
            1 => self.pick::<u8, M>(m),
            2 => self.pick::<u16, M>(m),
            4 => self.pick::<u32, M>(m),
            _ => self.pick::<u64, M>(m),
        }
        Ok(Step::Next)
    }
    fn legal(&self, _: &crate::target::Target) -> Result<(), String> {
        match self.ty {
            Type::Pred => Err("select takes any type but pred".into()),
            _ => Ok(()),
        }
    }
}

/// A predicate operand as a register: PTX has no constants of this type.
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
    ($($name:ident $text:literal: $doc:literal, ptx $ptx:literal, |$($arg:ident),*| $meaning:expr;)*) => {$(
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
            const INFO: Info = Info {
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
                Ok(Step::Next)
            }
        }
    )*};
}

predicates! {
    PredAnd "pred_and": "both predicates", ptx "and.pred", |a, b| a & b;
    PredOr "pred_or": "either predicate", ptx "or.pred", |a, b| a | b;
    PredNot "pred_not": "the opposite of a predicate", ptx "not.pred", |a| !a;
}
