//! A watched kernel computes what the kernel does, whenever its copies complete.

use crate::harness::{launch, timings, watched};
use warpline_check::{Refusal, check};
use warpline_cpu::{Memory, Options, run};
use warpline_ir::{Kernel, Target};
use warpline_kernels::{AnyWork, Bound, Place, Plan, registry};
use warpline_watchdog::{Limits, Watched};

/// The bytes of all outputs of a plan, whose kernels may be watched.
fn outputs(
    work: &dyn AnyWork,
    plan: &Plan,
    watch: Option<&[Watched]>,
    options: &Options,
) -> Vec<Vec<u8>> {
    let mut memory = Memory::new();
    let bound = Bound {
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
                let ended = launch(&all[i], plain, &mut memory, options);
                assert!(!ended.gave_up, "{}", ended.hang);
                ended.result
            }
        };
        result.unwrap_or_else(|e| panic!("{} {options:?}: {e}", work.family()));
    }
    let specs = work.outputs();
    let all = specs.iter().zip(&bound.outputs);
    all.map(|(s, &at)| memory.read(at, s.bytes()).expect("written"))
        .collect()
}

/// The same bits as without a watchdog, under every timing; and the checker has nothing to say, but for those who leave.
fn same(work: &dyn AnyWork) {
    let plan = work.plan(&Target::SM_90A).expect("a fine kernel");
    let watch = |kernel: &Kernel| {
        let w = watched(kernel, &Limits::default());
        let refused = check(w.kernel.clone(), &Target::SM_90A).err();
        let refusals = refused.iter().flat_map(|r| &r.refusals);
        // Warps of a warpgroup leave one by one, and each waits for its
        // products, or leaves before it changes its registers; the abort word
        // that all ask for hands over no data.
        let leaves = ["R14.warpgroup", "R9.place"];
        let own = |code: &str| leaves.contains(&code) || code.starts_with("R18.");
        // Notes go to memory of the watchdog alone, which no grid before it touches.
        let notes = |r: &Refusal| {
            r.code() == "R16.wait" && r.text.contains("; strong_store.relaxed.sys.u64")
        };
        let others: Vec<_> = refusals.filter(|r| !own(r.code()) && !notes(r)).collect();
        assert!(others.is_empty(), "{others:#?}");
        w
    };
    let all: Vec<_> = plan.steps.iter().map(|s| watch(&s.kernel)).collect();
    let want = outputs(work, &plan, None, &Options::default());
    for options in timings() {
        let got = outputs(work, &plan, Some(&all), &options);
        assert!(
            got == want,
            "{} {} {options:?}",
            work.family(),
            work.problem()
        );
    }
}

#[test]
fn every_family() {
    for family in registry() {
        let work = family.default_work(Place::Cpu, &Target::SM_90A);
        same(work.expect("work").as_ref());
    }
}

/// One test for each probe: rings, turns, named barriers, clusters, flags, products.
macro_rules! probes {
    ($($test:ident: $name:literal,)*) => {$(
        #[test]
        fn $test() {
            let probe = warpline_probes::all().into_iter().find(|p| p.name == $name);
            same(probe.expect("a probe").cases[0].as_ref());
        }
    )*};
}

probes! {
    ping_pong: "ping-pong",
    attention: "attention",
    split_k: "split-k",
    stream_k: "stream-k",
    thin: "thin",
    dequantise: "dequantise, second ring",
}
