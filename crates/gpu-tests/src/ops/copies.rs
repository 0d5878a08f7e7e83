//! `cp.async`: copies, groups and arrivals.

use crate::trial::OpTrial;
use warpline_ir::Type;
use warpline_ir::builder::*;
use warpline_ir::ops::memory::L2Prefetch;
use warpline_ir::ops::policy::CacheHint;

pub(crate) fn trials() -> Vec<OpTrial> {
    vec![sizes(), pipeline(), arrivals()]
}

/// Copies of 4, 8 and 16 bytes, complete and partial, through the L1 and around it.
fn sizes() -> OpTrial {
    let caches = [
        CopyCache::default(),
        CopyCache {
            through_l1: true,
            ..CopyCache::default()
        },
        CopyCache {
            l2_prefetch: Some(L2Prefetch::B128),
            hint: Some(CacheHint::EvictFirst),
            ..CopyCache::default()
        },
    ];
    let kernel = super::kernel("copy_async", |k| {
        let (x, valid, out) = (
            k.pointer::<u32>("x"),
            k.pointer::<u32>("valid"),
            k.pointer::<u32>("out"),
        );
        let t = k.tile::<u32>("t", 32, 4).unswizzled().declare();
        k.role("all").warps(1).body(|| {
            let mut round = 0;
            for bytes in [4, 8, 16] {
                for cache in caches {
                    for partial in [false, true] {
                        let lane = lane_id();
                        for col in 0..4u32 {
                            t.whole().store(lane, col, u32::MAX);
                        }
                        warp_sync();
                        let from = x.address(lane * 4 + round * 128);
                        let valid_bytes = valid.load(lane + round * 32) % (bytes + 1);
                        let valid_bytes = partial.then_some(valid_bytes);
                        t.whole()
                            .copy_with(lane, 0u32, from, bytes, valid_bytes, cache);
                        copy_wait_all();
                        warp_sync();
                        let other = lane ^ 11;
                        for col in 0..4u32 {
                            let at = (lane * 4 + col) + round * 128;
                            out.store(at, t.whole().load(other, col));
                        }
                        warp_sync();
                        round += 1;
                    }
                }
            }
        });
    });
    OpTrial::new("copy_async", &["copy_async", "copy_wait"], kernel)
        .input(&super::words(18 * 128, 30))
        .input(&super::words(18 * 32, 31))
        .output("tiles", Type::U32, 18 * 128)
}

/// Rows loaded through a pipeline of groups.
fn pipeline() -> OpTrial {
    const STAGES: u32 = 4;
    const ROWS: u32 = 11;
    let kernel = super::kernel("copy_groups", |k| {
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        let t = k
            .tile::<u32>("t", 1, 32)
            .unswizzled()
            .stages(STAGES)
            .declare();
        k.role("all").warps(1).body(|| {
            let load = |i: Reg<u32>| {
                if_(i.lt(ROWS), || {
                    let to = t.stage(i % STAGES);
                    to.copy_from(0u32, lane_id(), x.address(i * 32 + lane_id()), 4);
                });
                copy_commit();
            };
            for i in 0..STAGES - 1 {
                load(i.reg());
            }
            steps(ROWS).each(|i| {
                copy_wait(STAGES - 2);
                warp_sync();
                let row = t.stage(i % STAGES).load(0u32, lane_id() ^ 1);
                out.store(i * 32 + lane_id(), row);
                warp_sync();
                load(i + (STAGES - 1));
            });
        });
    });
    OpTrial::new(
        "copy_commit and copy_wait",
        &["copy_commit", "copy_wait"],
        kernel,
    )
    .input(&super::words(ROWS as usize * 32, 32))
    .output("rows", Type::U32, ROWS as usize * 32)
}

/// One warp copies and arrives when its copies complete; another waits and reads.
fn arrivals() -> OpTrial {
    let kernel = super::kernel("copy_arrive", |k| {
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        let t = k.tile::<u32>("t", 2, 32).unswizzled().declare();
        let full = k.barrier("full", 1).arrivals(32);
        let added = k.barrier("added", 1).arrivals(32);
        k.role("copy").warps(1).body(|| {
            let lane = lane_id();
            t.whole().copy_from(0u32, lane, x.address(lane), 4);
            full.at(0).arrive_after_copies();
            t.whole().copy_from(1u32, lane, x.address(lane + 32), 4);
            added.at(0).add_arrival_after_copies();
            added.at(0).arrive();
        });
        k.role("read").warps(1).body(|| {
            let lane = lane_id();
            full.at(0).wait(0);
            out.store(lane, t.whole().load(0u32, lane ^ 7));
            added.at(0).wait(0);
            out.store(lane + 32, t.whole().load(1u32, lane ^ 7));
        });
    });
    OpTrial::new("copy_arrive", &["copy_arrive"], kernel)
        .input(&super::words(64, 33))
        .output("rows", Type::U32, 64)
}
