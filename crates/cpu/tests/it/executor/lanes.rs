//! Happens-before is per lane, not per warp: each broken kernel with its fixed version.

use crate::executor::harness::{edit, expect_pass, line, other_line, strict, timings};
use std::cell::Cell;
use warpline_cpu::{Options, RunError, Timing};
use warpline_ir::builder::*;
use warpline_ir::ops::warp::WarpSync;
use warpline_ir::{FaultKind, Kernel, Op, Operand};
use warpline_testkit::launch::Setup;

fn build(body: impl FnOnce(Builder)) -> Kernel {
    warpline_testkit::kernel::build("lanes", body)
}

/// Runs a kernel on one cluster with an input of 32 words and an output of 64.
fn run(k: &Kernel, options: &Options) -> Result<Vec<u32>, Box<RunError>> {
    let s = Setup::new()
        .input("x", &(0..32).collect::<Vec<u32>>())
        .output("out", 256);
    s.run(k, k.cluster_size(), options)?;
    Ok(s.values(1))
}

/// Expects a fault of the broken kernel in every strict timing, and a pass of the fixed one in every
/// timing.
#[track_caller]
fn expect_only_broken_faults(kernel: impl Fn(bool) -> Kernel, kind: FaultKind) {
    let (right, wrong) = (kernel(true), kernel(false));
    for options in timings() {
        run_or_panic(&right, &options);
    }
    for options in strict() {
        let e = fault(&wrong, &options);
        assert_eq!(e.kind, kind, "{options:?}: {e}");
    }
}

#[track_caller]
fn run_or_panic(k: &Kernel, options: &Options) {
    let s = Setup::new()
        .input("x", &[7u32; 32])
        .input("out", &[0u32; 64]);
    s.run(k, k.cluster_size(), options)
        .unwrap_or_else(|e| panic!("{options:?}: {e}"));
}

#[track_caller]
fn fault(k: &Kernel, options: &Options) -> Box<RunError> {
    let s = Setup::new()
        .input("x", &[7u32; 32])
        .input("out", &[0u32; 64]);
    match s.run(k, k.cluster_size(), options) {
        Ok(_) => panic!("{} ran through with {options:?}", k.name),
        Err(e) => e,
    }
}

#[test]
fn a_warp_sync_orders_all_lanes_after_the_wait_of_an_elected_lane() {
    let (mut copy, mut load) = (0, 0);
    let mut kernel = |sync: bool| {
        build(|k| {
            let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
            let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
            let full = k.barrier("full", 1).arrivals(1);
            k.role("all").body(|| {
                elect(|| {
                    full.at(0).arrive_expect(128);
                    copy = line!() + 1;
                    bulk_load(t.whole(), x.address(0), 128, full.at(0));
                    full.at(0).wait(0);
                });
                if sync {
                    warp_sync();
                }
                load = line!() + 1;
                let y = t.whole().load(0u32, lane_id());
                out.store(lane_id(), y);
                out.store(lane_id() + 32, y);
            });
        })
    };
    let (right, wrong) = (kernel(true), kernel(false));
    for options in timings() {
        let got = run(&right, &options).unwrap_or_else(|e| panic!("{options:?}: {e}"));
        assert_eq!(got[..32], (0..32).collect::<Vec<_>>());
    }
    for options in strict() {
        let e = run(&wrong, &options).unwrap_err();
        assert_eq!(
            (e.kind, line(&e), other_line(&e)),
            (FaultKind::Race, load, copy),
            "{e}"
        );
        assert!(e.text.contains("another lane of this warp waited"), "{e}");
    }
}

#[test]
fn a_wait_orders_only_the_waiting_lane_after_the_copy() {
    // Lane 0 waits for the first copy and lane 1 for the second; each reads one of them.
    let kernel = |own: bool| {
        build(|k| {
            let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
            let t = k.tile::<u32>("t", 1, 32).unswizzled().stages(2).declare();
            let full = k.barrier("full", 2).arrivals(1);
            k.role("all").body(|| {
                elect(|| {
                    for stage in 0..2u32 {
                        full.at(stage).arrive_expect(128);
                        bulk_load(t.stage(stage), x.address(0), 128, full.at(stage));
                    }
                });
                if_(lane_id().lt(2u32), || {
                    full.at(lane_id()).wait(0);
                    let stage = if own { lane_id() } else { lane_id() ^ 1u32 };
                    out.store(lane_id(), t.stage(stage).load(0u32, 0u32));
                });
                full.at(0).wait(0);
                full.at(1).wait(0);
            });
        })
    };
    expect_only_broken_faults(kernel, FaultKind::Race);
}

#[test]
fn a_wait_of_the_whole_warp_does_not_synchronize_its_lanes() {
    // Each lane stores a word, waits for another role, and reads the word of its neighbor.
    let kernel = |sync: bool| {
        build(|k| {
            let (_x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
            let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
            let go = k.barrier("go", 1).arrivals(1);
            k.role("says").body(|| elect(|| go.at(0).arrive()));
            k.role("all").body(|| {
                t.whole().store(0u32, lane_id(), lane_id());
                go.at(0).wait(0);
                if sync {
                    warp_sync();
                }
                out.store(lane_id(), t.whole().load(0u32, lane_id() ^ 1u32));
            });
        })
    };
    expect_only_broken_faults(kernel, FaultKind::Race);
}

#[test]
fn a_wait_orders_the_lanes_of_a_warp_after_the_arrivals_of_all_lanes() {
    let kernel = |all: bool| {
        build(|k| {
            let (_x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
            let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
            let bar = k.barrier("bar", 1).arrivals(if all { 32 } else { 16 });
            k.role("all").body(|| {
                t.whole().store(0u32, lane_id(), lane_id());
                match all {
                    true => bar.at(0).arrive(),
                    false => if_(lane_id().lt(16u32), || bar.at(0).arrive()),
                }
                bar.at(0).wait(0);
                out.store(lane_id(), t.whole().load(0u32, lane_id() ^ 31u32));
            });
        })
    };
    expect_only_broken_faults(kernel, FaultKind::Race);
}

#[test]
fn a_warp_sync_orders_only_the_lanes_of_its_mask() {
    // Lane pairs exchange words. The masks are the halves of the warp, or even and odd lanes, which
    // separate the pairs.
    let kernel = |halves: bool| {
        let mut k = build(|k| {
            let (_x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
            let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
            k.role("all").body(|| {
                t.whole().store(0u32, lane_id(), lane_id());
                let low = lane_id().lt(16u32);
                let even = (lane_id() & 1u32).eq(0u32);
                let mask = match halves {
                    true => select(low, 0xffffu32, 0xffff_0000u32),
                    false => select(even, 0x5555_5555u32, 0xaaaa_aaaau32),
                };
                out.store(lane_id() + 32, mask);
                warp_sync();
                out.store(lane_id(), t.whole().load(0u32, lane_id() ^ 1u32));
            });
        });
        // The builder syncs whole warps; the edit replaces the mask by the selected one.
        let mask = Cell::new(None);
        edit(&mut k, 0, &|op| {
            if let Op::Select(s) = &op {
                mask.set(Some(s.dst));
            }
            Some(match (op, mask.get()) {
                (Op::WarpSync(_), Some(r)) => Op::WarpSync(WarpSync {
                    mask: Operand::Reg(r),
                }),
                (op, _) => op,
            })
        });
        k
    };
    expect_only_broken_faults(kernel, FaultKind::Race);
}

#[test]
fn a_lane_publishes_its_writes_only_to_the_barrier_that_it_arrives_at() {
    // Even lanes arrive at one barrier and odd lanes at the other; a reader waits for the first.
    let kernel = |right: bool| {
        build(|k| {
            let (_x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
            let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
            let full = k.barrier("full", 2).arrivals(16);
            k.role("writes").body(|| {
                t.whole().store(0u32, lane_id(), lane_id());
                full.at(lane_id() & 1u32).arrive();
            });
            k.role("reads").body(|| {
                full.at(0).wait(0);
                if right {
                    full.at(1).wait(0);
                }
                out.store(lane_id(), t.whole().load(0u32, lane_id()));
            });
        })
    };
    expect_only_broken_faults(kernel, FaultKind::Race);
}

#[test]
fn a_phase_publishes_only_the_lanes_that_arrived() {
    // All lanes arrive, or only half of them; the reader waits for the phase.
    let kernel = |right: bool| {
        build(|k| {
            let (_x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
            let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
            let full = k.barrier("full", 1).arrivals(if right { 32 } else { 16 });
            let hold = k.barrier("hold", 1).arrivals(1);
            k.role("writes").body(|| {
                t.whole().store(0u32, lane_id(), lane_id());
                match right {
                    true => full.at(0).arrive(),
                    false => if_(lane_id().lt(16u32), || full.at(0).arrive()),
                }
                hold.at(0).wait(0);
            });
            k.role("reads").body(|| {
                full.at(0).wait(0);
                out.store(lane_id(), t.whole().load(0u32, lane_id()));
                elect(|| hold.at(0).arrive());
            });
        })
    };
    expect_only_broken_faults(kernel, FaultKind::Race);
}

#[test]
fn a_bulk_wait_covers_only_the_groups_of_its_lane() {
    // Lanes 0 and 1 store a row each; then lane 1 waits, and all lanes write row 0 again.
    let kernel = |both: bool| {
        build(|k| {
            let (_x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
            let t = k.tile::<u32>("t", 2, 32).unswizzled().declare();
            k.role("all").body(|| {
                t.whole().store(0u32, lane_id(), 1u32);
                t.whole().store(1u32, lane_id(), 2u32);
                fence_async();
                warp_sync();
                for row in 0..2u32 {
                    if_(lane_id().eq(row), || {
                        let from = t.whole().slice(row..row + 1, 0..32);
                        bulk_store(from, out.address(row * 32), 128);
                        bulk_commit();
                    });
                }
                if_(lane_id().lt(2u32), || {
                    if both {
                        bulk_wait(0);
                    }
                });
                if_(lane_id().eq(1u32), || bulk_wait(0));
                warp_sync();
                t.whole().store(0u32, lane_id(), 3u32);
                if_(lane_id().lt(2u32), || bulk_wait(0));
            });
        })
    };
    expect_only_broken_faults(kernel, FaultKind::Race);
}

#[test]
fn a_proxy_fence_of_one_lane_does_not_cover_reads_of_other_lanes() {
    // All lanes read word 0; then a copy overwrites it.
    let kernel = |all: bool| {
        build(|k| {
            let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
            let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
            let full = k.barrier("full", 1).arrivals(1);
            k.role("all").body(|| {
                t.whole().store(0u32, lane_id(), lane_id());
                fence_async();
                warp_sync();
                out.store(lane_id(), t.whole().load(0u32, 0u32));
                if all {
                    fence_async();
                }
                warp_sync();
                elect(|| {
                    fence_async();
                    full.at(0).arrive_expect(128);
                    bulk_load(t.whole(), x.address(0), 128, full.at(0));
                });
                full.at(0).wait(0);
            });
        })
    };
    expect_only_broken_faults(kernel, FaultKind::MissingProxyFence);
}

#[test]
fn elect_selects_a_seeded_lane_and_repeats_its_choice() {
    // The elected lane writes a word, and lane 0 reads it.
    let kernel = |sync: bool| {
        build(|k| {
            let (_x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
            let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
            k.role("all").body(|| {
                elect(|| t.whole().store(0u32, 0u32, 5u32));
                if sync {
                    warp_sync();
                }
                if_(lane_id().eq(0u32), || {
                    out.store(0u32, t.whole().load(0u32, 0u32));
                });
            });
        })
    };
    for options in timings() {
        run_or_panic(&kernel(true), &options);
    }
    let seeds = strict().filter(|o| o.timing == Timing::Random);
    let failed = seeds.filter(|o| {
        let s = Setup::new().input("x", &[0u32]).input("out", &[0u32]);
        let e = s.run(&kernel(false), 1, o).err();
        e.is_some_and(|e| e.kind == FaultKind::Race)
    });
    assert!(failed.count() > 6);
    // A nested elect selects the same lane, which is ordered after its own accesses.
    let twice = build(|k| {
        let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
        k.role("all").body(|| {
            elect(|| t.whole().store(0u32, 0u32, 5u32));
            elect(|| t.whole().store(0u32, 0u32, 6u32));
        });
    });
    for options in timings() {
        expect_pass(&twice, &options);
    }
}
