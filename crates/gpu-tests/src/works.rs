//! Every piece of work that ships or is a probe, under a name.

use std::collections::HashSet;
use warpline_ir::Target;
use warpline_kernels::shipped::{bench_workloads, candidates};
use warpline_kernels::{AnyWorkload, FamilyError, DeviceKind, registry};

/// A piece of work with a name of its own.
pub struct Named {
    /// Its name: that of its set, number, problem and config.
    pub name: String,
    /// Family or probe, and which of its works.
    pub set: String,
    /// The work.
    pub work: Box<dyn AnyWorkload>,
    /// Why it is there.
    pub part: Part,
}

/// What a work is a part of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// A table of small problems that reach every path.
    Table,
    /// The configs that a tuner may choose or that are measured, on small problems.
    Tuning,
    /// Problems that a simulator has no time for.
    Large,
}

/// The most bytes of a problem whose reference is soon computed on the host.
const SMALL: f64 = 64e6;

/// The families' tables; what they are tuned and measured with, on small
/// problems; and the probes.
pub fn all(target: &Target) -> Result<Vec<Named>, FamilyError> {
    let mut all = vec![];
    for family in registry() {
        let cases: Vec<_> = family.cases(target).into_iter().collect::<Result<_, _>>()?;
        number(&mut all, family.name(), cases, Part::Table);
        let mut seen = HashSet::new();
        let mut tuned = candidates(family, DeviceKind::Gpu, target)?;
        tuned.extend(candidates(family, DeviceKind::Cpu, target)?);
        let tuned = small(tuned, &mut seen, target)?;
        let large = family
            .large_cases(target)
            .into_iter()
            .collect::<Result<_, _>>()?;
        number(
            &mut all,
            &format!("{}, large", family.name()),
            large,
            Part::Large,
        );
        let name = format!("{}, candidate", family.name());
        number(&mut all, &name, tuned, Part::Tuning);
        let measured = small(bench_workloads(family, target)?, &mut seen, target)?;
        let name = format!("{}, measured", family.name());
        number(&mut all, &name, measured, Part::Tuning);
    }
    for probe in warpline_probes::all() {
        let name = format!("probe {}", probe.name);
        number(&mut all, &name, probe.cases, Part::Table);
        let name = format!("{name}, large");
        number(&mut all, &name, probe.gpu_cases, Part::Large);
    }
    Ok(all)
}

fn number(all: &mut Vec<Named>, set: &str, works: Vec<Box<dyn AnyWorkload>>, part: Part) {
    for (i, work) in works.into_iter().enumerate() {
        all.push(Named {
            name: format!("{set} {i} {} {}", work.problem(), work.config()),
            set: set.to_owned(),
            work,
            part,
        });
    }
}

/// One work for each program that was not seen yet, with a problem that is soon compared.
fn small(
    works: Vec<Box<dyn AnyWorkload>>,
    seen: &mut HashSet<Vec<String>>,
    target: &Target,
) -> Result<Vec<Box<dyn AnyWorkload>>, FamilyError> {
    let mut all = vec![];
    for work in works {
        // The same program with smaller extents.
        let work = work.reduced().unwrap_or(work);
        let steps = work.plan(target)?.steps;
        let programs = steps.iter().map(|s| s.kernel.program_hash()).collect();
        if work.cost().bytes <= SMALL && seen.insert(programs) {
            all.push(work);
        }
    }
    Ok(all)
}

/// A kernel that ships, or is part of a probe.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Shipped {
    /// Its program hash.
    pub hash: String,
    /// Its name.
    pub kernel: String,
    /// The first work it was met in.
    pub of: String,
}

/// The kernels that ship.
pub struct Kernels {
    /// Those that a GPU test runs and notes in the ledger.
    pub run: Vec<Shipped>,
    /// Those that no GPU test runs: there must be none.
    pub others: Vec<Shipped>,
}

/// Every kernel that ships.
pub fn shipped(target: &Target) -> Result<Kernels, FamilyError> {
    let run = kernels(&all(target)?, target)?;
    let mut others = kernels(&large(target)?, target)?;
    let hashes: HashSet<&str> = run.iter().map(|kernel| &*kernel.hash).collect();
    others.retain(|kernel| !hashes.contains(&*kernel.hash));
    Ok(Kernels { run, others })
}

/// The candidates for the problems a GPU is given by default, and what is measured.
fn large(target: &Target) -> Result<Vec<Named>, FamilyError> {
    let mut works = vec![];
    for family in registry() {
        let mut large = candidates(family, DeviceKind::Gpu, target)?;
        large.extend(bench_workloads(family, target)?);
        let name = format!("{}, GPU", family.name());
        number(&mut works, &name, large, Part::Large);
    }
    Ok(works)
}

/// The kernels of works, each program once.
fn kernels(works: &[Named], target: &Target) -> Result<Vec<Shipped>, FamilyError> {
    // Many works share a text, and the hash of a text is the cheaper one.
    let (mut texts, mut programs) = (HashSet::new(), HashSet::new());
    let mut kernels = vec![];
    for Named { name, work, .. } in works {
        for step in work.plan(target)?.steps {
            if !texts.insert(step.kernel.text_hash()) {
                continue;
            }
            let hash = step.kernel.program_hash();
            if programs.insert(hash.clone()) {
                kernels.push(Shipped {
                    hash,
                    kernel: step.kernel.name.clone(),
                    of: name.clone(),
                });
            }
        }
    }
    Ok(kernels)
}
