//! The work that a family names itself.

use crate::error::FamilyError;
use crate::family::{AnyFamily, AnyWork, Place};
use clap::Command;
use warpline_ir::Target;

/// Work without its types.
type Works = Result<Vec<Box<dyn AnyWork>>, FamilyError>;

/// All of it: the test table, the candidates for both default problems, and
/// what is measured. Many of them share a program.
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
    let flags = family.flags(Command::new("candidates"), place);
    let none = flags
        .try_get_matches_from(["candidates"])
        .map_err(|e| FamilyError::Problem(e.to_string()))?;
    family.candidates(&none, place, target)
}

/// What it is measured at, in every suite.
pub fn measured(family: &dyn AnyFamily, target: &Target) -> Works {
    let mut all = vec![];
    for suite in family.suites() {
        all.extend(family.bench(suite, target)?);
    }
    Ok(all)
}
