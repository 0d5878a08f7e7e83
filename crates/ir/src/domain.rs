//! What ops compute on values that are only partly known: their transfer functions.
//!
//! The checker runs a kernel without knowing its launch. Beside its concrete
//! meaning ([`Instr::exec`](crate::Instr::exec)) every op therefore declares
//! an abstract one ([`Instr::transfer`](crate::Instr::transfer)), written
//! against a [`Domain`]: the domain decides how sets of values are
//! represented, the op decides what it does to them. An op that declares
//! nothing gives results of which nothing is known.
//!
//! A transfer function is *sound* if the concrete results lie in the abstract
//! ones whenever the concrete operands lie in the abstract operands. The
//! checker's tests run every op of the table against that sentence.

use crate::machine::Special;
use crate::ops::compare::Cmp;
use crate::ops::warp::VoteMode;
use crate::types::Type;
use crate::value::{Operand, ParamId, RegId};

/// A function of two integers of one type, with the wrap-around of that type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Binary {
    /// `a + b`.
    Add,
    /// `a - b`.
    Sub,
    /// The low half of `a * b`.
    Mul,
    /// `a / b`, rounded towards zero; all ones where `b` is zero.
    Div,
    /// The remainder with the sign of `a`; all ones where `b` is zero.
    Rem,
    /// The lesser.
    Min,
    /// The greater.
    Max,
    /// Bits set in both.
    And,
    /// Bits set in either.
    Or,
    /// Bits set in one.
    Xor,
    /// `a` shifted left by `b` (`u32`) bits.
    Shl,
    /// `a` shifted right by `b` (`u32`) bits, filled with the sign of its type.
    Shr,
}

/// A representation of sets of values, as transfer functions see it.
///
/// Every value belongs to the lanes that execute now. The domain knows which
/// op it runs.
pub trait Domain {
    /// A set of values.
    type Value: Clone;

    /// An operand, read as a type.
    fn read(&mut self, o: Operand, ty: Type) -> Self::Value;
    /// Writes a register.
    fn write(&mut self, r: RegId, v: Self::Value);

    /// Any value; lanes may differ.
    fn unknown(&mut self) -> Self::Value;
    /// An unknown value that follows from operands alone: the same op gives the same value for
    /// the same operands.
    fn function(&mut self, operands: &[Self::Value]) -> Self::Value;

    /// A function of two integers.
    fn binary(&mut self, f: Binary, ty: Type, a: Self::Value, b: Self::Value) -> Self::Value;
    /// An integer in another integer type, as `as` gives it in Rust.
    fn convert(&mut self, from: Type, to: Type, v: Self::Value) -> Self::Value;
    /// A comparison of integers, as a predicate.
    fn compare(&mut self, cmp: Cmp, ty: Type, a: Self::Value, b: Self::Value) -> Self::Value;
    /// `a` where a predicate holds, `b` elsewhere.
    fn select(&mut self, cond: Self::Value, a: Self::Value, b: Self::Value) -> Self::Value;
    /// Both predicates.
    fn both(&mut self, a: Self::Value, b: Self::Value) -> Self::Value;
    /// Either predicate.
    fn either(&mut self, a: Self::Value, b: Self::Value) -> Self::Value;
    /// The opposite of a predicate.
    fn not(&mut self, p: Self::Value) -> Self::Value;

    /// A launch parameter.
    fn param(&mut self, p: ParamId, ty: Type) -> Self::Value;
    /// A special register.
    fn special(&mut self, s: Special) -> Self::Value;

    /// The answer of all executing lanes to a question about a predicate.
    fn vote(&mut self, mode: VoteMode, p: Self::Value) -> Self::Value;
    /// A value that each executing lane takes from one of the executing lanes.
    fn exchange(&mut self, v: Self::Value) -> Self::Value;
    /// The value that an operand has in the lane of a number, given to all lanes of the warp.
    fn broadcast(&mut self, o: Operand, ty: Type, lane: Self::Value) -> Self::Value;
}

/// An unknown function of the operands.
pub(crate) fn function<D: Domain, const N: usize>(
    d: &mut D,
    _: Type,
    operands: [D::Value; N],
) -> D::Value {
    d.function(&operands)
}

macro_rules! binaries {
    ($($name:ident $f:ident;)*) => {$(
        pub(crate) fn $name<D: Domain>(d: &mut D, ty: Type, [a, b]: [D::Value; 2]) -> D::Value {
            d.binary(Binary::$f, ty, a, b)
        }
    )*};
}
binaries! {
    add Add;
    sub Sub;
    mul Mul;
    div Div;
    rem Rem;
    min Min;
    max Max;
    and And;
    or Or;
    xor Xor;
    shl Shl;
    shr Shr;
}

/// `a * b + c` in one type.
pub(crate) fn mad<D: Domain>(d: &mut D, ty: Type, [a, b, c]: [D::Value; 3]) -> D::Value {
    let product = d.binary(Binary::Mul, ty, a, b);
    d.binary(Binary::Add, ty, product, c)
}

/// `a * b` in the type of twice the width.
pub(crate) fn mul_wide<D: Domain>(d: &mut D, ty: Type, [a, b]: [D::Value; 2]) -> D::Value {
    let wide = crate::lanes::widened(ty);
    let [a, b] = [a, b].map(|v| d.convert(ty, wide, v));
    d.binary(Binary::Mul, wide, a, b)
}

/// `a * b + c` in the type of twice the width, of which `c` is.
pub(crate) fn mad_wide<D: Domain>(d: &mut D, ty: Type, [a, b, c]: [D::Value; 3]) -> D::Value {
    let product = mul_wide(d, ty, [a, b]);
    d.binary(Binary::Add, crate::lanes::widened(ty), product, c)
}
