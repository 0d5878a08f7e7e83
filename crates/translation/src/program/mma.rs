//! Actions of `wgmma` and `mma`.

use super::operand_converter::OperandConverter;
use crate::action::{Action, ActionKind};
use crate::value::OperandValue;
use warpline_ir::ops::mma::{Mma, MmaType};
use warpline_ir::ops::wgmma::{MatrixA, Wgmma};
use warpline_ir::{Major, Op, Operand, Type};

/// Returns the action of a matrix op.
pub(super) fn action<'a>(t: OperandConverter<'a>, op: &'a Op) -> Option<Action<'a>> {
    let aligned = OperandValue::flag(true);
    let action = match op {
        Op::Wgmma(o) => wgmma(t, o),
        Op::WgmmaFence(_) => Action::new(ActionKind::WgmmaFence),
        Op::WgmmaCommit(_) => Action::new(ActionKind::WgmmaCommit),
        Op::WgmmaWait(o) => Action::new(ActionKind::WgmmaWait).with("pending groups", o.pending),
        Op::Mma(o) => mma(t, o),
        _ => return None,
    };
    Some(action.with("aligned", aligned))
}

/// Returns a shape: `m64n256k16`.
fn shape<'a>(m: u32, n: u32, k: u32) -> OperandValue<'a> {
    OperandValue::Computed("shape", [m, n, k].map(OperandValue::from).to_vec())
}

fn name_list<'a>(all: &[&'static str]) -> OperandValue<'a> {
    OperandValue::List(all.iter().map(|n| OperandValue::Name(n)).collect())
}

/// Returns the K of one instruction, which spans 32 bytes of elements.
fn instruction_k(ty: MmaType) -> u32 {
    match ty {
        MmaType::Tf32 => 8,
        MmaType::Bf16 | MmaType::F16 => 16,
        MmaType::E4m3 | MmaType::E5m2 => 32,
    }
}

fn wgmma<'a>(t: OperandConverter<'a>, o: &'a Wgmma) -> Action<'a> {
    let transposed = |major| OperandValue::Number(u64::from(major == Major::Mn));
    let is_16_bit = instruction_k(o.a_ty) == 16;
    let (a, trans_a) = match &o.a {
        MatrixA::Shared(view, major) => (t.descriptor(view, *major), Some(transposed(*major))),
        MatrixA::Regs(regs) => (t.regs(regs), None),
    };
    let trans = trans_a.into_iter().chain([transposed(o.b_major)]);
    let sign = |neg| OperandValue::Number(if neg { u64::MAX } else { 1 });
    Action::new(ActionKind::Wgmma)
        .with("shape", shape(64, o.n, instruction_k(o.a_ty)))
        .with("types", name_list(&["f32", o.a_ty.name(), o.b_ty.name()]))
        .with("accumulators", t.regs(&o.d))
        .with("A", a)
        .with("B", t.descriptor(&o.b, o.b_major))
        .with("scale-d", t.operand(o.scale_d, Type::Pred))
        .with("sign of A", sign(o.neg_a))
        .with("sign of B", sign(o.neg_b))
        // Only 16-bit operands in shared memory can be transposed.
        .with(
            "transposed",
            OperandValue::List(trans.filter(|_| is_16_bit).collect()),
        )
}

fn mma<'a>(t: OperandConverter<'a>, o: &Mma) -> Action<'a> {
    // B has two registers for the full K, or one register for half of it.
    let k = instruction_k(o.a_ty) * o.b.len() as u32 / 2;
    let list = |all: &[Operand], ty| t.operands(all, ty);
    Action::new(ActionKind::Mma)
        .with("shape", shape(16, 8, k))
        .with(
            "types",
            name_list(&["row", "col", "f32", o.a_ty.name(), o.b_ty.name(), "f32"]),
        )
        .with("D", t.regs(&o.d))
        .with("A", list(&o.a, o.a_ty.reg()))
        .with("B", list(&o.b, o.b_ty.reg()))
        .with("C", list(&o.c, Type::F32))
}
