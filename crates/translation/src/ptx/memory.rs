//! Accesses of memory by threads.
//!
//! Cache operators and priorities change no meaning and are not compared;
//! orders, scopes, spaces, widths and addresses are.

use super::parts::Parts;
use crate::act::{Act, Kind};
use crate::value::Value;

const ORDERS: [&str; 5] = ["relaxed", "acquire", "release", "acq_rel", "volatile"];
const SCOPES: [&str; 4] = ["cta", "cluster", "gpu", "sys"];

/// Order, scope and space, as three facts; a plain access has neither order nor scope.
fn how<'a>(kind: Kind, p: &mut Parts<'_, 'a>) -> (Act<'a>, bool) {
    let (order, scope) = (p.one_of(&ORDERS, "weak"), p.one_of(&SCOPES, "none"));
    let space = p.space();
    let global = space == Value::Name("global");
    let act = Act::new(kind)
        .with("order", order)
        .with("scope", scope)
        .with("space", space);
    (act, global)
}

/// The next operand, an address.
fn address<'a>(p: &mut Parts<'_, 'a>, global: bool) -> Value<'a> {
    if global { p.operand() } else { p.shared() }
}

/// One or several registers, as a list.
fn several<'a>(p: &mut Parts<'_, 'a>) -> Value<'a> {
    match p.operand() {
        Value::List(all) => Value::List(all),
        one => Value::List(vec![one]),
    }
}

/// The modifiers about caches; is one of them a policy?
fn caches(p: &mut Parts<'_, '_>) -> bool {
    let hint = p.take("L2::cache_hint");
    let operators = ["ca", "cg", "cs", "lu", "cv", "wb", "wt"];
    while p
        .any(|m| operators.contains(&m) || m.starts_with("L1::") || m.starts_with("L2::"))
        .is_some()
    {}
    hint
}

/// The number of registers, one without a word.
fn width<'a>(p: &mut Parts<'_, 'a>) -> Value<'a> {
    p.one_of(&["v2", "v4", "v8"], "v1")
}

/// `ld`.
pub(super) fn load<'a>(mut p: Parts<'_, 'a>) -> Act<'a> {
    if p.take("param") {
        let act = Act::new(Kind::ReadParameter)
            .with("type", p.next())
            .with("register", p.operand())
            .with("parameter", p.operand());
        return p.done(act);
    }
    let (act, global) = how(Kind::Load, &mut p);
    let hint = caches(&mut p);
    let read_only = Value::yes(p.take("nc"));
    let act = act
        .with("read-only", read_only)
        .with("width", width(&mut p))
        .with("type", p.next())
        .with("registers", several(&mut p))
        .with("address", address(&mut p, global))
        .with("policy", p.when(hint));
    p.done(act)
}

/// `st` and `st.async`.
pub(super) fn store<'a>(mut p: Parts<'_, 'a>) -> Act<'a> {
    if p.take("async") {
        let weak = p.one_of(&["weak"], "weak");
        let space = p.space();
        let done = p.one_of(&["mbarrier::complete_tx::bytes"], "nothing");
        let act = Act::new(Kind::StoreAsync)
            .with("order", weak)
            .with("space", space)
            .with("completion", done)
            .with("width", width(&mut p))
            .with("type", p.next())
            .with("destination", p.shared())
            .with("values", several(&mut p))
            .with("barrier", p.shared());
        return p.done(act);
    }
    let (act, global) = how(Kind::Store, &mut p);
    let hint = caches(&mut p);
    let act = act
        .with("width", width(&mut p))
        .with("type", p.next())
        .with("address", address(&mut p, global))
        .with("values", several(&mut p))
        .with("policy", p.when(hint));
    p.done(act)
}

/// What is done to words in memory: operator, number of words, type.
fn operator<'a>(act: Act<'a>, p: &mut Parts<'_, 'a>) -> Act<'a> {
    let width = width(p);
    let what = p.rest();
    act.with("operator and type", what).with("width", width)
}

/// `atom`.
pub(super) fn atomic<'a>(mut p: Parts<'_, 'a>) -> Act<'a> {
    let (act, global) = how(Kind::Atomic, &mut p);
    let mut act = operator(act, &mut p)
        .with("registers", several(&mut p))
        .with("address", address(&mut p, global));
    // A word to compare with comes before the new one.
    let compare = p.len() > 1;
    act = act.with("compared with", p.when(compare));
    act = act.with("values", several(&mut p));
    p.done(act)
}

/// `red` and `red.async`.
pub(super) fn reduce<'a>(mut p: Parts<'_, 'a>) -> Act<'a> {
    let kind = match p.take("async") {
        true => Kind::ReduceAsync,
        false => Kind::Reduce,
    };
    let (mut act, global) = how(kind, &mut p);
    if kind == Kind::ReduceAsync {
        act = act.with(
            "completion",
            p.one_of(&["mbarrier::complete_tx::bytes"], "nothing"),
        );
    }
    act = operator(act, &mut p)
        .with("address", address(&mut p, global))
        .with("values", several(&mut p));
    if kind == Kind::ReduceAsync {
        act = act.with("barrier", p.shared());
    }
    p.done(act)
}

/// The number of matrices and what they are.
fn matrices<'a>(kind: Kind, p: &mut Parts<'_, 'a>) -> Act<'a> {
    let whole = Value::yes(p.take("sync") && p.take("aligned"));
    let transposed = Value::yes(p.take("trans"));
    let space = p.space();
    Act::new(kind)
        .with("shape", p.next())
        .with("matrices", p.next())
        .with("type", p.next())
        .with("transposed", transposed)
        .with("space", space)
        .with("by whole warps", whole)
}

/// `ldmatrix`.
pub(super) fn load_matrix<'a>(mut p: Parts<'_, 'a>) -> Act<'a> {
    let act = matrices(Kind::LoadMatrix, &mut p)
        .with("registers", several(&mut p))
        .with("address", p.shared());
    p.done(act)
}

/// `stmatrix`.
pub(super) fn store_matrix<'a>(mut p: Parts<'_, 'a>) -> Act<'a> {
    let act = matrices(Kind::StoreMatrix, &mut p)
        .with("address", p.shared())
        .with("registers", several(&mut p));
    p.done(act)
}

/// `prefetch`, `applypriority`, `discard`.
pub(super) fn line<'a>(root: &'a str, mut p: Parts<'_, 'a>) -> Act<'a> {
    let space = p.next();
    p.any(|m| m.starts_with("L1") || m.starts_with("L2"));
    let act = Act::new(Kind::Line)
        .with("what", root)
        .with("space", space)
        .with("address", p.operand())
        .with("bytes", p.operand());
    p.done(act)
}
