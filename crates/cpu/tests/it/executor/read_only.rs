//! Read-only loads (`ld.global.nc`) of bytes that the kernel writes.

use crate::executor::harness::{line, other_line, strict, timings};
use warpline_ir::builder::*;
use warpline_ir::ops::memory::LoadCache;
use warpline_ir::{FaultKind, Kernel};
use warpline_testkit::launch::Setup;

fn build(body: impl FnOnce(Builder)) -> Kernel {
    warpline_testkit::kernel::build("read_only", body)
}

#[track_caller]
fn load(x: Global<u32>, i: Reg<u32>, read_only: bool) -> Reg<u32> {
    let cache = match read_only {
        true => LoadCache::READ_ONLY,
        false => LoadCache::DEFAULT,
    };
    let [y] = x.load_cached::<u32, 1>(i, cache);
    y
}

#[test]
fn a_read_only_load_of_own_writes_is_a_fault_in_either_order() {
    for store_first in [true, false] {
        let (mut read, mut wrote) = (0, 0);
        let mut kernel = |read_only: bool| {
            build(|k| {
                let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
                k.role("all").body(|| {
                    let mut store = || {
                        wrote = line!() + 1;
                        x.store(lane_id(), lane_id() + 1);
                    };
                    if store_first {
                        store();
                    }
                    read = line!() + 1;
                    let y = load(x, lane_id(), read_only);
                    if !store_first {
                        store();
                    }
                    out.store(lane_id(), y);
                });
            })
        };
        let (right, wrong) = (kernel(false), kernel(true));
        let setup = || Setup::new().input("x", &[0u32; 32]).output("out", 128);
        for options in timings() {
            let ran = setup().run(&right, 1, &options);
            ran.unwrap_or_else(|e| panic!("{options:?}: {e}"));
        }
        let lines = match store_first {
            true => (read, wrote),
            false => (wrote, read),
        };
        for options in strict() {
            let e = setup().run(&wrong, 1, &options).unwrap_err();
            assert_eq!(
                (e.kind, (line(&e), other_line(&e))),
                (FaultKind::Race, lines),
                "{e}"
            );
            assert!(e.text.contains("ld.global.nc"), "{e}");
        }
    }
}

#[test]
fn a_barrier_does_not_order_a_read_only_load_after_a_write() {
    let kernel = |read_only: bool| {
        build(|k| {
            let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
            k.role("all").warps(2).body(|| {
                x.store(thread_in_role(), 3u32);
                cta_sync();
                out.store(
                    thread_in_role(),
                    load(x, thread_in_role() ^ 32u32, read_only),
                );
            });
        })
    };
    let setup = || Setup::new().output("x", 256).output("out", 256);
    for options in timings() {
        let ran = setup().run(&kernel(false), 1, &options);
        ran.unwrap_or_else(|e| panic!("{options:?}: {e}"));
    }
    for options in strict() {
        let e = setup().run(&kernel(true), 1, &options).unwrap_err();
        assert_eq!(e.kind, FaultKind::Race, "{e}");
    }
}

#[test]
fn writes_of_other_ctas_and_of_engines_conflict_with_read_only_loads() {
    // The last CTA writes, with stores or a bulk copy, the words that all CTAs read, or words after
    // them.
    let kernel = |bulk: bool, offset: u32| {
        build(|k| {
            let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
            let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
            k.role("all").body(|| {
                let y = load(x, lane_id(), true);
                out.store(cta_id() * 32 + lane_id(), y);
                if_(cta_id().eq(grid_ctas() - 1), || match bulk {
                    false => x.store(lane_id() + offset, 1u32),
                    true => {
                        t.whole().store(0u32, lane_id(), 1u32);
                        fence_async();
                        warp_sync();
                        elect(|| {
                            bulk_store(t.whole(), x.address(offset), 128);
                            bulk_commit();
                            bulk_wait(0);
                        });
                    }
                });
            });
        })
    };
    let setup = || Setup::new().input("x", &[0u32; 64]).output("out", 512);
    for bulk in [false, true] {
        for options in timings() {
            let ran = setup().run(&kernel(bulk, 32), 4, &options);
            ran.unwrap_or_else(|e| panic!("{options:?}: {e}"));
        }
        for options in strict() {
            let e = setup().run(&kernel(bulk, 0), 4, &options).unwrap_err();
            assert_eq!(e.kind, FaultKind::Race, "{e}");
            assert!(e.text.contains("ld.global.nc"), "{e}");
        }
    }
}
