//! Parser of copies: `cp.async`, bulk and tensor copies.

use super::parts::Parts;
use crate::action::{Action, ActionKind};
use crate::value::OperandValue;

/// Parses `cp.async` and `cp.async.bulk`.
pub(super) fn copy<'a>(mut p: Parts<'_, 'a>) -> Action<'a> {
    let reduce = p.take("reduce");
    p.take("async");
    match p.take("bulk") {
        true => bulk(p, reduce),
        false => by_thread(p),
    }
}

fn by_thread<'a>(mut p: Parts<'_, 'a>) -> Action<'a> {
    let action = match p.next() {
        "commit_group" => Action::new(ActionKind::CopyCommit),
        "wait_group" => Action::new(ActionKind::CopyWait).with("pending groups", p.operand()),
        "wait_all" => {
            Action::new(ActionKind::CopyWait).with("pending groups", OperandValue::Absent)
        }
        "mbarrier" => {
            p.take("arrive");
            p.take("b64");
            let counted = OperandValue::flag(p.take("noinc"));
            Action::new(ActionKind::CopyArrive)
                .with("space", p.space())
                .with("barrier", p.shared())
                .with("noinc", counted)
        }
        "ca" | "cg" => {
            let (to, from) = (p.space(), p.space());
            let hint = p.take("L2::cache_hint");
            p.any(|m| m.starts_with("L2::"));
            let action = Action::new(ActionKind::Copy)
                .with("space", to)
                .with("source space", from)
                .with("destination", p.shared())
                .with("source", p.operand())
                .with("bytes", p.operand());
            let valid = p.len() > usize::from(hint);
            action
                .with("source bytes", p.when(valid))
                .with("cache policy", p.when(hint))
        }
        _ => return p.unknown(),
    };
    p.done(action)
}

fn bulk<'a>(mut p: Parts<'_, 'a>, reduce: bool) -> Action<'a> {
    if p.take("commit_group") {
        return p.done(Action::new(ActionKind::BulkCommit));
    }
    if p.take("wait_group") {
        let read = OperandValue::flag(p.take("read"));
        let action = Action::new(ActionKind::BulkWait)
            .with("pending groups", p.operand())
            .with("read only", read);
        return p.done(action);
    }
    let prefetch = p.take("prefetch") && p.take("L2");
    let tensor = p.take("tensor");
    let dimensions = match tensor {
        true => OperandValue::Name(p.next()),
        false => OperandValue::Absent,
    };
    let (to, from) = (
        p.space(),
        if prefetch {
            OperandValue::Absent
        } else {
            p.space()
        },
    );
    let hint = p.take("L2::cache_hint");
    let multicast = p.take("multicast::cluster");
    let done = p.one_of(&["mbarrier::complete_tx::bytes", "bulk_group"], "nothing");
    let mode = match tensor {
        true => p.one_of(&["tile", "im2col", "im2col_no_offs"], "tile"),
        false => OperandValue::Absent,
    };
    let how = if reduce {
        p.rest()
    } else {
        OperandValue::Absent
    };
    let kind = match (prefetch, &to, tensor) {
        (true, _, false) => ActionKind::BulkPrefetch,
        (true, _, true) => ActionKind::TensorPrefetch,
        (_, OperandValue::Name("global"), false) => ActionKind::BulkStore,
        (_, OperandValue::Name("global"), true) => ActionKind::TensorStore,
        (_, _, true) => ActionKind::TensorLoad,
        _ if from == OperandValue::Name("global") => ActionKind::BulkLoad,
        _ => ActionKind::BulkSend,
    };
    let global = |space: &OperandValue<'_>| *space == OperandValue::Name("global");
    let (destination, source) = match kind {
        ActionKind::BulkPrefetch | ActionKind::TensorPrefetch => {
            (OperandValue::Absent, p.operand())
        }
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
    let counted = done == OperandValue::Name("mbarrier::complete_tx::bytes");
    let barrier = if counted {
        p.shared()
    } else {
        OperandValue::Absent
    };
    let taps = mode == OperandValue::Name("im2col");
    let action = Action::new(kind)
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
        .with("im2col offsets", p.when(taps))
        .with("multicast mask", p.when(multicast))
        .with("cache policy", p.when(hint));
    p.done(action)
}
