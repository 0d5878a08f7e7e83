//! Transfer functions: the semantics of ops on abstract values.
//!
//! The checker analyzes a kernel for all launches. Besides its concrete
//! semantics ([`Instr::exec`](crate::Instr::exec)) an op therefore declares an
//! abstract one ([`Instr::transfer`](crate::Instr::transfer)), generic over a
//! [`Domain`]: the domain represents sets of values, the op transforms them.
//! The results of an op without a transfer function are unknown.
//!
//! A transfer function is *sound* if the abstract results contain the concrete
//! results whenever the abstract operands contain the concrete operands. The
//! checker's tests verify this property for every op of the table.

use crate::machine::Special;
use crate::ops::compare::Cmp;
use crate::ops::warp::VoteMode;
use crate::types::Type;
use crate::value::{Operand, ParamId, RegId};

/// A function of two integers of one type, with wrap-around.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Binary {
    /// `a + b`.
    Add,
    /// `a - b`.
    Sub,
    /// The low half of `a * b`.
    Mul,
    /// `a / b`, rounded toward zero; all ones if `b` is zero.
    Div,
    /// The remainder with the sign of `a`; all ones if `b` is zero.
    Rem,
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
    /// `a` shifted left by `b` (`u32`) bits.
    Shl,
    /// `a` shifted right by `b` (`u32`) bits: arithmetic for signed types, logical for unsigned ones.
    Shr,
}

/// A representation of sets of values: the interface of transfer functions.
///
/// Every value belongs to the active lanes. The domain tracks the current op.
pub trait Domain {
    /// A set of values.
    type Value: Clone;

    /// Reads an operand of type `ty`.
    fn read(&mut self, o: Operand, ty: Type) -> Self::Value;
    /// Writes a register.
    fn write(&mut self, r: RegId, v: Self::Value);

    /// Returns the set of all values; lanes may differ.
    fn unknown(&mut self) -> Self::Value;
    /// Returns an uninterpreted function of the operands: unknown, but equal for equal
    /// operands of the same op.
    fn function(&mut self, operands: &[Self::Value]) -> Self::Value;

    /// Applies a function of two integers.
    fn binary(&mut self, f: Binary, ty: Type, a: Self::Value, b: Self::Value) -> Self::Value;
    /// Converts an integer to another integer type, as Rust's `as` does.
    fn convert(&mut self, from: Type, to: Type, v: Self::Value) -> Self::Value;
    /// Compares two integers; the result is a predicate.
    fn compare(&mut self, cmp: Cmp, ty: Type, a: Self::Value, b: Self::Value) -> Self::Value;
    /// Returns `a` where the predicate is true and `b` elsewhere.
    fn select(&mut self, cond: Self::Value, a: Self::Value, b: Self::Value) -> Self::Value;
    /// Returns the conjunction of two predicates.
    fn both(&mut self, a: Self::Value, b: Self::Value) -> Self::Value;
    /// Returns the disjunction of two predicates.
    fn either(&mut self, a: Self::Value, b: Self::Value) -> Self::Value;
    /// Returns the negation of a predicate.
    fn not(&mut self, p: Self::Value) -> Self::Value;

    /// Returns a launch parameter.
    fn param(&mut self, p: ParamId, ty: Type) -> Self::Value;
    /// Returns a special register.
    fn special(&mut self, s: Special) -> Self::Value;

    /// Returns the result of a vote of the active lanes on a predicate.
    fn vote(&mut self, mode: VoteMode, p: Self::Value) -> Self::Value;
    /// Returns the result of a shuffle: each active lane reads the value of any active lane.
    fn exchange(&mut self, v: Self::Value) -> Self::Value;
    /// Returns the operand's value in lane `lane`, in all lanes of the warp.
    fn broadcast(&mut self, o: Operand, ty: Type, lane: Self::Value) -> Self::Value;
}

/// Returns an uninterpreted function of the operands.
pub(crate) fn function<D: Domain, const N: usize>(
    d: &mut D,
    _: Type,
    operands: [D::Value; N],
) -> D::Value {
    d.function(&operands)
}

macro_rules! binary_transfers {
    ($($name:ident $f:ident;)*) => {$(
        pub(crate) fn $name<D: Domain>(d: &mut D, ty: Type, [a, b]: [D::Value; 2]) -> D::Value {
            d.binary(Binary::$f, ty, a, b)
        }
    )*};
}
binary_transfers! {
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

/// Computes `a * b + c` in one type.
pub(crate) fn mad<D: Domain>(d: &mut D, ty: Type, [a, b, c]: [D::Value; 3]) -> D::Value {
    let product = d.binary(Binary::Mul, ty, a, b);
    d.binary(Binary::Add, ty, product, c)
}

/// Computes `a * b` in twice the width.
pub(crate) fn mul_wide<D: Domain>(d: &mut D, ty: Type, [a, b]: [D::Value; 2]) -> D::Value {
    let wide = crate::lanes::double_width(ty);
    let [a, b] = [a, b].map(|v| d.convert(ty, wide, v));
    d.binary(Binary::Mul, wide, a, b)
}

/// Computes `a * b + c` in twice the width; `c` has that width already.
pub(crate) fn mad_wide<D: Domain>(d: &mut D, ty: Type, [a, b, c]: [D::Value; 3]) -> D::Value {
    let product = mul_wide(d, ty, [a, b]);
    d.binary(Binary::Add, crate::lanes::double_width(ty), product, c)
}
