//! R17, termination of loops: the condition can change, and the step is not 0.

use super::RuleContext;
use super::bounds::{Bounds, BoundsQuery};
use super::control_flow::{Def, Loop, LoopKind};
use crate::codes;
use crate::diagnostic::{Findings, Rule};
use crate::facts::Convergence;
use std::collections::BTreeSet;
use warpline_ir::{Op, Operand, ParamId, RegId, Special, Type};

/// The rules of this group.
pub const RULES: &[Rule] = &[ENDLESS, STEP];

const ENDLESS: Rule = codes::R17_ENDLESS;
const STEP: Rule = codes::R17_STEP;

pub(crate) fn check<'k>(cx: &RuleContext<'k>, found: &mut Findings<'k>) {
    for looped in &cx.code.loops {
        match looped.kind {
            LoopKind::While { cond } => check_while(cx, looped, cond, found),
            LoopKind::For { from, to, step } => check_for(cx, looped, [from, to, step], found),
        }
    }
}

fn check_while<'k>(cx: &RuleContext<'k>, looped: &Loop, cond: RegId, found: &mut Findings<'k>) {
    let leaves = |id: usize| matches!(cx.ops[id].op, Op::Exit(_) | Op::Trap(_));
    if looped.ops.clone().any(leaves) {
        return;
    }
    let truth = BoundsQuery::new(cx, &|_| None).truth(cond);
    let why = match truth {
        Some(false) => return,
        Some(true) => "its condition is always true",
        None if is_invariant(cx, looped, cond, 0) => {
            "the loop changes no value that its condition is computed from"
        }
        None => return check_progress(cx, looped, cond, found),
    };
    let text = format!("{why}, so a thread that enters this loop never leaves it");
    found.report(&ENDLESS, looped.loc, looped.role, text);
    let cond_op = cx.code.defs(cond).iter().find_map(|d| match d {
        Def::Op(id) => Some(&cx.ops[*id]),
        Def::Counter(_) => None,
    });
    if let Some(op) = cond_op {
        found.label(
            "the condition is computed here",
            op.loc(),
            op.site.role.or(looped.role),
        );
    }
    found.help(
        "compute the condition from a variable that the body sets, or from an acquire load inside the condition",
    );
}

/// Checks that a loop with a changing condition ends: its counter has a step that is not 0, or its
/// condition depends on memory, other threads or time. Without a counter the proof assumes that the
/// loop ends; a step that may be 0 is reported.
fn check_progress<'k>(cx: &RuleContext<'k>, looped: &Loop, cond: RegId, found: &mut Findings<'k>) {
    if is_set_from_outside(cx, looped, cond, &mut BTreeSet::new()) {
        return;
    }
    let Some(step) = counter_step(cx, looped, cond) else {
        let text = "every thread leaves this while loop after finitely many iterations";
        return found.assume(&codes::A_ENDS, looped.loc, text);
    };
    if BoundsQuery::new(cx, &|_| None)
        .bounds(step, Type::U32)
        .least
        > 0
    {
        if step.as_imm() != Some(1) {
            let text = "the counter of this while loop does not wrap around";
            found.assume(&codes::A_WRAP, looped.loc, text);
        }
        return;
    }
    let param = step.as_reg().and_then(|r| zero_param(cx, r, 0));
    let name = param.map(|p| cx.kernel.param(p).name.as_str());
    let text = match name {
        Some(name) => {
            format!("this `while` loop counts by `{name}`, and a launch may pass `{name}` = 0")
        }
        None => "this `while` loop counts by a value that may be 0".to_owned(),
    };
    found.report(&STEP, looped.loc, looped.role, text);
    found.undecided();
    found.help(match name {
        Some(name) => format!("declare `{name}.at_least(1)`"),
        None => {
            "count by a constant, or by a parameter that is declared with `at_least(1)`".to_owned()
        }
    });
}

/// Does a value depend on memory, on other threads or on time inside a loop?
fn is_set_from_outside(
    cx: &RuleContext,
    looped: &Loop,
    r: RegId,
    seen: &mut BTreeSet<RegId>,
) -> bool {
    if !seen.insert(r) {
        return false;
    }
    cx.code.defs(r).iter().any(|d| match *d {
        Def::Op(id) if looped.ops.contains(&id) => {
            let op = &cx.ops[id];
            let is_clock = matches!(op.op, Op::ReadSpecial(o)
                if matches!(o.which, Special::Clock | Special::GlobalTimer));
            let mut reads = op.facts.named_reads();
            is_clock
                || !op.facts.touches.is_empty()
                || !op.facts.syncs.is_empty()
                || reads.any(|r| is_set_from_outside(cx, looped, r, seen))
        }
        _ => false,
    })
}

/// Returns the step that a loop adds in every iteration to the number that its condition compares.
fn counter_step(cx: &RuleContext, looped: &Loop, cond: RegId) -> Option<Operand> {
    let inside = |r: RegId| {
        let defs = cx.code.defs(r).iter().filter_map(|d| match *d {
            Def::Op(id) => Some(id),
            Def::Counter(_) => None,
        });
        let mut defs = defs.filter(|id| looped.ops.contains(id));
        let first = defs.next()?;
        defs.next().is_none().then_some(&cx.ops[first].op)
    };
    // The register that a value is moved from.
    let source = |mut r: RegId| {
        for _ in 0..8 {
            match inside(r) {
                Some(Op::Mov(o)) if cx.code.defs(r).len() == 1 => r = o.src.as_reg()?,
                _ => break,
            }
        }
        Some(r)
    };
    let Op::Setp(test) = inside(source(cond)?)? else {
        return None;
    };
    let invariant = |o: Operand| match o {
        Operand::Imm(_) => true,
        Operand::Reg(r) => is_invariant(cx, looped, r, 0),
    };
    let steps = [test.a, test.b].into_iter().filter_map(|o| {
        let counter = source(o.as_reg()?)?;
        let Op::Mov(set) = inside(counter)? else {
            return None;
        };
        let is_counter = |o: Operand| source(o.as_reg()?).filter(|&r| r == counter);
        let step = match inside(source(set.src.as_reg()?)?)? {
            Op::Add(o) if is_counter(o.a).is_some() => o.b,
            Op::Add(o) if is_counter(o.b).is_some() => o.a,
            Op::Sub(o) if is_counter(o.a).is_some() => o.b,
            _ => return None,
        };
        invariant(step).then_some(step)
    });
    let steps: Vec<Operand> = steps.collect();
    match (&steps[..], invariant(test.a) || invariant(test.b)) {
        ([step], true) => Some(*step),
        _ => None,
    }
}

/// Does a register have the same value in every iteration of a loop?
fn is_invariant(cx: &RuleContext, looped: &Loop, r: RegId, depth: u32) -> bool {
    /// The analysis treats a value behind a longer chain of ops as not loop-invariant.
    const MAX_DEPTH: u32 = 16;
    let inside = |d: &Def| match *d {
        Def::Op(id) => looped.ops.contains(&id),
        Def::Counter(id) => {
            let ops = &cx.code.loops[id].ops;
            looped.ops.start <= ops.start && ops.end <= looped.ops.end
        }
    };
    let defs = cx.code.defs(r);
    if !defs.iter().any(inside) {
        return true;
    }
    // A register with two definitions may change: the one before the loop holds in the first
    // iteration, the one inside it later.
    depth < MAX_DEPTH
        && defs.len() == 1
        && defs.iter().all(|d| match *d {
            Def::Op(id) => {
                let op = &cx.ops[id];
                let is_clock = matches!(op.op, Op::ReadSpecial(o)
                    if matches!(o.which, Special::Clock | Special::GlobalTimer));
                let is_pure = op.facts.touches.is_empty()
                    && op.facts.syncs.is_empty()
                    && op.facts.convergence == Convergence::None
                    && !is_clock;
                let mut reads = op.facts.named_reads();
                is_pure && reads.all(|r| is_invariant(cx, looped, r, depth + 1))
            }
            Def::Counter(_) => false,
        })
}

fn check_for<'k>(
    cx: &RuleContext<'k>,
    looped: &Loop,
    [from, to, step]: [Operand; 3],
    found: &mut Findings<'k>,
) {
    let values = BoundsQuery::new(cx, &|_| None);
    let bounds = values.bounds(step, Type::U32);
    if bounds.least > 0 {
        if values.assumed_no_wrap() {
            let text = "the step of this loop, which is a product, is less than 2^32";
            found.assume(&codes::A_WRAP, looped.loc, text);
        }
        return;
    }
    let [from, to] = [from, to].map(|o| values.bounds(o, Type::U32));
    // The step of a loop that never runs does not matter.
    if from.least >= to.most {
        return;
    }
    if bounds == Bounds::ZERO {
        let text = "the step of this `for` loop is 0, so its counter never reaches the end";
        found.report(&STEP, looped.loc, looped.role, text);
        found.help("count by a step of at least 1");
    } else {
        let param = step.as_reg().and_then(|r| zero_param(cx, r, 0));
        let name = param.map(|p| cx.kernel.param(p).name.as_str());
        let text = match name {
            Some(name) => {
                format!("the step of this `for` loop may be 0: a launch may pass `{name}` = 0")
            }
            None => "the step of this `for` loop may be 0".to_owned(),
        };
        found.report(&STEP, looped.loc, looped.role, text);
        found.undecided();
        found.help(match name {
            Some(name) => format!("declare `{name}.at_least(1)`"),
            None => "compute the step from constants, grid extents, or parameters that are declared with `at_least(1)`".to_owned(),
        });
    }
    if let Some(op) = step.as_reg().and_then(|r| first_def(cx, r)) {
        let op = &cx.ops[op];
        found.label(
            "the step is computed here",
            op.loc(),
            op.site.role.or(looped.role),
        );
    }
}

/// Returns the first op that writes a register.
fn first_def(cx: &RuleContext, r: RegId) -> Option<usize> {
    cx.code.defs(r).iter().find_map(|d| match d {
        Def::Op(id) => Some(*id),
        Def::Counter(_) => None,
    })
}

/// Returns a parameter that a register is computed from and that may be 0.
fn zero_param(cx: &RuleContext, r: RegId, depth: u32) -> Option<ParamId> {
    let op = &cx.ops[first_def(cx, r).filter(|_| depth < 8)?];
    match op.op {
        Op::ReadParam(o) => Some(o.param).filter(|p| cx.kernel.param(*p).bounds.least <= 0),
        _ => (op.facts.named_reads()).find_map(|r| zero_param(cx, r, depth + 1)),
    }
}
