//! Actions of synchronization ops.

use super::operand_converter::{OperandConverter, scope, space};
use crate::action::{Action, ActionKind};
use crate::value::OperandValue;
use warpline_ir::ops::mbarrier::MbarrierArrive;
use warpline_ir::{BarrierReduction, FenceKind, NamedId, Op, Operand, Type};

/// Returns the actions of a synchronization op; usually one.
pub(super) fn actions<'a>(t: OperandConverter<'a>, op: &Op) -> Option<Vec<Action<'a>>> {
    let aligned = OperandValue::flag(true);
    let action = match op {
        Op::MbarrierArrive(o) => return Some(arrive(t, o)),
        Op::MbarrierInit(o) => Action::new(ActionKind::Init)
            .with("barrier", t.barrier(&o.bar))
            .with("space", space(o.bar.peer))
            .with("arrival count", o.count),
        Op::MbarrierInval(o) => Action::new(ActionKind::Inval)
            .with("barrier", t.barrier(&o.bar))
            .with("space", space(o.bar.peer)),
        Op::MbarrierExpectTx(o) => Action::new(ActionKind::ExpectTx)
            .with("barrier", t.barrier(&o.bar))
            .with("space", space(o.bar.peer))
            .with("expect_tx bytes", t.u32_operand(o.tx)),
        Op::MbarrierWait(o) => Action::new(ActionKind::Wait)
            .with("barrier", t.barrier(&o.bar))
            .with("space", space(o.bar.peer))
            .with("parity", t.u32_operand(o.parity))
            .with("wait operand", "parity")
            .with("order", "acquire")
            .with("scope", scope(o.scope)),
        Op::MbarrierTest(o) => Action::new(ActionKind::Test)
            .with("result", t.reg(o.dst))
            .with("barrier", t.barrier(&o.bar))
            .with("space", space(o.bar.peer))
            .with("parity", t.u32_operand(o.parity))
            .with("wait operand", "parity")
            .with("order", "acquire")
            .with("scope", scope(o.scope))
            .with("may suspend", OperandValue::flag(o.may_suspend)),
        Op::Fence(o) => fence(t, o.kind),
        Op::WarpSync(o) => {
            Action::new(ActionKind::WarpSync).with("lane mask", t.u32_operand(o.mask))
        }
        Op::CtaSync(_) => barrier(
            "sync",
            OperandValue::Number(0),
            OperandValue::Absent,
            aligned,
        ),
        Op::NamedSync(o) => barrier("sync", named_barrier(t, o.bar), o.threads.into(), aligned),
        Op::NamedArrive(o) => barrier("arrive", named_barrier(t, o.bar), o.threads.into(), aligned),
        Op::NamedReduce(o) => {
            let operation = match o.reduction {
                BarrierReduction::Count => ["popc", "u32"],
                BarrierReduction::All => ["and", "pred"],
                BarrierReduction::Any => ["or", "pred"],
            };
            let pred = match o.pred {
                Operand::Reg(r) => t.reg(r),
                // PTX has no constant predicates, so the printer compares the constant with 0.
                constant => OperandValue::Computed(
                    "setp.ne.u32",
                    vec![t.operand(constant, Type::Pred), OperandValue::Number(0)],
                ),
            };
            Action::new(ActionKind::Barrier)
                .with(
                    "operation",
                    OperandValue::List(operation.map(OperandValue::Name).to_vec()),
                )
                .with("number", named_barrier(t, o.bar))
                .with("threads", o.threads)
                .with("predicate", pred)
                .with("result", t.reg(o.dst))
                .with("aligned", aligned)
        }
        Op::ClusterArrive(o) => Action::new(ActionKind::ClusterArrive)
            .with("order", if o.release { "release" } else { "relaxed" })
            .with("aligned", aligned),
        Op::ClusterWait(_) => Action::new(ActionKind::ClusterWait)
            .with("order", "acquire")
            .with("aligned", aligned),
        Op::SetMaxRegs(o) => Action::new(ActionKind::SetMaxRegs)
            .with("direction", if o.grow { "inc" } else { "dec" })
            .with("registers", o.count)
            .with("aligned", aligned),
        Op::LaunchDependents(_) => Action::new(ActionKind::LaunchDependents),
        Op::WaitPrerequisites(_) => Action::new(ActionKind::WaitPrerequisites),
        Op::Nanosleep(o) => Action::new(ActionKind::Sleep).with("nanoseconds", o.ns),
        Op::Exit(_) => Action::new(ActionKind::Exit),
        Op::Trap(_) => Action::new(ActionKind::Trap),
        _ => return None,
    };
    Some(vec![action])
}

/// Returns the actions of an arrival. `arrive.expect_tx` has an implicit count of 1, so a larger
/// count needs a separate `expect_tx` first.
fn arrive<'a>(t: OperandConverter<'a>, o: &MbarrierArrive) -> Vec<Action<'a>> {
    let (barrier, space) = (t.barrier(&o.bar), space(o.bar.peer));
    let counts_one = o.count == Operand::Imm(1);
    let mut actions = Vec::new();
    if let Some(tx) = o.tx.filter(|_| !counts_one) {
        actions.push(
            Action::new(ActionKind::ExpectTx)
                .with("barrier", barrier.clone())
                .with("space", space.clone())
                .with("expect_tx bytes", t.u32_operand(tx)),
        );
    }
    let bytes = o.tx.filter(|_| counts_one);
    actions.push(
        Action::new(ActionKind::Arrive)
            .with("barrier", barrier)
            .with("space", space)
            .with("arrivals", t.u32_operand(o.count))
            .with(
                "expect_tx bytes",
                bytes.map_or(OperandValue::Absent, |tx| t.u32_operand(tx)),
            )
            .with("order", "release")
            .with("scope", scope(o.scope))
            .with("drop", OperandValue::flag(o.drop))
            .with("token", OperandValue::Absent),
    );
    actions
}

fn named_barrier<'a>(t: OperandConverter<'a>, id: NamedId) -> OperandValue<'a> {
    t.kernel.named(id).id.into()
}

fn barrier<'a>(
    operation: &'static str,
    number: OperandValue<'a>,
    threads: OperandValue<'a>,
    aligned: OperandValue<'a>,
) -> Action<'a> {
    Action::new(ActionKind::Barrier)
        .with("operation", operation)
        .with("number", number)
        .with("threads", threads)
        .with("aligned", aligned)
}

fn fence<'a>(t: OperandConverter<'a>, fence: FenceKind) -> Action<'a> {
    let sync_restricted = |order, to| vec![order, to, "cluster"];
    let (to_cta, to_cluster) = (
        "sync_restrict::shared::cta",
        "sync_restrict::shared::cluster",
    );
    let name = match fence {
        FenceKind::ProxyAsyncShared => vec!["proxy", "async", "shared::cta"],
        FenceKind::ProxyAsyncCluster => vec!["proxy", "async", "shared::cluster"],
        FenceKind::ProxyAsyncGlobal => vec!["proxy", "async", "global"],
        FenceKind::ProxyAsync => vec!["proxy", "async"],
        FenceKind::ProxyAsyncRelease => {
            vec!["proxy", "async::generic", "release", to_cta, "cluster"]
        }
        FenceKind::ProxyAsyncAcquire => {
            vec!["proxy", "async::generic", "acquire", to_cluster, "cluster"]
        }
        FenceKind::TensorMapRelease(s) => vec!["proxy", "tensormap::generic", "release", scope(s)],
        FenceKind::TensorMapAcquire(s, _) => {
            vec!["proxy", "tensormap::generic", "acquire", scope(s)]
        }
        FenceKind::ProxyAlias => vec!["proxy", "alias"],
        FenceKind::MbarrierInit => vec!["mbarrier_init", "release", "cluster"],
        FenceKind::AcqRel(s) => vec!["acq_rel", scope(s)],
        FenceKind::Acquire(s) => vec!["acquire", scope(s)],
        FenceKind::Release(s) => vec!["release", scope(s)],
        FenceKind::AcquireShared => sync_restricted("acquire", to_cluster),
        FenceKind::ReleaseShared => sync_restricted("release", to_cta),
        FenceKind::Sc(s) => vec!["sc", scope(s)],
    };
    // A tensor map is 128 bytes.
    let (address, bytes) = match fence {
        FenceKind::TensorMapAcquire(_, addr) => (t.u64_operand(addr), OperandValue::Number(128)),
        _ => (OperandValue::Absent, OperandValue::Absent),
    };
    Action::new(ActionKind::Fence)
        .with(
            "name",
            OperandValue::List(name.into_iter().map(OperandValue::Name).collect()),
        )
        .with("address", address)
        .with("bytes", bytes)
}
