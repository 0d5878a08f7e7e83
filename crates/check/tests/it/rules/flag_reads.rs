//! Flags that a thread reads once, without a loop.

use crate::rules::kernel;
use warpline_ir::builder::*;
use warpline_ir::ops::atomic::AtomicOp;
use warpline_ir::ops::memory::LoadCache;
use warpline_ir::{Kernel, MemoryOrder, Scope};
use warpline_testkit::verdict::{NONE, codes, violations};

const ACQUIRE: MemoryOrder = MemoryOrder::acquire(Scope::Gpu);
const RELEASE: MemoryOrder = MemoryOrder::release(Scope::Gpu);
const RELAXED: MemoryOrder = MemoryOrder::relaxed(Scope::Gpu);

/// One CTA writes a number and sets a flag. The others read the flag once with `look`; if the flag is
/// set, they run `before_read` and read the number. Returns the kernel and the line of that read.
fn hand_over(
    look: impl FnOnce(Global<u32>) -> Reg<bool>,
    before_read: impl FnOnce(),
) -> (Kernel, u32) {
    let mut read_line = 0;
    let k = kernel(|k| {
        let (flag, data) = (k.pointer::<u32>("flag"), k.pointer::<u32>("data"));
        let out = k.pointer::<u32>("out");
        k.role("all").body(|| {
            elect_lane(|| {
                if_else(
                    cta_id().eq(0u32),
                    || {
                        data.store(0u32, 7u32);
                        flag.atomic_ref(0u32).store(1u32, RELEASE);
                    },
                    || {
                        let raised = look(flag);
                        if_(raised, || {
                            before_read();
                            read_line = line!() + 1;
                            let x = data.load(0u32);
                            out.store(cta_id(), x);
                        });
                    },
                );
            });
        });
    });
    (k, read_line)
}

#[test]
fn a_flag_read_once_needs_an_acquire() {
    let load_with =
        |order: MemoryOrder| move |flag: Global<u32>| flag.atomic_ref(0u32).load(order).eq(1u32);
    assert_eq!(violations(&hand_over(load_with(ACQUIRE), || {}).0), []);
    let fenced = hand_over(load_with(RELAXED), || fence_acquire(Scope::Gpu)).0;
    assert_eq!(violations(&fenced), []);
    for wrong in [RELAXED, MemoryOrder::acquire(Scope::Cluster)] {
        let mut line = 0;
        let (k, read) = hand_over(
            |flag| {
                line = line!() + 1;
                flag.atomic_ref(0u32).load(wrong).eq(1u32)
            },
            || {},
        );
        let found = violations(&k);
        assert!(
            found.contains(&("R18.acquire", line, Some(read))),
            "{found:?}"
        );
    }
    // A fence at CTA scope does not cover other CTAs.
    let (k, _) = hand_over(load_with(RELAXED), || fence_acquire(Scope::Cta));
    assert_eq!(codes(&k), ["R18.acquire"]);
}

#[test]
fn a_weak_load_does_not_acquire_even_with_a_fence() {
    for fenced in [false, true] {
        let (k, _) = hand_over(
            |flag| flag.load(0u32).ne(0u32),
            || {
                if fenced {
                    fence_acquire(Scope::Gpu);
                }
            },
        );
        assert_eq!(codes(&k), ["R18.acquire"]);
    }
    // A volatile load counts as a relaxed load.
    let volatile = |flag: Global<u32>| {
        let [x] = flag.load_cached::<u32, 1>(0u32, LoadCache::VOLATILE);
        x.ne(0u32)
    };
    assert_eq!(codes(&hand_over(volatile, || {}).0), ["R18.acquire"]);
    let fenced = hand_over(volatile, || fence_acquire(Scope::Gpu)).0;
    assert_eq!(codes(&fenced), NONE);
}

/// Each step has a flag. One lane of role `take` reads the flag and passes its value to the other
/// lanes through shared memory.
#[test]
fn a_flag_read_is_tracked_through_arrays_and_shared_memory() {
    let k = |order: MemoryOrder| {
        kernel(|k| {
            let (ready, data) = (k.pointer::<u32>("ready"), k.pointer::<u32>("data"));
            let (n, out) = (k.param::<u32>("n"), k.pointer::<u32>("out"));
            let t = k.tile::<u32>("t", 1, 1).unswizzled().declare();
            k.role("make").body(|| {
                steps(n).each(|i| {
                    data.store(i * 32u32 + lane_id(), i);
                    warp_sync();
                    elect_lane(|| {
                        let word = ready.atomic_ref(i);
                        word.reduce(AtomicOp::Add, 1u32, RELEASE);
                    });
                });
            });
            k.role("take").body(|| {
                steps(n).each(|i| {
                    elect_lane(|| t.whole().store(0u32, 0u32, ready.atomic_ref(i).load(order)));
                    warp_sync();
                    let raised = t.whole().load(0u32, 0u32).ne(0u32);
                    if_(raised, || {
                        let at = i * 32u32 + lane_id();
                        out.store(at, data.load(at));
                    });
                    warp_sync();
                });
            });
        })
    };
    assert_eq!(codes(&k(RELAXED)), ["R18.acquire"]);
    assert_eq!(codes(&k(ACQUIRE)), NONE);
}

#[test]
fn a_cta_barrier_orders_a_weak_read_inside_the_cta() {
    let k = |syncs: bool| {
        kernel(|k| {
            let (count, data) = (k.pointer::<u32>("count"), k.pointer::<u32>("data"));
            k.role("all").warps(2).body(|| {
                data.store(thread_id(), 1u32);
                count.atomic_ref(0u32).reduce(AtomicOp::Add, 1u32, RELEASE);
                if syncs {
                    cta_sync();
                }
                let many = count.load(0u32).gt(3u32);
                if_(many, || {
                    let x = data.load(63u32.reg() - thread_id());
                    data.store(thread_id() + 64u32, x);
                });
            });
        })
    };
    assert_eq!(codes(&k(false)), ["R18.acquire"]);
    assert_eq!(codes(&k(true)), NONE);
}

#[test]
fn a_branch_on_read_only_data_is_no_flag_read() {
    let k = kernel(|k| {
        let (x, y) = (k.pointer::<u32>("x"), k.pointer::<u32>("y"));
        k.role("all").body(|| {
            let v = x.load(lane_id());
            if_(v.gt(3u32), || y.store(lane_id(), y.load(lane_id()) + v));
        });
    });
    assert_eq!(codes(&k), NONE);
}
