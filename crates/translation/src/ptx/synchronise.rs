//! Barriers, fences, registers, and the ends of threads.

use super::parts::Parts;
use crate::act::{Act, Kind};
use crate::value::Value;

/// `mbarrier`: one order and scope stand for others where PTX has defaults.
pub(super) fn mbarrier<'a>(mut p: Parts<'_, 'a>) -> Act<'a> {
    let verb = p.next();
    p.take("b64");
    let space = p.space();
    let act = match verb {
        "init" => Act::new(Kind::Init)
            .with("barrier", p.shared())
            .with("space", space)
            .with("arrivals of a phase", p.operand()),
        "inval" => Act::new(Kind::Inval)
            .with("barrier", p.shared())
            .with("space", space),
        "arrive" | "arrive_drop" => {
            let bytes = p.take("expect_tx");
            let order = p.one_of(&["release", "relaxed"], "release");
            let scope = p.one_of(&["cta", "cluster"], "cta");
            let token = p.operand();
            let barrier = p.shared();
            let (count, bytes) = match (bytes, p.len()) {
                (true, _) => (Value::Number(1), p.operand()),
                (false, 0) => (Value::Number(1), Value::Nothing),
                (false, _) => (p.operand(), Value::Nothing),
            };
            Act::new(Kind::Arrive)
                .with("barrier", barrier)
                .with("space", space)
                .with("arrivals", count)
                .with("bytes to expect", bytes)
                .with("order", order)
                .with("scope", scope)
                .with("leaves for good", Value::yes(verb == "arrive_drop"))
                .with("token", token)
        }
        "expect_tx" => Act::new(Kind::ExpectTx)
            .with("barrier", p.shared())
            .with("space", space)
            .with("bytes to expect", p.operand()),
        "try_wait" | "test_wait" => {
            let by = if p.take("parity") { "parity" } else { "token" };
            let order = p.one_of(&["acquire", "relaxed"], "acquire");
            let scope = p.one_of(&["cta", "cluster"], "cta");
            Act::new(Kind::Test)
                .with("answer", p.operand())
                .with("barrier", p.shared())
                .with("space", space)
                .with("parity", p.operand())
                .with("by", by)
                .with("order", order)
                .with("scope", scope)
                .with("may sleep", Value::yes(verb == "try_wait"))
        }
        _ => return p.unknown(),
    };
    p.done(act)
}

/// `fence`, by its full name.
pub(super) fn fence<'a>(mut p: Parts<'_, 'a>) -> Act<'a> {
    let name = p.rest();
    let act = Act::new(Kind::Fence)
        .with("name", name)
        .with("address", p.operand())
        .with("bytes", p.operand());
    p.done(act)
}

/// `bar.warp.sync`.
pub(super) fn warp<'a>(mut p: Parts<'_, 'a>) -> Act<'a> {
    if !(p.take("warp") && p.take("sync")) {
        return p.unknown();
    }
    let act = Act::new(Kind::WarpSync).with("lanes", p.operand());
    p.done(act)
}

/// `barrier.cta` and `barrier.cluster`.
pub(super) fn barrier<'a>(mut p: Parts<'_, 'a>) -> Act<'a> {
    let (whose, verb) = (p.next(), p.next());
    let whole = Value::yes(p.take("aligned"));
    let act = match (whose, verb) {
        ("cta", "sync" | "arrive") => Act::new(Kind::Barrier)
            .with("what", verb)
            .with("number", p.operand())
            .with("threads", p.operand()),
        ("cta", "red") => {
            let what = p.rest();
            let answer = p.operand();
            Act::new(Kind::Barrier)
                .with("what", what)
                .with("number", p.operand())
                .with("threads", p.operand())
                .with("predicate", p.operand())
                .with("answer", answer)
        }
        ("cluster", "arrive") => Act::new(Kind::ClusterArrive)
            .with("order", p.one_of(&["release", "relaxed"], "release")),
        ("cluster", "wait") => {
            Act::new(Kind::ClusterWait).with("order", p.one_of(&["acquire"], "acquire"))
        }
        _ => return p.unknown(),
    };
    p.done(act.with("by whole warps", whole))
}

/// `setmaxnreg`.
pub(super) fn registers<'a>(mut p: Parts<'_, 'a>) -> Act<'a> {
    let way = p.next();
    let whole = Value::yes(p.take("sync") && p.take("aligned"));
    p.take("u32");
    let act = Act::new(Kind::SetMaxRegs)
        .with("way", way)
        .with("registers", p.operand())
        .with("by whole warps", whole);
    p.done(act)
}

/// `griddepcontrol`.
pub(super) fn launches<'a>(mut p: Parts<'_, 'a>) -> Act<'a> {
    let act = match p.next() {
        "wait" => Act::new(Kind::WaitPrerequisites),
        "launch_dependents" => Act::new(Kind::LaunchDependents),
        _ => return p.unknown(),
    };
    p.done(act)
}

/// `nanosleep`, `exit`, `trap`, `ret`.
pub(super) fn thread<'a>(root: &str, mut p: Parts<'_, 'a>) -> Act<'a> {
    let act = match root {
        "nanosleep" => {
            p.take("u32");
            Act::new(Kind::Sleep).with("nanoseconds", p.operand())
        }
        "exit" => Act::new(Kind::Exit),
        "trap" => Act::new(Kind::Trap),
        _ => Act::new(Kind::Return),
    };
    p.done(act)
}

/// `elect.sync`.
pub(super) fn elect<'a>(mut p: Parts<'_, 'a>) -> Act<'a> {
    p.take("sync");
    p.operand();
    let act = Act::new(Kind::Elect).with("lanes", p.operand());
    p.done(act)
}
