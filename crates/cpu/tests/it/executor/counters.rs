//! Performance counters of a run.

use crate::executor::harness::timings;
use warpline_cpu::{Divergence, Stats};
use warpline_ir::builder::*;
use warpline_testkit::kernel::build;
use warpline_testkit::launch::Setup;

/// Returns the counters of a kernel whose CTAs write up to 32 words each; asserts that every timing
/// has the same counters.
fn counted(ctas: u32, body: impl FnOnce(Builder)) -> Stats {
    let kernel = build("counted", body);
    let mut all = timings().map(|options| {
        let setup = Setup::new().input("x", &[1u32; 64]).output("y", 384);
        let run = setup.run(&kernel, ctas, &options);
        let mut stats = run.unwrap_or_else(|e| panic!("{e}"));
        // Repeated waits count as steps.
        stats.steps = 0;
        stats
    });
    let first = all.next().unwrap();
    assert!(all.all(|other| other == first));
    first
}

#[test]
fn inactive_lanes_are_counted_at_their_branch() {
    let mut lines = [0; 2];
    let stats = counted(3, |k| {
        let (_, y) = (k.pointer::<u32>("x"), k.pointer::<u32>("y"));
        k.role("all").body(|| {
            let lane = lane_id();
            let word = Var::new(0u32);
            let (low, even) = (lane.lt(16), (lane & 1).eq(0));
            lines[0] = line!() + 1;
            if_(low, || {
                word.set(word.get() + 1);
                lines[1] = line!() + 1;
                if_(even, || word.set(word.get() + 1));
            });
            y.store(cta_id() * 32 + lane, word.get());
        });
    });
    let [outer, inner] = &stats.branches[..] else {
        panic!("{:?}", stats.branches)
    };
    let at = [outer, inner].map(|b| (&*b.role, b.frame.unwrap().line));
    assert_eq!(at, lines.map(|line| ("all", line)));
    assert_eq!(
        (outer.divergence.executions, outer.divergence.divergent),
        (3, 3)
    );
    // The outer branch masks 16 lanes in every op; the inner branch masks 8 of the others.
    assert_eq!(outer.divergence.inactive_lanes, 16 * outer.divergence.ops);
    assert_eq!(inner.divergence.inactive_lanes, 8 * inner.divergence.ops);
    assert!(0 < inner.divergence.ops && inner.divergence.ops < outer.divergence.ops);
}

#[test]
fn divergent_trip_counts_count_the_lanes_that_left_the_loop() {
    let stats = counted(1, |k| {
        let (_, y) = (k.pointer::<u32>("x"), k.pointer::<u32>("y"));
        k.role("all").body(|| {
            let word = Var::new(0u32);
            steps(lane_id()).each(|_| word.set(word.get() + 1));
            y.store(lane_id(), word.get());
        });
    });
    let Divergence {
        executions,
        divergent,
        ops,
        inactive_lanes,
    } = stats.branches[0].divergence;
    // Iterations 0 to 31: lane i leaves in iteration i.
    assert_eq!((executions, divergent), (32, 31));
    let ops_per_iteration = ops / 31;
    let left_lanes: u64 = (1..=31).sum();
    assert_eq!(inactive_lanes, ops_per_iteration * left_lanes);
}

#[test]
fn elect_and_uniform_branches_do_not_diverge() {
    let stats = counted(2, |k| {
        let (_, y) = (k.pointer::<u32>("x"), k.pointer::<u32>("y"));
        k.role("all").warps(2).body(|| {
            let first = cta_id() * 32;
            if_(warp_in_role().eq(0), || y.store(first + lane_id(), 0u32));
            warp_sync();
            elect(|| y.store(first, 1u32));
        });
    });
    assert_eq!(stats.branches, []);
}

#[test]
fn warps_are_counted_separately() {
    let stats = counted(2, |k| {
        let (x, y) = (k.pointer::<u32>("x"), k.pointer::<u32>("y"));
        let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
        k.role("all").warps(3).body(|| {
            if_(warp_in_role().eq(1), || {
                let to = t.whole();
                to.copy_from(0u32, lane_id(), x.address(lane_id()), 4);
                copy_wait_all();
                y.store(cta_id() * 32 + lane_id(), to.load(0u32, lane_id()));
            });
        });
    });
    let role = &stats.roles[0];
    let counts: Vec<_> = role
        .warps
        .iter()
        .map(|w| (w.accesses, w.async_ops))
        .collect();
    assert_eq!(counts, [(0, 0), (4, 2), (0, 0)]);
    let ops: u64 = role.warps.iter().map(|w| w.instructions).sum();
    assert_eq!(role.instructions, ops);
    assert!(role.warps[1].instructions > role.warps[0].instructions);
}

#[test]
fn tile_writes_are_counted_per_stage() {
    let stats = counted(2, |k| {
        let (x, y) = (k.pointer::<u32>("x"), k.pointer::<u32>("y"));
        let t = k.tile::<u32>("t", 1, 32).unswizzled().stages(3).declare();
        let ring = k.ring("ring", 2, |s| s.vector::<u32>(32));
        k.role("load").warps(1).body(|| {
            elect(|| {
                steps(3u32).each(|_| {
                    let slot = ring.acquire();
                    slot.load_bytes(slot.tiles(), x.address(0u32), 128u32);
                    slot.commit();
                });
            });
        });
        k.role("math").warps(1).body(|| {
            t.stage(2u32).store(0u32, lane_id(), 1u32);
            steps(3u32).each(|_| {
                let slot = ring.wait();
                y.store(cta_id() * 32 + lane_id(), slot.load(0u32, lane_id()));
                slot.release();
            });
        });
    });
    let written: Vec<_> = stats.tiles.iter().map(|t| &t.written[..]).collect();
    assert_eq!(written, [&[0, 0, 256][..], &[512, 256]]);
}

#[test]
fn cp_async_counts_traffic_of_both_memories() {
    // A stride of two words causes bank conflicts.
    let stats = counted(1, |k| {
        let (x, y) = (k.pointer::<u32>("x"), k.pointer::<u32>("y"));
        let t = k.tile::<u32>("t", 32, 32).unswizzled().declare();
        k.role("all").body(|| {
            let to = t.whole();
            to.copy_from(lane_id(), 0u32, x.address(lane_id() * 2), 4);
            copy_wait_all();
            y.store(lane_id(), to.load(lane_id(), 0u32));
        });
    });
    let copy = stats.sites.iter().find(|s| s.op.starts_with("copy"));
    let t = copy.expect("a copy").traffic;
    assert_eq!(
        (t.shared_accesses, t.ideal_wavefronts, t.bank_conflicts),
        (1, 1, 31)
    );
    assert_eq!(
        (t.global_requests, t.global_sectors, t.ideal_sectors),
        (1, 8, 4)
    );
}
