//! A watched kernel computes the same result as the original, under every timing.

use crate::harness::{launch, timings, watched};
use warpline_check::{Diagnostic, check};
use warpline_cpu::{GlobalMemory, Options, run};
use warpline_ir::{Kernel, Target};
use warpline_kernels::{AnyWorkload, BufferAddresses, DeviceKind, Plan, registry};
use warpline_testkit::full::few_or;
use warpline_watchdog::{TimeLimits, WatchedKernel};

/// Runs a plan, optionally with watched kernels, and returns the bytes of its outputs.
fn outputs(
    work: &dyn AnyWorkload,
    plan: &Plan,
    watch: Option<&[WatchedKernel]>,
    options: &Options,
) -> Vec<Vec<u8>> {
    let mut memory = GlobalMemory::new();
    let bound = BufferAddresses {
        inputs: (work.draw(1).iter())
            .map(|t| memory.alloc_from(&t.data, t.spec.name))
            .collect(),
        outputs: (work.outputs().iter())
            .map(|s| memory.alloc_from(&vec![0; s.bytes()], s.name))
            .collect(),
        workspace: memory.alloc_from(&vec![0; plan.workspace as usize], "workspace"),
    };
    for (i, step) in plan.steps.iter().enumerate() {
        let plain = step.launch(&bound);
        let result = match watch {
            None => run(&step.kernel, &plain, &memory, options).map(|_| ()),
            Some(all) => {
                let watched = launch(&all[i], plain, &mut memory, options);
                assert!(!watched.has_timed_out, "{}", watched.hang);
                watched.result
            }
        };
        result.unwrap_or_else(|e| panic!("{} {options:?}: {e}", work.family()));
    }
    let specs = work.outputs();
    let all = specs.iter().zip(&bound.outputs);
    all.map(|(s, &at)| memory.read(at, s.bytes()).expect("written"))
        .collect()
}

/// Asserts bitwise equal results under every timing, and no checker diagnostics except for the
/// exit path.
fn assert_same_results(work: &dyn AnyWorkload) {
    let plan = work.plan(&Target::SM_90A).expect("a plan");
    let watch = |kernel: &Kernel| {
        let w = watched(kernel, &TimeLimits::default());
        let not_proved = check(w.kernel.clone(), &Target::SM_90A).err();
        let diagnostics = not_proved.iter().flat_map(|d| &d.diagnostics);
        // On the exit path, warps of a warpgroup exit separately: each waits for its wgmmas and
        // may skip `setmaxnreg`. The abort word orders no data.
        let exit_path = ["R14.warpgroup", "R9.place"];
        let is_exit_path = |code: &str| exit_path.contains(&code) || code.starts_with("R18.");
        // Only the watchdog accesses the status table; no earlier grid does.
        let status_write = |r: &Diagnostic| {
            r.code() == "R16.wait" && r.text.contains("`strong_store.relaxed.sys.u64`")
        };
        let others: Vec<_> = diagnostics
            .filter(|r| !is_exit_path(r.code()) && !status_write(r))
            .collect();
        assert!(others.is_empty(), "{others:#?}");
        w
    };
    let all: Vec<_> = plan.steps.iter().map(|s| watch(&s.kernel)).collect();
    let expected = outputs(work, &plan, None, &Options::default());
    for options in timings() {
        let actual = outputs(work, &plan, Some(&all), &options);
        assert!(
            actual == expected,
            "{} {} {options:?}",
            work.family(),
            work.problem()
        );
    }
}

#[test]
fn every_family_computes_the_same_result() {
    for family in registry().into_iter().step_by(few_or(2, 1)) {
        let work = family.default_workload(DeviceKind::Cpu, &Target::SM_90A);
        assert_same_results(work.expect("work").as_ref());
    }
}

/// One test per probe: rings, turns, named barriers, clusters, flags, wgmmas.
macro_rules! probes {
    ($($test:ident: $name:literal,)*) => {$(
        #[test]
        fn $test() {
            let probe = warpline_probes::all().into_iter().find(|p| p.name == $name);
            assert_same_results(probe.expect("a probe").cases[0].as_ref());
        }
    )*};
}

probes! {
    ping_pong_computes_the_same_result: "ping-pong",
    attention_computes_the_same_result: "attention",
    split_k_computes_the_same_result: "split-k",
    stream_k_computes_the_same_result: "stream-k",
    thin_computes_the_same_result: "thin",
    dequantize_computes_the_same_result: "dequantize, second ring",
}
