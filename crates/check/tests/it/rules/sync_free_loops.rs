//! Synchronization-free loops with a trip count per warp: their accesses are checked for every
//! count.

use crate::rules::kernel;
use warpline_ir::Kernel;
use warpline_ir::builder::*;
use warpline_testkit::verdict::violations;

/// Three warps read a slot in loops of their own. If `late`, they release the slot before they
/// read.
fn kept(late: bool) -> Kernel {
    kernel(|k| {
        let [items, queries] = ["items", "queries"].map(|p| k.param::<u32>(p));
        let (x, y) = (k.pointer::<u32>("x"), k.pointer::<u32>("y"));
        let held = k.ring("held", 1, |s| s.vector::<u32>(128));
        let mine = || range(cta_id(), items).step_by(grid_ctas());
        k.role("gather").warps(3).body(|| {
            mine().each(|item| {
                let slot = held.wait();
                let tile = slot.tiles();
                let read = || {
                    range(item * 7 + warp_in_role(), queries)
                        .step_by(3u32)
                        .each(|q| {
                            let at = (x.load(q) + lane_id()) & 127u32;
                            if_(at.lt(queries), || {
                                y.store(q * 32 + lane_id(), tile.load(0u32, at))
                            });
                        });
                };
                match late {
                    false => {
                        read();
                        slot.release();
                    }
                    true => {
                        slot.release();
                        read();
                    }
                }
            });
        });
        k.role("hold").warps(1).body(|| {
            elect(|| {
                mine().each(|item| {
                    let slot = held.acquire();
                    slot.load_bytes(slot.tiles(), x.address(item * 128), 512u32);
                    slot.commit();
                });
            });
        });
    })
}

#[test]
fn loops_with_a_count_per_warp_are_proved() {
    assert_eq!(violations(&kept(false)), []);
}

#[test]
fn a_read_after_the_release_is_refuted() {
    let found = violations(&kept(true));
    let decided = |code: &str| !code.starts_with("U.");
    assert!(
        !found.is_empty() && found.iter().all(|b| decided(b.0)),
        "{found:?}"
    );
}
