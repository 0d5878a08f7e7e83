//! The bugs of the corpus.

use crate::case::CorpusCase;
use std::fmt;
use std::sync::LazyLock;
use warpline_ir::{BuildErrors, FaultKind};

/// A public bug.
#[derive(Clone, Copy, Debug)]
pub struct Bug {
    /// The name of the bug in the corpus.
    pub name: &'static str,
    /// The report, `owner/repository#number`, or another source.
    pub reference: &'static str,
    /// The bug in one sentence, without a full stop.
    pub title: &'static str,
    /// The code of the rule that the broken version breaks.
    pub rule: &'static str,
    /// The result of the broken version on the CPU executor.
    pub executor: ExpectedRun,
    pub(crate) build: fn(Version) -> Built,
}

/// A kernel of the corpus, or the errors of the builder.
pub(crate) type Built = Result<CorpusCase, BuildErrors>;

/// The two versions of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Version {
    /// With the bug.
    Broken,
    /// Without the bug.
    Repaired,
}

impl Version {
    /// Returns whether this is the repaired version.
    pub(crate) fn is_repaired(self) -> bool {
        self == Version::Repaired
    }

    /// Returns one of two values, by version.
    pub(crate) fn pick<T>(self, broken: T, repaired: T) -> T {
        match self {
            Version::Broken => broken,
            Version::Repaired => repaired,
        }
    }
}

/// The result of a broken version on the CPU executor. Repaired versions run without a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExpectedRun {
    /// Some schedule ends in a fault of one of these kinds.
    Faults(&'static [FaultKind]),
    /// No schedule shows a fault, for this reason.
    Clean(&'static str),
}

impl Bug {
    /// Builds the kernel with the bug.
    pub fn broken(&self) -> Result<CorpusCase, BuildErrors> {
        (self.build)(Version::Broken)
    }

    /// Builds the kernel without the bug.
    pub fn repaired(&self) -> Result<CorpusCase, BuildErrors> {
        (self.build)(Version::Repaired)
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
    crate::wgmmas::BUGS,
    crate::clusters::BUGS,
    crate::registers::BUGS,
    crate::named_barriers::BUGS,
    crate::init::BUGS,
    crate::aliases::BUGS,
    crate::tensor_maps::BUGS,
    crate::lanes::BUGS,
    crate::dependent_launch::BUGS,
    crate::cycles::BUGS,
    crate::global::BUGS,
];

/// Returns every bug, in the order of the rules.
pub fn all() -> &'static [Bug] {
    static ALL: LazyLock<Vec<Bug>> = LazyLock::new(|| GROUPS.concat());
    &ALL
}

/// Returns the bug with this name.
pub fn find(name: &str) -> Option<&'static Bug> {
    all().iter().find(|bug| bug.name == name)
}
