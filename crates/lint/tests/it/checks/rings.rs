//! The number of stages of rings, and unused stages.

use crate::checks::kit::{linted, passes, warns};
use warpline_ir::builder::*;
use warpline_lint::checks::{STAGES, UNUSED_STAGES};
use warpline_lint::{LintFinding, LintStatus};

/// Returns the findings for a ring that is filled `fills` times, and the line of its declaration.
fn ring(check: &str, stages: u32, fills: u32) -> (Vec<LintFinding>, u32) {
    let mut line = 0;
    let found = linted(check, |k| {
        let x = k.pointer::<u32>("x");
        line = line!() + 1;
        let ring = k.ring("ring", stages, |s| s.vector::<u32>(256));
        k.role("load").body(|| {
            elect(|| {
                steps(fills).each(|_| {
                    let slot = ring.acquire();
                    slot.load_bytes(slot.tiles(), x.address(0u32), 1024u32);
                    slot.commit();
                });
            });
        });
        k.role("math").body(|| {
            steps(fills).each(|_| {
                let slot = ring.wait();
                x.store(lane_id(), slot.load(0u32, lane_id()));
                slot.release();
            });
        });
    });
    (found, line)
}

#[test]
fn a_ring_of_one_stage_warns_if_it_is_refilled() {
    let (found, line) = ring(STAGES, 1, 5);
    let text = "tile `ring.0` has 1 stage and is filled 5.0 times per CTA; 2 to 6 stages overlap loads and compute";
    warns(&found, line, None, text);
    passes(&ring(STAGES, 1, 1).0, "the kernel has no ring");
}

#[test]
fn a_deep_ring_warns() {
    let (found, line) = ring(STAGES, 7, 9);
    let text = "tile `ring.0` has 7 stages; 2 to 6 are enough";
    warns(&found, line, None, text);
}

#[test]
fn a_ring_of_a_few_words_is_not_checked() {
    let found = linted(STAGES, |k| {
        let t = k.tile::<u32>("t", 1, 4).unswizzled().stages(16).declare();
        k.role("all")
            .body(|| elect(|| t.stage(0u32).store(0u32, 0u32, 0u32)));
    });
    passes(&found, "the kernel has no ring");
}

#[test]
fn remote_stores_of_threads_are_not_a_ring() {
    let found = linted(STAGES, |k| {
        k.cluster(2, 1, 1);
        let t = k
            .tile::<u32>("records", 1, 256)
            .unswizzled()
            .declare()
            .whole();
        let full = k.barrier("full", 1).arrivals(1);
        k.role("all").warps(8).body(|| {
            let peer = cluster_rank() ^ 1;
            steps(4u32).each(|i| {
                let bar = full.at(0u32);
                elect(|| bar.arrive_expect(1024u32));
                cluster_sync();
                store_async(t.peer(peer), 0u32, thread_id(), [i], bar.peer(peer));
                bar.wait_cluster(i & 1);
            });
        });
    });
    passes(&found, "the kernel has no ring");
}

#[test]
fn two_to_six_stages_pass() {
    for stages in [2, 6] {
        let (found, _) = ring(STAGES, stages, 9);
        passes(&found, &format!("tile `ring.0` has {stages} stages"));
    }
}

#[test]
fn a_stage_that_the_ring_skips_warns() {
    let mut line = 0;
    let found = linted(UNUSED_STAGES, |k| {
        line = line!() + 1;
        let t = k.tile::<u32>("t", 1, 128).unswizzled().stages(3).declare();
        k.role("all").warps(4).body(|| {
            steps(8u32).each(|i| t.stage(i & 1).store(0u32, thread_id(), i));
        });
    });
    warns(
        &found,
        line,
        None,
        "tile `t` has 3 stages, and the run fills 2",
    );
}

#[test]
fn a_run_that_is_too_short_is_skipped() {
    let (found, line) = ring(UNUSED_STAGES, 4, 3);
    let [f] = &found[..] else {
        panic!("{found:#?}")
    };
    let text = "skipped: the run is too short to fill more than 3 of 4 stages of tile `ring.0`";
    assert_eq!((f.status, &*f.text), (LintStatus::Skipped, text));
    assert_eq!(f.at.unwrap().line, line);
}

#[test]
fn a_ring_that_is_filled_once_passes() {
    let (found, _) = ring(UNUSED_STAGES, 4, 4);
    passes(&found, "the run fills every stage of every ring");
}
