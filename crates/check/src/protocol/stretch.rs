//! Synchronization-free regions, which the search runs once and then replays.
//!
//! Between two synchronization operations a warp mostly computes addresses and accesses memory.
//! Equal registers give equal addresses, so the search caches the effects of a region by its
//! inputs. It checks the cached accesses together, because no happens-before fact changes inside
//! the region.

use super::code::{Act, Code, Program};
use super::exec::Ran;
use super::record::Who;
use super::state::Env;
use super::touch::Touch;
use super::value::{Held, Val};
use super::world::{Stop, World};
use crate::facts::Facts;
use rustc_hash::FxHashMap;
use std::rc::Rc;
use warpline_ir::{Completion, Loc, Mask, MemoryRegion, Op, Operand};

/// Straight steps that neither synchronize nor ask.
struct Stretch {
    /// The step after the last.
    end: u32,
    /// Slots that are read before they are written.
    reads: Vec<u32>,
    writes: Vec<u32>,
    /// Does it name CTAs? If not, it does the same in each.
    far: bool,
}

/// What is known of stretches so far.
#[derive(Default)]
pub(super) struct Stretches {
    /// By role and first step.
    starts: FxHashMap<(u32, u32), Rc<Stretch>>,
    /// By the step they start at, the warp (of any CTA, if they name none), its lanes, and what
    /// they read.
    effects: FxHashMap<Vec<u64>, Rc<Effect>>,
}

/// What a stretch did, from given registers.
struct Effect {
    end: u32,
    steps: u64,
    writes: Vec<(u32, Held)>,
    /// Where the stretch names no CTA, these are in the one that runs it.
    touches: Vec<(Touch, Loc)>,
}

/// By step: does it only compute, or read and write memory itself, and in no tile that is
/// followed word by word?
pub(super) fn plain(code: &[Code<'_>], followed: &[bool]) -> Vec<bool> {
    code.iter().map(|c| is_plain(c, followed)).collect()
}

fn is_plain(code: &Code<'_>, followed: &[bool]) -> bool {
    let Code::Act(Act { op, .. }) = code else {
        return false;
    };
    let facts = Facts::of(op);
    facts.syncs.is_empty()
        && facts.touches.iter().all(|t| {
            let own = matches!(
                t.memory,
                MemoryRegion::PerLane(..) | MemoryRegion::MatrixRows(..) | MemoryRegion::Global(..)
            );
            let plain = match t.completion {
                Completion::Now => own,
                Completion::WgmmaGroup => true,
                _ => false,
            };
            plain && super::slice::tile_of(t).is_none_or(|t| !followed[t.index()])
        })
}

impl World<'_, '_> {
    /// Runs the stretch that starts at a step; says where it ends, if it could be run as one.
    pub(super) fn stretch(&mut self, pc: u32) -> Result<Option<u32>, Stop> {
        let env = self.env;
        let role = self.st.warps[self.cur].role;
        let program = &env.programs[role as usize];
        if !program.plain[pc as usize] || self.needs_state(pc) {
            return Ok(None);
        }
        let known = env.stretches.borrow().starts.get(&(role, pc)).cloned();
        let stretch = known.unwrap_or_else(|| {
            let stretch = Rc::new(Stretch::of(env, program, pc));
            let starts = &mut env.stretches.borrow_mut().starts;
            starts.insert((role, pc), Rc::clone(&stretch));
            stretch
        });
        let key = self.start_of(&stretch, pc);
        let known = env.stretches.borrow().effects.get(&key).cloned();
        if let Some(effect) = known {
            self.steps += effect.steps;
            for (slot, held) in &effect.writes {
                *self.held_at_mut(*slot) = held.clone();
            }
            let own = self.st.warps[self.cur].cta;
            for (touch, loc) in &effect.touches {
                self.loc = *loc;
                let cta = if stretch.far { touch.cta } else { own };
                self.reach(touch.lanes, cta)?;
                let touch = touch.clone();
                let (who, i) = (touch.who, self.touch(Touch { cta, ..touch })?);
                if who == Who::Product {
                    self.open(&[i]);
                }
            }
            return Ok(Some(effect.end));
        }
        self.kept = Some(Vec::new());
        let before = self.steps;
        let end = self.each(stretch.end, pc);
        let touches = self.kept.take().unwrap_or_default();
        let end = end?;
        let live = &program.live[end as usize];
        let held = |s: u32| live.has(s).then(|| (s, self.held_at(s).clone()));
        let ran = &program.code[pc as usize..end as usize];
        let effect = Effect {
            end,
            steps: self.steps - before,
            writes: written(env, ran).into_iter().filter_map(held).collect(),
            touches: together(env, touches),
        };
        let effects = &mut env.stretches.borrow_mut().effects;
        effects.insert(key, Rc::new(effect));
        Ok(Some(end))
    }

    /// Runs step by step, as far as what happens follows from the registers alone.
    fn each(&mut self, end: u32, pc: u32) -> Result<u32, Stop> {
        let env = self.env;
        let program = &env.programs[self.st.warps[self.cur].role as usize];
        for at in pc..end {
            let Code::Act(a) = &program.code[at as usize] else {
                return Ok(at);
            };
            if self.needs_state(at) {
                return Ok(at);
            }
            match self.run(a)? {
                Ran::Next => {}
                Ran::Blocked | Ran::Asks(_) => return Ok(at),
            }
        }
        Ok(end)
    }

    /// Does more than numbers in registers decide what a step does or leaves: a term, what is
    /// decided of it, or a value that anything could be?
    fn needs_state(&self, pc: u32) -> bool {
        let w = &self.st.warps[self.cur];
        let Code::Act(a) = &self.env.programs[w.role as usize].code[pc as usize] else {
            return true;
        };
        let term = |&o: &Operand| matches!(self.val(o), Val::Sym(_) | Val::Pred { .. });
        let any = match a.op {
            Op::ReadSpecial(_) | Op::ReadParam(_) => true,
            _ => !a.pure && a.defs.iter().any(|&r| self.is_one_value(a, r)),
        };
        any || a.reads.iter().any(term)
    }

    /// What a stretch starts from.
    fn start_of(&self, stretch: &Stretch, pc: u32) -> Vec<u64> {
        let w = &self.st.warps[self.cur];
        let mut key = vec![
            u64::from(w.role) << 32 | u64::from(pc),
            u64::from(if stretch.far {
                self.cur as u32
            } else {
                w.index
            }) << 32
                | u64::from(w.active),
            u64::from(w.maybe()) << 1 | u64::from(self.is_elected()),
        ];
        // Of registers that are written in some lanes the others stay.
        let partly = w.active != Mask::MAX;
        let written = stretch.writes.iter().filter(|_| partly);
        for &s in stretch.reads.iter().chain(written) {
            let held = self.held_at(s);
            match &held.val {
                Val::Uni(x) => key.extend([held.lanes, *x]),
                Val::Lanes(x) => {
                    key.push(1 << 40 | held.lanes);
                    key.extend(x.iter());
                }
                Val::Opaque => key.push(2 << 40),
                Val::Within(lo, hi) => key.extend([4 << 40 | held.lanes, *lo, *hi]),
                // It ends before the first of its steps that goes by a term.
                Val::Sym(_) | Val::Pred { .. } => key.push(3 << 40),
            }
        }
        key
    }
}

/// The slots that steps write.
fn written(env: &Env<'_>, code: &[Code<'_>]) -> Vec<u32> {
    let mut slots = Vec::new();
    for c in code {
        let Code::Act(a) = c else { continue };
        for r in &a.defs {
            if let Some(s) = env.slots.of(*r).filter(|s| !slots.contains(s)) {
                slots.push(s);
            }
        }
    }
    slots
}

impl Stretch {
    fn of(env: &Env<'_>, program: &Program<'_>, start: u32) -> Self {
        let rest = &program.plain[start as usize..];
        let len = rest.iter().position(|p| !p).unwrap_or(rest.len());
        let code = &program.code[start as usize..start as usize + len];
        let (mut reads, mut done): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        for c in code {
            let Code::Act(a) = c else { continue };
            for o in &a.reads {
                let Operand::Reg(r) = o else { continue };
                if let Some(s) = env.slots.of(*r)
                    && !done.contains(&s)
                    && !reads.contains(&s)
                {
                    reads.push(s);
                }
            }
            done.extend(a.defs.iter().filter_map(|&r| env.slots.of(r)));
        }
        let far = |c: &Code<'_>| {
            let Code::Act(a) = c else { return false };
            let touches = Facts::of(a.op).touches;
            touches.iter().any(|t| super::slice::peer_of(t).is_some())
        };
        Self {
            end: start + len as u32,
            reads,
            writes: written(env, code),
            far: code.iter().any(far),
        }
    }
}

/// Accesses of the same kind to the same tile, as one.
fn together(env: &Env<'_>, list: Vec<(Touch, Loc)>) -> Vec<(Touch, Loc)> {
    let mut all: Vec<(Touch, Loc)> = Vec::new();
    for (t, loc) in list {
        let same = |o: &Touch| {
            (o.who, o.cta, o.tile, o.write, o.atomic) == (t.who, t.cta, t.tile, t.write, t.atomic)
        };
        match all.iter_mut().find(|(o, _)| same(o)) {
            Some((o, _)) => {
                o.runs = env.runs.and(&o.runs, &t.runs);
                o.lanes |= t.lanes;
            }
            None => all.push((t, loc)),
        }
    }
    all
}
