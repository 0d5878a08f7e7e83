//! Parser of barriers, fences, `setmaxnreg`, dependent launches and thread exits.

use super::instruction_parser::InstructionParser;
use crate::action::{Action, ActionKind};
use crate::value::OperandValue;

/// Parses `mbarrier`; fills in PTX's default order and scope.
pub(super) fn mbarrier<'a>(mut p: InstructionParser<'_, 'a>) -> Action<'a> {
    let verb = p.next_modifier();
    p.take_modifier("b64");
    let space = p.space();
    let action = match verb {
        "init" => Action::new(ActionKind::Init)
            .with("barrier", p.shared_address())
            .with("space", space)
            .with("arrival count", p.operand()),
        "inval" => Action::new(ActionKind::Inval)
            .with("barrier", p.shared_address())
            .with("space", space),
        "arrive" | "arrive_drop" => {
            let has_bytes = p.take_modifier("expect_tx");
            let order = p.take_one_of(&["release", "relaxed"], "release");
            let scope = p.take_one_of(&["cta", "cluster"], "cta");
            let token = p.operand();
            let barrier = p.shared_address();
            let (count, bytes) = match (has_bytes, p.remaining_operands()) {
                (true, _) => (OperandValue::Number(1), p.operand()),
                (false, 0) => (OperandValue::Number(1), OperandValue::Absent),
                (false, _) => (p.operand(), OperandValue::Absent),
            };
            Action::new(ActionKind::Arrive)
                .with("barrier", barrier)
                .with("space", space)
                .with("arrivals", count)
                .with("expect_tx bytes", bytes)
                .with("order", order)
                .with("scope", scope)
                .with("drop", OperandValue::flag(verb == "arrive_drop"))
                .with("token", token)
        }
        "expect_tx" => Action::new(ActionKind::ExpectTx)
            .with("barrier", p.shared_address())
            .with("space", space)
            .with("expect_tx bytes", p.operand()),
        "try_wait" | "test_wait" => {
            let wait_operand = if p.take_modifier("parity") {
                "parity"
            } else {
                "token"
            };
            let order = p.take_one_of(&["acquire", "relaxed"], "acquire");
            let scope = p.take_one_of(&["cta", "cluster"], "cta");
            Action::new(ActionKind::Test)
                .with("result", p.operand())
                .with("barrier", p.shared_address())
                .with("space", space)
                .with("parity", p.operand())
                .with("wait operand", wait_operand)
                .with("order", order)
                .with("scope", scope)
                .with("may suspend", OperandValue::flag(verb == "try_wait"))
        }
        _ => return p.unknown(),
    };
    p.finish(action)
}

/// Parses `fence`; compares the full name.
pub(super) fn fence<'a>(mut p: InstructionParser<'_, 'a>) -> Action<'a> {
    let name = p.remaining_modifiers();
    let action = Action::new(ActionKind::Fence)
        .with("name", name)
        .with("address", p.operand())
        .with("bytes", p.operand());
    p.finish(action)
}

/// Parses `bar.warp.sync`.
pub(super) fn warp_sync<'a>(mut p: InstructionParser<'_, 'a>) -> Action<'a> {
    if !(p.take_modifier("warp") && p.take_modifier("sync")) {
        return p.unknown();
    }
    let action = Action::new(ActionKind::WarpSync).with("lane mask", p.operand());
    p.finish(action)
}

/// Parses `barrier.cta` and `barrier.cluster`.
pub(super) fn barrier<'a>(mut p: InstructionParser<'_, 'a>) -> Action<'a> {
    let (level, verb) = (p.next_modifier(), p.next_modifier());
    let aligned = OperandValue::flag(p.take_modifier("aligned"));
    let action = match (level, verb) {
        ("cta", "sync" | "arrive") => Action::new(ActionKind::Barrier)
            .with("operation", verb)
            .with("number", p.operand())
            .with("threads", p.operand()),
        ("cta", "red") => {
            let operation = p.remaining_modifiers();
            let result = p.operand();
            Action::new(ActionKind::Barrier)
                .with("operation", operation)
                .with("number", p.operand())
                .with("threads", p.operand())
                .with("predicate", p.operand())
                .with("result", result)
        }
        ("cluster", "arrive") => Action::new(ActionKind::ClusterArrive)
            .with("order", p.take_one_of(&["release", "relaxed"], "release")),
        ("cluster", "wait") => Action::new(ActionKind::ClusterWait)
            .with("order", p.take_one_of(&["acquire"], "acquire")),
        _ => return p.unknown(),
    };
    p.finish(action.with("aligned", aligned))
}

/// Parses `setmaxnreg`.
pub(super) fn set_max_regs<'a>(mut p: InstructionParser<'_, 'a>) -> Action<'a> {
    let direction = p.next_modifier();
    let aligned = OperandValue::flag(p.take_modifier("sync") && p.take_modifier("aligned"));
    p.take_modifier("u32");
    let action = Action::new(ActionKind::SetMaxRegs)
        .with("direction", direction)
        .with("registers", p.operand())
        .with("aligned", aligned);
    p.finish(action)
}

/// Parses `griddepcontrol`.
pub(super) fn dependent_launch<'a>(mut p: InstructionParser<'_, 'a>) -> Action<'a> {
    let action = match p.next_modifier() {
        "wait" => Action::new(ActionKind::WaitPrerequisites),
        "launch_dependents" => Action::new(ActionKind::LaunchDependents),
        _ => return p.unknown(),
    };
    p.finish(action)
}

/// Parses `nanosleep`, `exit`, `trap` and `ret`.
pub(super) fn thread_control<'a>(root: &str, mut p: InstructionParser<'_, 'a>) -> Action<'a> {
    let action = match root {
        "nanosleep" => {
            p.take_modifier("u32");
            Action::new(ActionKind::Sleep).with("nanoseconds", p.operand())
        }
        "exit" => Action::new(ActionKind::Exit),
        "trap" => Action::new(ActionKind::Trap),
        _ => Action::new(ActionKind::Return),
    };
    p.finish(action)
}

/// Parses `elect.sync`.
pub(super) fn elect<'a>(mut p: InstructionParser<'_, 'a>) -> Action<'a> {
    p.take_modifier("sync");
    p.operand();
    let action = Action::new(ActionKind::Elect).with("lane mask", p.operand());
    p.finish(action)
}
