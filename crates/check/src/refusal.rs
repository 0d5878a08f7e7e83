//! What the checker answers when it refuses.

use crate::assumption::Assumption;
use crate::render::{Group, groups};
use crate::replay::Witness;
use std::fmt;
use warpline_ir::{Frame, Kernel, Loc, RoleId};

/// A rule: a stable code for tools, and what holds when it is kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rule {
    /// The code, for example `R12.size`.
    pub code: &'static str,
    /// What holds, as a sentence.
    pub holds: &'static str,
}

/// One place where a kernel breaks a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The rule.
    pub rule: Rule,
    /// The rule and the value seen, as a sentence.
    pub text: String,
    /// The role whose statement breaks it, if it is one role's.
    pub role: Option<String>,
    /// The author's line.
    pub at: Option<Frame>,
    /// All lines that lead to the statement, innermost first.
    pub stack: Vec<Frame>,
    /// Is it not a breach, but something that could not be decided?
    pub undecided: bool,
    /// The other sides: the access it races with, who waits for whom.
    pub others: Vec<Side>,
    /// The change that usually repairs it.
    pub help: Option<String>,
    /// What led to it, oldest first: who did what, in which slot and phase.
    pub trace: Vec<Event>,
    /// A launch in which the executor sees it; only refutations of the protocol have one.
    pub witness: Option<Box<Witness>>,
}

/// Another statement that has a part in a refusal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Side {
    /// What it has to do with it, as a sentence.
    pub text: String,
    /// Its role, if it is one role's.
    pub role: Option<String>,
    /// The author's line.
    pub at: Option<Frame>,
}

/// One step of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Who: `load, warp 0`, or an engine on its behalf.
    pub who: String,
    /// What it did: `arrives at ring.full[2], phase 1`.
    pub what: String,
    /// The author's line.
    pub at: Option<Frame>,
}

impl Refusal {
    /// The rule's code.
    pub fn code(&self) -> &'static str {
        self.rule.code
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.at, &self.role) {
            (Some(at), Some(role)) => write!(f, "{at}, role {role}: ")?,
            (Some(at), None) => write!(f, "{at}: ")?,
            (None, Some(role)) => write!(f, "role {role}: ")?,
            (None, None) => {}
        }
        write!(f, "{} [{}]", self.text, self.rule.code)
    }
}

impl std::error::Error for Refusal {}

/// Everything that is wrong with one kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusals {
    /// The kernel's name.
    pub kernel: String,
    /// The refusals; never empty.
    pub refusals: Vec<Refusal>,
}

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel {}: ", self.kernel)?;
        for (i, Group { first, more }) in groups(&self.refusals).iter().enumerate() {
            if i > 0 {
                write!(f, "; ")?;
            }
            write!(f, "{first}")?;
            if *more > 0 {
                write!(f, " (and {more} more there)")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Refusals {}

/// Collects refusals of one kernel.
pub(crate) struct Findings<'k> {
    kernel: &'k Kernel,
    list: Vec<Refusal>,
    assumptions: Vec<Assumption>,
}

impl<'k> Findings<'k> {
    pub(crate) fn new(kernel: &'k Kernel) -> Self {
        Self {
            kernel,
            list: Vec::new(),
            assumptions: Vec::new(),
        }
    }

    /// Refuses a statement or declaration.
    pub(crate) fn refuse(
        &mut self,
        rule: &Rule,
        loc: Loc,
        role: Option<RoleId>,
        text: impl Into<String>,
    ) {
        let locs = &self.kernel.locs;
        self.list.push(Refusal {
            rule: *rule,
            text: text.into(),
            role: self.role(role),
            at: locs.author(loc),
            stack: locs.stack(loc).to_vec(),
            undecided: false,
            others: Vec::new(),
            help: None,
            trace: Vec::new(),
            witness: None,
        });
    }

    /// Names another statement that has a part in the last refusal.
    pub(crate) fn beside(&mut self, text: impl Into<String>, loc: Loc, role: Option<RoleId>) {
        let side = Side {
            text: text.into(),
            role: self.role(role),
            at: self.kernel.locs.author(loc),
        };
        if let Some(last) = self.list.last_mut() {
            last.others.push(side);
        }
    }

    /// Says that the last refusal is no breach, but something that could not be decided.
    pub(crate) fn undecided(&mut self) {
        if let Some(last) = self.list.last_mut() {
            last.undecided = true;
        }
    }

    /// Names the change that usually repairs the last refusal.
    pub(crate) fn help(&mut self, text: impl Into<String>) {
        if let Some(last) = self.list.last_mut() {
            last.help = Some(text.into());
        }
    }

    /// Adds a fact that the verdict rests on.
    pub(crate) fn assume(&mut self, code: &'static str, loc: Loc, text: impl Into<String>) {
        self.assumptions.push(Assumption {
            code,
            text: text.into(),
            at: self.kernel.locs.author(loc),
        });
    }

    /// The name of a role.
    fn role(&self, role: Option<RoleId>) -> Option<String> {
        let role = role.and_then(|r| self.kernel.roles.get(r.index()));
        role.map(|r| r.name.clone())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn into_list(self) -> Vec<Refusal> {
        self.list
    }

    /// The refusals, and the assumptions.
    pub(crate) fn into_parts(self) -> (Vec<Refusal>, Vec<Assumption>) {
        (self.list, self.assumptions)
    }
}
