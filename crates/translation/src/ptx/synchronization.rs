//! Parser of barriers, fences, `setmaxnreg`, dependent launches and thread exits.

use super::parts::Parts;
use crate::action::{Action, ActionKind};
use crate::value::OperandValue;

/// Parses `mbarrier`; fills in PTX's default order and scope.
pub(super) fn mbarrier<'a>(mut p: Parts<'_, 'a>) -> Action<'a> {
    let verb = p.next();
    p.take("b64");
    let space = p.space();
    let action = match verb {
        "init" => Action::new(ActionKind::Init)
            .with("barrier", p.shared())
            .with("space", space)
            .with("arrival count", p.operand()),
        "inval" => Action::new(ActionKind::Inval)
            .with("barrier", p.shared())
            .with("space", space),
        "arrive" | "arrive_drop" => {
            let bytes = p.take("expect_tx");
            let order = p.one_of(&["release", "relaxed"], "release");
            let scope = p.one_of(&["cta", "cluster"], "cta");
            let token = p.operand();
            let barrier = p.shared();
            let (count, bytes) = match (bytes, p.len()) {
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
            .with("barrier", p.shared())
            .with("space", space)
            .with("expect_tx bytes", p.operand()),
        "try_wait" | "test_wait" => {
            let by = if p.take("parity") { "parity" } else { "token" };
            let order = p.one_of(&["acquire", "relaxed"], "acquire");
            let scope = p.one_of(&["cta", "cluster"], "cta");
            Action::new(ActionKind::Test)
                .with("result", p.operand())
                .with("barrier", p.shared())
                .with("space", space)
                .with("parity", p.operand())
                .with("wait operand", by)
                .with("order", order)
                .with("scope", scope)
                .with("may suspend", OperandValue::flag(verb == "try_wait"))
        }
        _ => return p.unknown(),
    };
    p.done(action)
}

/// Parses `fence`; compares the full name.
pub(super) fn fence<'a>(mut p: Parts<'_, 'a>) -> Action<'a> {
    let name = p.rest();
    let action = Action::new(ActionKind::Fence)
        .with("name", name)
        .with("address", p.operand())
        .with("bytes", p.operand());
    p.done(action)
}

/// Parses `bar.warp.sync`.
pub(super) fn warp<'a>(mut p: Parts<'_, 'a>) -> Action<'a> {
    if !(p.take("warp") && p.take("sync")) {
        return p.unknown();
    }
    let action = Action::new(ActionKind::WarpSync).with("lane mask", p.operand());
    p.done(action)
}

/// Parses `barrier.cta` and `barrier.cluster`.
pub(super) fn barrier<'a>(mut p: Parts<'_, 'a>) -> Action<'a> {
    let (level, verb) = (p.next(), p.next());
    let aligned = OperandValue::flag(p.take("aligned"));
    let action = match (level, verb) {
        ("cta", "sync" | "arrive") => Action::new(ActionKind::Barrier)
            .with("operation", verb)
            .with("number", p.operand())
            .with("threads", p.operand()),
        ("cta", "red") => {
            let what = p.rest();
            let answer = p.operand();
            Action::new(ActionKind::Barrier)
                .with("operation", what)
                .with("number", p.operand())
                .with("threads", p.operand())
                .with("predicate", p.operand())
                .with("result", answer)
        }
        ("cluster", "arrive") => Action::new(ActionKind::ClusterArrive)
            .with("order", p.one_of(&["release", "relaxed"], "release")),
        ("cluster", "wait") => {
            Action::new(ActionKind::ClusterWait).with("order", p.one_of(&["acquire"], "acquire"))
        }
        _ => return p.unknown(),
    };
    p.done(action.with("aligned", aligned))
}

/// Parses `setmaxnreg`.
pub(super) fn registers<'a>(mut p: Parts<'_, 'a>) -> Action<'a> {
    let direction = p.next();
    let aligned = OperandValue::flag(p.take("sync") && p.take("aligned"));
    p.take("u32");
    let action = Action::new(ActionKind::SetMaxRegs)
        .with("direction", direction)
        .with("registers", p.operand())
        .with("aligned", aligned);
    p.done(action)
}

/// Parses `griddepcontrol`.
pub(super) fn launches<'a>(mut p: Parts<'_, 'a>) -> Action<'a> {
    let action = match p.next() {
        "wait" => Action::new(ActionKind::WaitPrerequisites),
        "launch_dependents" => Action::new(ActionKind::LaunchDependents),
        _ => return p.unknown(),
    };
    p.done(action)
}

/// Parses `nanosleep`, `exit`, `trap` and `ret`.
pub(super) fn thread<'a>(root: &str, mut p: Parts<'_, 'a>) -> Action<'a> {
    let action = match root {
        "nanosleep" => {
            p.take("u32");
            Action::new(ActionKind::Sleep).with("nanoseconds", p.operand())
        }
        "exit" => Action::new(ActionKind::Exit),
        "trap" => Action::new(ActionKind::Trap),
        _ => Action::new(ActionKind::Return),
    };
    p.done(action)
}

/// Parses `elect.sync`.
pub(super) fn elect<'a>(mut p: Parts<'_, 'a>) -> Action<'a> {
    p.take("sync");
    p.operand();
    let action = Action::new(ActionKind::Elect).with("lane mask", p.operand());
    p.done(action)
}
