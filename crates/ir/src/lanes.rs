//! Ops that compute each lane independently: their declaration and execution.
//!
//! [`map1`], [`map2`] and [`map3`] apply a function of one lane to all lanes.
//! `lane_types!` selects the Rust type of a [`Type`]. `lanewise!` declares an
//! op from its PTX template, its types and the [`Number`] or [`Integer`] method
//! that defines its semantics.
//!
//! This is the executor's inner loop: no allocation, no dynamic call, and
//! branch-free functions of a lane, so that the compiler vectorizes the loops
//! over lanes.

#[cfg(test)]
pub(crate) mod fake;
mod fp8;
pub mod narrow;
pub mod number;

pub use narrow::HalfFloat;
pub use number::{BitFieldExtract, Divide, FloatBits, Integer, Number, Signed, WideMultiply};

use crate::machine::{Asm, Fault, FaultKind, Lane, Machine, Mask, PerLane, WARP};
use crate::types::Type;
use crate::value::{Operand, RegId};

/// Computes `dst = f(a)` in every active lane.
#[inline]
pub fn map1<A: Lane, R: Lane, M: Machine>(m: &mut M, dst: RegId, a: Operand, f: impl Fn(A) -> R) {
    let a = m.get::<A>(a);
    let mut r = [R::default(); WARP];
    for (r, a) in r.iter_mut().zip(a) {
        *r = f(a);
    }
    m.set(dst, &r);
}

/// Computes `dst = f(a, b)` in every active lane.
#[inline]
pub fn map2<A: Lane, B: Lane, R: Lane, M: Machine>(
    m: &mut M,
    dst: RegId,
    a: Operand,
    b: Operand,
    f: impl Fn(A, B) -> R,
) {
    let (a, b) = (m.get::<A>(a), m.get::<B>(b));
    let mut r = [R::default(); WARP];
    for ((r, a), b) in r.iter_mut().zip(a).zip(b) {
        *r = f(a, b);
    }
    m.set(dst, &r);
}

/// Computes `dst = f(a, b, c)` in every active lane.
#[inline]
pub fn map3<A: Lane, B: Lane, C: Lane, R: Lane, M: Machine>(
    m: &mut M,
    dst: RegId,
    a: Operand,
    b: Operand,
    c: Operand,
    f: impl Fn(A, B, C) -> R,
) {
    let (a, b, c) = (m.get::<A>(a), m.get::<B>(b), m.get::<C>(c));
    let mut r = [R::default(); WARP];
    for (((r, a), b), c) in r.iter_mut().zip(a).zip(b).zip(c) {
        *r = f(a, b, c);
    }
    m.set(dst, &r);
}

/// Computes the predicate `dst = f(a, b)` in every active lane.
#[inline]
pub fn test2<A: Lane, B: Lane, M: Machine>(
    m: &mut M,
    dst: RegId,
    a: Operand,
    b: Operand,
    f: impl Fn(A, B) -> bool,
) {
    let (a, b) = (m.get::<A>(a), m.get::<B>(b));
    let mut results = [false; WARP];
    for ((result, a), b) in results.iter_mut().zip(a).zip(b) {
        *result = f(a, b);
    }
    m.set_pred(dst, mask_of(&results));
}

/// Returns the mask of the lanes that are true.
#[inline]
pub fn mask_of(lanes: &PerLane<bool>) -> Mask {
    (0..WARP).fold(0, |m, i| m | Mask::from(lanes[i]) << i)
}

/// Iterates over the lanes of a mask, lowest first.
pub fn lanes_of(mask: Mask) -> impl Iterator<Item = usize> {
    (0..WARP).filter(move |i| mask >> i & 1 == 1)
}

/// Returns the fault of an op with an unsupported type.
///
/// [`Instr::legal`](crate::Instr::legal) rejects such an op earlier, with a
/// better message; this fault covers callers that skip it.
#[cold]
pub(crate) fn unsupported_type(ty: Type) -> Fault {
    Fault::new(FaultKind::Illegal, format!("does not support {ty}"))
}

/// Returns the PTX instruction of a template for a type.
///
/// In `mul{.lo}{.rn}.{u32,s32,f32}`, `{.rn}` is kept for floats and `{.lo}`
/// for integers. The last braces become the suffix of the type if they list
/// it, otherwise the untyped suffix of its width (`b32`).
pub(crate) fn instruction_name(template: &str, ty: Type) -> String {
    let (head, choices) = template
        .strip_suffix('}')
        .and_then(|t| t.rsplit_once(".{"))
        .unwrap_or((template, ""));
    let keep_if = |suffix, keep| if keep { suffix } else { "" };
    let head = head
        .replace("{.rn}", keep_if(".rn", ty.is_float()))
        .replace("{.lo}", keep_if(".lo", ty.is_int()));
    let is_listed = choices.split(',').any(|c| c == ty.ptx());
    format!("{head}.{}", if is_listed { ty.ptx() } else { ty.bits() })
}

/// Prints an operand. PTX has no constants of 16-bit floats, so these go through a register.
pub(crate) fn printed_operand(a: &mut dyn Asm, o: Operand, ty: Type) -> String {
    match ty {
        Type::F16 | Type::Bf16 | Type::F16x2 | Type::Bf16x2 => a.in_reg(o, ty),
        _ => a.operand(o, ty),
    }
}

/// Returns the integer type of twice the width.
pub(crate) fn double_width(ty: Type) -> Type {
    match ty {
        Type::U16 => Type::U32,
        Type::U32 => Type::U64,
        Type::I32 => Type::I64,
        other => other,
    }
}

/// The Rust type of a variant of [`Type`].
macro_rules! lane_type {
    (U8) => {
        u8
    };
    (U16) => {
        u16
    };
    (U32) => {
        u32
    };
    (I32) => {
        i32
    };
    (U64) => {
        u64
    };
    (I64) => {
        i64
    };
    (F32) => {
        f32
    };
    (F16) => {
        half::f16
    };
    (Bf16) => {
        half::bf16
    };
    (F16x2) => {
        $crate::types::F16x2
    };
    (Bf16x2) => {
        $crate::types::Bf16x2
    };
}

/// Evaluates an expression with `T` as the Rust type of `ty`, for the listed types.
///
/// Returns a fault from the function for any other type.
macro_rules! lane_types {
    ($ty:expr, [$($name:ident),*], $T:ident => $body:expr) => {
        match $ty {
            $($crate::types::Type::$name => {
                type $T = $crate::lanes::lane_type!($name);
                $body
            })*
            other => return Err($crate::lanes::unsupported_type(other)),
        }
    };
}

/// The type of an operand of a lanewise op: the op's type, twice its width, or `u32`.
macro_rules! operand_type {
    ($op:expr, T) => {
        $op.ty
    };
    ($op:expr, wide) => {
        $crate::lanes::double_width($op.ty)
    };
    ($op:expr, u32) => {
        $crate::types::Type::U32
    };
}

/// Calls `map1`, `map2` or `map3`, by the number of operands.
macro_rules! map_lanes {
    ($m:expr, $dst:expr, $f:expr, $a:expr) => {
        $crate::lanes::map1($m, $dst, $a, $f)
    };
    ($m:expr, $dst:expr, $f:expr, $a:expr, $b:expr) => {
        $crate::lanes::map2($m, $dst, $a, $b, $f)
    };
    ($m:expr, $dst:expr, $f:expr, $a:expr, $b:expr, $c:expr) => {
        $crate::lanes::map3($m, $dst, $a, $b, $c, $f)
    };
}

/// Declares ops that compute each lane's result from that lane's operands.
///
/// ```text
/// Add "add": "adds",                             struct, name in the text form, row of the op table
///     ptx "add{.rn}.{u32,s32,f32}",              PTX template (see `instruction_name`)
///     types [U32, I32, F32],                     types of `ty`; T below is the Rust type of `ty`
///     (a: T, b: T) => Number::add,               operands (T, wide or u32) and the function of a lane
///         transfer add;                          transfer function for integers (`domain`); without it,
///                                                an uninterpreted function of the operands
/// ```
macro_rules! lanewise {
    ($(
        $name:ident $text:literal: $doc:literal,
            ptx $ptx:literal,
            types [$($ty:ident),*],
            ($($arg:ident: $kind:tt),*) => $trait:ident::$meaning:ident $(, transfer $transfer:ident)?;
    )*) => {$(
        #[doc = concat!("`", $ptx, "`: ", $doc, ".")]
        #[derive(Clone, PartialEq, Debug)]
        pub struct $name {
            /// The instruction's type.
            pub ty: $crate::types::Type,
            /// Result.
            pub dst: $crate::value::RegId,
            $(
                #[doc = concat!("Operand `", stringify!($arg), ": ", stringify!($kind), "`.")]
                pub $arg: $crate::value::Operand,
            )*
        }

        impl $crate::ops::Instr for $name {
            const INFO: $crate::ops::OpInfo = $crate::ops::OpInfo {
                name: $text,
                ptx: $ptx,
                doc: $doc,
                exactness: $crate::ops::Exactness::Exact,
            };
            fn name(&self) -> String {
                format!(concat!($text, ".{}"), self.ty)
            }
            fn effects(&self, e: &mut dyn $crate::machine::Effects) {
                e.def(self.dst);
                $(e.arg(self.$arg, $crate::lanes::operand_type!(self, $kind));)*
            }
            fn asm(&self, a: &mut dyn $crate::machine::Asm) {
                let operands = [
                    a.reg(self.dst),
                    $($crate::lanes::printed_operand(a, self.$arg, $crate::lanes::operand_type!(self, $kind)),)*
                ];
                a.emit(format!("{} {}", $crate::lanes::instruction_name($ptx, self.ty), operands.join(", ")));
            }
            fn exec<M: $crate::machine::Machine>(&self, m: &mut M) -> $crate::machine::Exec {
                $crate::lanes::lane_types!(self.ty, [$($ty),*], T => {
                    $crate::lanes::map_lanes!(
                        m, self.dst, <T as $crate::lanes::$trait>::$meaning, $(self.$arg),*
                    )
                });
                Ok($crate::machine::ExecStatus::Completed)
            }
            fn transfer<D: $crate::domain::Domain>(&self, d: &mut D) {
                let operands = [$(d.read(self.$arg, $crate::lanes::operand_type!(self, $kind))),*];
                let result = match self.ty.is_int() {
                    true => $crate::lanes::transfer_of!(d, self.ty, operands $(, $transfer)?),
                    false => d.function(&operands),
                };
                d.write(self.dst, result);
            }
            fn legal(&self, _: &$crate::target::Target) -> Result<(), String> {
                $crate::ops::require_type($text, self.ty, &[$($crate::types::Type::$ty),*])
            }
        }
    )*};
}

/// The transfer function of a lanewise op on integers.
macro_rules! transfer_of {
    ($d:expr, $ty:expr, $operands:expr) => {
        $crate::domain::function($d, $ty, $operands)
    };
    ($d:expr, $ty:expr, $operands:expr, $transfer:ident) => {
        $crate::domain::$transfer($d, $ty, $operands)
    };
}

pub(crate) use {lane_type, lane_types, lanewise, map_lanes, operand_type, transfer_of};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn template_expands_to_the_instruction_of_each_type() {
        let mul = "mul{.lo}{.rn}.{u16,u32,s32,f32,bf16x2}";
        assert_eq!(instruction_name(mul, Type::U16), "mul.lo.u16");
        assert_eq!(instruction_name(mul, Type::I32), "mul.lo.s32");
        assert_eq!(instruction_name(mul, Type::F32), "mul.rn.f32");
        assert_eq!(instruction_name(mul, Type::Bf16x2), "mul.rn.bf16x2");
        assert_eq!(instruction_name("and.{b16,b32,b64}", Type::I64), "and.b64");
        assert_eq!(instruction_name("not.{b16,b32,b64}", Type::U16), "not.b16");
    }

    #[test]
    fn mask_round_trips_through_its_lanes() {
        let mut lanes = [false; WARP];
        for i in [0, 5, 31] {
            lanes[i] = true;
        }
        assert_eq!(mask_of(&lanes), 1 | 1 << 5 | 1 << 31);
        assert_eq!(lanes_of(mask_of(&lanes)).collect::<Vec<_>>(), [0, 5, 31]);
    }
}
