//! Turns: roles run a section one at a time, in a fixed order.

use super::flow::elect_lane;
use super::raw::MbarrierHandle;
use super::reg::Var;
use super::state::{ActiveThreads, ArrivalCount, caller_scope, error, with};
use super::warp::warp_sync;
use crate::loc::Frame;
use crate::value::{BarId, BarRef, Operand, RoleId};

/// The builder's record of a turn.
pub(crate) struct TurnState {
    pub(crate) name: String,
    pub(crate) roles: Vec<String>,
    pub(crate) bar: BarId,
    pub(crate) frame: Frame,
    parities: Vec<(RoleId, Var<u32>)>,
}

/// A baton that roles pass in the declared order, starting with the first role
/// (CUTLASS's `OrderedSequenceBarrier`).
///
/// Each role has one mbarrier; a phase completes when the role receives the turn.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    index: usize,
}

impl Turn {
    #[track_caller]
    pub(crate) fn new(name: &str, roles: &[&str]) -> Self {
        let frame = Frame::caller();
        if roles.len() < 2 {
            error(
                "turn-roles",
                format!("turn {name} has {} roles; it needs at least 2", roles.len()),
            );
        }
        let index = with(|s| {
            let bar = s.barrier(
                name.to_owned(),
                roles.len() as u32,
                ArrivalCount::Manual,
                frame,
            );
            s.turns.push(TurnState {
                name: name.to_owned(),
                roles: roles.iter().map(|&r| r.to_owned()).collect(),
                bar,
                frame: s.author(frame),
                parities: Vec::new(),
            });
            s.turns.len() - 1
        });
        Self { index }
    }

    /// Waits for this role's turn, runs `body`, and passes the turn to the next role.
    #[track_caller]
    pub fn hold<T>(self, body: impl FnOnce() -> T) -> T {
        let _caller = caller_scope();
        let frame = Frame::caller();
        let position = with(|s| {
            let (name, active) = (s.role_name(), s.active);
            let turn = &s.turns[self.index];
            let (bar, n) = (turn.bar, turn.roles.len() as u32);
            let text = match turn.roles.iter().position(|r| *r == name) {
                Some(i) if active == ActiveThreads::Role => {
                    let role = s.role;
                    let known = turn
                        .parities
                        .iter()
                        .find(|p| Some(p.0) == role)
                        .map(|p| p.1);
                    return Some((bar, i as u32, n, known));
                }
                Some(_) => format!(
                    "turn {} is held inside elect; all threads of the role must hold it",
                    turn.name
                ),
                None => format!("role {name} is not declared in turn {}", turn.name),
            };
            s.error("turn-role", text, frame, None);
            None
        });
        let Some((bar, i, n, known)) = position else {
            return body();
        };
        let parity = known.unwrap_or_else(|| {
            // With parity 1 the first wait of the first role passes immediately.
            let parity = Var::role_state(u32::from(i == 0));
            with(|s| {
                let role = s.role?;
                s.turns[self.index].parities.push((role, parity));
                Some(())
            });
            parity
        });
        let barrier = |i: u32| {
            MbarrierHandle(BarRef {
                bar,
                index: Operand::imm(i),
                peer: None,
            })
        };
        let current = parity.get();
        barrier(i).wait(current);
        parity.set(current ^ 1);
        let value = body();
        warp_sync();
        elect_lane(|| barrier((i + 1) % n).arrive());
        value
    }
}
