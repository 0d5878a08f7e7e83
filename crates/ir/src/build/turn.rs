//! Turns: an ordered hand-over between roles.

use super::flow::elect_lane;
use super::raw::BarHandle;
use super::reg::Var;
use super::state::{Count, Width, error, here, with};
use super::warp::warp_sync;
use crate::loc::Frame;
use crate::value::{BarId, BarRef, Operand, RoleId};

/// What the builder knows of a turn.
pub(crate) struct TurnState {
    pub(crate) name: String,
    pub(crate) roles: Vec<String>,
    pub(crate) bar: BarId,
    pub(crate) frame: Frame,
    parities: Vec<(RoleId, Var<u32>)>,
}

/// Roles take turns, in the order declared; the first one starts.
///
/// There is one mbarrier per role, which completes when the turn comes to it.
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
                format!(
                    "turn {name} is between at least two roles, not {}",
                    roles.len()
                ),
            );
        }
        let index = with(|s| {
            let bar = s.barrier(name.to_owned(), roles.len() as u32, Count::Manual, frame);
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

    /// Waits for this role's turn, runs `body`, and hands the turn on.
    #[track_caller]
    pub fn hold<T>(self, body: impl FnOnce() -> T) -> T {
        let _at = here();
        let frame = Frame::caller();
        let place = with(|s| {
            let (name, width) = (s.role_name(), s.width);
            let turn = &s.turns[self.index];
            let (bar, n) = (turn.bar, turn.roles.len() as u32);
            let text = match turn.roles.iter().position(|r| *r == name) {
                Some(i) if width == Width::Role => {
                    let role = s.role;
                    let known = turn
                        .parities
                        .iter()
                        .find(|p| Some(p.0) == role)
                        .map(|p| p.1);
                    return Some((bar, i as u32, n, known));
                }
                Some(_) => format!("turn {} is held by whole roles, not by one lane", turn.name),
                None => format!("role {name} takes no part in turn {}", turn.name),
            };
            s.error("turn-role", text, frame, None);
            None
        });
        let Some((bar, i, n, known)) = place else {
            return body();
        };
        let parity = known.unwrap_or_else(|| {
            // The first role's first wait passes.
            let parity = Var::carried(u32::from(i == 0));
            with(|s| {
                let role = s.role?;
                s.turns[self.index].parities.push((role, parity));
                Some(())
            });
            parity
        });
        let at = |i: u32| {
            BarHandle(BarRef {
                bar,
                index: Operand::imm(i),
                peer: None,
            })
        };
        let now = parity.get();
        at(i).wait(now);
        parity.set(now ^ 1);
        let value = body();
        warp_sync();
        elect_lane(|| at((i + 1) % n).arrive());
        value
    }
}
