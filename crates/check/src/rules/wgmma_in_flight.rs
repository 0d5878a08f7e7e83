//! R7, wgmma in flight: the registers that the tensor cores own.
//!
//! A wgmma owns its accumulators, and the registers of its A operand, from its issue until a wait
//! covers its group. A wgmma that is in flight on some path counts as in flight.

mod act;
mod state;

use super::flow::{Dataflow, run_dataflow};
use super::{RuleContext, registers};
use crate::codes;
use crate::diagnostic::{Findings, Message, Rule};
use act::{Access, Act, Acts, IssuedWgmma, Origin};
use state::State;
use std::collections::HashSet;
use warpline_ir::{Loc, RoleId};

/// The rules of this group.
pub const RULES: &[Rule] = &[REGISTERS, FENCE, BUDGET];

const REGISTERS: Rule = codes::R7_REGISTERS;
const FENCE: Rule = codes::R7_FENCE;
const BUDGET: Rule = codes::R14_BUDGET;

pub(crate) fn check<'k>(cx: &RuleContext<'k>, found: &mut Findings<'k>) {
    let mut reported = HashSet::new();
    for i in 0..cx.kernel.roles.len() {
        let role = RoleId(i as u32);
        let Some(mut acts) = Acts::of(cx, role) else {
            continue;
        };
        let steps = cx.steps(role, &mut |op| acts.read(op));
        let mut state = State::new(&acts);
        let mut flight = InFlight {
            last_access: vec![None; acts.regs.len()],
            acts: &acts,
            budget: registers::budget(cx, role),
            found,
            reported: &mut reported,
        };
        run_dataflow(&steps, &mut flight, &mut state);
    }
}

struct InFlight<'a, 'k> {
    acts: &'a Acts,
    /// The registers of a thread.
    budget: u32,
    /// By register: its last access.
    last_access: Vec<Option<Origin>>,
    found: &'a mut Findings<'k>,
    /// The diagnostics reported so far: a line is reported once per rule.
    reported: &'a mut HashSet<(&'static str, Option<RoleId>, Loc)>,
}

impl<'k> Dataflow<Act<'k>> for InFlight<'_, 'k> {
    type State = State;

    fn op(&mut self, act: &Act<'k>, state: &mut State) {
        match act {
            Act::Access(access) => self.check_access(access, state),
            Act::Wgmma(number) => {
                let wgmma = &self.acts.wgmmas[*number];
                self.check_wgmma(wgmma, state);
                state.issue(*number, self.acts);
                self.check_budget(wgmma, state);
            }
            Act::Fence => state.fence(),
            Act::Commit => state.commit(),
            Act::Wait(pending) => state.wait(*pending, self.acts),
        }
    }

    fn join(&self, state: &mut State, other: &State) -> bool {
        state.join(other)
    }
}

impl InFlight<'_, '_> {
    fn check_access(&mut self, access: &Access, state: &mut State) {
        for &r in &access.regs {
            if let Some(owner) = state.owner(r, self.acts) {
                let text = Message::new(format!(
                    "`{}` accesses register {}, which a wgmma may still own",
                    access.op.name(),
                    self.acts.regs[r]
                ))
                .label("accesses the register here")
                .cause("on some path, no wait that covers the wgmma precedes the access");
                let owner = Some(("issues the wgmma here", owner.at));
                self.report(&REGISTERS, access.at, text, owner);
            }
            state.touch(r);
            self.last_access[r] = Some(access.at);
        }
    }

    fn check_wgmma(&mut self, wgmma: &IssuedWgmma, state: &State) {
        if let Some(before) = state.conflict(wgmma, self.acts) {
            let text = Message::new("this wgmma uses registers that an earlier wgmma may still own")
                .label("issues the second wgmma here")
                .cause("only wgmmas of the same shape on the same accumulators may follow each other without a wait");
            let before = Some(("issues the earlier wgmma here", before.at));
            self.report(&REGISTERS, wgmma.at, text, before);
        }
        if state.unfenced {
            let text = "a path leads to this wgmma without a `wgmma.fence`";
            self.report(&FENCE, wgmma.at, text, None);
        } else if let Some(r) = state.accessed_register(wgmma) {
            let text = format!(
                "no `wgmma.fence` separates the access to register {} from this wgmma",
                self.acts.regs[r]
            );
            let access = self.last_access[r].map(|at| ("accesses the register here", at));
            self.report(&FENCE, wgmma.at, text, access);
        }
    }

    /// Checks the register budget: owned registers cannot be spilled.
    fn check_budget(&mut self, wgmma: &IssuedWgmma, state: &State) {
        let (owned, budget) = (state.owned(), self.budget);
        if owned > budget {
            let text = format!(
                "wgmmas own {owned} registers of each thread here, and a thread has {budget}"
            );
            self.report(&BUDGET, wgmma.at, text, None);
        }
    }

    /// Reports a breach at an op, with the position of another op that takes part.
    fn report(
        &mut self,
        rule: &Rule,
        at: Origin,
        text: impl Into<Message>,
        other: Option<(&str, Origin)>,
    ) {
        if self.reported.insert((rule.code, at.role, at.loc)) {
            self.found.report(rule, at.loc, at.role, text);
            if let Some((text, other)) = other {
                self.found.label(text, other.loc, other.role);
            }
        }
    }
}
