//! What ops that synchronise ask for.

use super::terms::{Terms, scope, space};
use crate::act::{Act, Kind};
use crate::value::Value;
use warpline_ir::ops::mbarrier::MbarrierArrive;
use warpline_ir::{Fence, NamedId, Op, Operand, Tally, Type};

/// The acts of an op that synchronises; mostly one.
pub(super) fn acts<'a>(t: Terms<'a>, op: &Op) -> Option<Vec<Act<'a>>> {
    let whole = Value::yes(true);
    let act = match op {
        Op::MbarrierArrive(o) => return Some(arrive(t, o)),
        Op::MbarrierInit(o) => Act::new(Kind::Init)
            .with("barrier", t.barrier(&o.bar))
            .with("space", space(o.bar.peer))
            .with("arrivals of a phase", o.count),
        Op::MbarrierInval(o) => Act::new(Kind::Inval)
            .with("barrier", t.barrier(&o.bar))
            .with("space", space(o.bar.peer)),
        Op::MbarrierExpectTx(o) => Act::new(Kind::ExpectTx)
            .with("barrier", t.barrier(&o.bar))
            .with("space", space(o.bar.peer))
            .with("bytes to expect", t.word(o.tx)),
        Op::MbarrierWait(o) => Act::new(Kind::Wait)
            .with("barrier", t.barrier(&o.bar))
            .with("space", space(o.bar.peer))
            .with("parity", t.word(o.parity))
            .with("by", "parity")
            .with("order", "acquire")
            .with("scope", scope(o.scope)),
        Op::MbarrierTest(o) => Act::new(Kind::Test)
            .with("answer", t.reg(o.dst))
            .with("barrier", t.barrier(&o.bar))
            .with("space", space(o.bar.peer))
            .with("parity", t.word(o.parity))
            .with("by", "parity")
            .with("order", "acquire")
            .with("scope", scope(o.scope))
            .with("may sleep", Value::yes(o.sleep)),
        Op::Fence(o) => fence(t, o.fence),
        Op::WarpSync(o) => Act::new(Kind::WarpSync).with("lanes", t.word(o.mask)),
        Op::CtaSync(_) => barrier("sync", Value::Number(0), Value::Nothing, whole),
        Op::NamedSync(o) => barrier("sync", named(t, o.bar), o.threads.into(), whole),
        Op::NamedArrive(o) => barrier("arrive", named(t, o.bar), o.threads.into(), whole),
        Op::NamedTally(o) => {
            let what = match o.tally {
                Tally::Count => ["popc", "u32"],
                Tally::All => ["and", "pred"],
                Tally::Any => ["or", "pred"],
            };
            let pred = match o.pred {
                Operand::Reg(r) => t.reg(r),
                // PTX has no constant predicates: it compares two numbers.
                constant => Value::Made(
                    "setp.ne.u32",
                    vec![t.operand(constant, Type::Pred), Value::Number(0)],
                ),
            };
            Act::new(Kind::Barrier)
                .with("what", Value::List(what.map(Value::Name).to_vec()))
                .with("number", named(t, o.bar))
                .with("threads", o.threads)
                .with("predicate", pred)
                .with("answer", t.reg(o.dst))
                .with("by whole warps", whole)
        }
        Op::ClusterArrive(o) => Act::new(Kind::ClusterArrive)
            .with("order", if o.release { "release" } else { "relaxed" })
            .with("by whole warps", whole),
        Op::ClusterWait(_) => Act::new(Kind::ClusterWait)
            .with("order", "acquire")
            .with("by whole warps", whole),
        Op::SetMaxRegs(o) => Act::new(Kind::SetMaxRegs)
            .with("way", if o.grow { "inc" } else { "dec" })
            .with("registers", o.count)
            .with("by whole warps", whole),
        Op::LaunchDependents(_) => Act::new(Kind::LaunchDependents),
        Op::WaitPrerequisites(_) => Act::new(Kind::WaitPrerequisites),
        Op::Nanosleep(o) => Act::new(Kind::Sleep).with("nanoseconds", o.ns),
        Op::Exit(_) => Act::new(Kind::Exit),
        Op::Trap(_) => Act::new(Kind::Trap),
        _ => return None,
    };
    Some(vec![act])
}

/// An arrival with bytes arrives once: for more, the bytes are announced before.
fn arrive<'a>(t: Terms<'a>, o: &MbarrierArrive) -> Vec<Act<'a>> {
    let (barrier, space) = (t.barrier(&o.bar), space(o.bar.peer));
    let once = o.count == Operand::Imm(1);
    let mut acts = Vec::new();
    if let Some(tx) = o.tx.filter(|_| !once) {
        acts.push(
            Act::new(Kind::ExpectTx)
                .with("barrier", barrier.clone())
                .with("space", space.clone())
                .with("bytes to expect", t.word(tx)),
        );
    }
    let bytes = o.tx.filter(|_| once);
    acts.push(
        Act::new(Kind::Arrive)
            .with("barrier", barrier)
            .with("space", space)
            .with("arrivals", t.word(o.count))
            .with(
                "bytes to expect",
                bytes.map_or(Value::Nothing, |tx| t.word(tx)),
            )
            .with("order", "release")
            .with("scope", scope(o.scope))
            .with("leaves for good", Value::yes(o.leave))
            .with("token", Value::Nothing),
    );
    acts
}

fn named<'a>(t: Terms<'a>, id: NamedId) -> Value<'a> {
    t.kernel.named(id).id.into()
}

fn barrier<'a>(
    what: &'static str,
    number: Value<'a>,
    threads: Value<'a>,
    whole: Value<'a>,
) -> Act<'a> {
    Act::new(Kind::Barrier)
        .with("what", what)
        .with("number", number)
        .with("threads", threads)
        .with("by whole warps", whole)
}

fn fence<'a>(t: Terms<'a>, fence: Fence) -> Act<'a> {
    let restricted = |order, to| vec![order, to, "cluster"];
    let (to_cta, to_cluster) = (
        "sync_restrict::shared::cta",
        "sync_restrict::shared::cluster",
    );
    let name = match fence {
        Fence::ProxyAsyncShared => vec!["proxy", "async", "shared::cta"],
        Fence::ProxyAsyncCluster => vec!["proxy", "async", "shared::cluster"],
        Fence::ProxyAsyncGlobal => vec!["proxy", "async", "global"],
        Fence::ProxyAsync => vec!["proxy", "async"],
        Fence::ProxyAsyncRelease => vec!["proxy", "async::generic", "release", to_cta, "cluster"],
        Fence::ProxyAsyncAcquire => {
            vec!["proxy", "async::generic", "acquire", to_cluster, "cluster"]
        }
        Fence::TensorMapRelease(s) => vec!["proxy", "tensormap::generic", "release", scope(s)],
        Fence::TensorMapAcquire(s, _) => vec!["proxy", "tensormap::generic", "acquire", scope(s)],
        Fence::ProxyAlias => vec!["proxy", "alias"],
        Fence::MbarrierInit => vec!["mbarrier_init", "release", "cluster"],
        Fence::AcqRel(s) => vec!["acq_rel", scope(s)],
        Fence::Acquire(s) => vec!["acquire", scope(s)],
        Fence::Release(s) => vec!["release", scope(s)],
        Fence::AcquireShared => restricted("acquire", to_cluster),
        Fence::ReleaseShared => restricted("release", to_cta),
        Fence::Sc(s) => vec!["sc", scope(s)],
    };
    // A tensor map is 128 bytes.
    let (address, bytes) = match fence {
        Fence::TensorMapAcquire(_, addr) => (t.long(addr), Value::Number(128)),
        _ => (Value::Nothing, Value::Nothing),
    };
    Act::new(Kind::Fence)
        .with(
            "name",
            Value::List(name.into_iter().map(Value::Name).collect()),
        )
        .with("address", address)
        .with("bytes", bytes)
}
