//! What ops that copy ask for.

use super::terms::{Terms, bits, number, space};
use crate::act::{Act, Kind};
use crate::value::Value;
use warpline_ir::ops::bulk::{Reduce, Reduction};
use warpline_ir::{DType, Op, Operand, Type};

const BY_BYTES: Value<'static> = Value::Name("mbarrier::complete_tx::bytes");
const BY_GROUP: Value<'static> = Value::Name("bulk_group");
const GLOBAL: Value<'static> = Value::Name("global");
/// Where bulk copies go in shared memory, here or in a peer.
const CLUSTER: Value<'static> = Value::Name("shared::cluster");
const CTA: Value<'static> = Value::Name("shared::cta");
const OPEN: &str = "groups that may stay open";

/// What a bulk copy may have; a kind of copy leaves some out.
struct Bulk<'a> {
    kind: Kind,
    dimensions: Value<'a>,
    mode: Value<'a>,
    to: Value<'a>,
    from: Value<'a>,
    done: Value<'a>,
    reduction: Value<'a>,
    destination: Value<'a>,
    source: Value<'a>,
    bytes: Value<'a>,
    barrier: Value<'a>,
    tap: Value<'a>,
    receivers: Value<'a>,
    policy: Value<'a>,
}

impl<'a> Bulk<'a> {
    fn new(kind: Kind) -> Self {
        let none = || Value::Nothing;
        Self {
            kind,
            dimensions: none(),
            mode: none(),
            to: none(),
            from: none(),
            done: Value::Name("nothing"),
            reduction: none(),
            destination: none(),
            source: none(),
            bytes: none(),
            barrier: none(),
            tap: none(),
            receivers: none(),
            policy: none(),
        }
    }

    fn act(self) -> Act<'a> {
        Act::new(self.kind)
            .with("dimensions", self.dimensions)
            .with("mode", self.mode)
            .with("space", self.to)
            .with("source space", self.from)
            .with("completion", self.done)
            .with("reduction", self.reduction)
            .with("destination", self.destination)
            .with("source", self.source)
            .with("bytes", self.bytes)
            .with("barrier", self.barrier)
            .with("filter tap", self.tap)
            .with("receivers", self.receivers)
            .with("policy", self.policy)
    }
}

/// The act of an op that copies.
pub(super) fn act<'a>(t: Terms<'a>, op: &Op) -> Option<Act<'a>> {
    Some(match op {
        Op::BulkCommit(_) => Act::new(Kind::BulkCommit),
        Op::BulkWait(o) => Act::new(Kind::BulkWait)
            .with(OPEN, o.pending)
            .with("for reads alone", Value::yes(o.read)),
        Op::BulkLoad(_) | Op::BulkStore(_) | Op::BulkSend(_) | Op::BulkPrefetch(_) => run(t, op)?,
        Op::TensorLoad(_) | Op::TensorStore(_) | Op::TensorPrefetchBox(_) => tensor(t, op)?,
        Op::CopyCommit(_) => Act::new(Kind::CopyCommit),
        Op::CopyWait(o) => {
            let open = o.pending.map_or(Value::Nothing, Value::from);
            Act::new(Kind::CopyWait).with(OPEN, open)
        }
        Op::CopyArrive(o) => Act::new(Kind::CopyArrive)
            .with("space", space(o.bar.peer))
            .with("barrier", t.barrier(&o.bar))
            .with("counted by the barrier", Value::yes(o.counted)),
        Op::CopyAsync(o) => Act::new(Kind::Copy)
            .with("space", space(o.dst.peer))
            .with("source space", GLOBAL)
            .with("destination", t.place(&o.dst))
            .with("source", t.long(o.src))
            .with("bytes", o.bytes)
            .with(
                "bytes to read",
                o.valid.map_or(Value::Nothing, |v| t.word(v)),
            )
            .with("policy", t.policy(o.hint)),
        Op::StoreAsync(o) => {
            let width = match o.src.len() {
                2 => "v2",
                4 => "v4",
                _ => "v1",
            };
            Act::new(Kind::StoreAsync)
                .with("order", "weak")
                .with("space", CLUSTER)
                .with("completion", BY_BYTES)
                .with("width", width)
                .with("type", bits(o.ty.bytes()))
                .with("destination", t.place(&o.dst))
                .with("values", t.operands(&o.src, o.ty))
                .with("barrier", t.barrier(&o.bar))
        }
        Op::ReduceAsync(o) => {
            let ty = match (o.op, o.ty) {
                (Reduction::And | Reduction::Or | Reduction::Xor, ty) => bits(ty.bytes()),
                (Reduction::Add, Type::I64) => "u64",
                (_, ty) => number(ty),
            };
            let what = [o.op.name(), ty].map(Value::Name);
            Act::new(Kind::ReduceAsync)
                .with("order", "relaxed")
                .with("scope", "cluster")
                .with("space", CLUSTER)
                .with("completion", BY_BYTES)
                .with("operator and type", Value::List(what.to_vec()))
                .with("width", "v1")
                .with("address", t.place(&o.dst))
                .with("values", t.operands(&[o.src], o.ty))
                .with("barrier", t.barrier(&o.bar))
        }
        _ => return None,
    })
}

/// A run of bytes.
fn run<'a>(t: Terms<'a>, op: &Op) -> Option<Act<'a>> {
    let copy = match op {
        Op::BulkLoad(o) => Bulk {
            to: CLUSTER,
            from: GLOBAL,
            done: BY_BYTES,
            destination: t.place(&o.dst),
            source: t.long(o.src),
            bytes: t.word(o.bytes),
            barrier: t.barrier(&o.bar),
            receivers: t.receivers(o.multicast),
            policy: t.policy(o.hint),
            ..Bulk::new(Kind::BulkLoad)
        },
        Op::BulkStore(o) => Bulk {
            to: GLOBAL,
            from: CTA,
            done: BY_GROUP,
            reduction: o.reduce.map_or(Value::Nothing, reduction),
            destination: t.long(o.dst),
            source: t.place(&o.src),
            bytes: t.word(o.bytes),
            policy: t.policy(o.hint),
            ..Bulk::new(Kind::BulkStore)
        },
        Op::BulkSend(o) => Bulk {
            to: CLUSTER,
            from: CTA,
            done: BY_BYTES,
            reduction: o.reduce.map_or(Value::Nothing, reduction),
            destination: t.place(&o.dst),
            source: t.place(&o.src),
            bytes: t.word(o.bytes),
            barrier: t.barrier(&o.bar),
            ..Bulk::new(Kind::BulkSend)
        },
        Op::BulkPrefetch(o) => Bulk {
            to: GLOBAL,
            source: t.long(o.src),
            bytes: t.word(o.bytes),
            policy: t.policy(o.hint),
            ..Bulk::new(Kind::BulkPrefetch)
        },
        _ => return None,
    };
    Some(copy.act())
}

/// A box of a tensor.
fn tensor<'a>(t: Terms<'a>, op: &Op) -> Option<Act<'a>> {
    let of = |map, coords: &[Operand]| Value::List(vec![t.map(map), t.operands(coords, Type::I32)]);
    let dimensions =
        |coords: &[Operand]| Value::Name(["0d", "1d", "2d", "3d", "4d", "5d"][coords.len().min(5)]);
    let tap = |offsets: &[Operand]| match offsets {
        [] => (Value::Name("tile"), Value::Nothing),
        some => (Value::Name("im2col"), t.operands(some, Type::U16)),
    };
    let copy = match op {
        Op::TensorLoad(o) => {
            let (mode, tap) = tap(&o.offsets);
            Bulk {
                dimensions: dimensions(&o.coords),
                mode,
                to: CLUSTER,
                from: GLOBAL,
                done: BY_BYTES,
                destination: t.view(&o.dst),
                source: of(o.map, &o.coords),
                barrier: t.barrier(&o.bar),
                tap,
                receivers: t.receivers(o.multicast),
                policy: t.policy(o.hint),
                ..Bulk::new(Kind::TensorLoad)
            }
        }
        Op::TensorStore(o) => Bulk {
            dimensions: dimensions(&o.coords),
            mode: Value::Name(if o.im2col { "im2col_no_offs" } else { "tile" }),
            to: GLOBAL,
            from: CTA,
            done: BY_GROUP,
            // The map knows the type.
            reduction: o
                .reduce
                .map_or(Value::Nothing, |r| Value::List(vec![Value::Name(r.name())])),
            destination: of(o.map, &o.coords),
            source: t.view(&o.src),
            policy: t.policy(o.hint),
            ..Bulk::new(Kind::TensorStore)
        },
        Op::TensorPrefetchBox(o) => {
            let (mode, tap) = tap(&o.offsets);
            Bulk {
                dimensions: dimensions(&o.coords),
                mode,
                to: GLOBAL,
                source: of(o.map, &o.coords),
                tap,
                policy: t.policy(o.hint),
                ..Bulk::new(Kind::TensorPrefetch)
            }
        }
        _ => return None,
    };
    Some(copy.act())
}

/// How a run is combined with what is there, as PTX names operator and type.
fn reduction<'a>(r: Reduce) -> Value<'a> {
    let ty: &[&str] = match (r.op, r.dtype) {
        (Reduction::And | Reduction::Or | Reduction::Xor, dtype) => match dtype.bytes() {
            8 => &["b64"],
            _ => &["b32"],
        },
        // There is no signed 64-bit sum: it is the unsigned one.
        (Reduction::Add, DType::I64) => &["u64"],
        (Reduction::Add, DType::F16) => &["noftz", "f16"],
        (Reduction::Add, DType::Bf16) => &["noftz", "bf16"],
        (_, DType::I32) => &["s32"],
        (_, DType::I64) => &["s64"],
        (_, DType::F16) => &["f16"],
        (_, DType::Bf16) => &["bf16"],
        (_, dtype) => {
            return Value::List(vec![Value::Name(r.op.name()), Value::Name(dtype.name())]);
        }
    };
    let op = std::iter::once(r.op.name());
    Value::List(op.chain(ty.iter().copied()).map(Value::Name).collect())
}
