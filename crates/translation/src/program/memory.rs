//! What accesses of memory ask for.

use super::terms::{Terms, bits, number, order, scope};
use crate::act::{Act, Kind};
use crate::value::Value;
use warpline_ir::ops::atomic::AtomicOp;
use warpline_ir::ops::matrix::{LoadMatrix, StoreMatrix};
use warpline_ir::ops::memory::LoadPath;
use warpline_ir::{At, MemoryOrder, Op, Type};

/// The act of an op that reads or writes memory by its threads.
pub(super) fn act<'a>(t: Terms<'a>, op: &Op) -> Option<Act<'a>> {
    Some(match op {
        Op::ReadParam(o) => Act::new(Kind::ReadParameter)
            // A byte widens into its 16-bit register.
            .with(
                "type",
                if o.ty == Type::U8 {
                    "u8"
                } else {
                    bits(o.ty.bytes())
                },
            )
            .with("register", t.reg(o.dst))
            .with("parameter", Value::Param(o.param.index())),
        Op::Load(o) => how(Kind::Load, t, plain(o.cache.is_volatile()), &o.at)
            .with("read-only", Value::yes(o.cache.path == LoadPath::ReadOnly))
            .with("width", width(o.dst.len()))
            .with("type", bits(o.ty.bytes()))
            .with("registers", t.regs(&o.dst))
            .with("address", t.at(&o.at))
            .with("policy", t.policy(o.cache.hint)),
        Op::Store(o) => how(Kind::Store, t, plain(o.cache.volatile), &o.at)
            .with("width", width(o.src.len()))
            .with("type", bits(o.ty.bytes()))
            .with("address", t.at(&o.at))
            .with("values", t.operands(&o.src, o.ty))
            .with("policy", t.policy(o.cache.hint)),
        Op::StrongLoad(o) => how(Kind::Load, t, strong(o.order), &o.at)
            .with("read-only", Value::yes(false))
            .with("width", width(1))
            .with("type", bits(o.ty.bytes()))
            .with("registers", t.regs(&[o.dst]))
            .with("address", t.at(&o.at))
            .with("policy", Value::Nothing),
        Op::StrongStore(o) => how(Kind::Store, t, strong(o.order), &o.at)
            .with("width", width(1))
            .with("type", bits(o.ty.bytes()))
            .with("address", t.at(&o.at))
            .with("values", t.operands(&[o.src], o.ty))
            .with("policy", Value::Nothing),
        Op::Atomic(o) => how(Kind::Atomic, t, strong(o.order), &o.at)
            .with("operator and type", operator(o.op, o.ty))
            .with("width", width(o.values.len()))
            .with("registers", t.regs(&o.dst))
            .with("address", t.at(&o.at))
            .with(
                "compared with",
                o.compare.map_or(Value::Nothing, |c| t.operand(c, o.ty)),
            )
            .with("values", t.operands(&o.values, o.ty)),
        Op::Reduce(o) => how(Kind::Reduce, t, strong(o.order), &o.at)
            .with("operator and type", operator(o.op, o.ty))
            .with("width", width(o.values.len()))
            .with("address", t.at(&o.at))
            .with("values", t.operands(&o.values, o.ty)),
        Op::LoadMatrix(o) => load_matrix(t, o),
        Op::StoreMatrix(o) => store_matrix(t, o),
        Op::Prefetch(o) => line("prefetch", "global", t.long(o.addr), Value::Nothing),
        Op::TensorPrefetch(o) => line("prefetch", "tensormap", t.map(o.map), Value::Nothing),
        Op::ApplyPriority(o) => line("applypriority", "global", t.long(o.addr), LINE),
        Op::Discard(o) => line("discard", "global", t.long(o.addr), LINE),
        _ => return None,
    })
}

/// Bytes of a line of the L2.
const LINE: Value<'static> = Value::Number(128);

/// Order and scope of a plain access.
fn plain(volatile: bool) -> (&'static str, &'static str) {
    (if volatile { "volatile" } else { "weak" }, "none")
}

/// Order and scope of a strong access.
fn strong(o: MemoryOrder) -> (&'static str, &'static str) {
    (order(o.sem), scope(o.scope))
}

fn how<'a>(
    kind: Kind,
    t: Terms<'a>,
    (order, scope): (&'static str, &'static str),
    at: &At,
) -> Act<'a> {
    Act::new(kind)
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

/// What is done to a word, and what PTX takes it for.
fn operator<'a>(op: AtomicOp, ty: Type) -> Value<'a> {
    let mut words = vec![op.name()];
    if op == AtomicOp::Add && matches!(ty, Type::F16 | Type::Bf16 | Type::F16x2 | Type::Bf16x2) {
        words.push("noftz");
    }
    words.push(match (op, ty) {
        // There is no signed 64-bit sum: it is the unsigned one.
        (AtomicOp::Add, Type::I64) => "u64",
        (AtomicOp::And | AtomicOp::Or | AtomicOp::Xor | AtomicOp::Exch | AtomicOp::Cas, ty) => {
            bits(ty.bytes())
        }
        (_, ty) => number(ty),
    });
    Value::List(words.into_iter().map(Value::Name).collect())
}

fn matrices<'a>(kind: Kind, t: Terms<'a>, n: usize, transposed: bool, at: &At) -> Act<'a> {
    let count = match n {
        1 => "x1",
        2 => "x2",
        _ => "x4",
    };
    Act::new(kind)
        .with("shape", "m8n8")
        .with("matrices", count)
        .with("type", "b16")
        .with("transposed", Value::yes(transposed))
        .with("space", t.space(at))
        .with("by whole warps", Value::yes(true))
}

fn load_matrix<'a>(t: Terms<'a>, o: &LoadMatrix) -> Act<'a> {
    matrices(Kind::LoadMatrix, t, o.dst.len(), o.trans, &At::Shared(o.at))
        .with("registers", t.regs(&o.dst))
        .with("address", t.place(&o.at))
}

fn store_matrix<'a>(t: Terms<'a>, o: &StoreMatrix) -> Act<'a> {
    matrices(
        Kind::StoreMatrix,
        t,
        o.src.len(),
        o.trans,
        &At::Shared(o.at),
    )
    .with("address", t.place(&o.at))
    .with("registers", t.operands(&o.src, Type::U32))
}

fn line<'a>(
    what: &'static str,
    space: &'static str,
    address: Value<'a>,
    bytes: Value<'a>,
) -> Act<'a> {
    Act::new(Kind::Line)
        .with("what", what)
        .with("space", space)
        .with("address", address)
        .with("bytes", bytes)
}
