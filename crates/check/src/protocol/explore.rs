//! The search over all decisions: it visits every state that a launch can lead to.
//!
//! Between two decisions, every warp runs until it blocks. The resulting state does not depend on
//! the order of the warps ([`act`](super::act)). Then the search decides the next question both
//! ways, for all warps at once.
//!
//! The first pass joins states at the same point ([`merge`](super::merge)) and keeps only the
//! happens-before facts that hold in all of them. It runs a synchronization-free loop once, with
//! the accesses of all its iterations. If this over-approximation proves nothing, the second pass
//! counts iterations and follows each state separately.

use super::code::Code;
use super::merge;
use super::state::{Env, State, Status};
use super::trace::{Trail, What};
use super::world::{Stop, World};
use crate::diagnostic::Diagnostic;
use crate::replay::LaunchValues;
use crate::symbolic::Question;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use warpline_ir::Loc;

/// The most states that are looked at, taken together or each by itself.
const MOST_STATES: [u64; 2] = [20_000, 4_000];
/// The most steps that are walked.
const MOST_STEPS: u64 = 10_000_000;
/// The most steps of a pass after one that reached a limit. Later passes need more steps than earlier
/// ones, so this pass only looks for a bug that few steps reach.
const MOST_STEPS_AFTER_LIMIT: u64 = MOST_STEPS / 10;

/// The most diagnostics that are looked for: the first may be one that no launch leads to.
const MOST_REFUSALS: usize = 6;

/// The most states that are looked at behind the first diagnostic.
const MORE_STATES: u64 = 40;

/// What was found, and how far it was looked.
#[derive(Default)]
pub(super) struct Explored {
    /// Diagnostics, each with the launch that leads to it.
    pub(super) diagnostics: Vec<(Diagnostic, LaunchValues)>,
    pub(super) states: u64,
    pub(super) steps: u64,
}

pub(super) fn explore(env: &Env<'_>, start: State) -> Explored {
    // What is refused here is told by the other search.
    let silent = State {
        trail: Trail::off(),
        ..start.clone()
    };
    let (mut walked, mut most_steps) = (0, MOST_STEPS);
    let quiet = |c: &Code<'_>| matches!(c, Code::For { quiet: true, .. });
    let any_quiet = env.programs.iter().any(|p| p.code.iter().any(quiet));
    for blunt in [true, false] {
        if blunt && !any_quiet {
            continue;
        }
        let start = State {
            blunt,
            ..silent.clone()
        };
        env.assumed.borrow_mut().clear();
        let together = Search::new(env, true, most_steps).from(start);
        walked += together.steps;
        if together.diagnostics.is_empty() {
            return Explored {
                steps: walked,
                ..together
            };
        }
        let states_limit = super::rules::STATES.code;
        let mut codes = together.diagnostics.iter().map(|(d, _)| d.code());
        if codes.any(|code| code == states_limit) {
            most_steps = MOST_STEPS_AFTER_LIMIT;
        }
    }
    env.assumed.borrow_mut().clear();
    let apart = Search::new(env, false, most_steps).from(start);
    Explored {
        steps: walked + apart.steps,
        ..apart
    }
}

/// A state that somebody asks something in.
struct Found {
    state: State,
    asks: (usize, Loc, Question),
    /// Is it to be looked at, again?
    open: bool,
}

struct Search<'e, 'k> {
    env: &'e Env<'k>,
    together: bool,
    found: Vec<Found>,
    by_key: FxHashMap<u128, usize>,
    open: VecDeque<usize>,
    looked: u64,
    steps: u64,
    most_steps: u64,
    /// Where the walk stopped.
    stops: Vec<Stop>,
    /// The search ends at this many states once it has stopped somewhere.
    until: u64,
}

impl<'e, 'k> Search<'e, 'k> {
    fn new(env: &'e Env<'k>, together: bool, most_steps: u64) -> Self {
        // Whether a loop has as many iterations as it can have matters to few: only to those whose
        // states are followed each by itself.
        env.terms.states_are_joined.set(together);
        Self {
            env,
            together,
            found: Vec::new(),
            by_key: FxHashMap::default(),
            open: VecDeque::new(),
            looked: 0,
            steps: 0,
            most_steps,
            stops: Vec::new(),
            until: 0,
        }
    }

    fn from(mut self, start: State) -> Explored {
        if let Err(stop) = self.all(start) {
            self.stops.push(stop);
        }
        let diagnostics = self.stops.into_iter().map(|stop| {
            let values = super::found::values(self.env, &stop.decisions);
            (*stop.diagnostic, values)
        });
        Explored {
            diagnostics: diagnostics.collect(),
            states: self.found.len().max(1) as u64,
            steps: self.steps,
        }
    }

    fn all(&mut self, start: State) -> Result<(), Stop> {
        self.enter(start)?;
        while let Some(at) = self.open.pop_front() {
            if !self.stops.is_empty() && self.looked >= self.until {
                break;
            }
            self.found[at].open = false;
            self.looked += 1;
            let (warp, loc, q) = self.found[at].asks;
            // Small numbers first.
            let first = matches!(q, Question::Holds(t) if self.env.terms.is_overflow_test(t));
            for yes in [first, !first] {
                let mut next = World::new(self.env, self.found[at].state.clone());
                self.env.terms.decide(&mut next.st.decided, q, yes);
                if next.st.decided.contradictory {
                    continue;
                }
                if next.st.trail.is_on() {
                    (next.cur, next.loc) = (warp, loc);
                    next.trail(What::Decides(q, yes, next.decision(q, yes).into()));
                }
                self.enter(next.st)?;
            }
        }
        Ok(())
    }

    /// Walks on from a state, and notes where it ends if that is new.
    fn enter(&mut self, state: State) -> Result<(), Stop> {
        let mut world = World::new(self.env, state);
        let went = go(&mut world);
        self.steps += world.steps;
        let went = match went {
            Err(stop) if !self.together && self.stops.len() + 1 < MOST_REFUSALS => {
                if self.stops.is_empty() {
                    self.until = self.looked + MORE_STATES;
                }
                self.stops.push(stop);
                return Ok(());
            }
            went => went?,
        };
        let Some(asks) = went else {
            return Ok(());
        };
        if self.looked > MOST_STATES[usize::from(!self.together)] || self.steps > self.most_steps {
            (world.cur, world.loc) = (asks.0, asks.1);
            let text = crate::diagnostic::Message::new(format!(
                "still reaches new states after {} states",
                self.looked
            ))
            .cause("a value that grows from iteration to iteration decides the synchronization, so that the states do not repeat");
            return Err(world.refuse(&super::rules::STATES, text));
        }
        world.tidy(self.together);
        let key = match self.together {
            true => world.point(),
            false => world.key(),
        };
        if let Some(&at) = self.by_key.get(&key) {
            if self.together && self.absorb(at, &world) && !self.found[at].open {
                self.found[at].open = true;
                self.open.push_back(at);
            }
            return Ok(());
        }
        self.by_key.insert(key, self.found.len());
        self.open.push_back(self.found.len());
        self.found.push(Found {
            state: world.st,
            asks,
            open: true,
        });
        Ok(())
    }

    /// Takes a state into one at the same point; says whether that changes anything.
    fn absorb(&mut self, at: usize, new: &World<'_, '_>) -> bool {
        let state = &mut self.found[at].state;
        let mut old = World::new(self.env, std::mem::take(state));
        let (of_old, of_new) = (old.records(), new.records());
        let changed = merge::absorb(self.env, &mut old.st, &of_old, &new.st, &of_new);
        self.found[at].state = old.st;
        changed
    }
}

/// Walks all warps as far as they get; gives the first question, or nothing at the end.
fn go(world: &mut World<'_, '_>) -> Result<Option<(usize, Loc, Question)>, Stop> {
    loop {
        let mut moved = false;
        for w in 0..world.st.warps.len() {
            moved |= world.walk(w)?;
        }
        if !moved {
            break;
        }
    }
    // Who is behind asks first: roles that run ahead of others would be in more states.
    let asks = world.st.warps.iter().enumerate().filter_map(|(w, warp)| {
        let Status::Asks(q) = warp.status else {
            return None;
        };
        let loc = world.env.programs[warp.role as usize].locs[warp.pc as usize];
        Some((w, loc, q))
    });
    let first = asks.min_by_key(|&(w, ..)| world.st.warps[w].rounds());
    if first.is_some() {
        return Ok(first);
    }
    world.finish()?;
    Ok(None)
}
