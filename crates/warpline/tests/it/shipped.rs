//! All shipped kernels and probes: each program is proved, printed, read back and assembled once, and
//! its workloads run on the CPU executor; in a full test run with every timing.
//!
//! `WARPLINE_FAMILY` selects one family. One process runs all of it, so that the checker proves each program once.

use std::collections::{BTreeSet, HashSet};
use std::sync::Mutex;
use warpline::estimate::simulation_seconds;
use warpline::kernels::{AnyFamily, AnyWorkload, DeviceKind, LaunchStep, registry, shipped};
use warpline::{Device, RunOptions, Timing, run};
use warpline_testkit::assemble::{assembled, printed};
use warpline_testkit::cores::for_each;
use warpline_testkit::full::{few_or, full};
use warpline_testkit::kernel::TARGET;
use warpline_testkit::sample::{self, Pair, sample};

/// A workload and its tests.
struct TestedWorkload {
    /// The name of the family or probe.
    name: String,
    work: Box<dyn AnyWorkload>,
    /// Whether ptxas assembles its kernels. The checker and the printer run for every kernel.
    is_assembled: bool,
    /// The timings and seeds of CPU executor runs.
    runs: Vec<(Timing, u64)>,
}

fn pairs(work: &dyn AnyWorkload) -> BTreeSet<Pair> {
    sample::pairs(&work.problem(), &work.config())
}

/// Returns a sample that covers every pair. If the workloads run, the sample minimizes the run time.
fn sampled(works: Vec<Box<dyn AnyWorkload>>, are_run: bool) -> Vec<Box<dyn AnyWorkload>> {
    sample(
        works,
        |work| pairs(work.as_ref()),
        |work| match are_run {
            // The kernels and three runs.
            true => 0.3 + 3.0 * simulation_seconds(&work.cost(), Timing::Random, 1),
            false => 1.0,
        },
    )
}

fn cases(family: &dyn AnyFamily) -> Vec<Box<dyn AnyWorkload>> {
    let cases = family.cases(&TARGET).into_iter();
    let cases = cases.collect::<Result<_, _>>();
    cases.unwrap_or_else(|e| panic!("{}: {e}", family.name()))
}

fn candidates(family: &dyn AnyFamily) -> Vec<Box<dyn AnyWorkload>> {
    let for_device = |device| shipped::candidates(family, device, &TARGET);
    let candidates = [DeviceKind::Cpu, DeviceKind::Gpu].map(for_device);
    let candidates = candidates.into_iter().collect::<Result<Vec<_>, _>>();
    let candidates = candidates.unwrap_or_else(|e| panic!("{}: {e}", family.name()));
    candidates.into_iter().flatten().collect()
}

/// Returns every timing; random timing with `seeds` seeds.
fn runs(seed: u64, seeds: u64) -> Vec<(Timing, u64)> {
    let random = (0..seeds).map(|seed| (Timing::Random, seed));
    let fixed = [(Timing::Eager, seed), (Timing::Late, seed)];
    fixed.into_iter().chain(random).collect()
}

fn family_workloads(family: &dyn AnyFamily) -> Vec<TestedWorkload> {
    let bench = shipped::bench_workloads(family, &TARGET);
    let bench = bench.unwrap_or_else(|e| panic!("{}: {e}", family.name()));
    // The driver has assembled every program of the GPU ledger, so that a share suffices here.
    let tested = |works: Vec<_>, share: usize, runs: Vec<_>| {
        let tested = move |(i, work): (usize, _)| TestedWorkload {
            name: family.name().to_owned(),
            work,
            is_assembled: full() || i % share == 0,
            // A short test run takes the timings in turn.
            runs: match runs.len() {
                0 => vec![],
                _ if full() => runs.clone(),
                len => vec![runs[i % len]],
            },
        };
        works.into_iter().enumerate().map(tested)
    };
    let mut all = Vec::new();
    all.extend(tested(
        sampled(cases(family), true),
        6,
        runs(7, few_or(1, 50)),
    ));
    let bench = bench.into_iter().step_by(few_or(3, 1)).collect();
    all.extend(tested(bench, 2, vec![]));
    if full() {
        all.extend(tested(sampled(candidates(family), false), 1, vec![]));
    }
    all
}

/// Returns every probe case, the first with more seeds, and the last large case. A full test run
/// includes all large cases.
fn probe_workloads() -> Vec<TestedWorkload> {
    let mut all = Vec::new();
    for probe in warpline_probes::all() {
        let tested = |work, runs| TestedWorkload {
            name: format!("probe {}", probe.name),
            work,
            is_assembled: true,
            runs,
        };
        for (i, work) in probe.cases.into_iter().enumerate() {
            let few = if i == 0 { 5 } else { 1 };
            all.push(tested(work, runs(0, few_or(few, 50))));
        }
        let large = probe.gpu_cases.into_iter().rev();
        let large = large.take(few_or(1, usize::MAX));
        all.extend(large.map(|work| tested(work, vec![])));
    }
    all
}

/// The hashes of the programs that were already tested.
#[derive(Default)]
struct TestedPrograms {
    printed: Mutex<HashSet<String>>,
    assembled: Mutex<HashSet<String>>,
}

impl TestedPrograms {
    /// Proves a kernel. Prints, reads back and assembles a new program.
    fn check_step(&self, step: &LaunchStep, assemble: bool) -> Result<(), String> {
        let proof = step.kernel.proof(&TARGET).map_err(|e| e.to_string())?;
        let is_new = |seen: &Mutex<HashSet<String>>| {
            seen.lock()
                .expect("no panic")
                .insert(proof.hash.to_string())
        };
        if assemble && is_new(&self.assembled) {
            is_new(&self.printed);
            assembled(&proof.kernel).map(drop)
        } else if is_new(&self.printed) {
            printed(&proof.kernel).map(drop)
        } else {
            Ok(())
        }
    }
}

fn check(tested: &TestedWorkload, seen: &TestedPrograms) -> Result<(), String> {
    let plan = tested.work.plan(&TARGET).map_err(|e| e.to_string())?;
    for step in &plan.steps {
        seen.check_step(step, tested.is_assembled)?;
    }
    for &(timing, seed) in &tested.runs {
        let mut options = RunOptions::default();
        (options.timing, options.seed) = (timing, seed);
        let report = run(tested.work.as_ref(), &Device::cpu(), &options);
        let report = report.map_err(|e| format!("{timing}, seed {seed}: {e}"))?;
        if !report.passed() {
            return Err(format!("{timing}, seed {seed}: {:?}", report.outputs));
        }
    }
    Ok(())
}

#[test]
fn every_program_is_proved_printed_and_assembled_and_every_case_passes() {
    let only_family = std::env::var("WARPLINE_FAMILY").ok();
    let is_selected = |family: &&dyn AnyFamily| {
        only_family
            .as_deref()
            .is_none_or(|name| name == family.name())
    };
    let families = registry().into_iter().filter(is_selected);
    let mut all: Vec<TestedWorkload> = families.flat_map(family_workloads).collect();
    if only_family.is_none() {
        all.extend(probe_workloads());
    }
    let seen = TestedPrograms::default();
    for_each(all, |tested| {
        check(&tested, &seen).map_err(|e| {
            let (problem, config) = (tested.work.problem(), tested.work.config());
            format!("{} {problem} {config}: {e}", tested.name)
        })
    });
    let printed = seen.printed.into_inner().expect("no panic");
    let least = if only_family.is_some() { 0 } else { 100 };
    assert!(printed.len() > least, "{} programs", printed.len());
}

/// The sample contains every (schedule, feature) pair of each family's test table and candidates.
#[test]
fn the_sample_covers_every_feature_of_every_schedule() {
    for family in registry() {
        for (works, are_run) in [(cases(family), true), (candidates(family), false)] {
            let all_pairs = |works: &[Box<dyn AnyWorkload>]| -> BTreeSet<Pair> {
                works.iter().flat_map(|work| pairs(work.as_ref())).collect()
            };
            let (count, all) = (works.len(), all_pairs(&works));
            let sampled = sampled(works, are_run);
            let covered = all_pairs(&sampled);
            let missing: Vec<_> = all.difference(&covered).collect();
            assert!(missing.is_empty(), "{}: {missing:?}", family.name());
            println!("{}: {} of {count} workloads", family.name(), sampled.len());
        }
    }
}
