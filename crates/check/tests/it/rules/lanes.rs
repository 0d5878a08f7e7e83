//! Synchronization of single lanes: tests of mbarriers, cp.async groups, fences, atomics. Each test
//! has a faulty kernel and its repaired version.

use crate::rules::kernel;
use warpline_ir::builder::*;
use warpline_ir::ops::atomic::AtomicOp;
use warpline_ir::{Kernel, MemoryOrder, Scope};
use warpline_testkit::verdict::{NONE, codes, proved};

/// One role fills a slot by copies; another waits for the slot with `take` and releases it.
fn ring(take: impl Fn(MbarrierHandle, Reg<u32>)) -> Kernel {
    kernel(|k| {
        let n = k.param::<u32>("n");
        let data = k.pointer::<u32>("data");
        let out = k.pointer::<u32>("out");
        let tile = k.tile::<u32>("slots", 1, 32).unswizzled().declare();
        let [full, empty] = ["full", "empty"].map(|b| k.barrier(b, 1).arrivals(1));
        k.role("give").warps(1).body(|| {
            elect(|| {
                let parity = Var::new(1u32);
                steps(n).each(|i| {
                    empty.at(0u32).wait(parity.get());
                    full.at(0u32).arrive_expect(128u32);
                    bulk_load(tile.whole(), data.address(i * 32), 128, full.at(0u32));
                    parity.set(parity.get() ^ 1u32);
                });
            });
        });
        k.role("take").warps(1).body(|| {
            let parity = Var::new(0u32);
            steps(n).each(|i| {
                take(full.at(0u32), parity.get());
                out.store(i * 32 + lane_id(), tile.whole().load(0u32, lane_id()));
                fence_async();
                warp_sync();
                elect(|| empty.at(0u32).arrive());
                parity.set(parity.get() ^ 1u32);
            });
        });
    })
}

#[test]
fn a_loop_of_tests_is_a_wait() {
    proved(&ring(|full, parity| {
        while_(|| !full.try_wait(parity), || {})
    }));
    proved(&ring(|full, parity| {
        let done = Var::new(false);
        while_(|| !done.get(), || done.set(full.test(parity)));
    }));
    // A loop that gives up after some tests is no wait.
    assert_ne!(
        codes(&ring(|full, parity| {
            let tries = Var::new(0u32);
            while_(
                || !full.test(parity) & tries.get().lt(4u32),
                || tries.set(tries.get() + 1),
            );
        })),
        NONE
    );
}

#[test]
fn a_test_followed_by_a_wait_if_it_fails_is_a_wait() {
    proved(&ring(|full, parity| {
        let passed = full.test(parity);
        if_(!passed, || full.wait(parity));
    }));
    // A wait for the other parity passes too early.
    assert_ne!(
        codes(&ring(|full, parity| {
            let passed = full.test(parity);
            if_(!passed, || full.wait(parity ^ 1u32));
        })),
        NONE
    );
    assert_ne!(
        codes(&ring(|full, parity| {
            let passed = full.test(parity);
            if_(passed, || full.wait(parity));
        })),
        NONE
    );
}

/// Every lane copies a word twice and reads what its neighbor copied.
fn copies(commit: impl Fn(), wait: impl Fn()) -> Kernel {
    kernel(|k| {
        let data = k.pointer::<u32>("data");
        let out = k.pointer::<u32>("out");
        let tile = k
            .tile::<u32>("words", 1, 32)
            .unswizzled()
            .stages(2)
            .declare();
        k.role("only").warps(1).body(|| {
            for group in 0..2u32 {
                let from = data.address(lane_id() + 32 * group);
                tile.stage(group).copy_from(0u32, lane_id(), from, 4);
                match group {
                    0 => copy_commit(),
                    _ => commit(),
                }
            }
            wait();
            warp_sync();
            for group in 0..2u32 {
                let word = tile.stage(group).load(0u32, lane_id() ^ 1u32);
                out.store(lane_id() + 32 * group, word);
            }
        });
    })
}

#[test]
fn cp_async_groups_belong_to_lanes() {
    proved(&copies(copy_commit, || copy_wait(0)));
    let some = || if_(lane_id().lt(16u32), copy_commit);
    assert_eq!(codes(&copies(some, || copy_wait(0))), ["R3.order"]);
    assert_eq!(codes(&copies(copy_commit, || copy_wait(1))), ["R3.order"]);
    let some = || if_(lane_id().lt(16u32), || copy_wait(0));
    assert_eq!(codes(&copies(copy_commit, some)), ["R3.order"]);
}

/// All lanes write a tile that one lane stores.
fn stored(between: impl Fn()) -> Kernel {
    kernel(|k| {
        let out = k.pointer::<u32>("out");
        let tile = k.tile::<u32>("words", 1, 32).unswizzled().declare();
        k.role("only").warps(1).body(|| {
            tile.whole().store(0u32, lane_id(), lane_id());
            between();
            elect(|| {
                bulk_store(tile.whole(), out.address(0u32), 128);
                bulk_commit();
                bulk_wait(0);
            });
        });
    })
}

#[test]
fn a_proxy_fence_covers_only_the_lane_that_runs_it() {
    proved(&stored(|| {
        fence_async();
        warp_sync();
    }));
    // After the fence nothing orders the other lanes before the lane that stores.
    assert_eq!(
        codes(&stored(|| {
            warp_sync();
            fence_async();
        })),
        ["R5.write"]
    );
    assert_eq!(
        codes(&stored(|| {
            if_(lane_id().lt(16u32), fence_async);
            warp_sync();
        })),
        ["R5.write"]
    );
}

/// A lane writes a count to shared memory and adds to it; both roles loop over the count.
fn counted(more: u32, expected: u32) -> Kernel {
    kernel(|k| {
        let n = k.param::<u32>("n").at_most(1000);
        let count = k.tile::<u32>("count", 1, 4).unswizzled().declare();
        let [full, empty] = ["full", "empty"].map(|b| k.barrier(b, 1).arrivals(1));
        let order = MemoryOrder::relaxed(Scope::Cta);
        k.role("give").warps(1).body(|| {
            elect(|| {
                count.whole().store(0u32, 0u32, n);
                count
                    .whole()
                    .atomic_ref(0u32, 0u32)
                    .reduce(AtomicOp::Add, more, order);
            });
            cta_sync();
            let parity = Var::new(1u32);
            steps(n + expected).each(|_| {
                elect(|| {
                    empty.at(0u32).wait(parity.get());
                    full.at(0u32).arrive();
                });
                parity.set(parity.get() ^ 1u32);
            });
        });
        k.role("take").warps(1).body(|| {
            cta_sync();
            let parity = Var::new(0u32);
            steps(count.whole().load(0u32, 0u32)).each(|_| {
                elect(|| {
                    full.at(0u32).wait(parity.get());
                    empty.at(0u32).arrive();
                });
                parity.set(parity.get() ^ 1u32);
            });
        });
    })
}

#[test]
fn an_atomic_add_to_a_shared_count_is_tracked() {
    proved(&counted(2, 2));
    assert_ne!(codes(&counted(2, 0)), NONE);
    assert_ne!(codes(&counted(3, 2)), NONE);
}

/// Two warps store at addresses with known bounds only. Each stays in its half of the tile if the
/// mask is small enough.
fn scattered(mask: u32) -> Kernel {
    kernel(|k| {
        let table = k.pointer::<u32>("table");
        let tile = k.tile::<u32>("tile", 1, 64).unswizzled().declare();
        for (name, half) in [("low", 0u32), ("high", 32)] {
            k.role(name).warps(1).body(|| {
                let column = (lane_id() ^ (table.load(lane_id()) & mask)) + half;
                tile.whole().store(0u32, column, 1u32);
            });
        }
    })
}

#[test]
fn unknown_addresses_stay_within_their_bounds() {
    proved(&scattered(31));
    proved(&scattered(12));
    assert_eq!(codes(&scattered(63)), ["R3.order"]);
}
