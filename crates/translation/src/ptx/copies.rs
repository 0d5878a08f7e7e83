//! Parser of copies: `cp.async`, bulk and tensor copies.

use super::instruction_parser::InstructionParser;
use crate::action::{Action, ActionKind};
use crate::value::OperandValue;

/// Parses `cp.async` and `cp.async.bulk`.
pub(super) fn copy<'a>(mut p: InstructionParser<'_, 'a>) -> Action<'a> {
    let reduce = p.take_modifier("reduce");
    p.take_modifier("async");
    match p.take_modifier("bulk") {
        true => bulk(p, reduce),
        false => thread_copy(p),
    }
}

fn thread_copy<'a>(mut p: InstructionParser<'_, 'a>) -> Action<'a> {
    let action = match p.next_modifier() {
        "commit_group" => Action::new(ActionKind::CopyCommit),
        "wait_group" => Action::new(ActionKind::CopyWait).with("pending groups", p.operand()),
        "wait_all" => {
            Action::new(ActionKind::CopyWait).with("pending groups", OperandValue::Absent)
        }
        "mbarrier" => {
            p.take_modifier("arrive");
            p.take_modifier("b64");
            let noinc = OperandValue::flag(p.take_modifier("noinc"));
            Action::new(ActionKind::CopyArrive)
                .with("space", p.space())
                .with("barrier", p.shared_address())
                .with("noinc", noinc)
        }
        "ca" | "cg" => {
            let (to_space, from_space) = (p.space(), p.space());
            let has_policy = p.take_modifier("L2::cache_hint");
            p.take_matching(|m| m.starts_with("L2::"));
            let action = Action::new(ActionKind::Copy)
                .with("space", to_space)
                .with("source space", from_space)
                .with("destination", p.shared_address())
                .with("source", p.operand())
                .with("bytes", p.operand());
            let has_src_size = p.remaining_operands() > usize::from(has_policy);
            action
                .with("source bytes", p.operand_if(has_src_size))
                .with("cache policy", p.operand_if(has_policy))
        }
        _ => return p.unknown(),
    };
    p.finish(action)
}

fn bulk<'a>(mut p: InstructionParser<'_, 'a>, reduce: bool) -> Action<'a> {
    if p.take_modifier("commit_group") {
        return p.finish(Action::new(ActionKind::BulkCommit));
    }
    if p.take_modifier("wait_group") {
        let read = OperandValue::flag(p.take_modifier("read"));
        let action = Action::new(ActionKind::BulkWait)
            .with("pending groups", p.operand())
            .with("read only", read);
        return p.finish(action);
    }
    let prefetch = p.take_modifier("prefetch") && p.take_modifier("L2");
    let tensor = p.take_modifier("tensor");
    let dimensions = match tensor {
        true => OperandValue::Name(p.next_modifier()),
        false => OperandValue::Absent,
    };
    let (to_space, from_space) = (
        p.space(),
        if prefetch {
            OperandValue::Absent
        } else {
            p.space()
        },
    );
    let has_policy = p.take_modifier("L2::cache_hint");
    let multicast = p.take_modifier("multicast::cluster");
    let completion = p.take_one_of(&["mbarrier::complete_tx::bytes", "bulk_group"], "nothing");
    let mode = match tensor {
        true => p.take_one_of(&["tile", "im2col", "im2col_no_offs"], "tile"),
        false => OperandValue::Absent,
    };
    let reduction = if reduce {
        p.remaining_modifiers()
    } else {
        OperandValue::Absent
    };
    let kind = match (prefetch, &to_space, tensor) {
        (true, _, false) => ActionKind::BulkPrefetch,
        (true, _, true) => ActionKind::TensorPrefetch,
        (_, OperandValue::Name("global"), false) => ActionKind::BulkStore,
        (_, OperandValue::Name("global"), true) => ActionKind::TensorStore,
        (_, _, true) => ActionKind::TensorLoad,
        _ if from_space == OperandValue::Name("global") => ActionKind::BulkLoad,
        _ => ActionKind::BulkSend,
    };
    let is_global = |space: &OperandValue<'_>| *space == OperandValue::Name("global");
    let (destination, source) = match kind {
        ActionKind::BulkPrefetch | ActionKind::TensorPrefetch => {
            (OperandValue::Absent, p.operand())
        }
        _ => {
            let to_global = is_global(&to_space);
            let first = if to_global {
                p.operand()
            } else {
                p.shared_address()
            };
            let second = if is_global(&from_space) {
                p.operand()
            } else {
                p.shared_address()
            };
            (first, second)
        }
    };
    let bytes = p.operand_if(!tensor);
    let has_barrier = completion == OperandValue::Name("mbarrier::complete_tx::bytes");
    let barrier = if has_barrier {
        p.shared_address()
    } else {
        OperandValue::Absent
    };
    let has_offsets = mode == OperandValue::Name("im2col");
    let action = Action::new(kind)
        .with("dimensions", dimensions)
        .with("mode", mode)
        .with("space", to_space)
        .with("source space", from_space)
        .with("completion", completion)
        .with("reduction", reduction)
        .with("destination", destination)
        .with("source", source)
        .with("bytes", bytes)
        .with("barrier", barrier)
        .with("im2col offsets", p.operand_if(has_offsets))
        .with("multicast mask", p.operand_if(multicast))
        .with("cache policy", p.operand_if(has_policy));
    p.finish(action)
}
