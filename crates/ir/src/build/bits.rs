//! Words of bits, as authors write them.

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
            /// How many bits are set (`popc`).
            count_ones -> u32 = Popc: $t;
            /// How many zero bits stand above the highest set one (`clz`).
            leading_zeros -> u32 = Clz: $t;
            /// The bits in reverse order (`brev`).
            reverse_bits -> $t = Brev: $t;
        }
    )*};
}
words!(u32, u64);

macro_rules! highest {
    ($($t:ty),*) => {$(
        unary! {
            /// Where the highest bit stands that is not the sign's fill (`bfind`); all ones where there is none.
            highest_bit -> u32 = Bfind: $t;
        }
    )*};
}
highest!(u32, i32, u64, i64);

macro_rules! fields {
    ($($t:ty),*) => {$(
        impl Reg<$t> {
            /// The field of `len` bits from bit `pos` up, filled with the sign of its type (`bfe`).
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
    /// The word with `field` in the `len` bits from bit `pos` up (`bfi`).
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

    /// The bits turned to the left by `n` mod 32.
    #[track_caller]
    pub fn rotate_left(self, n: impl Value<u32>) -> Reg<u32> {
        funnel_left(self, self, n)
    }

    /// The bits turned to the right by `n` mod 32.
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

/// The high word of `hi:lo` shifted left by `n` mod 32 (`shf.l`).
#[track_caller]
pub fn funnel_left(lo: impl Value<u32>, hi: impl Value<u32>, n: impl Value<u32>) -> Reg<u32> {
    funnel(true, [lo.operand(), hi.operand(), n.operand()])
}

/// The low word of `hi:lo` shifted right by `n` mod 32 (`shf.r`).
#[track_caller]
pub fn funnel_right(lo: impl Value<u32>, hi: impl Value<u32>, n: impl Value<u32>) -> Reg<u32> {
    funnel(false, [lo.operand(), hi.operand(), n.operand()])
}

/// Any function of three bits, applied to the bits of three words by one instruction.
///
/// `f` is written as it would be for words: `lop3(x, y, z, |x, y, z| x & y | !z)`.
/// It runs once, while the kernel is built, and must be bitwise.
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

/// Four bytes picked from the eight of two words (`prmt`).
///
/// Nibble `i` of the selector makes byte `i` of the result: 0 to 3 name the
/// bytes of `a`, 4 to 7 those of `b`; 8 on top asks for that byte's sign in all eight bits.
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
