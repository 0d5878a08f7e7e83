//! Strong accesses: release, acquire, relaxed, scopes.

use crate::executor::harness::{edit, strict, timings};
use warpline_cpu::{Options, RunError};
use warpline_ir::builder::*;
use warpline_ir::ops::atomic::AtomicOp;
use warpline_ir::ops::memory::{L1Policy, LoadCache, StoreCache};
use warpline_ir::ops::policy::EvictionPriority;
use warpline_ir::{FaultKind, Kernel, MemoryAddress, MemoryOrder, Op, Scope, Semantics};
use warpline_testkit::launch::Setup;

fn build(cluster: u32, body: impl FnOnce(Builder)) -> Kernel {
    warpline_testkit::kernel::build("strong", |k| {
        k.cluster(cluster, 1, 1);
        body(k);
    })
}

/// How a flag is set and observed: memory orders, and fences around relaxed accesses.
#[derive(Clone, Copy, Debug)]
struct FlagOrders {
    raise: MemoryOrder,
    see: MemoryOrder,
    fences: Option<Scope>,
}

const fn flag_orders(raise: MemoryOrder, see: MemoryOrder) -> FlagOrders {
    FlagOrders {
        raise,
        see,
        fences: None,
    }
}

/// One warp writes a tile and sets a flag; another observes the flag and reads the tile.
fn publish_tile(orders: FlagOrders, shared: bool) -> Kernel {
    build(1, |k| {
        let (flag, out) = (k.pointer::<u32>("flag"), k.pointer::<u32>("out"));
        let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
        let f = k.tile::<u32>("f", 1, 4).unswizzled().declare();
        let word = move || match shared {
            true => f.whole().atomic_ref(0u32, 0u32),
            false => flag.atomic_ref(0u32),
        };
        k.role("send").body(|| {
            if shared {
                elect(|| word().store(0u32, MemoryOrder::relaxed(Scope::Cta)));
            }
            cta_sync();
            t.whole().store(0u32, lane_id(), lane_id() + 1);
            warp_sync();
            elect(|| {
                orders.fences.into_iter().for_each(fence);
                word().atomic(AtomicOp::Add, 1u32, orders.raise);
            });
        });
        k.role("see").body(|| {
            cta_sync();
            while_(|| word().load(orders.see).eq(0u32), || nanosleep(20));
            orders.fences.into_iter().for_each(fence);
            out.store(lane_id(), t.whole().load(0u32, lane_id()));
        });
    })
}

fn run(k: &Kernel, options: &Options) -> Result<Vec<u32>, Box<RunError>> {
    let s = Setup::new().input("flag", &[0u32]).output("out", 128);
    s.run(k, k.cluster_size(), options)?;
    Ok(s.values(1))
}

#[test]
fn release_and_acquire_of_one_word_order_earlier_writes() {
    for scope in [Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys] {
        let (acquire, release) = (MemoryOrder::acquire(scope), MemoryOrder::release(scope));
        let relaxed = MemoryOrder::relaxed(scope);
        let fenced = FlagOrders {
            fences: Some(scope),
            ..flag_orders(relaxed, relaxed)
        };
        let right = [
            flag_orders(release, acquire),
            flag_orders(MemoryOrder::acq_rel(scope), acquire),
            fenced,
        ];
        for (orders, shared) in right.into_iter().flat_map(|w| [(w, false), (w, true)]) {
            let k = publish_tile(orders, shared);
            for options in timings() {
                let got = run(&k, &options).unwrap_or_else(|e| panic!("{orders:?} {shared}: {e}"));
                assert_eq!(got, (1..33).collect::<Vec<_>>());
            }
        }
        let wrong = [
            flag_orders(relaxed, acquire),
            flag_orders(MemoryOrder::acquire(scope), acquire),
            flag_orders(release, relaxed),
            flag_orders(relaxed, relaxed),
        ];
        for (orders, shared) in wrong.into_iter().flat_map(|w| [(w, false), (w, true)]) {
            let k = publish_tile(orders, shared);
            for options in strict() {
                let e = run(&k, &options).unwrap_err();
                assert_eq!(e.kind, FaultKind::Race, "{orders:?} {shared}: {e}");
            }
        }
    }
}

#[test]
fn a_release_through_another_word_is_not_acquired() {
    let k = build(1, |k| {
        let (flag, out) = (k.pointer::<u32>("flag"), k.pointer::<u32>("out"));
        let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
        k.role("send").body(|| {
            t.whole().store(0u32, lane_id(), 1u32);
            warp_sync();
            elect(|| {
                flag.atomic_ref(1u32)
                    .store(1u32, MemoryOrder::release(Scope::Gpu));
                flag.atomic_ref(0u32)
                    .store(1u32, MemoryOrder::relaxed(Scope::Gpu));
            });
        });
        k.role("see").body(|| {
            let acquire = MemoryOrder::acquire(Scope::Gpu);
            while_(
                || flag.atomic_ref(0u32).load(acquire).eq(0u32),
                || nanosleep(20),
            );
            out.store(lane_id(), t.whole().load(0u32, lane_id()));
        });
    });
    for options in strict() {
        let s = Setup::new().input("flag", &[0u32; 2]).output("out", 128);
        let e = s.run(&k, 1, &options).unwrap_err();
        assert_eq!(e.kind, FaultKind::Race, "{e}");
    }
}

/// CTA 0 of a cluster writes the tile of CTA 1 and sets a flag; CTA 1 observes the flag and reads the
/// tile.
fn publish_tile_to_peer(raise: Scope, see: Scope) -> Kernel {
    build(2, |k| {
        let (flag, out) = (k.pointer::<u32>("flag"), k.pointer::<u32>("out"));
        let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
        k.role("all").body(|| {
            if_else(
                cluster_rank().eq(0u32),
                || {
                    t.whole().peer(1u32).store(0u32, lane_id(), lane_id() + 1);
                    warp_sync();
                    elect_lane(|| {
                        flag.atomic_ref(0u32).reduce(
                            AtomicOp::Add,
                            1u32,
                            MemoryOrder::release(raise),
                        );
                    });
                },
                || {
                    let acquire = MemoryOrder::acquire(see);
                    while_(
                        || flag.atomic_ref(0u32).load(acquire).eq(0u32),
                        || nanosleep(20),
                    );
                    out.store(lane_id(), t.whole().load(0u32, lane_id()));
                },
            );
        });
    })
}

#[test]
fn cta_scope_does_not_include_a_peer() {
    use Scope::{Cluster, Cta, Gpu};
    for (raise, see) in [(Cluster, Cluster), (Gpu, Cluster), (Cluster, Gpu)] {
        let k = publish_tile_to_peer(raise, see);
        for options in timings() {
            let got = run(&k, &options).unwrap_or_else(|e| panic!("{raise:?} {see:?}: {e}"));
            assert_eq!(got, (1..33).collect::<Vec<_>>());
        }
    }
    for (raise, see) in [(Cta, Cluster), (Gpu, Cta), (Cta, Cta)] {
        let k = publish_tile_to_peer(raise, see);
        for options in strict() {
            let e = run(&k, &options).unwrap_err();
            assert_eq!(e.kind, FaultKind::Race, "{raise:?} {see:?}: {e}");
        }
    }
}

#[test]
fn volatile_accesses_do_not_race_and_do_not_order_other_accesses() {
    // The flag is in shared memory. With `data`, the reader also loads the tile that the flag
    // announces.
    let kernel = |volatile: bool, data: bool| {
        let mut k = build(1, |k| {
            let out = k.pointer::<u32>("out");
            let (f, t) = (
                k.tile::<u32>("f", 1, 4).unswizzled().declare(),
                k.tile::<u32>("t", 1, 32).unswizzled().declare(),
            );
            k.role("send").body(|| {
                elect(|| f.whole().store(0u32, 0u32, 0u32));
                cta_sync();
                t.whole().store(0u32, lane_id(), 1u32);
                warp_sync();
                elect(|| f.whole().store(0u32, 0u32, 1u32));
            });
            k.role("see").body(|| {
                cta_sync();
                while_(|| f.whole().load(0u32, 0u32).eq(0u32), || nanosleep(20));
                let seen = match data {
                    true => t.whole().load(0u32, lane_id()),
                    false => 1u32.reg(),
                };
                out.store(lane_id(), seen);
            });
        });
        if volatile {
            let is_flag =
                |at: &MemoryAddress| matches!(at, MemoryAddress::Shared(p) if p.tile.0 == 0);
            for role in 0..2 {
                edit(&mut k, role, &|mut op| {
                    match &mut op {
                        Op::Load(o) if is_flag(&o.at) => o.cache = LoadCache::VOLATILE,
                        Op::Store(o) if is_flag(&o.at) => o.cache = StoreCache::VOLATILE,
                        _ => {}
                    }
                    Some(op)
                });
            }
        }
        k
    };
    let run = |k: &Kernel, options: &Options| {
        let s = Setup::new().output("out", 128);
        s.run(k, 1, options)
    };
    for options in strict() {
        run(&kernel(true, false), &options).unwrap_or_else(|e| panic!("{e}"));
        for (volatile, data) in [(false, false), (true, true)] {
            let e = run(&kernel(volatile, data), &options).unwrap_err();
            assert_eq!(e.kind, FaultKind::Race, "{volatile} {data}: {e}");
        }
    }
}

#[test]
fn atomic_reductions_of_lanes_and_warps_sum_correctly() {
    let k = build(1, |k| {
        let (x, y) = (k.pointer::<u32>("x"), k.pointer::<f32>("y"));
        let t = k.tile::<u32>("t", 1, 4).unswizzled().declare();
        let relaxed = MemoryOrder {
            sem: Semantics::Relaxed,
            scope: Scope::Cta,
        };
        k.role("all").warps(4).body(|| {
            if_(thread_id().lt(4u32), || {
                t.whole().store(0u32, thread_id(), 0u32);
            });
            cta_sync();
            let sum = t.whole().atomic_ref(0u32, lane_id() & 3);
            sum.reduce(AtomicOp::Add, thread_id(), relaxed);
            let gpu = MemoryOrder::relaxed(Scope::Gpu);
            y.atomic_ref((lane_id() & 1) * 4).reduce_vec(
                AtomicOp::Add,
                [1.0f32, 2.0, 3.0, 4.0],
                gpu,
            );
            cta_sync();
            if_(thread_id().lt(4u32), || {
                x.store(thread_id(), t.whole().load(0u32, thread_id()));
            });
        });
    });
    for options in timings() {
        let s = Setup::new().output("x", 16).input("y", &[0f32; 8]);
        s.run(&k, 1, &options).unwrap_or_else(|e| panic!("{e}"));
        let want = |c: u32| (0..128).filter(|i| i % 4 == c).sum::<u32>();
        assert_eq!(s.values::<u32>(0), [0, 1, 2, 3].map(want));
        let y: Vec<f32> = (0..8).map(|i| 64.0 * (i % 4 + 1) as f32).collect();
        assert_eq!(s.values::<f32>(1), y);
    }
}

#[test]
fn sixteen_bit_adds_are_atomic_in_global_and_shared_memory() {
    use half::f16;
    let relaxed = MemoryOrder::relaxed(Scope::Gpu);
    let k = build(1, |k| {
        let (far, out) = (k.pointer::<f16>("far"), k.pointer::<f16>("out"));
        let t = k.tile::<f16>("t", 1, 8).unswizzled().declare();
        k.role("all").warps(2).body(|| {
            if_(thread_id().lt(8u32), || {
                t.whole().store(0u32, thread_id(), f16::ZERO);
            });
            cta_sync();
            let near = t.whole().atomic_ref(0u32, lane_id() % 8);
            near.reduce(AtomicOp::Add, f16::ONE, relaxed);
            far.atomic_ref(lane_id() % 2)
                .atomic(AtomicOp::Add, f16::ONE, relaxed);
            far.atomic_ref(0u32)
                .atomic_vec(AtomicOp::Add, [f16::ONE; 8], relaxed);
            cta_sync();
            if_(thread_id().lt(8u32), || {
                let i = thread_id();
                out.store(i, t.whole().load(0u32, i));
            });
        });
    });
    for options in timings() {
        let s = Setup::new().input("far", &[f16::ZERO; 8]).output("out", 16);
        s.run(&k, 1, &options).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(s.values::<f16>(1), [f16::from_f32(8.0); 8]);
        let (both, one) = (f16::from_f32(96.0), f16::from_f32(64.0));
        let want = [both, both, one, one, one, one, one, one];
        assert_eq!(s.values::<f16>(0), want);
    }
}

#[test]
fn a_discarded_line_may_be_written_again() {
    let k = build(1, |k| {
        let x = k.pointer::<u32>("x");
        k.role("all").body(|| {
            elect(|| {
                x.evict_normal(0u32);
                x.discard(32u32);
            });
            warp_sync();
            let hint = range_policy(EvictionPriority::Last, x.address(0u32), 128, 256);
            let cache = LoadCache::DEFAULT.l1(L1Policy::Refetch).hint(hint);
            let [three] = x.load_cached::<u32, 1>(lane_id(), cache);
            if_(lane_id().lt(16u32), || {
                let through = StoreCache::DEFAULT.l1(L1Policy::WriteThrough);
                x.store_cached(lane_id() + 32, [three + 4], through);
            });
        });
    });
    for options in timings() {
        let s = Setup::new().input("x", &[3u32; 96]);
        s.run(&k, 1, &options).unwrap_or_else(|e| panic!("{e}"));
        let got = s.values::<u32>(0);
        assert!(got[..32].iter().chain(&got[64..]).all(|&x| x == 3));
        assert!(got[32..48].iter().all(|&x| x == 7));
        assert!(got[48..64].iter().all(|&x| x != 3 && x != 7));
    }
}
