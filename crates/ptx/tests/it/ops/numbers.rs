//! Arithmetic, bit ops, comparisons, conversions, math functions.

use crate::ops::sheet::{Sheet, TYPES, constant};
use warpline_ir::ops::arith::*;
use warpline_ir::ops::bits::*;
use warpline_ir::ops::compare::*;
use warpline_ir::ops::convert::*;
use warpline_ir::ops::math::*;
use warpline_ir::*;

/// Adds every variant of unary ops.
macro_rules! unary {
    ($s:ident, $ty:ident, [$($op:ident)*]) => {$(
        for a in $s.both($ty) {
            let dst = $s.reg($ty);
            $s.form($op { ty: $ty, dst, a });
        }
    )*};
}

/// Adds every variant of binary ops.
macro_rules! binary {
    ($s:ident, $ty:ident, [$($op:ident)*]) => {$(
        for b in $s.both($ty) {
            let (dst, a) = ($s.reg($ty), $s.value($ty).into());
            $s.form($op { ty: $ty, dst, a, b });
        }
    )*};
}

/// Returns the type of twice the width.
fn wide(ty: Type) -> Type {
    if ty == Type::I32 {
        Type::I64
    } else {
        Type::U64
    }
}

pub(crate) fn arith() -> Sheet {
    let mut s = Sheet::new("arith");
    for ty in TYPES {
        for src in s.both(ty) {
            let dst = s.reg(ty);
            s.form(Mov { ty, dst, src });
        }
        unary!(s, ty, [Neg Abs]);
        binary!(s, ty, [Add Sub Mul MulHi Div Rem Min Max]);
        for c in s.both(ty) {
            let (a, b) = (s.value(ty).into(), s.value(ty).into());
            let dst = s.reg(ty);
            s.form(Mad { ty, dst, a, b, c });
            let dst = s.reg(ty);
            s.form(Fma { ty, dst, a, b, c });
        }
    }
    for ty in [Type::U32, Type::I32] {
        for b in s.both(ty) {
            let a = s.value(ty).into();
            let dst = s.reg(wide(ty));
            s.op(MulWide { ty, dst, a, b });
            let (dst, c) = (s.reg(wide(ty)), s.value(wide(ty)).into());
            s.op(MadWide { ty, dst, a, b, c });
        }
    }
    s
}

pub(crate) fn bits() -> Sheet {
    let mut s = Sheet::new("bits");
    for ty in TYPES {
        binary!(s, ty, [And Or Xor]);
        unary!(s, ty, [Not]);
        for b in s.both(Type::U32) {
            let a = s.value(ty).into();
            let dst = s.reg(ty);
            s.form(Shl { ty, dst, a, b });
            let dst = s.reg(ty);
            s.form(Shr { ty, dst, a, b });
        }
        let a = s.value(ty).into();
        let dst = s.reg(Type::U32);
        s.form(Popc { ty, dst, a });
        let dst = s.reg(Type::U32);
        s.form(Clz { ty, dst, a });
        let dst = s.reg(Type::U32);
        s.form(Bfind { ty, dst, a });
        let dst = s.reg(ty);
        s.form(Brev { ty, dst, a });
        let (dst, pos, len) = (s.reg(ty), constant(Type::U32), s.value(Type::U32).into());
        s.form(Bfe {
            ty,
            dst,
            a,
            pos,
            len,
        });
    }
    for x in s.both(Type::U32) {
        let a = s.value(Type::U32).into();
        let dst = s.reg(Type::U32);
        s.op(Lop3 {
            dst,
            a,
            b: x,
            c: a,
            table: 0xea,
        });
        let dst = s.reg(Type::U32);
        s.op(Prmt {
            dst,
            a,
            b: a,
            selector: x,
        });
        let dst = s.reg(Type::U32);
        s.op(Bfi {
            dst,
            field: a,
            into: a,
            pos: x,
            len: x,
        });
        for left in [false, true] {
            let dst = s.reg(Type::U32);
            s.op(Shf {
                dst,
                lo: a,
                hi: a,
                shift: x,
                left,
            });
        }
    }
    s
}

pub(crate) fn compare() -> Sheet {
    let mut s = Sheet::new("compare");
    for ty in TYPES {
        for cmp in [Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge] {
            for b in s.both(ty) {
                let (dst, a) = (s.reg(Type::Pred), s.value(ty).into());
                s.form(Setp { cmp, ty, dst, a, b });
            }
        }
        for b in s.both(ty) {
            let (dst, a, cond) = (s.reg(ty), s.value(ty).into(), s.value(Type::Pred).into());
            s.form(Select {
                ty,
                dst,
                cond,
                a,
                b,
            });
        }
    }
    let (dst, a, b) = (
        s.reg(Type::U32),
        s.value(Type::U32).into(),
        constant(Type::U32),
    );
    s.op(Select {
        ty: Type::U32,
        dst,
        cond: Operand::Imm(1),
        a,
        b,
    });
    for b in s.both(Type::Pred) {
        let a = s.value(Type::Pred).into();
        let dst = s.reg(Type::Pred);
        s.op(PredAnd { dst, a, b });
        let dst = s.reg(Type::Pred);
        s.op(PredOr { dst, a, b });
        let dst = s.reg(Type::Pred);
        s.op(PredNot { dst, a: b });
    }
    s
}

pub(crate) fn convert() -> Sheet {
    let mut s = Sheet::new("convert");
    for from in TYPES {
        for to in TYPES {
            for src in s.both(from) {
                let dst = s.reg(to);
                s.form(Cvt { from, to, dst, src });
                let dst = s.reg(to);
                s.form(Bitcast { from, to, dst, src });
                for relu in [false, true] {
                    let (dst, lo) = (s.reg(to), s.value(from).into());
                    s.form(Pack {
                        from,
                        to,
                        relu,
                        dst,
                        lo,
                        hi: src,
                    });
                }
                let (lo, hi) = (s.reg(to), s.reg(to));
                s.form(Unpack {
                    from,
                    to,
                    lo,
                    hi,
                    src,
                });
            }
        }
    }
    s
}

pub(crate) fn math() -> Sheet {
    let mut s = Sheet::new("math");
    for ty in TYPES {
        for a in s.both(ty) {
            for ftz in [false, true] {
                let dst = s.reg(ty);
                s.form(Ex2 { ty, dst, a, ftz });
            }
            let dst = s.reg(ty);
            s.form(Tanh { ty, dst, a });
        }
    }
    for a in s.both(Type::F32) {
        for ftz in [false, true] {
            let dst = s.reg(Type::F32);
            s.op(Lg2 { dst, a, ftz });
            let dst = s.reg(Type::F32);
            s.op(Rcp { dst, a, ftz });
            let dst = s.reg(Type::F32);
            s.op(Rsqrt { dst, a, ftz });
        }
        let dst = s.reg(Type::F32);
        s.op(Sqrt { dst, a });
    }
    s
}
