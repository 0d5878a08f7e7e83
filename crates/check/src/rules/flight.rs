//! R7, products in flight: what the tensor cores own, and until when.
//!
//! A product owns its accumulators, and the registers of its A, from its issue
//! until a wait covers its group. One that is open on some way counts as open.

mod act;
mod state;

use super::flow::{Flow, follow};
use super::{Case, registers};
use crate::refusal::{Findings, Rule};
use act::{Access, Act, Acts, Origin, Product};
use state::State;
use std::collections::HashSet;
use warpline_ir::{Loc, RoleId};

/// The rules of this group.
pub const RULES: &[Rule] = &[REGISTERS, FENCE, BUDGET];

const REGISTERS: Rule = Rule {
    code: "R7.registers",
    holds: "the registers of a product are untouched until a wgmma wait covers it",
};
const FENCE: Rule = Rule {
    code: "R7.fence",
    holds: "a wgmma fence stands before the first product, and between an access of a product's registers and the product",
};
const BUDGET: Rule = Rule {
    code: "R14.budget",
    holds: "the registers that products own at once fit into those of a thread",
};

pub(crate) fn judge<'k>(case: &Case<'k>, found: &mut Findings<'k>) {
    let mut told = HashSet::new();
    for i in 0..case.kernel.roles.len() {
        let role = RoleId(i as u32);
        let Some(mut acts) = Acts::of(case, role) else {
            continue;
        };
        let steps = case.steps(role, &mut |op| acts.read(op));
        let mut state = State::new(&acts);
        let mut flight = Flight {
            last_access: vec![None; acts.regs.len()],
            acts: &acts,
            budget: registers::budget(case, role),
            found,
            told: &mut told,
        };
        follow(&steps, &mut flight, &mut state);
    }
}

struct Flight<'a, 'k> {
    acts: &'a Acts,
    /// The registers of a thread.
    budget: u32,
    /// By register: where it was accessed last.
    last_access: Vec<Option<Origin>>,
    found: &'a mut Findings<'k>,
    /// What was refused already: a line breaks a rule once, however often it is passed.
    told: &'a mut HashSet<(&'static str, Option<RoleId>, Loc)>,
}

impl<'k> Flow<Act<'k>> for Flight<'_, 'k> {
    type State = State;

    fn op(&mut self, act: &Act<'k>, state: &mut State) {
        match act {
            Act::Access(access) => self.access(access, state),
            Act::Product(number) => {
                let product = &self.acts.products[*number];
                self.product(product, state);
                state.issue(*number, self.acts);
                self.fits(product, state);
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

impl Flight<'_, '_> {
    fn access(&mut self, access: &Access, state: &mut State) {
        for &r in &access.regs {
            if let Some(owner) = state.owner(r, self.acts) {
                let text = format!(
                    "the registers of a product are untouched until a wgmma wait covers it; {} touches {}, which a product may own still",
                    access.op.name(),
                    self.acts.regs[r]
                );
                let owner = Some(("the product", owner.at));
                self.refuse(&REGISTERS, access.at, text, owner);
            }
            state.touch(r);
            self.last_access[r] = Some(access.at);
        }
    }

    fn product(&mut self, product: &Product, state: &State) {
        if let Some(before) = state.conflict(product, self.acts) {
            let text = "the registers of a product are untouched until a wgmma wait covers it; only products of one shape into the very same accumulators follow one another without";
            let before = Some(("the product before", before.at));
            self.refuse(&REGISTERS, product.at, text, before);
        }
        if state.unfenced {
            let text = "a wgmma fence stands before the first product; a way leads here with none";
            self.refuse(&FENCE, product.at, text, None);
        } else if let Some(r) = state.accessed(product) {
            let text = format!(
                "a wgmma fence stands between an access of a product's registers and the product; none has come since {} was accessed",
                self.acts.regs[r]
            );
            let access = self.last_access[r].map(|at| ("the access", at));
            self.refuse(&FENCE, product.at, text, access);
        }
    }

    /// Nothing that is owned can be spilled.
    fn fits(&mut self, product: &Product, state: &State) {
        let (owned, budget) = (state.owned(), self.budget);
        if owned > budget {
            let text = format!(
                "the registers that products own at once fit into those of a thread; here they own {owned}, and a thread has {budget}"
            );
            self.refuse(&BUDGET, product.at, text, None);
        }
    }

    /// Refuses an op, with another one that has a part in it.
    fn refuse(
        &mut self,
        rule: &Rule,
        at: Origin,
        text: impl Into<String>,
        other: Option<(&str, Origin)>,
    ) {
        if self.told.insert((rule.code, at.role, at.loc)) {
            self.found.refuse(rule, at.loc, at.role, text);
            if let Some((text, other)) = other {
                self.found.beside(text, other.loc, other.role);
            }
        }
    }
}
