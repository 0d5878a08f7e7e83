//! The op trials without a GPU: they cover every op and pass on the CPU.

use std::collections::BTreeSet;
use warpline_cpu::{Options, Timing};
use warpline_gpu_tests::ops::{DataSize, PARTIALLY_TESTED, all};
use warpline_gpu_tests::trial::OpTrial;
use warpline_ir::Target;
use warpline_ir::ops::TABLE;
use warpline_ptx::ptxas::Ptxas;
use warpline_testkit::cores::for_each;

/// Runs `check` on every trial, on all cores; panics with all failures.
fn for_each_trial(data_size: DataSize, check: impl Fn(&OpTrial) -> Result<(), String> + Sync) {
    for_each(all(data_size), |trial| {
        check(&trial).map_err(|why| format!("{}: {why}", trial.name))
    });
}

#[test]
fn every_op_has_a_trial() {
    let table: BTreeSet<_> = TABLE.iter().map(|(_, info)| info.name).collect();
    let trials = all(DataSize::Recorded);
    let covered: BTreeSet<_> = trials.iter().flat_map(|t| t.covers.clone()).collect();
    assert_eq!(covered, table);
    for (op, _) in PARTIALLY_TESTED {
        assert!(table.contains(op), "{op}");
    }
}

#[test]
fn trial_kernel_contains_the_ops_it_covers() {
    for_each_trial(DataSize::Recorded, |trial| {
        let ops = trial.ops();
        match trial.covers.iter().find(|op| !ops.contains(op)) {
            Some(op) => Err(format!("the kernel has no {op}")),
            None => Ok(()),
        }
    });
}

#[test]
fn names_of_trials_and_kernels_are_unique() {
    let trials = all(DataSize::Recorded);
    let names: BTreeSet<_> = trials.iter().map(|t| &t.name).collect();
    let kernels: BTreeSet<_> = trials.iter().map(|t| &t.step.kernel.name).collect();
    assert_eq!((names.len(), kernels.len()), (trials.len(), trials.len()));
}

#[test]
fn recorded_data_is_small() {
    let size = |t: &OpTrial| {
        let outputs: usize = t.outputs.iter().map(|o| o.initial.len()).sum();
        outputs + t.inputs.iter().map(Vec::len).sum::<usize>()
    };
    let trials = all(DataSize::Recorded);
    let mut sizes: Vec<_> = trials.iter().map(|t| (size(t), &t.name)).collect();
    sizes.sort();
    let bytes: usize = sizes.iter().map(|(bytes, _)| bytes).sum();
    let largest: Vec<_> = sizes.iter().rev().take(20).collect();
    assert!(
        bytes < 2 << 20,
        "{bytes} bytes; the largest are {largest:?}"
    );
}

#[test]
fn every_trial_is_proved_and_assembles_without_advisory() {
    let ptxas = Ptxas::find().unwrap_or_else(|e| panic!("{e}"));
    let target = Target::SM_90A;
    for_each_trial(DataSize::Recorded, |trial| {
        let kernel = trial.step.clone().into_kernel();
        let checked = warpline_check::check(kernel, &target).map_err(|e| e.to_string())?;
        let ptx = warpline_ptx::print(&checked, &target).map_err(|e| e.to_string())?;
        let out = ptxas
            .assemble(&ptx.text, ptx.target)
            .map_err(|e| e.to_string())?;
        match out.report.advisories.first() {
            Some(advisory) => Err(advisory.text.clone()),
            None => Ok(()),
        }
    });
}

#[test]
fn every_trial_has_the_same_result_under_every_timing() {
    for_each_trial(DataSize::Recorded, |trial| {
        let run = |timing, seed| {
            let options = Options {
                seed,
                threads: 1,
                ..Options::with_timing(timing)
            };
            trial.run_on_cpu(&options)
        };
        let eager = run(Timing::Eager, 0)?;
        for (timing, seed) in [(Timing::Late, 0), (Timing::Random, 1), (Timing::Random, 2)] {
            trial.compare(&trial.inputs, &eager, &run(timing, seed)?)?;
        }
        Ok(())
    });
}

#[test]
fn full_size_trials_run_on_the_cpu() {
    for_each_trial(DataSize::Full, |trial| {
        let options = Options {
            threads: 1,
            ..Options::default()
        };
        trial.run_on_cpu(&options).map(drop)
    });
}
