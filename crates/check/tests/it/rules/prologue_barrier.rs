//! Roles that start before the prologue barrier.

use crate::rules::kernel;
use warpline_ir::Kernel;
use warpline_ir::builder::*;
use warpline_testkit::verdict::violations;

/// Returns a kernel whose producer loads the first k-tile before the prologue barrier if `condition`
/// is true. After the barrier the producer loads the k-tiles from `from` on.
fn early_load(condition: impl Fn(Reg<u32>) -> Reg<bool>, from: u32) -> Kernel {
    kernel(|k| {
        let [n, depth] = ["n", "depth"].map(|name| k.param::<u32>(name));
        let (x, y) = (k.pointer::<u32>("x"), k.pointer::<u32>("y"));
        let ring = k.ring("x", 3, |s| s.vector::<u32>(32));
        k.role("load").body(|| {
            let load = |i: Reg<u32>| {
                let slot = ring.acquire();
                slot.load_bytes(slot.tiles(), x.address(i * 32), 128);
                slot.commit();
            };
            elect(|| if_(condition(n), || if_(depth.gt(0u32), || load(0u32.reg()))));
            prologue_barrier();
            elect(|| {
                let first = Var::new(from);
                range(cta_id(), n).step_by(grid_ctas()).each(|_| {
                    range(first.get(), depth).each(load);
                    first.set(0u32);
                });
            });
        });
        k.role("store").body(|| {
            range(cta_id(), n).step_by(grid_ctas()).each(|_| {
                steps(depth).each(|i| {
                    let slot = ring.wait();
                    y.store(i * 32 + lane_id(), slot.load(0u32, lane_id()));
                    slot.release();
                });
            });
        });
    })
}

#[test]
fn loads_before_the_barrier_under_the_condition_of_the_loop_are_proved() {
    assert_eq!(violations(&early_load(|n| cta_id().lt(n), 1)), []);
}

#[test]
fn loads_before_the_barrier_under_another_condition_are_refuted() {
    let codes = |k: &Kernel| violations(k).iter().map(|b| b.0).collect::<Vec<_>>();
    assert_eq!(codes(&early_load(|n| n.gt(0u32), 1)), ["R3.order"]);
    assert_eq!(codes(&early_load(|n| cta_id().le(n), 1)), ["R3.order"]);
}

#[test]
fn a_k_tile_that_is_loaded_twice_is_refuted() {
    assert_ne!(violations(&early_load(|n| cta_id().lt(n), 0)), []);
}

/// One lane initializes the mbarriers and may use them immediately. Other lanes may use them only
/// after the prologue barrier.
#[test]
fn only_the_initializing_lane_may_use_mbarriers_before_the_barrier() {
    let mut line = 0;
    let early = |warps: u32, alone: bool, line: &mut u32| {
        kernel(|k| {
            let (y, ring) = (
                k.pointer::<u32>("y"),
                k.ring("x", 2, |s| s.vector::<u32>(64)),
            );
            k.role("fill").warps(warps).body(|| {
                let mut fill = || {
                    *line = line!() + 1;
                    let slot = ring.acquire();
                    slot.store(0u32, thread_in_role(), thread_in_role());
                    slot.commit();
                };
                match alone {
                    true => elect(fill),
                    false => fill(),
                }
                prologue_barrier();
            });
            k.role("store").body(|| {
                let slot = ring.wait();
                y.store(lane_id(), slot.load(0u32, 0u32.reg()));
                slot.release();
            });
        })
    };
    for warps in [1, 2] {
        assert_eq!(violations(&early(warps, true, &mut line)), []);
        let found = violations(&early(warps, false, &mut line));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].0, found[0].1), ("R11.init", line));
    }
}
