//! Accesses per lane: unordered atomics, divergent peers, words that several lanes access, `cp.async`
//! groups.

use crate::executor::harness::{expect_fault, expect_pass, strict, timings};
use warpline_ir::builder::*;
use warpline_ir::ops::atomic::AtomicOp;
use warpline_ir::{FaultKind, Kernel, MemoryOrder, Scope};
use warpline_testkit::launch::Setup;

fn build(body: impl FnOnce(Builder)) -> Kernel {
    warpline_testkit::kernel::build("lane_memory", body)
}

const RELAXED: MemoryOrder = MemoryOrder::relaxed(Scope::Cta);

/// Expects a race of the broken kernel in every strict timing, and a pass of the fixed one in every
/// timing.
#[track_caller]
fn expect_only_broken_races(kernel: impl Fn(bool) -> Kernel) {
    let (right, wrong) = (kernel(true), kernel(false));
    for options in timings() {
        expect_pass(&right, &options);
    }
    for options in strict() {
        expect_fault(&wrong, &options, FaultKind::Race);
    }
}

#[test]
fn a_read_must_be_ordered_after_every_atomic() {
    let kernel = |both: bool| {
        build(|k| {
            let t = k.tile::<u32>("t", 1, 4).unswizzled().declare();
            let made = k.barrier("made", 1).arrivals(1);
            let done = k.barrier("done", 2).arrivals(1);
            k.role("makes").body(|| {
                elect(|| {
                    t.whole().store(0u32, 0u32, 0u32);
                    made.at(0).arrive();
                });
            });
            for (i, name) in ["first", "second"].into_iter().enumerate() {
                k.role(name).body(|| {
                    elect(|| {
                        made.at(0).wait(0);
                        t.whole()
                            .atomic_ref(0u32, 0u32)
                            .atomic(AtomicOp::Add, 1u32, RELAXED);
                        done.at(i as u32).arrive();
                    });
                });
            }
            k.role("reads").body(|| {
                elect(|| {
                    done.at(1).wait(0);
                    if both {
                        done.at(0).wait(0);
                    }
                    t.whole().load(0u32, 0u32);
                });
            });
        })
    };
    expect_only_broken_races(kernel);
}

#[test]
fn an_atomic_does_not_hide_an_earlier_plain_write_of_its_thread() {
    let kernel = |ordered: bool| {
        build(|k| {
            let t = k.tile::<u32>("t", 1, 4).unswizzled().declare();
            let made = k.barrier("made", 1).arrivals(1);
            let add = move || {
                let word = t.whole().atomic_ref(0u32, 0u32);
                word.atomic(AtomicOp::Add, 1u32, RELAXED);
            };
            k.role("makes").body(|| {
                elect(|| {
                    t.whole().store(0u32, 0u32, 0u32);
                    if ordered {
                        made.at(0).arrive();
                    }
                    add();
                    if !ordered {
                        made.at(0).arrive_many(1u32);
                    }
                });
            });
            k.role("adds").body(|| {
                elect(|| {
                    if ordered {
                        made.at(0).wait(0);
                    }
                    add();
                });
            });
        })
    };
    let (right, wrong) = (kernel(true), kernel(false));
    for options in timings() {
        expect_pass(&right, &options);
    }
    for options in strict() {
        let e = Setup::new().run(&wrong, 1, &options).unwrap_err();
        // If the other role runs first, it reads uninitialized bytes.
        assert!(
            matches!(e.kind, FaultKind::Race | FaultKind::NeverWritten),
            "{e}"
        );
    }
}

#[test]
fn stores_to_different_peers_need_an_arrival_at_each_peer() {
    // Lane l of rank 0 stores to rank l. The lanes arrive there, or all of them arrive at rank 0.
    let kernel = |each: bool| {
        build(|k| {
            k.cluster(4, 1, 1);
            let t = k.tile::<u32>("t", 1, 4).unswizzled().declare();
            let full = k.barrier("full", 1).arrivals(if each { 1 } else { 4 });
            let go = k.barrier("go", 1).arrivals(1);
            k.role("all").body(|| {
                let lane = lane_id();
                if_(cluster_rank().eq(0u32), || {
                    if_(lane.lt(4u32), || {
                        t.whole().peer(lane).store(0u32, 0u32, lane);
                        match each {
                            true => full.at(0).peer(lane).arrive_cluster(),
                            false => full.at(0).arrive(),
                        }
                    });
                    // A lane that is not ordered after the stores wakes the peers.
                    if_(lane.ge(28u32), || {
                        go.at(0).peer(lane - 28u32).arrive_cluster();
                    });
                });
                go.at(0).wait_cluster(0);
                if each {
                    full.at(0).wait_cluster(0);
                }
                t.whole().load(0u32, 0u32);
            });
        })
    };
    let (right, wrong) = (kernel(true), kernel(false));
    for options in timings() {
        expect_pass(&right, &options);
    }
    for options in strict() {
        expect_fault(&wrong, &options, FaultKind::Race);
    }
}

#[test]
fn a_writer_must_be_ordered_after_both_lanes_that_read_a_word() {
    // Lanes 0 and 1 read a word; then lane 1 alone, or both lanes, signal the writer.
    let kernel = |both: bool| {
        build(|k| {
            let t = k.tile::<u32>("t", 1, 4).unswizzled().declare();
            let free = k.barrier("free", 1).arrivals(if both { 2 } else { 1 });
            k.role("reads").body(|| {
                elect(|| t.whole().store(0u32, 0u32, 1u32));
                warp_sync();
                if_(lane_id().lt(2u32), || {
                    t.whole().load(0u32, 0u32);
                });
                // A second read of lane 1 does not replace the read of lane 0.
                if_(lane_id().eq(1u32), || {
                    t.whole().load(0u32, 0u32);
                    free.at(0).arrive();
                });
                if both {
                    if_(lane_id().eq(0u32), || free.at(0).arrive());
                }
            });
            k.role("writes").body(|| {
                elect(|| {
                    free.at(0).wait(0);
                    t.whole().store(0u32, 0u32, 2u32);
                });
            });
        })
    };
    expect_only_broken_races(kernel);
}

#[test]
fn a_reader_must_be_ordered_after_both_lanes_that_write_a_word() {
    // Lanes 0 and 1 store the same word in one instruction; then lane 1 alone, or both lanes, arrive.
    let kernel = |both: bool| {
        build(|k| {
            let t = k.tile::<u32>("t", 1, 4).unswizzled().declare();
            let full = k.barrier("full", 1).arrivals(if both { 2 } else { 1 });
            k.role("writes").body(|| {
                if_(lane_id().lt(2u32), || {
                    t.whole().store(0u32, 0u32, 1u32);
                    match both {
                        true => full.at(0).arrive(),
                        false => if_(lane_id().eq(1u32), || full.at(0).arrive()),
                    }
                });
            });
            k.role("reads").body(|| {
                elect(|| {
                    full.at(0).wait(0);
                    t.whole().load(0u32, 0u32);
                });
            });
        })
    };
    expect_only_broken_races(kernel);
}

#[test]
fn a_copy_wait_counts_groups_per_lane() {
    // Lane 0 commits one group, the others two; a wait for all but one covers no group of lane 0.
    let kernel = |pending: u32| {
        build(|k| {
            let x = k.pointer::<u32>("x");
            let t = k.tile::<u32>("t", 2, 128).unswizzled().declare();
            k.role("all").body(|| {
                let lane = lane_id();
                for row in 0..2u32 {
                    if_(lane.ge(row), || {
                        let from = x.address(lane * 4u32);
                        t.whole().copy_from(row, lane * 4u32, from, 16);
                        copy_commit();
                    });
                }
                copy_wait(pending);
                t.whole().load(0u32, lane * 4u32);
                copy_wait(0);
            });
        })
    };
    for options in strict() {
        let run = |pending| {
            let s = Setup::new().input("x", &[1u32; 128]);
            s.run(&kernel(pending), 1, &options)
        };
        run(0).unwrap_or_else(|e| panic!("{options:?}: {e}"));
        let e = run(1).unwrap_err();
        assert_eq!((e.kind, e.lane), (FaultKind::Race, Some(0)), "{e}");
    }
}
