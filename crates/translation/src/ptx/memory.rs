//! Parser of memory accesses by threads.
//!
//! Cache operators and priorities do not change results and are not compared; orders, scopes,
//! spaces, widths and addresses are.

use super::parts::Parts;
use crate::action::{Action, ActionKind};
use crate::value::OperandValue;

const ORDERS: [&str; 5] = ["relaxed", "acquire", "release", "acq_rel", "volatile"];
const SCOPES: [&str; 4] = ["cta", "cluster", "gpu", "sys"];

/// Parses order, scope and space; a plain access has neither order nor scope.
fn access<'a>(kind: ActionKind, p: &mut Parts<'_, 'a>) -> (Action<'a>, bool) {
    let (order, scope) = (p.one_of(&ORDERS, "weak"), p.one_of(&SCOPES, "none"));
    let space = p.space();
    let global = space == OperandValue::Name("global");
    let action = Action::new(kind)
        .with("order", order)
        .with("scope", scope)
        .with("space", space);
    (action, global)
}

/// Takes the next operand, an address.
fn address<'a>(p: &mut Parts<'_, 'a>, global: bool) -> OperandValue<'a> {
    if global { p.operand() } else { p.shared() }
}

/// Takes one or several registers as a list.
fn several<'a>(p: &mut Parts<'_, 'a>) -> OperandValue<'a> {
    match p.operand() {
        OperandValue::List(all) => OperandValue::List(all),
        one => OperandValue::List(vec![one]),
    }
}

/// Takes the cache modifiers; returns whether there is a cache policy.
fn caches(p: &mut Parts<'_, '_>) -> bool {
    let hint = p.take("L2::cache_hint");
    let operators = ["ca", "cg", "cs", "lu", "cv", "wb", "wt"];
    while p
        .any(|m| operators.contains(&m) || m.starts_with("L1::") || m.starts_with("L2::"))
        .is_some()
    {}
    hint
}

/// Takes the vector width; `v1` without a modifier.
fn width<'a>(p: &mut Parts<'_, 'a>) -> OperandValue<'a> {
    p.one_of(&["v2", "v4", "v8"], "v1")
}

/// Parses `ld`.
pub(super) fn load<'a>(mut p: Parts<'_, 'a>) -> Action<'a> {
    if p.take("param") {
        let action = Action::new(ActionKind::ReadParameter)
            .with("type", p.next())
            .with("register", p.operand())
            .with("parameter", p.operand());
        return p.done(action);
    }
    let (action, global) = access(ActionKind::Load, &mut p);
    let hint = caches(&mut p);
    let read_only = OperandValue::flag(p.take("nc"));
    let action = action
        .with("read-only", read_only)
        .with("width", width(&mut p))
        .with("type", p.next())
        .with("registers", several(&mut p))
        .with("address", address(&mut p, global))
        .with("cache policy", p.when(hint));
    p.done(action)
}

/// Parses `st` and `st.async`.
pub(super) fn store<'a>(mut p: Parts<'_, 'a>) -> Action<'a> {
    if p.take("async") {
        let weak = p.one_of(&["weak"], "weak");
        let space = p.space();
        let done = p.one_of(&["mbarrier::complete_tx::bytes"], "nothing");
        let action = Action::new(ActionKind::StoreAsync)
            .with("order", weak)
            .with("space", space)
            .with("completion", done)
            .with("width", width(&mut p))
            .with("type", p.next())
            .with("destination", p.shared())
            .with("values", several(&mut p))
            .with("barrier", p.shared());
        return p.done(action);
    }
    let (action, global) = access(ActionKind::Store, &mut p);
    let hint = caches(&mut p);
    let action = action
        .with("width", width(&mut p))
        .with("type", p.next())
        .with("address", address(&mut p, global))
        .with("values", several(&mut p))
        .with("cache policy", p.when(hint));
    p.done(action)
}

/// Parses operator, vector width and type of an atomic.
fn operator<'a>(action: Action<'a>, p: &mut Parts<'_, 'a>) -> Action<'a> {
    let width = width(p);
    let what = p.rest();
    action.with("operator and type", what).with("width", width)
}

/// Parses `atom`.
pub(super) fn atomic<'a>(mut p: Parts<'_, 'a>) -> Action<'a> {
    let (action, global) = access(ActionKind::Atomic, &mut p);
    let mut action = operator(action, &mut p)
        .with("registers", several(&mut p))
        .with("address", address(&mut p, global));
    // `cas` has the compare value before the new value.
    let compare = p.len() > 1;
    action = action.with("compare value", p.when(compare));
    action = action.with("values", several(&mut p));
    p.done(action)
}

/// Parses `red` and `red.async`.
pub(super) fn reduce<'a>(mut p: Parts<'_, 'a>) -> Action<'a> {
    let kind = match p.take("async") {
        true => ActionKind::ReduceAsync,
        false => ActionKind::Reduce,
    };
    let (mut action, global) = access(kind, &mut p);
    if kind == ActionKind::ReduceAsync {
        action = action.with(
            "completion",
            p.one_of(&["mbarrier::complete_tx::bytes"], "nothing"),
        );
    }
    action = operator(action, &mut p)
        .with("address", address(&mut p, global))
        .with("values", several(&mut p));
    if kind == ActionKind::ReduceAsync {
        action = action.with("barrier", p.shared());
    }
    p.done(action)
}

/// Parses shape, count and type of the matrices.
fn matrices<'a>(kind: ActionKind, p: &mut Parts<'_, 'a>) -> Action<'a> {
    let aligned = OperandValue::flag(p.take("sync") && p.take("aligned"));
    let transposed = OperandValue::flag(p.take("trans"));
    let space = p.space();
    Action::new(kind)
        .with("shape", p.next())
        .with("matrices", p.next())
        .with("type", p.next())
        .with("transposed", transposed)
        .with("space", space)
        .with("aligned", aligned)
}

/// Parses `ldmatrix`.
pub(super) fn load_matrix<'a>(mut p: Parts<'_, 'a>) -> Action<'a> {
    let action = matrices(ActionKind::LoadMatrix, &mut p)
        .with("registers", several(&mut p))
        .with("address", p.shared());
    p.done(action)
}

/// Parses `stmatrix`.
pub(super) fn store_matrix<'a>(mut p: Parts<'_, 'a>) -> Action<'a> {
    let action = matrices(ActionKind::StoreMatrix, &mut p)
        .with("address", p.shared())
        .with("registers", several(&mut p));
    p.done(action)
}

/// Parses `prefetch`, `applypriority` and `discard`.
pub(super) fn line<'a>(root: &'a str, mut p: Parts<'_, 'a>) -> Action<'a> {
    let space = p.next();
    p.any(|m| m.starts_with("L1") || m.starts_with("L2"));
    let action = Action::new(ActionKind::CacheLineOp)
        .with("operation", root)
        .with("space", space)
        .with("address", p.operand())
        .with("bytes", p.operand());
    p.done(action)
}
