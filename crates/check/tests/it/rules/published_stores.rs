//! Bulk stores and the flags that publish them.

use crate::rules::kernel;
use warpline_ir::builder::*;
use warpline_ir::ops::atomic::AtomicOp;
use warpline_ir::{DType, Kernel, MemoryOrder, Scope, Swizzle, TensorMapDecl};
use warpline_testkit::verdict::{NONE, codes, violations};

/// One CTA stores a row, runs `done` and sets a flag; another waits for the flag and reads the row
/// if `read`.
fn row(done: impl FnOnce(), read: bool) -> (Kernel, [u32; 2]) {
    let mut lines = [0; 2];
    let k = kernel(|k| {
        let (flags, rows) = (k.flags("flags"), k.pointer::<u32>("rows"));
        let out = k.pointer::<u32>("out");
        let t = k.tile::<u32>("t", 1, 32).unswizzled().declare().whole();
        k.role("all").body(|| {
            if_else(
                cta_id().eq(0u32),
                || {
                    t.store(0u32, lane_id(), 7u32);
                    fence_async();
                    warp_sync();
                    elect_lane(|| {
                        lines[0] = line!() + 1;
                        bulk_store(t, rows.address(0u32), 128u32);
                        bulk_commit();
                        done();
                        lines[1] = line!() + 1;
                        flags.signal(0u32);
                    });
                },
                || {
                    flags.wait(0u32, 1u32);
                    if read {
                        out.store(lane_id(), rows.load(lane_id()));
                    }
                },
            );
        });
    });
    (k, lines)
}

#[test]
fn a_flag_set_before_the_store_is_complete_is_refuted() {
    assert_eq!(violations(&row(|| bulk_wait(0), true).0), []);
    let (k, [store, raise]) = row(|| bulk_wait_read(0), true);
    assert_eq!(violations(&k), [("R18.complete", raise, Some(store))]);
    // One group may still be in flight.
    assert_eq!(codes(&row(|| bulk_wait(1), true).0), ["R18.complete"]);
    // No thread reads the row after the flag.
    assert_eq!(codes(&row(|| bulk_wait_read(0), false).0), NONE);
}

/// Another thread of the role sets the flag, with a fence and a relaxed atomic.
#[test]
fn a_tensor_store_published_by_another_thread_must_be_complete() {
    let k = |complete: bool| {
        let mut k = kernel(|k| {
            let decl = TensorMapDecl {
                swizzle: Swizzle::None,
                ..TensorMapDecl::tiled(DType::U32, [32, 1])
            };
            let (rows, flag) = (k.tensor_map("rows", decl), k.pointer::<u32>("flag"));
            let t = k.tile::<u32>("t", 1, 32).unswizzled().declare().whole();
            let back = k.tile::<u32>("back", 1, 32).unswizzled().declare().whole();
            let full = k.barrier("full", 1).arrivals(1).at(0u32);
            k.role("all").warps(2).body(|| {
                if_else(
                    cta_id().eq(0u32),
                    || {
                        if_(warp_id().eq(0u32), || {
                            t.store(0u32, lane_id(), 7u32);
                            fence_async();
                            warp_sync();
                        });
                        elect(|| {
                            rows.store(t, [0, 0]);
                            bulk_commit();
                            match complete {
                                true => bulk_wait(0),
                                false => bulk_wait_read(0),
                            }
                        });
                        cta_sync();
                        if_(warp_id().eq(1u32), || {
                            elect_lane(|| {
                                fence(Scope::Gpu);
                                let order = MemoryOrder::relaxed(Scope::Gpu);
                                flag.atomic_ref(0u32).reduce(AtomicOp::Add, 1u32, order);
                            });
                        });
                    },
                    || {
                        elect(|| {
                            let order = MemoryOrder::acquire(Scope::Gpu);
                            while_(
                                || flag.atomic_ref(0u32).load(order).eq(0u32),
                                || nanosleep(20),
                            );
                            fence_async_global();
                            full.arrive_expect(128u32);
                            rows.load(back, [0, 0], full);
                        });
                        full.wait(0u32);
                    },
                );
            });
        });
        k.co_resident = true;
        k
    };
    assert_eq!(codes(&k(false)), ["R18.complete"]);
    assert_eq!(codes(&k(true)), NONE);
}

/// One role stores and arrives at an mbarrier; another role waits there and sets the flag.
#[test]
fn a_store_published_by_another_role_must_be_complete() {
    let k = |complete: bool| {
        kernel(|k| {
            let (flags, rows) = (k.flags("flags"), k.pointer::<u32>("rows"));
            let out = k.pointer::<u32>("out");
            let t = k.tile::<u32>("t", 1, 32).unswizzled().declare().whole();
            let stored = k.barrier("stored", 1).arrivals(1).at(0u32);
            k.role("store").body(|| {
                t.store(0u32, lane_id(), 7u32);
                fence_async();
                warp_sync();
                elect_lane(|| {
                    bulk_store(t, rows.address(cta_id() * 32u32), 128u32);
                    bulk_commit();
                    match complete {
                        true => bulk_wait(0),
                        false => bulk_wait_read(0),
                    }
                    stored.arrive();
                });
            });
            k.role("raise").body(|| {
                stored.wait(0u32);
                flags.signal(cta_id());
                flags.wait(cta_id() ^ 1u32, 1u32);
                out.store(lane_id(), rows.load((cta_id() ^ 1u32) * 32u32 + lane_id()));
            });
        })
    };
    assert_eq!(codes(&k(false)), ["R18.complete"]);
    assert_eq!(codes(&k(true)), NONE);
}
