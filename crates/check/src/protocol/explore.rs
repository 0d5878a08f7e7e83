//! All ways a protocol can go: every state that decisions of a launch lead to.
//!
//! Between two decisions every warp goes as far as it can; what they reach
//! does not depend on their order, as [`act`](super::act) sees to. Only then
//! is the next question decided, both ways, for all warps at once.

use super::state::{Env, State, Status};
use super::term::Question;
use super::trace::{Step, What};
use super::world::{Stop, World};
use crate::refusal::Refusal;
use std::collections::{HashSet, VecDeque};
use warpline_ir::Loc;

/// The most states that are looked at.
const MOST_STATES: u64 = 4_000;
/// The most steps that are walked.
const MOST_STEPS: u64 = 3_000_000;

/// What was found, and how far it was looked.
pub(super) struct Explored {
    pub(super) refusal: Option<Refusal>,
    pub(super) states: u64,
    pub(super) steps: u64,
}

pub(super) fn explore(env: &Env<'_>, start: State) -> Explored {
    let mut out = Explored {
        refusal: None,
        states: 0,
        steps: 0,
    };
    let mut seen: HashSet<u128> = HashSet::new();
    let mut left = VecDeque::from([start]);
    while let Some(state) = left.pop_front() {
        let mut world = World::new(env, state);
        let went = go(&mut world);
        out.steps += world.steps;
        out.states += 1;
        let question = match went {
            Ok(q) => q,
            Err(Stop(refusal)) => {
                out.refusal = Some(*refusal);
                return out;
            }
        };
        let Some((warp, loc, q)) = question else {
            continue;
        };
        if out.states > MOST_STATES || out.steps > MOST_STEPS {
            world.cur = warp;
            world.loc = loc;
            let text = format!(
                "is still in a new state after {} states: what grows from round to round decides what it does",
                out.states
            );
            out.refusal = Some(*world.refuse(&super::rules::STATES, text).0);
            return out;
        }
        world.tidy();
        if !seen.insert(world.key()) {
            continue;
        }
        for yes in [false, true] {
            let mut next = world.st.clone();
            env.terms.decide(&mut next.decided, q, yes);
            next.trail.push(Step {
                warp: warp as u32,
                loc,
                what: What::Decides(world.decision(q, yes).into()),
            });
            left.push_back(next);
        }
    }
    out
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
    for (w, warp) in world.st.warps.iter().enumerate() {
        if let Status::Asks(q) = warp.status {
            let program = &world.env.programs[warp.role as usize];
            return Ok(Some((w, program.locs[warp.pc as usize], q)));
        }
    }
    world.finish()?;
    Ok(None)
}
