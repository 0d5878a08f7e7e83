//! Control flow: runs one warp until it blocks.

use super::act::lanes_of;
use super::code::Code;
use super::exec::Ran;
use super::rules;
use super::state::{Frame, Inside, LoopsRun, Rounds, Status};
use super::value::Val;
use super::world::{Stop, World};
use crate::symbolic::{Arg, Fit, Node, Question, Sym, TermId};
use warpline_ir::{Machine, Mask, Operand, RegId, Type};

/// The most steps that warps run from one decision to the next.
const MOST_STEPS: u64 = 300_000;

/// Which lanes go on.
enum Goes {
    Lanes(Mask),
    Asks(Question),
    Unknown,
}

impl<'k> World<'_, 'k> {
    /// Walks a warp until it waits, asks or ends; says whether it moved.
    pub(super) fn walk(&mut self, warp: usize) -> Result<bool, Stop> {
        self.cur = warp;
        if !self.may_move() {
            return Ok(false);
        }
        self.resume();
        let mut moved = false;
        while self.st.warps[warp].status != Status::Done && self.step()? {
            moved = true;
            if self.steps > MOST_STEPS {
                let text = format!("runs more than {MOST_STEPS} steps without a wait");
                return Err(self.refuse(&rules::STATES, text));
            }
        }
        self.pause();
        Ok(moved)
    }

    /// Could what the warp waits for have come?
    fn may_move(&self) -> bool {
        match self.st.warps[self.cur].status {
            Status::Done => false,
            Status::Bar { bar, phase } => i64::from(self.st.bars[bar].phase) > phase,
            Status::Meeting { meeting, number } => self.st.meetings[meeting].over != number,
            Status::Asks(q) => self.answer(q).is_some(),
            Status::Ready | Status::Products | Status::Registers => true,
        }
    }

    /// Is a question decided?
    pub(super) fn answer(&self, q: Question) -> Option<bool> {
        self.env.terms.answer(&self.st.decided, q)
    }

    fn asks(&mut self, q: Question) -> bool {
        self.st.warps[self.cur].status = Status::Asks(q);
        false
    }

    fn go(&mut self, pc: u32) -> bool {
        let w = &mut self.st.warps[self.cur];
        w.pc = pc;
        if w.status != Status::Done {
            w.status = Status::Ready;
        }
        true
    }

    /// One step; says whether the warp moved.
    fn step(&mut self) -> Result<bool, Stop> {
        let env = self.env;
        let w = &self.st.warps[self.cur];
        let (pc, role) = (w.pc, w.role as usize);
        let program = &env.programs[role];
        self.loc = program.locs[pc as usize];
        if let Some(end) = self.stretch(pc)? {
            return Ok(self.go(end));
        }
        Ok(match &program.code[pc as usize] {
            Code::Act(a) => match self.run(a)? {
                Ran::Next => {
                    let done = self.st.warps[self.cur].status == Status::Done;
                    if done {
                        self.end();
                    }
                    self.go(pc + 1)
                }
                Ran::Blocked => false,
                Ran::Asks(q) => self.asks(q),
            },
            Code::If {
                cond,
                other,
                end,
                quiet,
                ..
            } => match self.holds(*cond) {
                Goes::Asks(_) if *quiet => self.branch(Goes::Unknown, pc, *other, *end),
                Goes::Asks(q) => self.asks(q),
                goes => self.branch(goes, pc, *other, *end),
            },
            Code::Else { end } => {
                let w = &mut self.st.warps[self.cur];
                let to = match w.frames.last_mut() {
                    Some(Frame::If { other, .. }) if *other != 0 => {
                        w.active = std::mem::take(other);
                        pc + 1
                    }
                    _ => *end,
                };
                self.blur(*end);
                self.go(to)
            }
            Code::EndIf | Code::EndElect => {
                self.blur(pc);
                self.pop();
                self.go(pc + 1)
            }
            Code::Elect { end } => {
                let w = &mut self.st.warps[self.cur];
                let saved = w.active;
                w.frames.push(Frame::Elect { saved, end: *end });
                w.active = saved & saved.wrapping_neg();
                self.go(pc + 1)
            }
            Code::For {
                var,
                from,
                to,
                step,
                end,
                written,
                quiet,
            } => {
                let blunt = *quiet && self.st.blunt;
                return self.start_for(*var, [*from, *to, *step], *end, written, blunt, pc);
            }
            Code::ForTest { var, to, end } => return self.test_for(*var, *to, *end, pc),
            Code::ForNext { var, step, test } => self.next_for(*var, *step, *test, pc),
            Code::While { end, .. } => {
                let depth = self.depth();
                let of = env.terms.add(Node::While(depth));
                let inside = self.round(of, 0);
                let rounds = Rounds::While {
                    of,
                    round: 0,
                    inside,
                };
                self.enter(*end, None, rounds, false);
                self.go(pc + 1)
            }
            Code::WhileTest { cond, end } => match self.holds(*cond) {
                Goes::Asks(q) => self.asks(q),
                Goes::Lanes(0) => {
                    self.pop();
                    self.go(*end)
                }
                Goes::Lanes(lanes) => {
                    self.st.warps[self.cur].active = lanes;
                    self.go(pc + 1)
                }
                Goes::Unknown => {
                    self.once(*end);
                    self.go(pc + 1)
                }
            },
            Code::WhileNext { head } => {
                let to = self.next_round(*head, pc + 1);
                self.go(to)
            }
            Code::Done => {
                self.end();
                true
            }
        })
    }

    /// The warp ends; those who wait for its CTA or cluster wait for one warp fewer.
    fn end(&mut self) {
        self.st.warps[self.cur].status = Status::Done;
        self.st.warps[self.cur].frames.clear();
        let cta = self.st.warps[self.cur].cta;
        for meeting in [self.env.cta_meeting(cta), self.env.cluster_meeting()] {
            let warps = match meeting == self.env.cluster_meeting() {
                true => 0..self.st.warps.len(),
                false => self.warps_of(cta),
            };
            let live = warps.filter(|&w| self.st.warps[w].status != Status::Done);
            let live = 32 * live.count() as u32;
            let m = &mut self.st.meetings[meeting];
            if m.came > 0 {
                m.expected = live;
                self.end_meeting(meeting);
            }
        }
    }

    fn holds(&self, cond: RegId) -> Goes {
        let active = self.active();
        match self.val(Operand::Reg(cond)) {
            Val::Uni(0) => Goes::Lanes(0),
            Val::Uni(_) => Goes::Lanes(active),
            Val::Lanes(x) => {
                Goes::Lanes(lanes_of(active).fold(0, |m, l| m | Mask::from(x[l] != 0) << l))
            }
            Val::Within(..) | Val::Opaque => Goes::Unknown,
            known => {
                let p = known.arg(Type::Pred).unwrap_or(Arg::Num(0));
                match self.env.terms.truth(&self.st.decided, p) {
                    Ok(true) => Goes::Lanes(active),
                    Ok(false) => Goes::Lanes(0),
                    Err(q) => Goes::Asks(q),
                }
            }
        }
    }

    fn branch(&mut self, goes: Goes, pc: u32, other: u32, end: u32) -> bool {
        let w = &mut self.st.warps[self.cur];
        let saved = w.active;
        let (then, rest, maybe) = match goes {
            Goes::Lanes(m) => (m, saved & !m, false),
            _ => (saved, saved, true),
        };
        let frame = |other| Frame::If {
            saved,
            other,
            end,
            maybe,
        };
        let to = match then {
            0 => {
                w.frames.push(frame(0));
                w.active = rest;
                other
            }
            _ => {
                w.frames.push(frame(rest));
                w.active = then;
                pc + 1
            }
        };
        self.go(to)
    }

    /// Where it is unknown which lanes ran a branch, so are the registers it wrote.
    fn blur(&mut self, end: u32) {
        let w = &self.st.warps[self.cur];
        let Some(Frame::If { maybe: true, .. }) = w.frames.last() else {
            return;
        };
        let program = &self.env.programs[w.role as usize];
        let found = program.code[..end as usize]
            .iter()
            .rev()
            .find_map(|c| match c {
                Code::If {
                    end: e, written, ..
                } if *e == end => Some(written),
                _ => None,
            });
        for &r in found.into_iter().flatten() {
            self.put(r, Val::Opaque);
        }
    }

    fn pop(&mut self) {
        let w = &mut self.st.warps[self.cur];
        if let Some(f) = w.frames.pop() {
            w.active = match f {
                Frame::If { saved, .. }
                | Frame::Elect { saved, .. }
                | Frame::Loop { saved, .. } => saved,
            };
        }
    }

    fn enter(&mut self, end: u32, var: Option<RegId>, rounds: Rounds, maybe: bool) {
        let w = &mut self.st.warps[self.cur];
        let saved = w.active;
        w.frames.push(Frame::Loop {
            saved,
            end,
            var,
            rounds,
            maybe,
        });
    }

    /// How many loops are around.
    pub(super) fn depth(&self) -> u32 {
        let w = &self.st.warps[self.cur];
        let loops = w.frames.iter().filter(|f| {
            matches!(
                f,
                Frame::Loop {
                    rounds: Rounds::Term { .. } | Rounds::While { .. },
                    ..
                }
            )
        });
        loops.count() as u32
    }

    fn round(&mut self, of: TermId, round: u32) -> Inside {
        let around = self.st.warps[self.cur].inside().round;
        Inside {
            round: self.env.terms.add(Node::Round { around, of, round }),
            loops: Vec::new(),
        }
    }

    fn start_for(
        &mut self,
        var: RegId,
        [from, to, step]: [Operand; 3],
        end: u32,
        written: &[RegId],
        blunt: bool,
        pc: u32,
    ) -> Result<bool, Stop> {
        let vals = [from, to, step].map(|o| self.val(o));
        if vals.iter().all(|v| v.numbers().is_some()) {
            self.put(var, vals[0].clone());
            self.enter(end, Some(var), Rounds::Known, false);
            return Ok(self.go(pc + 1));
        }
        let ty = self.env.kernel.ty(var);
        let args = [&vals[0], &vals[1], &vals[2]].map(|v| v.arg(ty).filter(|_| !blunt));
        let [Some(f), Some(t), Some(s)] = args else {
            // Each lane counts for itself, and nobody knows how far.
            for &r in written.iter().chain([&var]) {
                self.put(r, Val::Opaque);
            }
            self.enter(end, Some(var), Rounds::Once, true);
            return Ok(self.go(pc + 2));
        };
        self.counts_up(ty, t, s)?;
        let Some((count, off)) = self.count(f, t, s) else {
            return Err(self.undecided("the trip count of its loop"));
        };
        let (role, around) = {
            let w = &mut self.st.warps[self.cur];
            (w.role, w.inside().round)
        };
        let group = self.env.groups.of_loop(role, pc);
        let n = self.st.warps[self.cur].inside().begin(count, group);
        let of = self.env.terms.add(Node::Loop {
            count,
            around,
            group,
            n,
        });
        let rounds = Rounds::Term {
            of,
            off,
            round: 0,
            inside: Inside {
                round: around,
                loops: Vec::new(),
            },
        };
        self.enter(end, Some(var), rounds, false);
        Ok(self.go(pc + 1))
    }

    /// Refuses a step that may be zero or less; notes that a counter is taken not to wrap.
    fn counts_up(&mut self, ty: Type, to: Arg, step: Arg) -> Result<(), Stop> {
        let (terms, d) = (&self.env.terms, &self.st.decided);
        if terms.range(d, step).lo <= 0 {
            let step = self.name(step);
            let text = crate::diagnostic::Message::new(format!(
                "counts a loop by `{step}`, which may be 0"
            ))
            .cause(format!("with `{step}` = 0 the loop would never end"));
            let mut stop = self.refuse(&rules::UNKNOWN, text);
            stop.diagnostic.help = Some("declare the step with `at_least(1)`".to_owned());
            return Err(stop);
        }
        // The last value is below the end, and the one after it must still be a value.
        let last = terms
            .sum(to, step, 1)
            .and_then(|s| terms.sum(s, Arg::Num(1), -1));
        let fits = last.is_some_and(|l| matches!(terms.fit(d, l, ty), Fit::Exactly(_)));
        if !fits && step != Arg::Num(1) {
            let bits = 8 * ty.bytes() - usize::from(ty.is_signed());
            let (to, step) = (self.name(to), self.name(step));
            self.assume(
                &crate::codes::A_OVERFLOW,
                format!("{to} + {step} <= 2^{bits}"),
            );
        }
        Ok(())
    }

    /// Iterations from, to, by: a term and a constant.
    pub(super) fn count(&self, from: Arg, to: Arg, step: Arg) -> Option<(TermId, i128)> {
        let (terms, d) = (&self.env.terms, &self.st.decided);
        let Arg::Num(by) = step else {
            return Some((terms.add(Node::Iterations(from, to, step)), 0));
        };
        let length = terms.sum(to, from, -1)?;
        let length = terms.sum(length, Arg::Num(by - 1), 1)?;
        let count = terms.quotient(d, length, by)?;
        // Parts of a sum that a loop of this warp has counted to their end are numbers.
        let count = match count {
            Arg::Sym(s) if matches!(terms.node(s.term), Node::Sum(_)) => {
                terms.with_known_values(d, count, &|t| self.counted_as(t))
            }
            count => count,
        };
        Some(match count {
            Arg::Sym(s) => (s.term, s.off),
            Arg::Num(x) => (terms.zero(), x),
            Arg::Pred { .. } => return None,
        })
    }

    /// The iterations that a loop around the current warp, or one that it has left in this
    /// iteration, has for a count; the count itself if there is none.
    pub(super) fn counted_as(&self, t: TermId) -> TermId {
        let terms = &self.env.terms;
        let w = &self.st.warps[self.cur];
        let counts = |of: TermId| matches!(terms.node(of), Node::Loop { count, .. } if count == t);
        for (at, f) in w.frames.iter().enumerate().rev() {
            let inside = match f {
                Frame::Loop {
                    rounds: Rounds::Term { of, inside, .. },
                    ..
                } => {
                    if counts(*of) {
                        return *of;
                    }
                    inside
                }
                Frame::Loop {
                    rounds: Rounds::While { inside, .. },
                    ..
                } => {
                    if let Some(found) = self.finished(inside, t) {
                        return found;
                    }
                    return match self.counts && terms.is_launch_constant(t) {
                        true => self.while_instance(w, at, t),
                        false => t,
                    };
                }
                _ => continue,
            };
            if let Some(found) = self.finished(inside, t) {
                return found;
            }
        }
        self.finished(&w.root, t).unwrap_or(t)
    }

    /// The last loop over a count that is over in an iteration.
    fn finished(&self, inside: &Inside, t: TermId) -> Option<TermId> {
        let of = |l: &&LoopsRun| l.count == t;
        let last = inside.loops.iter().rev().find(of)?;
        Some(self.env.terms.add(Node::Loop {
            count: t,
            around: inside.round,
            group: last.group,
            n: last.n,
        }))
    }

    /// The iterations that the innermost `while` around a warp has for a count, if it has one.
    pub(super) fn counted_by_while(&self, w: &super::state::Warp, t: TermId) -> Option<TermId> {
        let at = w.frames.iter().rposition(|f| {
            matches!(
                f,
                Frame::Loop {
                    rounds: Rounds::While { .. },
                    ..
                }
            )
        })?;
        let fixed = self.env.terms.is_launch_constant(t);
        fixed.then(|| self.while_instance(w, at, t))
    }

    /// The iterations that a `while` has for a count that it counts by itself.
    pub(super) fn while_instance(&self, w: &super::state::Warp, at: usize, t: TermId) -> TermId {
        let Frame::Loop { end, .. } = w.frames[at] else {
            return t;
        };
        let around = w.frames[..at].iter().rev().find_map(|f| match f {
            Frame::Loop {
                rounds: Rounds::Term { inside, .. } | Rounds::While { inside, .. },
                ..
            } => Some(inside),
            _ => None,
        });
        let around = around.unwrap_or(&w.root);
        let program = &self.env.programs[w.role as usize];
        let starts = |c: &Code<'_>| matches!(c, Code::While { end: e, .. } if *e == end);
        let pc = program.code[..end as usize].iter().rposition(starts);
        let group = self.env.groups.of_loop(w.role, pc.unwrap_or(0) as u32);
        let before = around
            .loops
            .iter()
            .find(|l| (l.count, l.group) == (t, group));
        self.env.terms.add(Node::Loop {
            count: t,
            around: around.round,
            group,
            n: before.map_or(0, |l| l.n + 1),
        })
    }

    fn test_for(&mut self, var: RegId, to: Operand, end: u32, pc: u32) -> Result<bool, Stop> {
        let w = &self.st.warps[self.cur];
        let Some(Frame::Loop { rounds, .. }) = w.frames.last() else {
            return Ok(self.go(end));
        };
        match rounds.clone() {
            Rounds::Known => {
                let signed = self.env.kernel.ty(var) == Type::I32;
                let (now, last) = (
                    self.known(var.into(), "the counter of its loop")?,
                    self.known(to, "the end of its loop")?,
                );
                let below = |l: usize| match signed {
                    true => (now[l] as i32) < last[l] as i32,
                    false => (now[l] as u32) < last[l] as u32,
                };
                let lanes = lanes_of(self.active()).fold(0, |m, l| m | Mask::from(below(l)) << l);
                if lanes == 0 {
                    self.pop();
                    return Ok(self.go(end));
                }
                self.st.warps[self.cur].active = lanes;
                Ok(self.go(pc + 1))
            }
            Rounds::Term { of, off, round, .. } => {
                let q = Question::RunsMoreThan {
                    of,
                    than: i128::from(round) - off,
                };
                match self.answer(q) {
                    None => Ok(self.asks(q)),
                    Some(false) => {
                        self.pop();
                        Ok(self.go(end))
                    }
                    Some(true) => {
                        self.set_counter(var, of, round, pc);
                        Ok(self.go(pc + 1))
                    }
                }
            }
            Rounds::While { .. } | Rounds::Once => {
                self.leave_once(end);
                Ok(self.go(end))
            }
        }
    }

    /// Leaves a loop that was run once in place of any number of times: what its body wrote may
    /// still be what it was before.
    fn leave_once(&mut self, end: u32) {
        self.pop();
        let program = &self.env.programs[self.st.warps[self.cur].role as usize];
        let mut back = program.code[..end as usize].iter().rev();
        let (written, var) = back
            .find_map(|c| match c {
                Code::For {
                    end: e,
                    written,
                    var,
                    ..
                } if *e == end => Some((written, Some(*var))),
                Code::While { end: e, written } if *e == end => Some((written, None)),
                _ => None,
            })
            .map_or((&[][..], None), |(w, v)| (&w[..], v));
        for &r in written.iter().chain(&var) {
            self.put(r, Val::Opaque);
        }
    }

    /// Sets the counter of a round that a launch decides, and begins the round.
    fn set_counter(&mut self, var: RegId, of: TermId, round: u32, test: u32) {
        let program = &self.env.programs[self.st.warps[self.cur].role as usize];
        let Code::For { from, step, to, .. } = program.code[test as usize - 1] else {
            return;
        };
        let ty = self.env.kernel.ty(var);
        let args = [from, step, to].map(|o| self.val(o).arg(ty));
        let val = match args {
            [Some(Arg::Num(f)), Some(Arg::Num(s)), _] if self.env.exact[var.index()] => {
                let now = super::value::bits(f + i128::from(round) * s, ty);
                Val::Uni(self.env.fold.number(var, now))
            }
            [Some(from), Some(step), Some(to)] => {
                let node = Node::Counter {
                    of,
                    round,
                    from,
                    step,
                    to,
                };
                let term = self.env.terms.add(node);
                Val::Sym(Sym { term, off: 0 })
            }
            _ => Val::Opaque,
        };
        self.put(var, val);
        let around = match self.env.terms.node(of) {
            Node::Loop { around, .. } => around,
            _ => of,
        };
        let term = self.env.terms.add(Node::Round { around, of, round });
        if let Some(Frame::Loop {
            rounds: Rounds::Term { inside, .. },
            ..
        }) = self.st.warps[self.cur].frames.last_mut()
        {
            *inside = Inside {
                round: term,
                loops: Vec::new(),
            };
        }
    }

    fn next_for(&mut self, var: RegId, step: Operand, test: u32, pc: u32) -> bool {
        let known = matches!(
            self.st.warps[self.cur].frames.last(),
            Some(Frame::Loop {
                rounds: Rounds::Known,
                ..
            })
        );
        if known {
            let (a, b) = (self.val(var.into()).numbers(), self.val(step).numbers());
            if let (Some(a), Some(b)) = (a, b) {
                self.steps += 1;
                let sum =
                    std::array::from_fn(|l| u64::from((a[l] as u32).wrapping_add(b[l] as u32)));
                let val = Val::of(&sum, self.active());
                self.put(var, val);
            }
            return self.go(test);
        }
        let to = self.next_round(test, pc + 1);
        self.go(to)
    }

    /// Begins the next round of the innermost loop at `head`, or leaves it for `end`.
    fn next_round(&mut self, head: u32, end: u32) -> u32 {
        let frames = &mut self.st.warps[self.cur].frames;
        let (of, next, outer) = match frames.last_mut() {
            Some(Frame::Loop {
                rounds: Rounds::Term { round, .. },
                ..
            }) => {
                *round += 1;
                return head;
            }
            Some(Frame::Loop {
                rounds: Rounds::While { of, round, inside },
                ..
            }) => {
                *round += 1;
                (*of, *round, inside.round)
            }
            _ => {
                self.leave_once(end);
                return end;
            }
        };
        let around = match self.env.terms.node(outer) {
            Node::Round { around, .. } => around,
            _ => outer,
        };
        let term = self.env.terms.add(Node::Round {
            around,
            of,
            round: next,
        });
        if let Some(Frame::Loop {
            rounds: Rounds::While { inside, .. },
            ..
        }) = self.st.warps[self.cur].frames.last_mut()
        {
            *inside = Inside {
                round: term,
                loops: Vec::new(),
            };
        }
        head
    }

    /// A `while` whose lanes decide for themselves: it is run once, perhaps.
    fn once(&mut self, end: u32) {
        let program = &self.env.programs[self.st.warps[self.cur].role as usize];
        let start = program.code[..end as usize]
            .iter()
            .rposition(|c| matches!(c, Code::While { end: e, .. } if *e == end));
        if let Some(Code::While { written, .. }) = start.map(|i| &program.code[i]) {
            for &r in written {
                self.put(r, Val::Opaque);
            }
        }
        if let Some(Frame::Loop { rounds, maybe, .. }) = self.st.warps[self.cur].frames.last_mut() {
            *rounds = Rounds::Once;
            *maybe = true;
        }
    }
}
