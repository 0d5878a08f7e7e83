//! Roles that begin before the CTA meets.

use crate::rules::kernel;
use warpline_ir::Kernel;
use warpline_ir::builder::*;
use warpline_testkit::verdict::breaches;

/// Tiles of some steps each, of which a loader brings the first before the CTA
/// meets, where `has` says that there is a tile, and afterwards those from `from` on.
fn tiles(has: impl Fn(Reg<u32>) -> Reg<bool>, from: u32) -> Kernel {
    kernel(|k| {
        let [n, depth] = ["n", "depth"].map(|name| k.param::<u32>(name));
        let (x, y) = (k.pointer::<u32>("x"), k.pointer::<u32>("y"));
        let ring = k.ring("x", 3, |s| s.vector::<u32>(32));
        k.role("load").body(|| {
            let bring = |i: Reg<u32>| {
                let slot = ring.acquire();
                slot.load_bytes(slot.tiles(), x.address(i * 32), 128);
                slot.commit();
            };
            elect(|| if_(has(n), || if_(depth.gt(0u32), || bring(0u32.reg()))));
            prologue_barrier();
            elect(|| {
                let first = Var::new(from);
                range(cta_id(), n).step_by(grid_ctas()).each(|_| {
                    range(first.get(), depth).each(bring);
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
fn a_first_tile_that_the_loop_has_as_well_is_proved() {
    assert_eq!(breaches(&tiles(|n| cta_id().lt(n), 1)), []);
}

#[test]
fn a_first_tile_that_the_loop_may_not_have_is_refused() {
    let codes = |k: &Kernel| breaches(k).iter().map(|b| b.0).collect::<Vec<_>>();
    assert_eq!(codes(&tiles(|n| n.gt(0u32), 1)), ["R3.order"]);
    assert_eq!(codes(&tiles(|n| cta_id().le(n), 1)), ["R3.order"]);
}

#[test]
fn a_step_that_is_brought_twice_is_refused() {
    assert_ne!(breaches(&tiles(|n| cta_id().lt(n), 0)), []);
}

/// The lane that has made the barriers uses them; the others learn of them at the meeting.
#[test]
fn other_lanes_wait_for_the_meeting() {
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
        assert_eq!(breaches(&early(warps, true, &mut line)), []);
        let found = breaches(&early(warps, false, &mut line));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].0, found[0].1), ("R11.init", line));
    }
}
