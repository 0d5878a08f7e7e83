//! The warps that still need the trip count of a loop, to reach the loop or to compute with it.
//!
//! While one warp still needs a count, states with different counts are different.

use super::code::Code;
use super::state::{Env, Frame, Rounds, Status, Warp};
use super::value::Val;
use super::world::World;
use crate::symbolic::{Arg, Node, TermId};
use std::cmp::Ordering;
use std::ops::Range;
use warpline_ir::{Operand, RegId, Type};

/// By role: the steps that have to do with counts.
pub(super) fn counting(env: &Env<'_>) -> Vec<Vec<usize>> {
    let has = |c: &Code| match c {
        Code::Act(a) => a.makes_number(env),
        Code::For { .. } => true,
        Code::While { .. } => env.stepped.iter().any(|&s| s),
        _ => false,
    };
    let of = |code: &[Code]| (0..code.len()).filter(|&i| has(&code[i])).collect();
    env.programs.iter().map(|p| of(&p.code)).collect()
}

/// What a warp has yet to run of a round, as stretches of its code that hold all of it.
struct Left<'c, 'k> {
    code: &'c [Code<'k>],
    counting: &'c [usize],
    /// From here to there, but for sides of branches that it is not on.
    range: Range<usize>,
    not: Vec<Range<usize>>,
}

impl<'c, 'k> Left<'c, 'k> {
    /// Those of its steps that have to do with counts.
    fn steps(&self) -> impl Iterator<Item = (u32, &'c Code<'k>)> {
        let runs = |i: &usize| !self.not.iter().any(|n| n.contains(i));
        let first = self.counting.partition_point(|&i| i < self.range.start);
        let rest = self.counting[first..].iter().copied();
        let here = rest.take_while(|&i| i < self.range.end).filter(runs);
        here.map(|i| (i as u32, &self.code[i]))
    }

    /// Is a register written on the way?
    fn writes(&self, r: RegId) -> bool {
        self.code[self.range.clone()].iter().any(|c| match c {
            Code::Act(a) => a.defs.contains(&r),
            Code::For { var, .. } => *var == r,
            _ => false,
        })
    }
}

impl World<'_, '_> {
    /// May a warp still compute a number from how many rounds a loop has?
    pub(super) fn is_computed_with(&self, of: TermId) -> bool {
        // Such a number is that of the first loop over a count (`count_of`).
        let Node::Loop {
            count,
            around,
            n: 0,
            ..
        } = self.env.terms.node(of)
        else {
            return false;
        };
        self.each_left(around, |w, left| {
            let computes = |o: &Operand| match o {
                Operand::Imm(_) => false,
                // It holds the sum already, which a state tells (`Names::off`), or the step that
                // makes the sum is one of these.
                Operand::Reg(r) if self.env.sums[r.index()] => self.env.period == 0,
                Operand::Reg(r) if !self.env.may_be_terms[r.index()] => false,
                Operand::Reg(_) => match self.stays(w, left, *o) {
                    Some(Val::Sym(s)) => s.term == count,
                    Some(_) => false,
                    None => true,
                },
            };
            left.steps().any(|(_, c)| match c {
                Code::Act(a) => a.makes_number(self.env) && a.args.iter().any(computes),
                _ => false,
            })
        })
    }

    /// May a warp still come to a loop that it is not in?
    pub(super) fn is_ahead(&self, of: TermId) -> bool {
        let Node::Loop {
            count,
            around,
            group,
            n,
        } = self.env.terms.node(of)
        else {
            return false;
        };
        self.each_left(around, |w, left| {
            let inside = |f: &Frame| round_of(f).is_some_and(|(o, _)| o == of);
            if self.counted_by_while(w, count) == Some(of) {
                return false;
            }
            if w.frames.iter().any(inside) || w.has_run(around, (count, group), n) {
                return false;
            }
            left.steps().any(|(pc, c)| match c {
                Code::For { .. } if self.env.groups.of_loop(w.role, pc) != group => false,
                Code::For {
                    var,
                    from,
                    to,
                    step,
                    ..
                } => {
                    if self.env.has_rests && self.is_rest(w, *to, of) {
                        return false;
                    }
                    let vals = [*from, *to, *step].map(|o| self.stays(w, left, o));
                    self.may_count(vals, self.env.kernel.ty(*var), count)
                }
                Code::While { .. } => true,
                _ => false,
            })
        })
    }

    /// Does a loop run over the rest of a count of which the warp has run a part, or begun to?
    ///
    /// How many iterations are left then follows from how far the part is behind what is decided
    /// of the whole, which a state tells (`decided_key`).
    fn is_rest(&self, w: &Warp, to: Operand, of: TermId) -> bool {
        let Some((whole, part)) = self.env.programs[w.role as usize].rest(to) else {
            return false;
        };
        let term = |r: RegId| {
            let held = w.held(self.env.slots.of(r)?)?;
            match held.val {
                Val::Sym(s) if s.off == 0 => Some(s.term),
                _ => None,
            }
        };
        let Node::Loop {
            count,
            around,
            group,
            ..
        } = self.env.terms.node(of)
        else {
            return false;
        };
        let Some(part) = term(part) else { return false };
        let over = matches!(self.env.terms.node(part), Node::Div(s, _) if s.term == count);
        over && term(whole) == Some(count) && w.has_run(around, (part, group), 0)
    }

    /// Has a warp run a part of a count, or begun to, and not the rest?
    pub(super) fn is_rest_ahead(&self, part: TermId, whole: TermId) -> bool {
        let (
            Node::Loop {
                count: part,
                around,
                group,
                ..
            },
            Node::Loop { count: whole, .. },
        ) = (self.env.terms.node(part), self.env.terms.node(whole))
        else {
            return false;
        };
        let runs = |w: &Warp, count: TermId| w.has_run(around, (count, group), 0);
        let mut warps = self.st.warps.iter().filter(|w| w.status != Status::Done);
        warps.any(|w| runs(w, part) && !runs(w, whole))
    }

    /// May the rounds of a loop be a count, where some of what it runs from, to and by is known?
    fn may_count(&self, vals: [Option<Val>; 3], ty: Type, count: TermId) -> bool {
        let [Some(f), Some(t), Some(s)] = vals else {
            return true;
        };
        if [&f, &t, &s].iter().all(|v| v.numbers().is_some()) {
            return false;
        }
        let args: [Option<Arg>; 3] = [&f, &t, &s].map(|v| v.arg(ty));
        match args {
            // A count whose parts are numbers by then may be any.
            [Some(f), Some(t), Some(s)] => self.count(f, t, s).is_none_or(|(of, _)| {
                of == count || matches!(self.env.terms.node(of), Node::Sum(_))
            }),
            // What differs between lanes may be the same in those that come to it.
            _ => true,
        }
    }

    /// What an operand will be when a warp comes to it, if nothing on the way changes it.
    fn stays(&self, w: &Warp, left: &Left<'_, '_>, o: Operand) -> Option<Val> {
        let r = match o {
            Operand::Imm(x) => return Some(Val::Uni(x)),
            Operand::Reg(r) => r,
        };
        let held = w.held(self.env.slots.of(r)?)?;
        (held.lanes != 0 && !left.writes(r)).then(|| held.val.clone())
    }

    /// Does something hold of a warp and what it has yet to run of a round?
    fn each_left(&self, round: TermId, holds: impl Fn(&Warp, &Left<'_, '_>) -> bool) -> bool {
        self.st.warps.iter().any(|w| {
            w.status != Status::Done && self.left_of(w, round).is_some_and(|left| holds(w, &left))
        })
    }

    /// What a warp has yet to run of a round.
    fn left_of(&self, w: &Warp, round: TermId) -> Option<Left<'_, '_>> {
        let code = &self.env.programs[w.role as usize].code[..];
        let counting = &self.env.counting[w.role as usize][..];
        let start = |end: u32| {
            let starts = |c: &Code| match c {
                Code::For { end: e, .. } | Code::While { end: e, .. } => *e == end,
                _ => false,
            };
            code[..end as usize].iter().rposition(starts).unwrap_or(0)
        };
        // The loops inside the round that it is in may bring it back to their start.
        let from_here = |frames: &[Frame], to: usize| {
            let is_loop = |f: &Frame| matches!(f, Frame::Loop { .. });
            let first = frames.iter().position(is_loop);
            let from = match first.map(|i| &frames[i]) {
                Some(Frame::Loop { end, .. }) => start(*end),
                _ => w.pc as usize,
            };
            let around = &frames[..first.unwrap_or(frames.len())];
            Left {
                code,
                counting,
                range: from..to,
                not: around
                    .iter()
                    .filter_map(|f| other_side(w, code, f))
                    .collect(),
            }
        };
        let Node::Round { around, of, round } = self.env.terms.node(round) else {
            return Some(from_here(&w.frames, code.len()));
        };
        let at = w.frames.iter().enumerate().find_map(|(i, f)| {
            let (o, now) = round_of(f)?;
            (o == of).then_some((i, now))
        });
        let Some((i, now)) = at else {
            return self.left_of(w, around);
        };
        let Frame::Loop { end, .. } = w.frames[i] else {
            return None;
        };
        match now.cmp(&round) {
            // It is in an earlier round, and comes to all of it.
            Ordering::Less => Some(Left {
                code,
                counting,
                range: start(end)..end as usize,
                not: Vec::new(),
            }),
            Ordering::Equal => Some(from_here(&w.frames[i + 1..], end as usize)),
            Ordering::Greater => None,
        }
    }
}

/// The side of a branch that no lane of a warp has yet to run: it is on the first, all of it.
fn other_side(w: &Warp, code: &[Code<'_>], f: &Frame) -> Option<Range<usize>> {
    let Frame::If { other: 0, end, .. } = f else {
        return None;
    };
    let branch = |c: &Code| match c {
        Code::If { other, end: e, .. } if e == end => Some(*other),
        _ => None,
    };
    let other = code[..*end as usize].iter().rev().find_map(branch)?;
    (w.pc < other).then_some(other as usize..*end as usize)
}

impl Warp {
    /// Has it run, or begun, the `n`-th loop over a count inside a round?
    fn has_run(&self, round: TermId, over: (TermId, u32), n: u32) -> bool {
        let inside = self.frames.iter().filter_map(|f| match f {
            Frame::Loop {
                rounds: Rounds::Term { inside, .. } | Rounds::While { inside, .. },
                ..
            } => Some(inside),
            _ => None,
        });
        let mut inside = inside.chain([&self.root]).filter(|i| i.round == round);
        inside.any(|i| {
            i.loops
                .iter()
                .any(|l| (l.count, l.group) == over && l.n >= n)
        })
    }
}

/// The loop that a frame is of, and the round it is in, where a launch decides them.
pub(super) fn round_of(f: &Frame) -> Option<(TermId, u32)> {
    match f {
        Frame::Loop {
            rounds: Rounds::Term { of, round, .. } | Rounds::While { of, round, .. },
            ..
        } => Some((*of, *round)),
        _ => None,
    }
}
