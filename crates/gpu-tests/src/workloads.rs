//! All shipped workloads and probes, by name.

use rayon::prelude::*;
use std::collections::{HashMap, HashSet};
use std::sync::{LazyLock, Mutex, PoisonError};
use warpline_ir::{Kernel, Target};
use warpline_kernels::shipped::{bench_workloads, candidates};
use warpline_kernels::{AnyWorkload, DeviceKind, FamilyError, registry};

/// A workload with a unique name.
pub struct NamedWorkload {
    /// The name: set, number, problem and config.
    pub name: String,
    /// The family or probe, and the kind of its workloads.
    pub set: String,
    /// The workload.
    pub workload: Box<dyn AnyWorkload>,
    /// The kind.
    pub kind: WorkloadKind,
}

/// The kind of a workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkloadKind {
    /// A small problem of a test table; the table covers every path.
    Table,
    /// A tuning candidate or a benchmarked config, on a small problem.
    Tuning,
    /// A problem that is too large for the CPU executor.
    Large,
}

/// The maximum size of a small problem in bytes, limited by the time of its reference on the host.
const MAX_SMALL_BYTES: f64 = 64e6;

/// Returns the test tables of all families, their tuning candidates and benchmarked configs on small
/// problems, and the probes.
pub fn all(target: &Target) -> Result<Vec<NamedWorkload>, FamilyError> {
    let mut all = vec![];
    for family in registry() {
        let cases: Vec<_> = family.cases(target).into_iter().collect::<Result<_, _>>()?;
        push_numbered(&mut all, family.name(), cases, WorkloadKind::Table);
        let mut seen = HashSet::new();
        let mut tuned = candidates(family, DeviceKind::Gpu, target)?;
        tuned.extend(candidates(family, DeviceKind::Cpu, target)?);
        let tuned = reduce_to_small(tuned, &mut seen, target)?;
        let large = family
            .large_cases(target)
            .into_iter()
            .collect::<Result<_, _>>()?;
        push_numbered(
            &mut all,
            &format!("{}, large", family.name()),
            large,
            WorkloadKind::Large,
        );
        let name = format!("{}, candidate", family.name());
        push_numbered(&mut all, &name, tuned, WorkloadKind::Tuning);
        let measured = reduce_to_small(bench_workloads(family, target)?, &mut seen, target)?;
        let name = format!("{}, measured", family.name());
        push_numbered(&mut all, &name, measured, WorkloadKind::Tuning);
    }
    for probe in warpline_probes::all() {
        let name = format!("probe {}", probe.name);
        push_numbered(&mut all, &name, probe.cases, WorkloadKind::Table);
        let name = format!("{name}, large");
        push_numbered(&mut all, &name, probe.gpu_cases, WorkloadKind::Large);
    }
    Ok(all)
}

fn push_numbered(
    all: &mut Vec<NamedWorkload>,
    set: &str,
    workloads: Vec<Box<dyn AnyWorkload>>,
    kind: WorkloadKind,
) {
    for (i, workload) in workloads.into_iter().enumerate() {
        all.push(NamedWorkload {
            name: format!("{set} {i} {} {}", workload.problem(), workload.config()),
            set: set.to_owned(),
            workload,
            kind,
        });
    }
}

/// Reduces the workloads to small problems, and keeps one for each set of programs that is not in `seen`.
fn reduce_to_small(
    workloads: Vec<Box<dyn AnyWorkload>>,
    seen: &mut HashSet<Vec<Program>>,
    target: &Target,
) -> Result<Vec<Box<dyn AnyWorkload>>, FamilyError> {
    // The reduced workload has the same programs with smaller extents.
    let mut small: Vec<_> = workloads
        .into_iter()
        .map(|workload| workload.reduced().unwrap_or(workload))
        .collect();
    let mut programs = programs(small.iter().map(AsRef::as_ref), target)?.into_iter();
    small.retain(|workload| {
        let programs = programs.next().unwrap_or_default();
        workload.cost().bytes <= MAX_SMALL_BYTES && seen.insert(programs)
    });
    Ok(small)
}

/// A kernel that ships or belongs to a probe.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ShippedKernel {
    /// The program hash.
    pub hash: String,
    /// The name.
    pub kernel: String,
    /// The first workload with this kernel.
    pub workload: String,
}

/// The shipped kernels.
pub struct ShippedKernels {
    /// The kernels that a GPU test runs and adds to the ledger.
    pub tested: Vec<ShippedKernel>,
    /// The kernels that no GPU test runs; must be empty.
    pub untested: Vec<ShippedKernel>,
}

/// Returns every shipped kernel.
pub fn shipped(target: &Target) -> Result<ShippedKernels, FamilyError> {
    let tested = kernels(&all(target)?, target)?;
    let mut untested = kernels(&large_workloads(target)?, target)?;
    let hashes: HashSet<&str> = tested.iter().map(|kernel| &*kernel.hash).collect();
    untested.retain(|kernel| !hashes.contains(&*kernel.hash));
    Ok(ShippedKernels { tested, untested })
}

/// Returns the candidates of the default GPU problems, and the benchmarks.
fn large_workloads(target: &Target) -> Result<Vec<NamedWorkload>, FamilyError> {
    let mut workloads = vec![];
    for family in registry() {
        let mut large = candidates(family, DeviceKind::Gpu, target)?;
        large.extend(bench_workloads(family, target)?);
        let name = format!("{}, GPU", family.name());
        push_numbered(&mut workloads, &name, large, WorkloadKind::Large);
    }
    Ok(workloads)
}

/// The hash and the name of a program.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Program {
    hash: String,
    name: String,
}

/// The program hash of every text hash so far: many workloads share a kernel text, and the text hash is
/// cheaper.
static PROGRAM_HASHES: LazyLock<Mutex<HashMap<String, String>>> = LazyLock::new(Mutex::default);

/// Returns the programs of each workload.
fn programs<'a>(
    workloads: impl Iterator<Item = &'a dyn AnyWorkload>,
    target: &Target,
) -> Result<Vec<Vec<Program>>, FamilyError> {
    let known = || {
        PROGRAM_HASHES
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    };
    let program = |kernel: &Kernel| {
        let text = kernel.text_hash();
        let found = known().get(&text).cloned();
        let hash = found.unwrap_or_else(|| {
            let hash = kernel.program_hash();
            known().insert(text, hash.clone());
            hash
        });
        Program {
            hash,
            name: kernel.name.clone(),
        }
    };
    let workloads: Vec<_> = workloads.collect();
    let plan_programs = |workload: &dyn AnyWorkload| {
        let steps = workload.plan(target)?.steps;
        Ok(steps.iter().map(|step| program(&step.kernel)).collect())
    };
    workloads.into_par_iter().map(plan_programs).collect()
}

/// Returns the kernels of workloads, each program once.
fn kernels(
    workloads: &[NamedWorkload],
    target: &Target,
) -> Result<Vec<ShippedKernel>, FamilyError> {
    let programs = programs(workloads.iter().map(|named| &*named.workload), target)?;
    let mut seen = HashSet::new();
    let mut kernels = vec![];
    for (named, programs) in workloads.iter().zip(programs) {
        for Program { hash, name } in programs {
            if seen.insert(hash.clone()) {
                kernels.push(ShippedKernel {
                    hash,
                    kernel: name,
                    workload: named.name.clone(),
                });
            }
        }
    }
    Ok(kernels)
}
