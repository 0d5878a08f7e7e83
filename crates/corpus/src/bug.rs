//! A bug of the corpus, and the list of them.

use crate::case::Case;
use std::fmt;
use std::sync::LazyLock;
use warpline_ir::{BuildErrors, FaultKind};

/// A public bug.
#[derive(Clone, Copy, Debug)]
pub struct Bug {
    /// Its name here.
    pub name: &'static str,
    /// Where it was reported: `owner/repository#number`, or what it is of.
    pub reference: &'static str,
    /// What went wrong, as a sentence.
    pub title: &'static str,
    /// The code of the rule that refuses it.
    pub rule: &'static str,
    /// What the CPU executor makes of it.
    pub executor: Executor,
    pub(crate) build: fn(Form) -> Built,
}

/// A case, or why its kernel could not be built.
pub(crate) type Built = Result<Case, BuildErrors>;

/// The two forms of a bug.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Form {
    /// As it was reported.
    Broken,
    /// As it is right.
    Repaired,
}

impl Form {
    /// Is it the repaired form?
    pub(crate) fn is_repaired(self) -> bool {
        self == Form::Repaired
    }

    /// One of two values, by form.
    pub(crate) fn pick<T>(self, broken: T, repaired: T) -> T {
        match self {
            Form::Broken => broken,
            Form::Repaired => repaired,
        }
    }
}

/// What the CPU executor makes of a broken form; repaired ones run clean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Executor {
    /// Under some schedule it ends in a fault of one of these kinds.
    Faults(&'static [FaultKind]),
    /// It runs through under every schedule tried, for this reason.
    Blind(&'static str),
}

impl Bug {
    /// The kernel as it was reported.
    pub fn broken(&self) -> Result<Case, BuildErrors> {
        (self.build)(Form::Broken)
    }

    /// The kernel as it is right.
    pub fn repaired(&self) -> Result<Case, BuildErrors> {
        (self.build)(Form::Repaired)
    }
}

impl fmt::Display for Bug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.reference)
    }
}

/// The bugs by group, in the order of the rules.
const GROUPS: &[&[Bug]] = &[
    crate::arrivals::BUGS,
    crate::bytes::BUGS,
    crate::parity::BUGS,
    crate::trips::BUGS,
    crate::proxies::BUGS,
    crate::bulk::BUGS,
    crate::products::BUGS,
    crate::clusters::BUGS,
    crate::registers::BUGS,
    crate::named::BUGS,
    crate::init::BUGS,
    crate::aliases::BUGS,
    crate::maps::BUGS,
    crate::lanes::BUGS,
    crate::launch::BUGS,
    crate::cycles::BUGS,
    crate::global::BUGS,
];

/// Every bug, in the order of the rules.
pub fn all() -> &'static [Bug] {
    static ALL: LazyLock<Vec<Bug>> = LazyLock::new(|| GROUPS.concat());
    &ALL
}

/// A bug by its name.
pub fn find(name: &str) -> Option<&'static Bug> {
    all().iter().find(|bug| bug.name == name)
}
