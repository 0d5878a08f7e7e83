//! R17, termination of loops: the condition can change, and the step is not 0.

use super::RuleContext;
use super::bounds::{Bounds, Values};
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

pub(crate) fn judge<'k>(cx: &RuleContext<'k>, found: &mut Findings<'k>) {
    for around in &cx.code.loops {
        match around.kind {
            LoopKind::While { cond } => judge_while(cx, around, cond, found),
            LoopKind::For { from, to, step } => judge_for(cx, around, [from, to, step], found),
        }
    }
}

fn judge_while<'k>(cx: &RuleContext<'k>, around: &Loop, cond: RegId, found: &mut Findings<'k>) {
    let leaves = |id: usize| matches!(cx.ops[id].op, Op::Exit(_) | Op::Trap(_));
    if around.ops.clone().any(leaves) {
        return;
    }
    let truth = Values::new(cx, &|_| None).truth(cond);
    let why = match truth {
        Some(false) => return,
        Some(true) => "its condition is always true",
        None if is_invariant(cx, around, cond, 0) => {
            "the loop changes no value that its condition is computed from"
        }
        None => return judge_progress(cx, around, cond, found),
    };
    let text = format!("{why}, so a thread that enters this loop never leaves it");
    found.report(&ENDLESS, around.loc, around.role, text);
    let made = cx.code.defs(cond).iter().find_map(|d| match d {
        Def::Op(id) => Some(&cx.ops[*id]),
        Def::Counter(_) => None,
    });
    if let Some(op) = made {
        found.label(
            "the condition is computed here",
            op.loc(),
            op.site.role.or(around.role),
        );
    }
    found.help(
        "compute the condition from a variable that the body sets, or from an acquire load inside the condition",
    );
}

/// Checks that a loop with a changing condition ends: it counts by a step that is not 0, or memory
/// decides, or the report prints the assumption that it ends.
fn judge_progress<'k>(cx: &RuleContext<'k>, around: &Loop, cond: RegId, found: &mut Findings<'k>) {
    if is_from_outside(cx, around, cond, &mut BTreeSet::new()) {
        return;
    }
    let Some(step) = counted_by(cx, around, cond) else {
        let text = "every thread leaves this while loop after finitely many iterations";
        return found.assume(&codes::A_ENDS, around.loc, text);
    };
    if Values::new(cx, &|_| None).of(step, Type::U32).least > 0 {
        if step.as_imm() != Some(1) {
            let text = "the counter of this while loop does not wrap around";
            found.assume(&codes::A_WRAP, around.loc, text);
        }
        return;
    }
    let param = step.as_reg().and_then(|r| param(cx, r, 0));
    let name = param.map(|p| cx.kernel.param(p).name.as_str());
    let text = match name {
        Some(name) => {
            format!("this `while` loop counts by `{name}`, and a launch may pass `{name}` = 0")
        }
        None => "this `while` loop counts by a value that may be 0".to_owned(),
    };
    found.report(&STEP, around.loc, around.role, text);
    found.undecided();
    found.help(match name {
        Some(name) => format!("declare `{name}.at_least(1)`"),
        None => {
            "count by a constant, or by a parameter that is declared with `at_least(1)`".to_owned()
        }
    });
}

/// Does a value depend on memory, on other threads or on time inside a loop?
fn is_from_outside(cx: &RuleContext, around: &Loop, r: RegId, seen: &mut BTreeSet<RegId>) -> bool {
    if !seen.insert(r) {
        return false;
    }
    cx.code.defs(r).iter().any(|d| match *d {
        Def::Op(id) if around.ops.contains(&id) => {
            let op = &cx.ops[id];
            let is_clock = matches!(op.op, Op::ReadSpecial(o)
                if matches!(o.which, Special::Clock | Special::GlobalTimer));
            let mut reads = op.facts.named_reads();
            is_clock
                || !op.facts.touches.is_empty()
                || !op.facts.syncs.is_empty()
                || reads.any(|r| is_from_outside(cx, around, r, seen))
        }
        _ => false,
    })
}

/// Returns the step that a loop adds in every iteration to the number that its condition compares.
fn counted_by(cx: &RuleContext, around: &Loop, cond: RegId) -> Option<Operand> {
    let inside = |r: RegId| {
        let defs = cx.code.defs(r).iter().filter_map(|d| match *d {
            Def::Op(id) => Some(id),
            Def::Counter(_) => None,
        });
        let mut defs = defs.filter(|id| around.ops.contains(id));
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
    let fixed = |o: Operand| match o {
        Operand::Imm(_) => true,
        Operand::Reg(r) => is_invariant(cx, around, r, 0),
    };
    let steps = [test.a, test.b].into_iter().filter_map(|o| {
        let counter = source(o.as_reg()?)?;
        let Op::Mov(set) = inside(counter)? else {
            return None;
        };
        let moved = |o: Operand| source(o.as_reg()?).filter(|&r| r == counter);
        let step = match inside(source(set.src.as_reg()?)?)? {
            Op::Add(o) if moved(o.a).is_some() => o.b,
            Op::Add(o) if moved(o.b).is_some() => o.a,
            Op::Sub(o) if moved(o.a).is_some() => o.b,
            _ => return None,
        };
        fixed(step).then_some(step)
    });
    let steps: Vec<Operand> = steps.collect();
    match (&steps[..], fixed(test.a) || fixed(test.b)) {
        ([step], true) => Some(*step),
        _ => None,
    }
}

/// Has a register the same value in every iteration of a loop?
fn is_invariant(cx: &RuleContext, around: &Loop, r: RegId, depth: u32) -> bool {
    /// Longer chains of ops are assumed to change.
    const MOST: u32 = 16;
    let inside = |d: &Def| match *d {
        Def::Op(id) => around.ops.contains(&id),
        Def::Counter(id) => {
            let ops = &cx.code.loops[id].ops;
            around.ops.start <= ops.start && ops.end <= around.ops.end
        }
    };
    let defs = cx.code.defs(r);
    if !defs.iter().any(inside) {
        return true;
    }
    // Of two definitions, one may reach the first iteration only.
    depth < MOST
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
                is_pure && reads.all(|r| is_invariant(cx, around, r, depth + 1))
            }
            Def::Counter(_) => false,
        })
}

fn judge_for<'k>(
    cx: &RuleContext<'k>,
    around: &Loop,
    [from, to, step]: [Operand; 3],
    found: &mut Findings<'k>,
) {
    let values = Values::new(cx, &|_| None);
    let bounds = values.of(step, Type::U32);
    if bounds.least > 0 {
        if values.assumed_no_wrap() {
            let text = "the step of this loop, which is a product, is less than 2^32";
            found.assume(&codes::A_WRAP, around.loc, text);
        }
        return;
    }
    let [from, to] = [from, to].map(|o| values.of(o, Type::U32));
    // The step of a loop that never runs does not matter.
    if from.least >= to.most {
        return;
    }
    if bounds == Bounds::ZERO {
        let text = "the step of this `for` loop is 0, so its counter never reaches the end";
        found.report(&STEP, around.loc, around.role, text);
        found.help("count by a step of at least 1");
    } else {
        let param = step.as_reg().and_then(|r| param(cx, r, 0));
        let name = param.map(|p| cx.kernel.param(p).name.as_str());
        let text = match name {
            Some(name) => {
                format!("the step of this `for` loop may be 0: a launch may pass `{name}` = 0")
            }
            None => "the step of this `for` loop may be 0".to_owned(),
        };
        found.report(&STEP, around.loc, around.role, text);
        found.undecided();
        found.help(match name {
            Some(name) => format!("declare `{name}.at_least(1)`"),
            None => "compute the step from constants, grid extents, or parameters that are declared with `at_least(1)`".to_owned(),
        });
    }
    if let Some(op) = step.as_reg().and_then(|r| written(cx, r)) {
        let op = &cx.ops[op];
        found.label(
            "the step is computed here",
            op.loc(),
            op.site.role.or(around.role),
        );
    }
}

/// Returns the first op that writes a register.
fn written(cx: &RuleContext, r: RegId) -> Option<usize> {
    cx.code.defs(r).iter().find_map(|d| match d {
        Def::Op(id) => Some(*id),
        Def::Counter(_) => None,
    })
}

/// Returns a parameter that a register is computed from and that may be 0.
fn param(cx: &RuleContext, r: RegId, depth: u32) -> Option<ParamId> {
    let op = &cx.ops[written(cx, r).filter(|_| depth < 8)?];
    match op.op {
        Op::ReadParam(o) => Some(o.param).filter(|p| cx.kernel.param(*p).bounds.least <= 0),
        _ => (op.facts.named_reads()).find_map(|r| param(cx, r, depth + 1)),
    }
}
