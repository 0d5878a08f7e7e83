//! Bit operations on integer registers.

use super::reg::{Reg, Value};
use super::state::emit;
use crate::ops::bits::{Bfe, Bfi, Bfind, Brev, Clz, Lop3, Not, Popc, Prmt, Shf, Shl, Shr};
use crate::types::Scalar;
use crate::value::Operand;
use std::ops;

macro_rules! shift {
    ($trait:ident, $method:ident, $op:ident: $($t:ty),*) => {$(
        impl<B: Value<u32>> ops::$trait<B> for Reg<$t> {
            type Output = Reg<$t>;
            #[track_caller]
            fn $method(self, b: B) -> Reg<$t> {
                let dst = Reg::fresh();
                emit($op { ty: <$t>::TYPE, dst: dst.id(), a: self.operand(), b: b.operand() });
                dst
            }
        }
    )*};
}
shift!(Shl, shl, Shl: u16, u32, i32, u64, i64);
shift!(Shr, shr, Shr: u16, u32, i32, u64, i64);

macro_rules! invert {
    ($($t:ty),*) => {$(
        impl ops::Not for Reg<$t> {
            type Output = Reg<$t>;
            #[track_caller]
            fn not(self) -> Reg<$t> {
                let dst = Reg::fresh();
                emit(Not { ty: <$t>::TYPE, dst: dst.id(), a: self.operand() });
                dst
            }
        }
    )*};
}
invert!(u16, u32, i32, u64, i64);

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident -> $out:ty = $op:ident: $t:ty;)*) => {$(
        impl Reg<$t> {
            $(#[$doc])*
            #[track_caller]
            pub fn $name(self) -> Reg<$out> {
                let dst = Reg::fresh();
                emit($op { ty: <$t>::TYPE, dst: dst.id(), a: self.operand() });
                dst
            }
        }
    )*};
}

macro_rules! words {
    ($($t:ty),*) => {$(
        unary! {
            /// Counts the set bits (`popc`).
            count_ones -> u32 = Popc: $t;
            /// Counts the leading zero bits (`clz`).
            leading_zeros -> u32 = Clz: $t;
            /// Reverses the bits (`brev`).
            reverse_bits -> $t = Brev: $t;
        }
    )*};
}
words!(u32, u64);

macro_rules! highest {
    ($($t:ty),*) => {$(
        unary! {
            /// Returns the position of the highest bit that differs from the sign, or all ones if there
            /// is no such bit (`bfind`).
            highest_bit -> u32 = Bfind: $t;
        }
    )*};
}
highest!(u32, i32, u64, i64);

macro_rules! fields {
    ($($t:ty),*) => {$(
        impl Reg<$t> {
            /// Extracts `len` bits from bit `pos`, sign-extended for a signed type (`bfe`).
            #[track_caller]
            pub fn field(self, pos: impl Value<u32>, len: impl Value<u32>) -> Reg<$t> {
                let dst = Reg::fresh();
                emit(Bfe {
                    ty: <$t>::TYPE,
                    dst: dst.id(),
                    a: self.operand(),
                    pos: pos.operand(),
                    len: len.operand(),
                });
                dst
            }
        }
    )*};
}
fields!(u32, i32);

impl Reg<u32> {
    /// Inserts `field` into the `len` bits from bit `pos` (`bfi`).
    #[track_caller]
    pub fn with_field(
        self,
        field: impl Value<u32>,
        pos: impl Value<u32>,
        len: impl Value<u32>,
    ) -> Reg<u32> {
        let dst = Reg::fresh();
        emit(Bfi {
            dst: dst.id(),
            field: field.operand(),
            into: self.operand(),
            pos: pos.operand(),
            len: len.operand(),
        });
        dst
    }

    /// Rotates the bits left by `n` mod 32.
    #[track_caller]
    pub fn rotate_left(self, n: impl Value<u32>) -> Reg<u32> {
        funnel_left(self, self, n)
    }

    /// Rotates the bits right by `n` mod 32.
    #[track_caller]
    pub fn rotate_right(self, n: impl Value<u32>) -> Reg<u32> {
        funnel_right(self, self, n)
    }
}

#[track_caller]
fn funnel(left: bool, [lo, hi, shift]: [Operand; 3]) -> Reg<u32> {
    let dst = Reg::fresh();
    emit(Shf {
        dst: dst.id(),
        lo,
        hi,
        shift,
        left,
    });
    dst
}

/// Returns the high word of `hi:lo` shifted left by `n` mod 32 (`shf.l`).
#[track_caller]
pub fn funnel_left(lo: impl Value<u32>, hi: impl Value<u32>, n: impl Value<u32>) -> Reg<u32> {
    funnel(true, [lo.operand(), hi.operand(), n.operand()])
}

/// Returns the low word of `hi:lo` shifted right by `n` mod 32 (`shf.r`).
#[track_caller]
pub fn funnel_right(lo: impl Value<u32>, hi: impl Value<u32>, n: impl Value<u32>) -> Reg<u32> {
    funnel(false, [lo.operand(), hi.operand(), n.operand()])
}

/// Applies a bitwise function of three words in one instruction (`lop3`).
///
/// `f` is written as for words: `lop3(x, y, z, |x, y, z| x & y | !z)`. It runs once at build
/// time, on the lookup-table constants, and must be bitwise.
#[track_caller]
pub fn lop3(
    a: impl Value<u32>,
    b: impl Value<u32>,
    c: impl Value<u32>,
    f: impl FnOnce(u8, u8, u8) -> u8,
) -> Reg<u32> {
    let dst = Reg::fresh();
    emit(Lop3 {
        dst: dst.id(),
        a: a.operand(),
        b: b.operand(),
        c: c.operand(),
        table: f(0xf0, 0xcc, 0xaa),
    });
    dst
}

/// Selects four of the eight bytes of two words (`prmt`).
///
/// Nibble `i` of the selector selects byte `i` of the result: 0 to 3 are the bytes of `a`,
/// 4 to 7 those of `b`. Adding 8 replicates the sign bit of the selected byte.
#[track_caller]
pub fn prmt(a: impl Value<u32>, b: impl Value<u32>, selector: impl Value<u32>) -> Reg<u32> {
    let dst = Reg::fresh();
    emit(Prmt {
        dst: dst.id(),
        a: a.operand(),
        b: b.operand(),
        selector: selector.operand(),
    });
    dst
}
