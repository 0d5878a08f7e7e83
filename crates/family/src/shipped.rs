//! The work that a family names itself.

use crate::erased::{AnyFamily, Works};
use crate::family::Place;
use crate::request::Request;
use warpline_ir::Target;

/// All of it: the test table, the candidates for both default problems, and
/// the problems that it is measured at. Many of them share a program.
pub fn works(family: &dyn AnyFamily, target: &Target) -> Works {
    let mut all: Vec<_> = family.cases(target).into_iter().collect::<Result<_, _>>()?;
    for place in [Place::Gpu, Place::Cpu] {
        all.extend(candidates(family, place, target)?);
    }
    all.extend(measured(family, target)?);
    Ok(all)
}

/// The candidates for the default problem of a place, best guess first.
pub fn candidates(family: &dyn AnyFamily, place: Place, target: &Target) -> Works {
    family.candidates(&Request::default(), place, target)
}

/// The problems that it is measured at, in every suite.
pub fn measured(family: &dyn AnyFamily, target: &Target) -> Works {
    let mut all = vec![];
    for suite in family.suites() {
        all.extend(family.bench(suite, target)?);
    }
    Ok(all)
}
