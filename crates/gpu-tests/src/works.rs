//! Every piece of work that ships or is a probe, under a name.

use std::collections::HashSet;
use warpline_ir::Target;
use warpline_kernels::{AnyFamily, AnyWork, FamilyError, Place, registry};

/// A piece of work with a name of its own.
pub struct Named {
    /// Its name: family or probe, number, problem and config.
    pub name: String,
    /// The work.
    pub work: Box<dyn AnyWork>,
    /// Why it is there.
    pub part: Part,
}

/// What a work is a part of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// A table of small problems that reach every path.
    Table,
    /// The configs a tuner may choose.
    Tuning,
    /// Problems that a simulator has no time for.
    Large,
}

/// The most bytes of a candidate's problem: its reference is computed on the host.
const CANDIDATE: f64 = 64e6;

/// The families' tables, the candidates of their default problems as far as
/// there are small problems for them, and the probes.
pub fn all(target: &Target) -> Result<Vec<Named>, FamilyError> {
    let mut all = vec![];
    for family in registry() {
        let cases: Vec<_> = family.cases(target).into_iter().collect::<Result<_, _>>()?;
        number(&mut all, family.name(), cases, Part::Table);
        let tuned = tuned(family, target)?;
        let name = format!("{}, candidate", family.name());
        number(&mut all, &name, tuned, Part::Tuning);
    }
    for probe in warpline_probes::all() {
        let name = format!("probe {}", probe.name);
        number(&mut all, &name, probe.cases, Part::Table);
        let name = format!("{name}, large");
        number(&mut all, &name, probe.gpu_cases, Part::Large);
    }
    Ok(all)
}

fn number(all: &mut Vec<Named>, name: &str, works: Vec<Box<dyn AnyWork>>, part: Part) {
    for (i, work) in works.into_iter().enumerate() {
        let name = format!("{name} {i} {} {}", work.problem(), work.config());
        all.push(Named { name, work, part });
    }
}

/// Candidates with problems that are soon compared, one for each program.
fn tuned(family: &dyn AnyFamily, target: &Target) -> Result<Vec<Box<dyn AnyWork>>, FamilyError> {
    let mut seen = HashSet::new();
    let mut all = vec![];
    for place in [Place::Gpu, Place::Cpu] {
        for work in candidates(family, place, target)? {
            // The same program with smaller extents.
            let work = work.period().map_or(work, |period| period.problem);
            let steps = work.plan(target)?.steps;
            let programs: Vec<_> = steps.iter().map(|s| s.kernel.hash()).collect();
            if work.cost().bytes <= CANDIDATE && seen.insert(programs) {
                all.push(work);
            }
        }
    }
    Ok(all)
}

/// The candidates for a family's default problem.
fn candidates(
    family: &dyn AnyFamily,
    place: Place,
    target: &Target,
) -> Result<Vec<Box<dyn AnyWork>>, FamilyError> {
    let flags = family.flags(clap::Command::new("candidates"), place);
    let none = flags
        .try_get_matches_from(["candidates"])
        .map_err(|e| FamilyError::Problem(e.to_string()))?;
    family.candidates(&none, place, target)
}

/// A kernel that ships, or is part of a probe.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Shipped {
    /// The hash of its program.
    pub hash: String,
    /// Its name.
    pub kernel: String,
    /// The first work it was met in.
    pub of: String,
}

/// Every kernel of all work, and of the candidates for the problems a GPU is given by default.
pub fn shipped(target: &Target) -> Result<Vec<Shipped>, FamilyError> {
    let mut works = all(target)?;
    for family in registry() {
        let tuned = candidates(family, Place::Gpu, target)?;
        let name = format!("{}, GPU", family.name());
        number(&mut works, &name, tuned, Part::Large);
    }
    let mut seen = HashSet::new();
    let mut kernels = vec![];
    for Named { name, work, .. } in works {
        for step in work.plan(target)?.steps {
            let hash = step.kernel.hash();
            if seen.insert(hash.clone()) {
                kernels.push(Shipped {
                    hash,
                    kernel: step.kernel.name,
                    of: name.clone(),
                });
            }
        }
    }
    Ok(kernels)
}
