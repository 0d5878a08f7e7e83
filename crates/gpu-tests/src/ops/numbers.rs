//! Arithmetic, bit ops, comparisons, conversions, functions: every form of each op.

use crate::columns::{Columns, constant};
use warpline_ir::Type;
use warpline_ir::ops::arith::*;
use warpline_ir::ops::bits::*;
use warpline_ir::ops::compare::*;
use warpline_ir::ops::convert::*;
use warpline_ir::ops::math::*;

const TYPES: [Type; 17] = Type::ALL;

/// Ops with one operand.
macro_rules! unary {
    ($all:ident, $($op:ident $name:literal),* $(,)?) => {$(
        let mut c = Columns::new($name);
        for ty in TYPES {
            let (dst, a) = (c.reg(ty), c.arg(ty));
            c.form($op { ty, dst, a });
        }
        $all.push(c);
    )*};
}

/// Ops with two operands.
macro_rules! binary {
    ($all:ident, $($op:ident $name:literal),* $(,)?) => {$(
        let mut c = Columns::new($name);
        for ty in TYPES {
            for b in c.register_and_constant(ty) {
                let (dst, a) = (c.reg(ty), c.arg(ty));
                c.form($op { ty, dst, a, b });
            }
        }
        $all.push(c);
    )*};
}

/// Ops with three operands.
macro_rules! ternary {
    ($all:ident, $($op:ident $name:literal),* $(,)?) => {$(
        let mut c = Columns::new($name);
        for ty in TYPES {
            for x in c.register_and_constant(ty) {
                let (dst, a, b) = (c.reg(ty), c.arg(ty), c.arg(ty));
                c.form($op { ty, dst, a, b, c: x });
            }
        }
        $all.push(c);
    )*};
}

/// Ops with one operand and a `u32` result.
macro_rules! counts {
    ($all:ident, $($op:ident $name:literal),* $(,)?) => {$(
        let mut c = Columns::new($name);
        for ty in TYPES {
            let (dst, a) = (c.reg(Type::U32), c.arg(ty));
            c.form($op { ty, dst, a });
        }
        $all.push(c);
    )*};
}

/// Shifts by a `u32`.
macro_rules! shifts {
    ($all:ident, $($op:ident $name:literal),* $(,)?) => {$(
        let mut c = Columns::new($name);
        for ty in TYPES {
            for b in c.register_and_constant(Type::U32) {
                let (dst, a) = (c.reg(ty), c.arg(ty));
                c.form($op { ty, dst, a, b });
            }
        }
        $all.push(c);
    )*};
}

/// Functions of an `f32` with optional flush-to-zero.
macro_rules! functions {
    ($all:ident, $($op:ident $name:literal),* $(,)?) => {$(
        let mut c = Columns::new($name);
        for ftz in [false, true] {
            let (dst, a) = (c.reg(Type::F32), c.arg(Type::F32));
            c.form($op { dst, a, ftz });
        }
        $all.push(c);
    )*};
}

/// Returns the type of twice the width.
fn wide(ty: Type) -> Type {
    match ty {
        Type::I32 => Type::I64,
        _ => Type::U64,
    }
}

pub(crate) fn arith() -> Vec<Columns> {
    let mut all = vec![];
    let mut c = Columns::new("mov");
    for ty in TYPES {
        for src in c.register_and_constant(ty) {
            let dst = c.reg(ty);
            c.form(Mov { ty, dst, src });
        }
    }
    all.push(c);
    let mut c = Columns::new("opaque");
    for ty in TYPES {
        for a in c.register_and_constant(ty) {
            let dst = c.reg(ty);
            c.form(Opaque { ty, dst, a });
        }
    }
    all.push(c);
    unary!(all, Neg "neg", Abs "abs");
    binary!(all, Add "add", Sub "sub", Mul "mul", MulHi "mul_hi", Div "div", Rem "rem");
    binary!(all, Min "min", Max "max");
    ternary!(all, Mad "mad", Fma "fma");
    let (mut mul, mut mad) = (Columns::new("mul_wide"), Columns::new("mad_wide"));
    for ty in [Type::U32, Type::I32] {
        for b in mul.register_and_constant(ty) {
            let (dst, a) = (mul.reg(wide(ty)), mul.arg(ty));
            mul.form(MulWide { ty, dst, a, b });
        }
        for b in mad.register_and_constant(ty) {
            let (dst, a, c) = (mad.reg(wide(ty)), mad.arg(ty), mad.arg(wide(ty)));
            mad.form(MadWide { ty, dst, a, b, c });
        }
    }
    all.extend([mul, mad]);
    all
}

pub(crate) fn bits() -> Vec<Columns> {
    let mut all = vec![];
    binary!(all, And "and", Or "or", Xor "xor");
    unary!(all, Not "not", Brev "brev");
    counts!(all, Popc "popc", Clz "clz", Bfind "bfind");
    shifts!(all, Shl "shl", Shr "shr");
    let word = Type::U32;
    let mut c = Columns::new("lop3");
    for table in [0x1a, 0x96, 0xe8, 0x80, 0x01, 0x5c] {
        let (dst, a, b, x) = (c.reg(word), c.arg(word), c.arg(word), c.arg(word));
        c.form(Lop3 {
            dst,
            a,
            b,
            c: x,
            table,
        });
    }
    all.push(c);
    let mut c = Columns::new("prmt");
    for selector in [c.arg(word), warpline_ir::Operand::Imm(0x5410)] {
        let (dst, a, b) = (c.reg(word), c.arg(word), c.arg(word));
        c.form(Prmt {
            dst,
            a,
            b,
            selector,
        });
    }
    all.push(c);
    let mut c = Columns::new("bfe");
    for ty in TYPES {
        for pos in c.register_and_constant(word) {
            let (dst, a, len) = (c.reg(ty), c.arg(ty), c.arg(word));
            c.form(Bfe {
                ty,
                dst,
                a,
                pos,
                len,
            });
        }
    }
    all.push(c);
    let mut c = Columns::new("bfi");
    for pos in c.register_and_constant(word) {
        let (dst, field, into, len) = (c.reg(word), c.arg(word), c.arg(word), c.arg(word));
        c.form(Bfi {
            dst,
            field,
            into,
            pos,
            len,
        });
    }
    all.push(c);
    let mut c = Columns::new("shf");
    for left in [false, true] {
        for shift in c.register_and_constant(word) {
            let (dst, lo, hi) = (c.reg(word), c.arg(word), c.arg(word));
            c.form(Shf {
                dst,
                lo,
                hi,
                shift,
                left,
            });
        }
    }
    all.push(c);
    all
}

pub(crate) fn compare() -> Vec<Columns> {
    let mut all = vec![];
    let mut c = Columns::new("setp");
    for ty in TYPES {
        for cmp in [Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge] {
            let (dst, a, b) = (c.reg(Type::Pred), c.arg(ty), c.arg(ty));
            c.form(Setp { cmp, ty, dst, a, b });
        }
        let (dst, a, b) = (c.reg(Type::Pred), c.arg(ty), constant(ty));
        let cmp = Cmp::Lt;
        c.form(Setp { cmp, ty, dst, a, b });
    }
    all.push(c);
    let mut c = Columns::new("select");
    for ty in TYPES {
        for b in c.register_and_constant(ty) {
            let (dst, a, cond) = (c.reg(ty), c.arg(ty), c.arg(Type::Pred));
            c.form(Select {
                ty,
                dst,
                cond,
                a,
                b,
            });
        }
    }
    all.push(c);
    let pred = Type::Pred;
    let mut c = Columns::new("pred_and");
    for b in c.register_and_constant(pred) {
        let (dst, a) = (c.reg(pred), c.arg(pred));
        c.form(PredAnd { dst, a, b });
    }
    all.push(c);
    let mut c = Columns::new("pred_or");
    for b in c.register_and_constant(pred) {
        let (dst, a) = (c.reg(pred), c.arg(pred));
        c.form(PredOr { dst, a, b });
    }
    all.push(c);
    let mut c = Columns::new("pred_not");
    for a in c.register_and_constant(pred) {
        let dst = c.reg(pred);
        c.form(PredNot { dst, a });
    }
    all.push(c);
    all
}

pub(crate) fn convert() -> Vec<Columns> {
    let [mut cvt, mut cast, mut pack, mut unpack] =
        ["cvt", "bitcast", "pack", "unpack"].map(Columns::new);
    for from in TYPES {
        for to in TYPES {
            let (dst, src) = (cvt.reg(to), cvt.arg(from));
            cvt.form(Cvt { from, to, dst, src });
            let (dst, src) = (cast.reg(to), cast.arg(from));
            cast.form(Bitcast { from, to, dst, src });
            for relu in [false, true] {
                let (dst, lo, hi) = (pack.reg(to), pack.arg(from), pack.arg(from));
                pack.form(Pack {
                    from,
                    to,
                    relu,
                    dst,
                    lo,
                    hi,
                });
            }
            let (lo, hi, src) = (unpack.reg(to), unpack.reg(to), unpack.arg(from));
            unpack.form(Unpack {
                from,
                to,
                lo,
                hi,
                src,
            });
        }
    }
    vec![cvt, cast, pack, unpack]
}

pub(crate) fn math() -> Vec<Columns> {
    let mut all = vec![];
    let mut c = Columns::new("ex2");
    for ty in TYPES {
        // Only f32 has both modes.
        for ftz in [false, true]
            .into_iter()
            .take(1 + usize::from(ty == Type::F32))
        {
            let (dst, a) = (c.reg(ty), c.arg(ty));
            c.form(Ex2 { ty, dst, a, ftz });
        }
    }
    all.push(c);
    unary!(all, Tanh "tanh");
    functions!(all, Lg2 "lg2", Rcp "rcp", Rsqrt "rsqrt");
    let mut c = Columns::new("sqrt");
    let (dst, a) = (c.reg(Type::F32), c.arg(Type::F32));
    c.form(Sqrt { dst, a });
    all.push(c);
    all
}
