//! Copies: by a thread, in bulk, and by boxes of a tensor.

use super::parts::Parts;
use crate::act::{Act, Kind};
use crate::value::Value;

/// `cp.async` and all that begins so.
pub(super) fn copy<'a>(mut p: Parts<'_, 'a>) -> Act<'a> {
    let reduce = p.take("reduce");
    p.take("async");
    match p.take("bulk") {
        true => bulk(p, reduce),
        false => by_thread(p),
    }
}

fn by_thread<'a>(mut p: Parts<'_, 'a>) -> Act<'a> {
    let act = match p.next() {
        "commit_group" => Act::new(Kind::CopyCommit),
        "wait_group" => Act::new(Kind::CopyWait).with("groups that may stay open", p.operand()),
        "wait_all" => Act::new(Kind::CopyWait).with("groups that may stay open", Value::Nothing),
        "mbarrier" => {
            p.take("arrive");
            p.take("b64");
            let counted = Value::yes(p.take("noinc"));
            Act::new(Kind::CopyArrive)
                .with("space", p.space())
                .with("barrier", p.shared())
                .with("counted by the barrier", counted)
        }
        "ca" | "cg" => {
            let (to, from) = (p.space(), p.space());
            let hint = p.take("L2::cache_hint");
            p.any(|m| m.starts_with("L2::"));
            let act = Act::new(Kind::Copy)
                .with("space", to)
                .with("source space", from)
                .with("destination", p.shared())
                .with("source", p.operand())
                .with("bytes", p.operand());
            let valid = p.len() > usize::from(hint);
            act.with("bytes to read", p.when(valid))
                .with("policy", p.when(hint))
        }
        _ => return p.unknown(),
    };
    p.done(act)
}

fn bulk<'a>(mut p: Parts<'_, 'a>, reduce: bool) -> Act<'a> {
    if p.take("commit_group") {
        return p.done(Act::new(Kind::BulkCommit));
    }
    if p.take("wait_group") {
        let read = Value::yes(p.take("read"));
        let act = Act::new(Kind::BulkWait)
            .with("groups that may stay open", p.operand())
            .with("for reads alone", read);
        return p.done(act);
    }
    let prefetch = p.take("prefetch") && p.take("L2");
    let tensor = p.take("tensor");
    let dimensions = match tensor {
        true => Value::Name(p.next()),
        false => Value::Nothing,
    };
    let (to, from) = (p.space(), if prefetch { Value::Nothing } else { p.space() });
    let hint = p.take("L2::cache_hint");
    let multicast = p.take("multicast::cluster");
    let done = p.one_of(&["mbarrier::complete_tx::bytes", "bulk_group"], "nothing");
    let mode = match tensor {
        true => p.one_of(&["tile", "im2col", "im2col_no_offs"], "tile"),
        false => Value::Nothing,
    };
    let how = if reduce { p.rest() } else { Value::Nothing };
    let kind = match (prefetch, &to, tensor) {
        (true, _, false) => Kind::BulkPrefetch,
        (true, _, true) => Kind::TensorPrefetch,
        (_, Value::Name("global"), false) => Kind::BulkStore,
        (_, Value::Name("global"), true) => Kind::TensorStore,
        (_, _, true) => Kind::TensorLoad,
        _ if from == Value::Name("global") => Kind::BulkLoad,
        _ => Kind::BulkSend,
    };
    let global = |space: &Value<'_>| *space == Value::Name("global");
    let (destination, source) = match kind {
        Kind::BulkPrefetch | Kind::TensorPrefetch => (Value::Nothing, p.operand()),
        _ => {
            let to_global = global(&to);
            let first = if to_global { p.operand() } else { p.shared() };
            let second = if global(&from) {
                p.operand()
            } else {
                p.shared()
            };
            (first, second)
        }
    };
    let bytes = p.when(!tensor);
    let counted = done == Value::Name("mbarrier::complete_tx::bytes");
    let barrier = if counted { p.shared() } else { Value::Nothing };
    let taps = mode == Value::Name("im2col");
    let act = Act::new(kind)
        .with("dimensions", dimensions)
        .with("mode", mode)
        .with("space", to)
        .with("source space", from)
        .with("completion", done)
        .with("reduction", how)
        .with("destination", destination)
        .with("source", source)
        .with("bytes", bytes)
        .with("barrier", barrier)
        .with("filter tap", p.when(taps))
        .with("receivers", p.when(multicast))
        .with("policy", p.when(hint));
    p.done(act)
}
