//! Parser of memory accesses by threads.
//!
//! The parser drops cache operators and priorities, because they do not change results. It keeps
//! orders, scopes, spaces, widths and addresses.

use super::instruction_parser::InstructionParser;
use crate::action::{Action, ActionKind};
use crate::value::OperandValue;

const ORDERS: [&str; 5] = ["relaxed", "acquire", "release", "acq_rel", "volatile"];
const SCOPES: [&str; 4] = ["cta", "cluster", "gpu", "sys"];

/// Parses order, scope and space; a plain access has neither order nor scope.
fn access<'a>(kind: ActionKind, p: &mut InstructionParser<'_, 'a>) -> (Action<'a>, bool) {
    let (order, scope) = (
        p.take_one_of(&ORDERS, "weak"),
        p.take_one_of(&SCOPES, "none"),
    );
    let space = p.space();
    let global = space == OperandValue::Name("global");
    let action = Action::new(kind)
        .with("order", order)
        .with("scope", scope)
        .with("space", space);
    (action, global)
}

/// Takes the next operand, an address.
fn address<'a>(p: &mut InstructionParser<'_, 'a>, global: bool) -> OperandValue<'a> {
    if global {
        p.operand()
    } else {
        p.shared_address()
    }
}

/// Takes one or several registers as a list.
fn register_list<'a>(p: &mut InstructionParser<'_, 'a>) -> OperandValue<'a> {
    match p.operand() {
        OperandValue::List(all) => OperandValue::List(all),
        one => OperandValue::List(vec![one]),
    }
}

/// Takes the cache modifiers; returns whether there is a cache policy.
fn take_cache_modifiers(p: &mut InstructionParser<'_, '_>) -> bool {
    let has_policy = p.take_modifier("L2::cache_hint");
    let operators = ["ca", "cg", "cs", "lu", "cv", "wb", "wt"];
    while p
        .take_matching(|m| operators.contains(&m) || m.starts_with("L1::") || m.starts_with("L2::"))
        .is_some()
    {}
    has_policy
}

/// Takes the vector width; `v1` without a modifier.
fn width<'a>(p: &mut InstructionParser<'_, 'a>) -> OperandValue<'a> {
    p.take_one_of(&["v2", "v4", "v8"], "v1")
}

/// Parses `ld`.
pub(super) fn load<'a>(mut p: InstructionParser<'_, 'a>) -> Action<'a> {
    if p.take_modifier("param") {
        let action = Action::new(ActionKind::ReadParameter)
            .with("type", p.next_modifier())
            .with("register", p.operand())
            .with("parameter", p.operand());
        return p.finish(action);
    }
    let (action, global) = access(ActionKind::Load, &mut p);
    let has_policy = take_cache_modifiers(&mut p);
    let read_only = OperandValue::flag(p.take_modifier("nc"));
    let action = action
        .with("read-only", read_only)
        .with("width", width(&mut p))
        .with("type", p.next_modifier())
        .with("registers", register_list(&mut p))
        .with("address", address(&mut p, global))
        .with("cache policy", p.operand_if(has_policy));
    p.finish(action)
}

/// Parses `st` and `st.async`.
pub(super) fn store<'a>(mut p: InstructionParser<'_, 'a>) -> Action<'a> {
    if p.take_modifier("async") {
        let weak = p.take_one_of(&["weak"], "weak");
        let space = p.space();
        let completion = p.take_one_of(&["mbarrier::complete_tx::bytes"], "nothing");
        let action = Action::new(ActionKind::StoreAsync)
            .with("order", weak)
            .with("space", space)
            .with("completion", completion)
            .with("width", width(&mut p))
            .with("type", p.next_modifier())
            .with("destination", p.shared_address())
            .with("values", register_list(&mut p))
            .with("barrier", p.shared_address());
        return p.finish(action);
    }
    let (action, global) = access(ActionKind::Store, &mut p);
    let has_policy = take_cache_modifiers(&mut p);
    let action = action
        .with("width", width(&mut p))
        .with("type", p.next_modifier())
        .with("address", address(&mut p, global))
        .with("values", register_list(&mut p))
        .with("cache policy", p.operand_if(has_policy));
    p.finish(action)
}

/// Parses operator, vector width and type of an atomic.
fn operator<'a>(action: Action<'a>, p: &mut InstructionParser<'_, 'a>) -> Action<'a> {
    let width = width(p);
    let operator_and_type = p.remaining_modifiers();
    action
        .with("operator and type", operator_and_type)
        .with("width", width)
}

/// Parses `atom`.
pub(super) fn atomic<'a>(mut p: InstructionParser<'_, 'a>) -> Action<'a> {
    let (action, global) = access(ActionKind::Atomic, &mut p);
    let mut action = operator(action, &mut p)
        .with("registers", register_list(&mut p))
        .with("address", address(&mut p, global));
    // `cas` has the compare value before the new value.
    let has_compare = p.remaining_operands() > 1;
    action = action.with("compare value", p.operand_if(has_compare));
    action = action.with("values", register_list(&mut p));
    p.finish(action)
}

/// Parses `red` and `red.async`.
pub(super) fn reduce<'a>(mut p: InstructionParser<'_, 'a>) -> Action<'a> {
    let kind = match p.take_modifier("async") {
        true => ActionKind::ReduceAsync,
        false => ActionKind::Reduce,
    };
    let (mut action, global) = access(kind, &mut p);
    if kind == ActionKind::ReduceAsync {
        action = action.with(
            "completion",
            p.take_one_of(&["mbarrier::complete_tx::bytes"], "nothing"),
        );
    }
    action = operator(action, &mut p)
        .with("address", address(&mut p, global))
        .with("values", register_list(&mut p));
    if kind == ActionKind::ReduceAsync {
        action = action.with("barrier", p.shared_address());
    }
    p.finish(action)
}

/// Parses shape, count and type of the matrices.
fn matrices<'a>(kind: ActionKind, p: &mut InstructionParser<'_, 'a>) -> Action<'a> {
    let aligned = OperandValue::flag(p.take_modifier("sync") && p.take_modifier("aligned"));
    let transposed = OperandValue::flag(p.take_modifier("trans"));
    let space = p.space();
    Action::new(kind)
        .with("shape", p.next_modifier())
        .with("matrices", p.next_modifier())
        .with("type", p.next_modifier())
        .with("transposed", transposed)
        .with("space", space)
        .with("aligned", aligned)
}

/// Parses `ldmatrix`.
pub(super) fn load_matrix<'a>(mut p: InstructionParser<'_, 'a>) -> Action<'a> {
    let action = matrices(ActionKind::LoadMatrix, &mut p)
        .with("registers", register_list(&mut p))
        .with("address", p.shared_address());
    p.finish(action)
}

/// Parses `stmatrix`.
pub(super) fn store_matrix<'a>(mut p: InstructionParser<'_, 'a>) -> Action<'a> {
    let action = matrices(ActionKind::StoreMatrix, &mut p)
        .with("address", p.shared_address())
        .with("registers", register_list(&mut p));
    p.finish(action)
}

/// Parses `prefetch`, `applypriority` and `discard`.
pub(super) fn cache_line_op<'a>(root: &'a str, mut p: InstructionParser<'_, 'a>) -> Action<'a> {
    let space = p.next_modifier();
    p.take_matching(|m| m.starts_with("L1") || m.starts_with("L2"));
    let action = Action::new(ActionKind::CacheLineOp)
        .with("operation", root)
        .with("space", space)
        .with("address", p.operand())
        .with("bytes", p.operand());
    p.finish(action)
}
