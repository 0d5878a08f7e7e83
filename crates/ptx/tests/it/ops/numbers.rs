//! Arithmetic, bit ops, comparisons, conversions, math functions.

use crate::ops::op_kernel::{OpKernel, TYPES, constant};
use warpline_ir::ops::arith::*;
use warpline_ir::ops::bits::*;
use warpline_ir::ops::compare::*;
use warpline_ir::ops::convert::*;
use warpline_ir::ops::math::*;
use warpline_ir::*;

/// Adds every variant of unary ops.
macro_rules! unary {
    ($s:ident, $ty:ident, [$($op:ident)*]) => {$(
        for a in $s.reg_and_imm($ty) {
            let dst = $s.reg($ty);
            $s.op_if_legal($op { ty: $ty, dst, a });
        }
    )*};
}

/// Adds every variant of binary ops.
macro_rules! binary {
    ($s:ident, $ty:ident, [$($op:ident)*]) => {$(
        for b in $s.reg_and_imm($ty) {
            let (dst, a) = ($s.reg($ty), $s.value($ty).into());
            $s.op_if_legal($op { ty: $ty, dst, a, b });
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

pub(crate) fn arith() -> OpKernel {
    let mut s = OpKernel::new("arith");
    for ty in TYPES {
        for src in s.reg_and_imm(ty) {
            let dst = s.reg(ty);
            s.op_if_legal(Mov { ty, dst, src });
        }
        unary!(s, ty, [Neg Abs]);
        binary!(s, ty, [Add Sub Mul MulHi Div Rem Min Max]);
        for c in s.reg_and_imm(ty) {
            let (a, b) = (s.value(ty).into(), s.value(ty).into());
            let dst = s.reg(ty);
            s.op_if_legal(Mad { ty, dst, a, b, c });
            let dst = s.reg(ty);
            s.op_if_legal(Fma { ty, dst, a, b, c });
        }
    }
    for ty in [Type::U32, Type::I32] {
        for b in s.reg_and_imm(ty) {
            let a = s.value(ty).into();
            let dst = s.reg(wide(ty));
            s.op(MulWide { ty, dst, a, b });
            let (dst, c) = (s.reg(wide(ty)), s.value(wide(ty)).into());
            s.op(MadWide { ty, dst, a, b, c });
        }
    }
    for ty in TYPES {
        unary!(s, ty, [Opaque]);
    }
    s
}

pub(crate) fn bits() -> OpKernel {
    let mut s = OpKernel::new("bits");
    for ty in TYPES {
        binary!(s, ty, [And Or Xor]);
        unary!(s, ty, [Not]);
        for b in s.reg_and_imm(Type::U32) {
            let a = s.value(ty).into();
            let dst = s.reg(ty);
            s.op_if_legal(Shl { ty, dst, a, b });
            let dst = s.reg(ty);
            s.op_if_legal(Shr { ty, dst, a, b });
        }
        let a = s.value(ty).into();
        let dst = s.reg(Type::U32);
        s.op_if_legal(Popc { ty, dst, a });
        let dst = s.reg(Type::U32);
        s.op_if_legal(Clz { ty, dst, a });
        let dst = s.reg(Type::U32);
        s.op_if_legal(Bfind { ty, dst, a });
        let dst = s.reg(ty);
        s.op_if_legal(Brev { ty, dst, a });
        let (dst, pos, len) = (s.reg(ty), constant(Type::U32), s.value(Type::U32).into());
        s.op_if_legal(Bfe {
            ty,
            dst,
            a,
            pos,
            len,
        });
    }
    for x in s.reg_and_imm(Type::U32) {
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

pub(crate) fn compare() -> OpKernel {
    let mut s = OpKernel::new("compare");
    for ty in TYPES {
        for cmp in [Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge] {
            for b in s.reg_and_imm(ty) {
                let (dst, a) = (s.reg(Type::Pred), s.value(ty).into());
                s.op_if_legal(Setp { cmp, ty, dst, a, b });
            }
        }
        for b in s.reg_and_imm(ty) {
            let (dst, a, cond) = (s.reg(ty), s.value(ty).into(), s.value(Type::Pred).into());
            s.op_if_legal(Select {
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
    for b in s.reg_and_imm(Type::Pred) {
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

pub(crate) fn convert() -> OpKernel {
    let mut s = OpKernel::new("convert");
    for from in TYPES {
        for to in TYPES {
            for src in s.reg_and_imm(from) {
                let dst = s.reg(to);
                s.op_if_legal(Cvt { from, to, dst, src });
                let dst = s.reg(to);
                s.op_if_legal(Bitcast { from, to, dst, src });
                for relu in [false, true] {
                    let (dst, lo) = (s.reg(to), s.value(from).into());
                    s.op_if_legal(Pack {
                        from,
                        to,
                        relu,
                        dst,
                        lo,
                        hi: src,
                    });
                }
                let (lo, hi) = (s.reg(to), s.reg(to));
                s.op_if_legal(Unpack {
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

pub(crate) fn math() -> OpKernel {
    let mut s = OpKernel::new("math");
    for ty in TYPES {
        for a in s.reg_and_imm(ty) {
            for ftz in [false, true] {
                let dst = s.reg(ty);
                s.op_if_legal(Ex2 { ty, dst, a, ftz });
            }
            let dst = s.reg(ty);
            s.op_if_legal(Tanh { ty, dst, a });
        }
    }
    for a in s.reg_and_imm(Type::F32) {
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
