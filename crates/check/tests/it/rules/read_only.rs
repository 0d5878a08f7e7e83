//! The read-only path of loads.

use crate::rules::kernel;
use warpline_ir::builder::*;
use warpline_ir::ops::atomic::AtomicOp;
use warpline_ir::ops::memory::LoadCache;
use warpline_ir::{MemoryOrder, Scope};
use warpline_testkit::verdict::{NONE, codes, violations};

#[test]
fn a_read_only_load_of_a_written_buffer_is_refuted() {
    let in_place = |cache: LoadCache, elsewhere: bool| {
        let mut lines = [0; 2];
        let k = kernel(|k| {
            let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
            k.role("all").body(|| {
                lines[0] = line!() + 1;
                let [v] = x.load_cached::<f32, 1>(lane_id(), cache);
                let to = if elsewhere { y } else { x };
                lines[1] = line!() + 1;
                to.store(lane_id(), v + 1.0);
            });
        });
        (violations(&k), lines)
    };
    let (found, [read, write]) = in_place(LoadCache::READ_ONLY, false);
    assert_eq!(found, [("R18.read-only", read, Some(write))]);
    assert_eq!(in_place(LoadCache::READ_ONLY, true).0, []);
    assert_eq!(in_place(LoadCache::DEFAULT, false).0, []);
}

#[test]
fn writes_of_other_roles_and_bulk_stores_count() {
    let k = |cache: LoadCache, bulk: bool| {
        let k = kernel(|k| {
            let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
            let t = k.tile::<u32>("t", 1, 32).unswizzled().declare().whole();
            k.role("read").body(|| {
                let [v] = x.load_cached::<u32, 1>(lane_id(), cache);
                out.store(lane_id(), v);
            });
            k.role("write").body(|| match bulk {
                true => {
                    t.store(0u32, lane_id(), 1u32);
                    fence_async();
                    warp_sync();
                    elect_lane(|| {
                        bulk_store(t, x.address(32u32), 128u32);
                        bulk_commit();
                        bulk_wait(0);
                    });
                }
                false => {
                    let order = MemoryOrder::relaxed(Scope::Gpu);
                    x.atomic_ref(lane_id()).reduce(AtomicOp::Add, 1u32, order);
                }
            });
        });
        codes(&k)
    };
    for bulk in [false, true] {
        assert_eq!(k(LoadCache::READ_ONLY, bulk), ["R18.read-only"]);
        assert_eq!(k(LoadCache::DEFAULT, bulk), NONE);
    }
}

#[test]
fn another_word_of_the_same_buffer_may_be_written() {
    let k = |at: u32| {
        let k = kernel(|k| {
            let x = k.pointer::<u32>("x");
            k.role("all").body(|| {
                elect_lane(|| {
                    let [v] = x.load_cached::<u32, 1>(0u32, LoadCache::READ_ONLY);
                    x.store(at, v);
                });
            });
        });
        violations(&k).len()
    };
    assert_eq!((k(0), k(1)), (1, 0));
}
