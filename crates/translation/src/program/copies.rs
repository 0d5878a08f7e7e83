//! Actions of copy ops.

use super::terms::{Terms, bits, number, space};
use crate::action::{Action, ActionKind};
use crate::value::OperandValue;
use warpline_ir::ops::bulk::{BulkReduce, Reduction};
use warpline_ir::{DType, Op, Operand, Type};

const BY_BYTES: OperandValue<'static> = OperandValue::Name("mbarrier::complete_tx::bytes");
const BY_GROUP: OperandValue<'static> = OperandValue::Name("bulk_group");
const GLOBAL: OperandValue<'static> = OperandValue::Name("global");
/// The shared-memory destination of bulk copies, in this CTA or a peer.
const CLUSTER: OperandValue<'static> = OperandValue::Name("shared::cluster");
const CTA: OperandValue<'static> = OperandValue::Name("shared::cta");
const OPEN: &str = "pending groups";

/// All facts of a bulk copy; each kind of copy leaves some absent.
struct Bulk<'a> {
    kind: ActionKind,
    dimensions: OperandValue<'a>,
    mode: OperandValue<'a>,
    to: OperandValue<'a>,
    from: OperandValue<'a>,
    done: OperandValue<'a>,
    reduction: OperandValue<'a>,
    destination: OperandValue<'a>,
    source: OperandValue<'a>,
    bytes: OperandValue<'a>,
    barrier: OperandValue<'a>,
    tap: OperandValue<'a>,
    receivers: OperandValue<'a>,
    policy: OperandValue<'a>,
}

impl<'a> Bulk<'a> {
    fn new(kind: ActionKind) -> Self {
        let none = || OperandValue::Absent;
        Self {
            kind,
            dimensions: none(),
            mode: none(),
            to: none(),
            from: none(),
            done: OperandValue::Name("nothing"),
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

    fn action(self) -> Action<'a> {
        Action::new(self.kind)
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
            .with("im2col offsets", self.tap)
            .with("multicast mask", self.receivers)
            .with("cache policy", self.policy)
    }
}

/// Returns the action of a copy op.
pub(super) fn action<'a>(t: Terms<'a>, op: &Op) -> Option<Action<'a>> {
    Some(match op {
        Op::BulkCommit(_) => Action::new(ActionKind::BulkCommit),
        Op::BulkWait(o) => Action::new(ActionKind::BulkWait)
            .with(OPEN, o.pending)
            .with("read only", OperandValue::yes(o.read)),
        Op::BulkLoad(_) | Op::BulkStore(_) | Op::BulkSend(_) | Op::BulkPrefetch(_) => run(t, op)?,
        Op::TensorLoad(_) | Op::TensorStore(_) | Op::TensorPrefetchBox(_) => tensor(t, op)?,
        Op::CopyCommit(_) => Action::new(ActionKind::CopyCommit),
        Op::CopyWait(o) => {
            let open = o.pending.map_or(OperandValue::Absent, OperandValue::from);
            Action::new(ActionKind::CopyWait).with(OPEN, open)
        }
        Op::CopyArrive(o) => Action::new(ActionKind::CopyArrive)
            .with("space", space(o.bar.peer))
            .with("barrier", t.barrier(&o.bar))
            .with("noinc", OperandValue::yes(o.noinc)),
        Op::CopyAsync(o) => Action::new(ActionKind::Copy)
            .with("space", space(o.dst.peer))
            .with("source space", GLOBAL)
            .with("destination", t.place(&o.dst))
            .with("source", t.long(o.src))
            .with("bytes", o.bytes)
            .with(
                "source bytes",
                o.src_size.map_or(OperandValue::Absent, |v| t.word(v)),
            )
            .with("cache policy", t.policy(o.hint)),
        Op::StoreAsync(o) => {
            let width = match o.src.len() {
                2 => "v2",
                4 => "v4",
                _ => "v1",
            };
            Action::new(ActionKind::StoreAsync)
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
            let what = [o.op.name(), ty].map(OperandValue::Name);
            Action::new(ActionKind::ReduceAsync)
                .with("order", "relaxed")
                .with("scope", "cluster")
                .with("space", CLUSTER)
                .with("completion", BY_BYTES)
                .with("operator and type", OperandValue::List(what.to_vec()))
                .with("width", "v1")
                .with("address", t.place(&o.dst))
                .with("values", t.operands(&[o.src], o.ty))
                .with("barrier", t.barrier(&o.bar))
        }
        _ => return None,
    })
}

/// Returns the action of a bulk copy of consecutive bytes.
fn run<'a>(t: Terms<'a>, op: &Op) -> Option<Action<'a>> {
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
            ..Bulk::new(ActionKind::BulkLoad)
        },
        Op::BulkStore(o) => Bulk {
            to: GLOBAL,
            from: CTA,
            done: BY_GROUP,
            reduction: o.reduce.map_or(OperandValue::Absent, reduction),
            destination: t.long(o.dst),
            source: t.place(&o.src),
            bytes: t.word(o.bytes),
            policy: t.policy(o.hint),
            ..Bulk::new(ActionKind::BulkStore)
        },
        Op::BulkSend(o) => Bulk {
            to: CLUSTER,
            from: CTA,
            done: BY_BYTES,
            reduction: o.reduce.map_or(OperandValue::Absent, reduction),
            destination: t.place(&o.dst),
            source: t.place(&o.src),
            bytes: t.word(o.bytes),
            barrier: t.barrier(&o.bar),
            ..Bulk::new(ActionKind::BulkSend)
        },
        Op::BulkPrefetch(o) => Bulk {
            to: GLOBAL,
            source: t.long(o.src),
            bytes: t.word(o.bytes),
            policy: t.policy(o.hint),
            ..Bulk::new(ActionKind::BulkPrefetch)
        },
        _ => return None,
    };
    Some(copy.action())
}

/// Returns the action of a tensor copy.
fn tensor<'a>(t: Terms<'a>, op: &Op) -> Option<Action<'a>> {
    let of = |map, coords: &[Operand]| {
        OperandValue::List(vec![t.map(map), t.operands(coords, Type::I32)])
    };
    let dimensions = |coords: &[Operand]| {
        OperandValue::Name(["0d", "1d", "2d", "3d", "4d", "5d"][coords.len().min(5)])
    };
    let tap = |offsets: &[Operand]| match offsets {
        [] => (OperandValue::Name("tile"), OperandValue::Absent),
        some => (OperandValue::Name("im2col"), t.operands(some, Type::U16)),
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
                ..Bulk::new(ActionKind::TensorLoad)
            }
        }
        Op::TensorStore(o) => Bulk {
            dimensions: dimensions(&o.coords),
            mode: OperandValue::Name(if o.im2col { "im2col_no_offs" } else { "tile" }),
            to: GLOBAL,
            from: CTA,
            done: BY_GROUP,
            // The tensor map has the type.
            reduction: o.reduce.map_or(OperandValue::Absent, |r| {
                OperandValue::List(vec![OperandValue::Name(r.name())])
            }),
            destination: of(o.map, &o.coords),
            source: t.view(&o.src),
            policy: t.policy(o.hint),
            ..Bulk::new(ActionKind::TensorStore)
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
                ..Bulk::new(ActionKind::TensorPrefetch)
            }
        }
        _ => return None,
    };
    Some(copy.action())
}

/// Returns the reduction of a bulk store: operator and type in PTX.
fn reduction<'a>(r: BulkReduce) -> OperandValue<'a> {
    let ty: &[&str] = match (r.op, r.dtype) {
        (Reduction::And | Reduction::Or | Reduction::Xor, dtype) => match dtype.bytes() {
            8 => &["b64"],
            _ => &["b32"],
        },
        // PTX has no signed 64-bit add; the unsigned one is equivalent.
        (Reduction::Add, DType::I64) => &["u64"],
        (Reduction::Add, DType::F16) => &["noftz", "f16"],
        (Reduction::Add, DType::Bf16) => &["noftz", "bf16"],
        (_, DType::I32) => &["s32"],
        (_, DType::I64) => &["s64"],
        (_, DType::F16) => &["f16"],
        (_, DType::Bf16) => &["bf16"],
        (_, dtype) => {
            return OperandValue::List(vec![
                OperandValue::Name(r.op.name()),
                OperandValue::Name(dtype.name()),
            ]);
        }
    };
    let op = std::iter::once(r.op.name());
    OperandValue::List(
        op.chain(ty.iter().copied())
            .map(OperandValue::Name)
            .collect(),
    )
}
