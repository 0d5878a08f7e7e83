//! Actions of memory accesses by threads.

use super::operand_converter::{OperandConverter, bits, order, scope, type_name};
use crate::action::{Action, ActionKind};
use crate::value::OperandValue;
use warpline_ir::ops::atomic::AtomicOp;
use warpline_ir::ops::matrix::{LoadMatrix, StoreMatrix};
use warpline_ir::ops::memory::LoadPath;
use warpline_ir::{MemoryAddress, MemoryOrder, Op, Type};

/// Returns the action of a memory access by threads.
pub(super) fn action<'a>(t: OperandConverter<'a>, op: &Op) -> Option<Action<'a>> {
    Some(match op {
        Op::ReadParam(o) => Action::new(ActionKind::ReadParameter)
            // A byte is widened to a 16-bit register.
            .with(
                "type",
                if o.ty == Type::U8 {
                    "u8"
                } else {
                    bits(o.ty.bytes())
                },
            )
            .with("register", t.reg(o.dst))
            .with("parameter", OperandValue::Param(o.param.index())),
        Op::Load(o) => access(
            ActionKind::Load,
            t,
            weak_or_volatile(o.cache.is_volatile()),
            &o.at,
        )
        .with(
            "read-only",
            OperandValue::flag(o.cache.path == LoadPath::ReadOnly),
        )
        .with("width", width(o.dst.len()))
        .with("type", bits(o.ty.bytes()))
        .with("registers", t.regs(&o.dst))
        .with("address", t.address(&o.at))
        .with("cache policy", t.policy(o.cache.hint)),
        Op::Store(o) => access(
            ActionKind::Store,
            t,
            weak_or_volatile(o.cache.volatile),
            &o.at,
        )
        .with("width", width(o.src.len()))
        .with("type", bits(o.ty.bytes()))
        .with("address", t.address(&o.at))
        .with("values", t.operands(&o.src, o.ty))
        .with("cache policy", t.policy(o.cache.hint)),
        Op::StrongLoad(o) => access(ActionKind::Load, t, strong(o.order), &o.at)
            .with("read-only", OperandValue::flag(false))
            .with("width", width(1))
            .with("type", bits(o.ty.bytes()))
            .with("registers", t.regs(&[o.dst]))
            .with("address", t.address(&o.at))
            .with("cache policy", OperandValue::Absent),
        Op::StrongStore(o) => access(ActionKind::Store, t, strong(o.order), &o.at)
            .with("width", width(1))
            .with("type", bits(o.ty.bytes()))
            .with("address", t.address(&o.at))
            .with("values", t.operands(&[o.src], o.ty))
            .with("cache policy", OperandValue::Absent),
        Op::Atomic(o) => access(ActionKind::Atomic, t, strong(o.order), &o.at)
            .with("operator and type", operator(o.op, o.ty))
            .with("width", width(o.values.len()))
            .with("registers", t.regs(&o.dst))
            .with("address", t.address(&o.at))
            .with(
                "compare value",
                o.compare
                    .map_or(OperandValue::Absent, |c| t.operand(c, o.ty)),
            )
            .with("values", t.operands(&o.values, o.ty)),
        Op::AtomicReduce(o) => access(ActionKind::Reduce, t, strong(o.order), &o.at)
            .with("operator and type", operator(o.op, o.ty))
            .with("width", width(o.values.len()))
            .with("address", t.address(&o.at))
            .with("values", t.operands(&o.values, o.ty)),
        Op::LoadMatrix(o) => load_matrix(t, o),
        Op::StoreMatrix(o) => store_matrix(t, o),
        Op::Prefetch(o) => cache_line_op(
            "prefetch",
            "global",
            t.u64_operand(o.addr),
            OperandValue::Absent,
        ),
        Op::TensorPrefetch(o) => {
            cache_line_op("prefetch", "tensormap", t.map(o.map), OperandValue::Absent)
        }
        Op::ApplyPriority(o) => {
            cache_line_op("applypriority", "global", t.u64_operand(o.addr), LINE_BYTES)
        }
        Op::Discard(o) => cache_line_op("discard", "global", t.u64_operand(o.addr), LINE_BYTES),
        _ => return None,
    })
}

/// Bytes of an L2 cache line.
const LINE_BYTES: OperandValue<'static> = OperandValue::Number(128);

/// Returns order and scope of a weak or volatile access.
fn weak_or_volatile(volatile: bool) -> (&'static str, &'static str) {
    (if volatile { "volatile" } else { "weak" }, "none")
}

/// Returns order and scope of a strong access.
fn strong(o: MemoryOrder) -> (&'static str, &'static str) {
    (order(o.sem), scope(o.scope))
}

fn access<'a>(
    kind: ActionKind,
    t: OperandConverter<'a>,
    (order, scope): (&'static str, &'static str),
    at: &MemoryAddress,
) -> Action<'a> {
    Action::new(kind)
        .with("order", order)
        .with("scope", scope)
        .with("space", t.space(at))
}

fn width(n: usize) -> &'static str {
    match n {
        2 => "v2",
        4 => "v4",
        8 => "v8",
        _ => "v1",
    }
}

/// Returns the operator and type of an atomic in PTX.
fn operator<'a>(op: AtomicOp, ty: Type) -> OperandValue<'a> {
    let mut words = vec![op.name()];
    if op == AtomicOp::Add && matches!(ty, Type::F16 | Type::Bf16 | Type::F16x2 | Type::Bf16x2) {
        words.push("noftz");
    }
    words.push(match (op, ty) {
        // PTX has no signed 64-bit add; the unsigned one is equivalent.
        (AtomicOp::Add, Type::I64) => "u64",
        (AtomicOp::And | AtomicOp::Or | AtomicOp::Xor | AtomicOp::Exch | AtomicOp::Cas, ty) => {
            bits(ty.bytes())
        }
        (_, ty) => type_name(ty),
    });
    OperandValue::List(words.into_iter().map(OperandValue::Name).collect())
}

fn matrices<'a>(
    kind: ActionKind,
    t: OperandConverter<'a>,
    n: usize,
    transposed: bool,
    at: &MemoryAddress,
) -> Action<'a> {
    let count = match n {
        1 => "x1",
        2 => "x2",
        _ => "x4",
    };
    Action::new(kind)
        .with("shape", "m8n8")
        .with("matrices", count)
        .with("type", "b16")
        .with("transposed", OperandValue::flag(transposed))
        .with("space", t.space(at))
        .with("aligned", OperandValue::flag(true))
}

fn load_matrix<'a>(t: OperandConverter<'a>, o: &LoadMatrix) -> Action<'a> {
    matrices(
        ActionKind::LoadMatrix,
        t,
        o.dst.len(),
        o.trans,
        &MemoryAddress::Shared(o.at),
    )
    .with("registers", t.regs(&o.dst))
    .with("address", t.shared_address(&o.at))
}

fn store_matrix<'a>(t: OperandConverter<'a>, o: &StoreMatrix) -> Action<'a> {
    matrices(
        ActionKind::StoreMatrix,
        t,
        o.src.len(),
        o.trans,
        &MemoryAddress::Shared(o.at),
    )
    .with("address", t.shared_address(&o.at))
    .with("registers", t.operands(&o.src, Type::U32))
}

fn cache_line_op<'a>(
    operation: &'static str,
    space: &'static str,
    address: OperandValue<'a>,
    bytes: OperandValue<'a>,
) -> Action<'a> {
    Action::new(ActionKind::CacheLineOp)
        .with("operation", operation)
        .with("space", space)
        .with("address", address)
        .with("bytes", bytes)
}
