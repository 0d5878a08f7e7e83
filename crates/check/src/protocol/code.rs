//! The program of one role as a flat list of steps.

use super::bits::Bits;
use super::slice::{Slice, written};
use super::slots::Slots;
use super::stretch;
use crate::facts::Facts;
use std::collections::HashMap;
use warpline_ir::{
    Block, Completion, Effects, Kernel, Loc, MemoryAccess, Op, Operand, RegId, Stmt, StmtKind,
    SyncOp, Type,
};

/// One op that matters.
pub(super) struct Act<'k> {
    pub(super) op: &'k Op,
    pub(super) loc: Loc,
    /// Registers that it writes and that matter.
    pub(super) defs: Vec<RegId>,
    /// Operands it computes with, in order.
    pub(super) args: Vec<Operand>,
    /// Operands it reads, once each.
    pub(super) reads: Vec<Operand>,
    /// Does it ask whether a phase is complete, and does nothing that matters follow from it?
    pub(super) idle: bool,
    /// Does it do nothing but compute, the same from the same operands?
    pub(super) pure: bool,
    /// Ops with the same number compute the same from the same operands.
    pub(super) kind: u32,
}

/// One step.
pub(super) enum Code<'k> {
    Act(Act<'k>),
    /// Lanes where the predicate holds go on; the others go to `other`.
    If {
        cond: RegId,
        other: u32,
        end: u32,
        /// Registers that both sides write.
        written: Vec<RegId>,
        /// Does nothing inside synchronize? Then it need not be known who runs it.
        quiet: bool,
    },
    /// The end of what they run; those who wait for it run what follows, up to `end`.
    Else {
        end: u32,
    },
    EndIf,
    /// Sets the counter.
    For {
        var: RegId,
        from: Operand,
        to: Operand,
        step: Operand,
        end: u32,
        /// Registers that the rounds write.
        written: Vec<RegId>,
        /// Does nothing inside synchronize?
        quiet: bool,
    },
    /// Goes on while the counter is below the end.
    ForTest {
        var: RegId,
        to: Operand,
        end: u32,
    },
    ForNext {
        var: RegId,
        step: Operand,
        test: u32,
    },
    While {
        end: u32,
        written: Vec<RegId>,
    },
    WhileTest {
        cond: RegId,
        end: u32,
    },
    WhileNext {
        head: u32,
    },
    Elect {
        end: u32,
    },
    EndElect,
    Done,
}

/// The program of one role.
pub(super) struct Program<'k> {
    pub(super) code: Vec<Code<'k>>,
    pub(super) locs: Vec<Loc>,
    /// By step: the registers, by slot, whose values are still used.
    pub(super) live: Vec<Bits>,
    /// By step: does it only compute, or read and write memory itself?
    pub(super) plain: Vec<bool>,
}

/// Does nothing in a block synchronize, count bytes, multiply or end?
fn is_quiet(block: &Block) -> bool {
    let mut quiet = true;
    block.each(&mut |s| {
        if let StmtKind::Op(op) = &s.kind {
            let facts = Facts::of(op);
            let counts = |t: &MemoryAccess| {
                matches!(t.completion, Completion::Bytes(_) | Completion::WgmmaGroup)
            };
            quiet &= facts.syncs.is_empty() && !facts.touches.iter().any(counts);
        }
    });
    quiet
}

/// Numbers for ops that compute the same.
#[derive(Default)]
pub(super) struct Kinds(HashMap<String, u32>);

impl Kinds {
    fn of(&mut self, op: &Op) -> u32 {
        let name = without_registers(&format!("{op:?}"));
        let next = self.0.len() as u32;
        *self.0.entry(name).or_insert(next)
    }
}

/// The text of an op with its registers left out.
fn without_registers(text: &str) -> String {
    let mut parts = text.split("RegId(");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push('%');
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    out
}

/// The operands of an op, in order, each as often as it is there.
#[derive(Default)]
struct Args(Vec<Operand>);

impl Effects for Args {
    fn def(&mut self, _: RegId) {}
    fn arg(&mut self, o: Operand, _: Type) {
        self.0.push(o);
    }
    fn access(&mut self, _: &MemoryAccess) {}
    fn sync(&mut self, _: &SyncOp) {}
    fn whole_warp(&mut self) {}
}

struct Flat<'k, 's> {
    slice: &'s Slice,
    kinds: &'s mut Kinds,
    code: Vec<Code<'k>>,
    locs: Vec<Loc>,
}

impl<'k> Flat<'k, '_> {
    fn push(&mut self, code: Code<'k>, loc: Loc) -> u32 {
        self.code.push(code);
        self.locs.push(loc);
        self.code.len() as u32 - 1
    }

    fn block(&mut self, block: &'k Block) {
        for s in &block.0 {
            self.stmt(s);
        }
    }

    /// Do the statements of a block matter?
    fn matters(&self, block: &Block) -> bool {
        let mut any = false;
        block.each(&mut |s| {
            any |= match &s.kind {
                StmtKind::Op(op) => self.slice.keeps(&Facts::of(op)),
                StmtKind::For { var, .. } => self.slice.regs[var.index()],
                _ => false,
            };
        });
        any
    }

    fn written(&self, block: &Block) -> Vec<RegId> {
        let mut regs: Vec<_> = written(block)
            .into_iter()
            .filter(|r| self.slice.regs[r.index()])
            .collect();
        regs.sort();
        regs
    }

    fn stmt(&mut self, s: &'k Stmt) {
        let here = |code: &Self| code.code.len() as u32;
        match &s.kind {
            StmtKind::Op(op) => self.op(op, s.loc),
            StmtKind::If { cond, then, other } => {
                if !self.matters(then) && !self.matters(other) {
                    return;
                }
                let start = self.push(Code::Done, s.loc);
                self.block(then);
                let middle = self.push(Code::Done, s.loc);
                self.block(other);
                let end = self.push(Code::EndIf, s.loc);
                let mut regs = self.written(then);
                regs.extend(self.written(other));
                self.code[start as usize] = Code::If {
                    cond: *cond,
                    other: middle + 1,
                    end,
                    written: regs,
                    quiet: is_quiet(then) && is_quiet(other),
                };
                self.code[middle as usize] = Code::Else { end };
            }
            StmtKind::For {
                var,
                from,
                to,
                step,
                body,
                ..
            } => {
                if !self.matters(body) && !self.slice.regs[var.index()] {
                    return;
                }
                let start = self.push(Code::Done, s.loc);
                let test = self.push(Code::Done, s.loc);
                self.block(body);
                let next = Code::ForNext {
                    var: *var,
                    step: *step,
                    test,
                };
                self.push(next, s.loc);
                let end = here(self);
                self.code[start as usize] = Code::For {
                    var: *var,
                    from: *from,
                    to: *to,
                    step: *step,
                    end,
                    written: self.written(body),
                    quiet: is_quiet(body),
                };
                self.code[test as usize] = Code::ForTest {
                    var: *var,
                    to: *to,
                    end,
                };
            }
            StmtKind::While { head, cond, body } => {
                if !self.matters(head) && !self.matters(body) {
                    return;
                }
                let start = self.push(Code::Done, s.loc);
                let first = here(self);
                self.block(head);
                let test = self.push(Code::Done, s.loc);
                self.block(body);
                self.push(Code::WhileNext { head: first }, s.loc);
                let end = here(self);
                let mut regs = self.written(head);
                regs.extend(self.written(body));
                self.code[start as usize] = Code::While { end, written: regs };
                self.code[test as usize] = Code::WhileTest { cond: *cond, end };
            }
            StmtKind::Elect { body } => {
                if !self.matters(body) {
                    return;
                }
                let start = self.push(Code::Done, s.loc);
                self.block(body);
                let end = self.push(Code::EndElect, s.loc);
                self.code[start as usize] = Code::Elect { end };
            }
        }
    }

    fn op(&mut self, op: &'k Op, loc: Loc) {
        let facts = Facts::of(op);
        if !self.slice.keeps(&facts) {
            return;
        }
        let mut args = Args::default();
        op.effects(&mut args);
        let keep = |r: &RegId| self.slice.regs[r.index()];
        let defs: Vec<RegId> = facts.defs.iter().copied().filter(keep).collect();
        let asks = facts.syncs.iter().any(|s| matches!(s, SyncOp::Test { .. }));
        let act = Act {
            op,
            loc,
            idle: asks && defs.is_empty(),
            defs,
            args: args.0,
            reads: facts.reads.iter().map(|r| r.0).collect(),
            pure: facts.syncs.is_empty()
                && facts.touches.is_empty()
                && !matches!(op, Op::Opaque(_)),
            kind: self.kinds.of(op),
        };
        self.push(Code::Act(act), loc);
    }
}

impl<'k> Program<'k> {
    /// What a warp of a role runs: prologue, body, epilogue.
    pub(super) fn of(
        kernel: &'k Kernel,
        role: usize,
        slice: &Slice,
        slots: &Slots,
        followed: &[bool],
        kinds: &mut Kinds,
    ) -> Self {
        let mut flat = Flat {
            slice,
            kinds,
            code: Vec::new(),
            locs: Vec::new(),
        };
        flat.block(&kernel.prologue);
        flat.block(&kernel.roles[role].body);
        flat.block(&kernel.epilogue);
        flat.push(Code::Done, kernel.roles[role].loc);
        let live = live(&flat.code, slots);
        let plain = stretch::plain(&flat.code, followed);
        Self {
            plain,
            code: flat.code,
            locs: flat.locs,
            live,
        }
    }
}

/// Who of a warp waits for something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Waiters {
    Nobody,
    /// An elected lane.
    One,
    All,
}

impl Program<'_> {
    /// The only op that writes a register.
    fn made(&self, r: RegId) -> Option<&Act<'_>> {
        let mut made = self.code.iter().filter_map(|c| match c {
            Code::Act(a) if a.defs.contains(&r) => Some(a),
            _ => None,
        });
        made.next().filter(|_| made.next().is_none())
    }

    /// The operands of the difference that a loop runs to, where the second is what another loop
    /// of the role runs to: a part has been run, and this is the rest.
    pub(super) fn rest(&self, to: Operand) -> Option<(RegId, RegId)> {
        let Op::Sub(o) = self.made(to.as_reg()?)?.op else {
            return None;
        };
        let (whole, part) = (o.a.as_reg()?, o.b.as_reg()?);
        let same = |r: RegId| match (self.made(r), self.made(part)) {
            (Some(a), Some(b)) => (a.kind, &a.args) == (b.kind, &b.args),
            _ => false,
        };
        let mut ends = self.code.iter().filter_map(|c| match c {
            Code::For { to, .. } => to.as_reg(),
            _ => None,
        });
        let run = ends.find(|&r| r == part || same(r))?;
        Some((whole, run))
    }

    /// Does a loop run over the rest of a count?
    pub(super) fn has_rests(&self) -> bool {
        let rest = |c: &Code<'_>| matches!(c, Code::For { to, .. } if self.rest(*to).is_some());
        self.code.iter().any(rest)
    }

    /// By slot: is what is written there only moved by constants and compared?
    pub(super) fn stepped(&self, stepped: &[bool], slots: &Slots) -> Vec<bool> {
        let mut of = vec![false; slots.all as usize];
        for c in &self.code {
            let Code::Act(a) = c else { continue };
            for r in a.defs.iter().filter(|r| stepped[r.index()]) {
                slots.of(*r).into_iter().for_each(|s| of[s as usize] = true);
            }
        }
        // A slot may be of several registers.
        for c in &self.code {
            let Code::Act(a) = c else { continue };
            for r in a.defs.iter().filter(|r| !stepped[r.index()]) {
                slots
                    .of(*r)
                    .into_iter()
                    .for_each(|s| of[s as usize] = false);
            }
        }
        of
    }

    /// By mbarrier array: who of a warp waits for it?
    pub(super) fn waits(&self, arrays: usize) -> Vec<Waiters> {
        let mut waits = vec![Waiters::Nobody; arrays];
        let mut elected = 0;
        for c in &self.code {
            match c {
                Code::Elect { .. } => elected += 1,
                Code::EndElect => elected -= 1,
                Code::Act(a) => {
                    for s in &Facts::of(a.op).syncs {
                        if let SyncOp::Wait { bar, .. } | SyncOp::Test { bar, .. } = s {
                            let who = if elected > 0 {
                                Waiters::One
                            } else {
                                Waiters::All
                            };
                            let w = &mut waits[bar.bar.index()];
                            *w = (*w).max(who);
                        }
                    }
                }
                _ => {}
            }
        }
        waits
    }
}

/// By step: the slots that are read before they are written.
fn live(code: &[Code<'_>], slots: &Slots) -> Vec<Bits> {
    let mut live = vec![Bits::default(); code.len()];
    let slot = |o: &Operand| match o {
        Operand::Reg(r) => slots.of(*r),
        Operand::Imm(_) => None,
    };
    let mut changed = true;
    while changed {
        changed = false;
        for (i, c) in code.iter().enumerate().rev() {
            let mut now = Bits::default();
            let mut after = |j: u32| {
                if let Some(l) = live.get(j as usize) {
                    now.join(l);
                }
            };
            let next = i as u32 + 1;
            match c {
                Code::If { other, .. } => [next, *other].into_iter().for_each(&mut after),
                Code::Else { end } => [next, *end].into_iter().for_each(&mut after),
                Code::ForTest { end, .. } | Code::WhileTest { end, .. } => {
                    [next, *end].into_iter().for_each(&mut after);
                }
                Code::ForNext { test, .. } => after(*test),
                Code::WhileNext { head } => after(*head),
                Code::Done => {}
                _ => after(next),
            }
            let (mut defs, mut uses): (Vec<Operand>, Vec<Operand>) = (Vec::new(), Vec::new());
            match c {
                Code::Act(a) => {
                    defs.extend(a.defs.iter().map(|&r| Operand::Reg(r)));
                    uses.extend(&a.reads);
                }
                Code::If { cond, .. } | Code::WhileTest { cond, .. } => uses.push((*cond).into()),
                Code::For {
                    var,
                    from,
                    to,
                    step,
                    ..
                } => {
                    defs.push((*var).into());
                    uses.extend([*from, *to, *step]);
                }
                // A counter that must be known is kept with the loop.
                Code::ForTest { to, .. } => uses.push(*to),
                Code::ForNext { step, .. } => uses.push(*step),
                _ => {}
            }
            for s in defs.iter().filter_map(slot) {
                now.remove(s);
            }
            for s in uses.iter().filter_map(slot) {
                now.add(s);
            }
            if now != live[i] && !(now.is_empty() && live[i].is_empty()) {
                live[i] = now;
                changed = true;
            }
        }
    }
    live
}
