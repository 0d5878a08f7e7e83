//! Idle warps, and roles with little work.

use crate::checks::kit::{linted, passes, warns};
use warpline_ir::builder::*;
use warpline_lint::checks::IDLE_ROLES;

/// Declares a producer in which one thread fills a ring, and a role that reads the ring.
fn producer_and_reader(k: Builder, loader: RoleDecl) {
    let x = k.pointer::<u32>("x");
    let ring = k.ring("ring", 2, |s| s.vector::<u32>(32));
    loader.body(|| {
        elect(|| {
            steps(4u32).each(|_| {
                let slot = ring.acquire();
                slot.load_bytes(slot.tiles(), x.address(0u32), 128u32);
                slot.commit();
            });
        });
    });
    k.role("math").warpgroups(1).registers(240).body(|| {
        steps(4u32).each(|_| {
            let slot = ring.wait();
            x.store(thread_in_role(), slot.load(0u32, lane_id()));
            slot.release();
        });
    });
}

#[test]
fn warps_that_never_issue_warn() {
    let mut at = 0;
    let found = linted(IDLE_ROLES, |k| {
        at = line!() + 1;
        producer_and_reader(k, k.role("load").warps(4));
    });
    let text = "3 of 4 warps neither access memory nor issue asynchronous operations";
    warns(&found, at, Some("load"), text);
}

#[test]
fn idle_warps_that_complete_a_warpgroup_for_setmaxnreg_pass() {
    let found = linted(IDLE_ROLES, |k| {
        producer_and_reader(k, k.role("load").warpgroups(1).registers(24));
    });
    let text = "38 % of the warps only complete the warpgroup of a role with `setmaxnreg`";
    passes(&found, text);
}

#[test]
fn a_role_with_much_less_work_than_another_warns() {
    let mut at = 0;
    let found = linted(IDLE_ROLES, |k| {
        let x = k.pointer::<u32>("x");
        at = line!() + 1;
        k.role("little").warps(2).body(|| x.store(lane_id(), 0u32));
        k.role("much").warps(2).body(|| {
            (0..64u32).for_each(|i| x.store(lane_id() + 32 * i, i));
        });
    });
    let text = found.first().map_or("", |f| &f.text).to_owned();
    warns(&found, at, Some("little"), &text);
    assert!(text.starts_with("each of 2 warps runs "), "{text}");
}

#[test]
fn a_role_of_one_warp_with_little_work_passes() {
    let found = linted(IDLE_ROLES, |k| {
        let x = k.pointer::<u32>("x");
        k.role("helper").warps(1).body(|| x.store(lane_id(), 0u32));
        k.role("much").warps(2).body(|| {
            (0..64u32).for_each(|i| x.store(lane_id() + 32 * i, i));
        });
    });
    passes(
        &found,
        "every warp accesses memory or issues asynchronous operations",
    );
}
