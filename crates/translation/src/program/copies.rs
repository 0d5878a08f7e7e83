//! Actions of copy ops.

use super::operand_converter::{OperandConverter, bits, space, type_name};
use crate::action::{Action, ActionKind};
use crate::value::OperandValue;
use warpline_ir::ops::bulk::{BulkReduce, Reduction};
use warpline_ir::{DType, Op, Operand, Type};

const COMPLETE_TX: OperandValue<'static> = OperandValue::Name("mbarrier::complete_tx::bytes");
const BULK_GROUP: OperandValue<'static> = OperandValue::Name("bulk_group");
const GLOBAL: OperandValue<'static> = OperandValue::Name("global");
/// The shared-memory destination of bulk copies, in this CTA or a peer.
const CLUSTER: OperandValue<'static> = OperandValue::Name("shared::cluster");
const CTA: OperandValue<'static> = OperandValue::Name("shared::cta");
const PENDING_GROUPS: &str = "pending groups";

/// The facts of a bulk copy. Each kind of copy has some of them; the others are absent.
struct BulkCopy<'a> {
    kind: ActionKind,
    dimensions: OperandValue<'a>,
    mode: OperandValue<'a>,
    to_space: OperandValue<'a>,
    from_space: OperandValue<'a>,
    completion: OperandValue<'a>,
    reduction: OperandValue<'a>,
    destination: OperandValue<'a>,
    source: OperandValue<'a>,
    bytes: OperandValue<'a>,
    barrier: OperandValue<'a>,
    im2col_offsets: OperandValue<'a>,
    multicast_mask: OperandValue<'a>,
    policy: OperandValue<'a>,
}

impl<'a> BulkCopy<'a> {
    fn new(kind: ActionKind) -> Self {
        let absent = || OperandValue::Absent;
        Self {
            kind,
            dimensions: absent(),
            mode: absent(),
            to_space: absent(),
            from_space: absent(),
            completion: OperandValue::Name("nothing"),
            reduction: absent(),
            destination: absent(),
            source: absent(),
            bytes: absent(),
            barrier: absent(),
            im2col_offsets: absent(),
            multicast_mask: absent(),
            policy: absent(),
        }
    }

    fn action(self) -> Action<'a> {
        Action::new(self.kind)
            .with("dimensions", self.dimensions)
            .with("mode", self.mode)
            .with("space", self.to_space)
            .with("source space", self.from_space)
            .with("completion", self.completion)
            .with("reduction", self.reduction)
            .with("destination", self.destination)
            .with("source", self.source)
            .with("bytes", self.bytes)
            .with("barrier", self.barrier)
            .with("im2col offsets", self.im2col_offsets)
            .with("multicast mask", self.multicast_mask)
            .with("cache policy", self.policy)
    }
}

/// Returns the action of a copy op.
pub(super) fn action<'a>(t: OperandConverter<'a>, op: &Op) -> Option<Action<'a>> {
    Some(match op {
        Op::BulkCommit(_) => Action::new(ActionKind::BulkCommit),
        Op::BulkWait(o) => Action::new(ActionKind::BulkWait)
            .with(PENDING_GROUPS, o.pending)
            .with("read only", OperandValue::flag(o.read)),
        Op::BulkLoad(_) | Op::BulkStore(_) | Op::BulkSend(_) | Op::BulkPrefetch(_) => bulk(t, op)?,
        Op::TensorLoad(_) | Op::TensorStore(_) | Op::TensorPrefetchBox(_) => tensor(t, op)?,
        Op::CopyCommit(_) => Action::new(ActionKind::CopyCommit),
        Op::CopyWait(o) => {
            let pending = o.pending.map_or(OperandValue::Absent, OperandValue::from);
            Action::new(ActionKind::CopyWait).with(PENDING_GROUPS, pending)
        }
        Op::CopyArrive(o) => Action::new(ActionKind::CopyArrive)
            .with("space", space(o.bar.peer))
            .with("barrier", t.barrier(&o.bar))
            .with("noinc", OperandValue::flag(o.noinc)),
        Op::CopyAsync(o) => Action::new(ActionKind::Copy)
            .with("space", space(o.dst.peer))
            .with("source space", GLOBAL)
            .with("destination", t.shared_address(&o.dst))
            .with("source", t.u64_operand(o.src))
            .with("bytes", o.bytes)
            .with(
                "source bytes",
                o.src_size
                    .map_or(OperandValue::Absent, |v| t.u32_operand(v)),
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
                .with("completion", COMPLETE_TX)
                .with("width", width)
                .with("type", bits(o.ty.bytes()))
                .with("destination", t.shared_address(&o.dst))
                .with("values", t.operands(&o.src, o.ty))
                .with("barrier", t.barrier(&o.bar))
        }
        Op::ReduceAsync(o) => {
            let ty = match (o.op, o.ty) {
                (Reduction::And | Reduction::Or | Reduction::Xor, ty) => bits(ty.bytes()),
                (Reduction::Add, Type::I64) => "u64",
                (_, ty) => type_name(ty),
            };
            let operator_and_type = [o.op.name(), ty].map(OperandValue::Name);
            Action::new(ActionKind::ReduceAsync)
                .with("order", "relaxed")
                .with("scope", "cluster")
                .with("space", CLUSTER)
                .with("completion", COMPLETE_TX)
                .with(
                    "operator and type",
                    OperandValue::List(operator_and_type.to_vec()),
                )
                .with("width", "v1")
                .with("address", t.shared_address(&o.dst))
                .with("values", t.operands(&[o.src], o.ty))
                .with("barrier", t.barrier(&o.bar))
        }
        _ => return None,
    })
}

/// Returns the action of a bulk copy of consecutive bytes.
fn bulk<'a>(t: OperandConverter<'a>, op: &Op) -> Option<Action<'a>> {
    let copy = match op {
        Op::BulkLoad(o) => BulkCopy {
            to_space: CLUSTER,
            from_space: GLOBAL,
            completion: COMPLETE_TX,
            destination: t.shared_address(&o.dst),
            source: t.u64_operand(o.src),
            bytes: t.u32_operand(o.bytes),
            barrier: t.barrier(&o.bar),
            multicast_mask: t.multicast_mask(o.multicast),
            policy: t.policy(o.hint),
            ..BulkCopy::new(ActionKind::BulkLoad)
        },
        Op::BulkStore(o) => BulkCopy {
            to_space: GLOBAL,
            from_space: CTA,
            completion: BULK_GROUP,
            reduction: o.reduce.map_or(OperandValue::Absent, reduction),
            destination: t.u64_operand(o.dst),
            source: t.shared_address(&o.src),
            bytes: t.u32_operand(o.bytes),
            policy: t.policy(o.hint),
            ..BulkCopy::new(ActionKind::BulkStore)
        },
        Op::BulkSend(o) => BulkCopy {
            to_space: CLUSTER,
            from_space: CTA,
            completion: COMPLETE_TX,
            reduction: o.reduce.map_or(OperandValue::Absent, reduction),
            destination: t.shared_address(&o.dst),
            source: t.shared_address(&o.src),
            bytes: t.u32_operand(o.bytes),
            barrier: t.barrier(&o.bar),
            ..BulkCopy::new(ActionKind::BulkSend)
        },
        Op::BulkPrefetch(o) => BulkCopy {
            to_space: GLOBAL,
            source: t.u64_operand(o.src),
            bytes: t.u32_operand(o.bytes),
            policy: t.policy(o.hint),
            ..BulkCopy::new(ActionKind::BulkPrefetch)
        },
        _ => return None,
    };
    Some(copy.action())
}

/// Returns the action of a tensor copy.
fn tensor<'a>(t: OperandConverter<'a>, op: &Op) -> Option<Action<'a>> {
    let tensor_box = |map, coords: &[Operand]| {
        OperandValue::List(vec![t.map(map), t.operands(coords, Type::I32)])
    };
    let dimensions = |coords: &[Operand]| {
        OperandValue::Name(["0d", "1d", "2d", "3d", "4d", "5d"][coords.len().min(5)])
    };
    let im2col = |offsets: &[Operand]| match offsets {
        [] => (OperandValue::Name("tile"), OperandValue::Absent),
        some => (OperandValue::Name("im2col"), t.operands(some, Type::U16)),
    };
    let copy = match op {
        Op::TensorLoad(o) => {
            let (mode, im2col_offsets) = im2col(&o.offsets);
            BulkCopy {
                dimensions: dimensions(&o.coords),
                mode,
                to_space: CLUSTER,
                from_space: GLOBAL,
                completion: COMPLETE_TX,
                destination: t.view(&o.dst),
                source: tensor_box(o.map, &o.coords),
                barrier: t.barrier(&o.bar),
                im2col_offsets,
                multicast_mask: t.multicast_mask(o.multicast),
                policy: t.policy(o.hint),
                ..BulkCopy::new(ActionKind::TensorLoad)
            }
        }
        Op::TensorStore(o) => BulkCopy {
            dimensions: dimensions(&o.coords),
            mode: OperandValue::Name(if o.im2col { "im2col_no_offs" } else { "tile" }),
            to_space: GLOBAL,
            from_space: CTA,
            completion: BULK_GROUP,
            // The type is in the tensor map, not in the instruction.
            reduction: o.reduce.map_or(OperandValue::Absent, |r| {
                OperandValue::List(vec![OperandValue::Name(r.name())])
            }),
            destination: tensor_box(o.map, &o.coords),
            source: t.view(&o.src),
            policy: t.policy(o.hint),
            ..BulkCopy::new(ActionKind::TensorStore)
        },
        Op::TensorPrefetchBox(o) => {
            let (mode, im2col_offsets) = im2col(&o.offsets);
            BulkCopy {
                dimensions: dimensions(&o.coords),
                mode,
                to_space: GLOBAL,
                source: tensor_box(o.map, &o.coords),
                im2col_offsets,
                policy: t.policy(o.hint),
                ..BulkCopy::new(ActionKind::TensorPrefetch)
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
