//! Every probe is checked, assembled without an advisory or a spill, and right
//! on the simulator under every timing.

use std::collections::HashSet;
use warpline::{Device, RunOptions, Timing, run};
use warpline_ir::{Kernel, Target};
use warpline_probes::all;
use warpline_ptx::ptxas::Ptxas;

/// One test for each probe, so that they run side by side.
macro_rules! probes {
    ($($test:ident: $name:literal,)*) => {
        $(
            #[test]
            fn $test() {
                holds($name);
            }
        )*

        #[test]
        fn every_probe_is_tested() {
            let tested = HashSet::from([$($name),*]);
            assert_eq!(all().iter().map(|p| p.name).collect::<HashSet<_>>(), tested);
        }
    };
}

probes! {
    ping_pong: "ping-pong",
    ping_pong_with_a_full_tile: "ping-pong, full tile",
    attention: "attention",
    split_k: "split-k",
    stream_k: "stream-k",
    thin: "thin",
    one_tile_of_every_type: "one-tile",
    dequantise_through_a_second_ring: "dequantise, second ring",
    dequantise_into_a_register_operand: "dequantise, register operand",
    ladder_1_plain_tensor_cores: "ladder, plain tensor cores",
    ladder_2_tma: "ladder, TMA",
    ladder_3_ring: "ladder, ring",
    ladder_4_roles: "ladder, roles",
    ladder_5_registers_moved: "ladder, registers moved",
    ladder_6_persistent: "ladder, persistent",
    ladder_7_ping_pong: "ladder, ping-pong",
    ladder_8_wave_exact_tile: "ladder, wave-exact tile",
    ladder_9_store: "ladder, store",
}

fn full() -> bool {
    std::env::var_os("WARPLINE_FULL").is_some()
}

/// Seeds of random timings: 50 for the first case, fewer for the others.
fn seeds(first: bool) -> u64 {
    if first || full() { 50 } else { 4 }
}

/// Every case is right under eager, late and random timings, and its kernels
/// assemble cleanly; so do those of the sizes that a GPU is given, of which
/// the last is enough unless all is asked for.
fn holds(name: &str) {
    let device = Device::cpu();
    let probe = all().into_iter().find(|p| p.name == name).expect("a probe");
    let mut assembled = HashSet::new();
    let large = probe.gpu_cases.iter().rev();
    let large = large.take(if full() { usize::MAX } else { 1 });
    for work in probe.cases.iter().chain(large) {
        for step in work.plan(&Target::SM_90A).expect("a fine kernel").steps {
            if assembled.insert(step.kernel.text_hash()) {
                assembles(name, step.into_kernel());
            }
        }
    }
    for (i, work) in probe.cases.iter().enumerate() {
        let mut runs = vec![(Timing::Eager, 0), (Timing::Late, 0)];
        runs.extend((0..seeds(i == 0)).map(|seed| (Timing::Random, seed)));
        for (timing, seed) in runs {
            let (problem, config) = (work.problem(), work.config());
            let what = format!("{name} {problem} {config} {timing}, seed {seed}");
            let mut options = RunOptions::default();
            (options.timing, options.seed) = (timing, seed);
            match run(work.as_ref(), &device, &options) {
                Ok(outcome) => assert!(outcome.passed(), "{what}: {:?}", outcome.outputs),
                Err(e) => panic!("{what}: {e}"),
            }
        }
    }
}

/// The kernel is checked, and ptxas has nothing to say about it: no advisory, no spill.
fn assembles(name: &str, kernel: Kernel) {
    let target = Target::SM_90A;
    let kernel = warpline_check::check(kernel, &target).unwrap_or_else(|e| panic!("{name}: {e}"));
    let ptx = warpline_ptx::print(&kernel, &target).unwrap_or_else(|e| panic!("{name}: {e}"));
    let ptxas = Ptxas::find().unwrap_or_else(|e| panic!("{e}"));
    let out = ptxas
        .assemble(&ptx.text, "sm_90a")
        .unwrap_or_else(|e| panic!("{name}: {e}"));
    let advisories: Vec<_> = out.report.errors().collect();
    assert!(advisories.is_empty(), "{name}: {advisories:?}");
    for entry in &out.report.entries {
        assert_eq!(entry.spill_store_bytes, 0, "{name} spills");
    }
}
