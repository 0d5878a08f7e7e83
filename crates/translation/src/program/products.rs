//! What matrix products ask for.

use super::terms::Terms;
use crate::act::{Act, Kind};
use crate::value::Value;
use warpline_ir::ops::mma::{Mma, MmaType};
use warpline_ir::ops::wgmma::{MatrixA, Wgmma};
use warpline_ir::{Major, Op, Operand, Type};

/// The act of an op that multiplies matrices.
pub(super) fn act<'a>(t: Terms<'a>, op: &'a Op) -> Option<Act<'a>> {
    let whole = Value::yes(true);
    let act = match op {
        Op::Wgmma(o) => wgmma(t, o),
        Op::WgmmaFence(_) => Act::new(Kind::WgmmaFence),
        Op::WgmmaCommit(_) => Act::new(Kind::WgmmaCommit),
        Op::WgmmaWait(o) => Act::new(Kind::WgmmaWait).with("groups that may stay open", o.pending),
        Op::Mma(o) => mma(t, o),
        _ => return None,
    };
    Some(act.with("by whole warps", whole))
}

/// A shape: `m64n256k16`.
fn shape<'a>(m: u32, n: u32, k: u32) -> Value<'a> {
    Value::Made("shape", [m, n, k].map(Value::from).to_vec())
}

fn names<'a>(all: &[&'static str]) -> Value<'a> {
    Value::List(all.iter().map(|n| Value::Name(n)).collect())
}

/// Elements along K of one instruction: 32 bytes of them.
fn k(ty: MmaType) -> u32 {
    match ty {
        MmaType::Tf32 => 8,
        MmaType::Bf16 | MmaType::F16 => 16,
        MmaType::E4m3 | MmaType::E5m2 => 32,
    }
}

fn wgmma<'a>(t: Terms<'a>, o: &'a Wgmma) -> Act<'a> {
    let transposed = |major| Value::Number(u64::from(major == Major::Mn));
    let sixteen = k(o.a_ty) == 16;
    let (a, trans_a) = match &o.a {
        MatrixA::Shared(view, major) => (t.descriptor(view, *major), Some(transposed(*major))),
        MatrixA::Regs(regs) => (t.regs(regs), None),
    };
    let trans = trans_a.into_iter().chain([transposed(o.b_major)]);
    let sign = |neg| Value::Number(if neg { u64::MAX } else { 1 });
    Act::new(Kind::Wgmma)
        .with("shape", shape(64, o.n, k(o.a_ty)))
        .with("types", names(&["f32", o.a_ty.name(), o.b_ty.name()]))
        .with("accumulators", t.regs(&o.d))
        .with("A", a)
        .with("B", t.descriptor(&o.b, o.b_major))
        .with("adds", t.operand(o.scale_d, Type::Pred))
        .with("sign of A", sign(o.neg_a))
        .with("sign of B", sign(o.neg_b))
        // Only 16-bit types can be transposed, and only in shared memory.
        .with(
            "transposed",
            Value::List(trans.filter(|_| sixteen).collect()),
        )
}

fn mma<'a>(t: Terms<'a>, o: &Mma) -> Act<'a> {
    // Two registers of B hold all of K, one holds half.
    let k = k(o.a_ty) * o.b.len() as u32 / 2;
    let list = |all: &[Operand], ty| t.operands(all, ty);
    Act::new(Kind::Mma)
        .with("shape", shape(16, 8, k))
        .with(
            "types",
            names(&["row", "col", "f32", o.a_ty.name(), o.b_ty.name(), "f32"]),
        )
        .with("D", t.regs(&o.d))
        .with("A", list(&o.a, o.a_ty.reg()))
        .with("B", list(&o.b, o.b_ty.reg()))
        .with("C", list(&o.c, Type::F32))
}
