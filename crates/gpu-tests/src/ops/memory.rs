//! Loads, stores, prefetches, fences, cache policies.

use crate::columns::{BufferSide, Columns};
use crate::trial::OpTrial;
use half::{bf16, f16};
use warpline_ir::builder::*;
use warpline_ir::ops::memory::{
    L1Policy, Load, LoadCache, LoadPath, PrefetchLevel, Store, StoreCache,
};
use warpline_ir::ops::policy::{CacheHint, CreatePolicy, CreateRangePolicy, EvictionPriority};
use warpline_ir::{Operand, Scope, Type};

const EVICTIONS: [EvictionPriority; 4] = [
    EvictionPriority::First,
    EvictionPriority::Last,
    EvictionPriority::Normal,
    EvictionPriority::Unchanged,
];

const L1_POLICIES: [L1Policy; 11] = [
    L1Policy::Default,
    L1Policy::Bypass,
    L1Policy::Streaming,
    L1Policy::LastUse,
    L1Policy::Refetch,
    L1Policy::WriteThrough,
    L1Policy::NoAllocate,
    L1Policy::EvictFirst,
    L1Policy::EvictLast,
    L1Policy::EvictNormal,
    L1Policy::EvictUnchanged,
];

pub(crate) fn columns() -> Vec<Columns> {
    let (mut load, mut store) = (Columns::new("load"), Columns::new("store"));
    for ty in Type::ALL.into_iter().filter(|ty| *ty != Type::Pred) {
        for n in [1, 2, 4] {
            load_form(&mut load, ty, n, LoadCache::DEFAULT);
            store_form(&mut store, ty, n, StoreCache::DEFAULT);
        }
    }
    for l1 in L1_POLICIES {
        for hint in [None, Some(CacheHint::EvictFirst)] {
            for path in [LoadPath::Coherent, LoadPath::ReadOnly, LoadPath::Volatile] {
                let cache = LoadCache {
                    path,
                    l1,
                    l2_prefetch: None,
                    hint,
                };
                load_form(&mut load, Type::U32, 2, cache);
            }
            let volatile = false;
            let cache = StoreCache { volatile, l1, hint };
            store_form(&mut store, Type::U32, 2, cache);
        }
    }
    store_form(&mut store, Type::U32, 1, StoreCache::VOLATILE);

    let mut policy = Columns::new("create_policy");
    let mut range = Columns::new("create_range_policy");
    for primary in EVICTIONS {
        for rest in [EvictionPriority::Unchanged, EvictionPriority::First] {
            for fraction in [1.0f32, 0.5, 0.25] {
                let dst = policy.reg(Type::U64);
                policy.form(CreatePolicy {
                    dst,
                    primary,
                    secondary: rest,
                    fraction: Operand::imm(fraction),
                });
            }
            let (dst, addr) = (range.reg(Type::U64), range.arg(Type::U64));
            range.form(CreateRangePolicy {
                dst,
                primary,
                secondary: rest,
                addr,
                bytes: Operand::Imm(4096),
                total: Operand::Imm(8192),
            });
        }
    }
    vec![load, store, policy, range]
}

fn load_form(c: &mut Columns, ty: Type, n: usize, cache: LoadCache) {
    let dst = (0..n).map(|_| c.reg(ty)).collect();
    c.memory_form(BufferSide::Input, (ty, n), true, |at| {
        Load { ty, dst, at, cache }.into()
    });
}

fn store_form(c: &mut Columns, ty: Type, n: usize, cache: StoreCache) {
    let src = (0..n).map(|_| c.arg(ty)).collect();
    c.memory_form(BufferSide::Output, (ty, n), false, |at| {
        Store { ty, src, at, cache }.into()
    });
}

pub(crate) fn trials() -> Vec<OpTrial> {
    vec![
        shared(),
        peers(),
        prefetch(),
        discard(),
        fences(),
        cache_policies(),
    ]
}

/// Values of every width through shared memory, read by another thread.
fn shared() -> OpTrial {
    macro_rules! through {
        ($k:ident, $($t:ty: $n:literal),*) => {{
            let mut bodies: Vec<Box<dyn Fn()>> = vec![];
            $(
                let i = bodies.len();
                let (x, out) = ($k.pointer::<$t>(&format!("x{i}")), $k.pointer::<$t>(&format!("y{i}")));
                let t = $k.tile::<$t>(&format!("t{i}"), 1, 64 * $n).unswizzled().declare();
                bodies.push(Box::new(move || {
                    let at = thread_id() * $n;
                    t.whole().store_vec::<$n>(0u32, at, x.load_vec(at));
                    cta_sync();
                    let other = (thread_id() ^ 37) * $n;
                    out.store_vec::<$n>(at, t.whole().load_vec(0u32, other));
                }));
            )*
            bodies
        }};
    }
    let kernel = super::kernel("shared", |k| {
        let bodies = through!(
            k, u8: 1, u8: 4, f16: 1, bf16: 2, u16: 4, u32: 1, f32: 2, i32: 4, u64: 1, i64: 2
        );
        k.role("all")
            .warps(2)
            .body(|| bodies.iter().for_each(|body| body()));
    });
    let forms = [
        (Type::U8, 1),
        (Type::U8, 4),
        (Type::F16, 1),
        (Type::Bf16, 2),
        (Type::U16, 4),
        (Type::U32, 1),
        (Type::F32, 2),
        (Type::I32, 4),
        (Type::U64, 1),
        (Type::I64, 2),
    ];
    let mut trial = OpTrial::new("load and store, shared", &["load", "store"], kernel);
    for (seed, (ty, n)) in (0..).zip(forms) {
        trial = trial.input(&super::values(ty, 64 * n, seed)).output(
            &format!("{n} × {ty}"),
            ty,
            64 * n,
        );
    }
    trial
}

/// Stores to and loads from the shared memory of a peer.
fn peers() -> OpTrial {
    let kernel = super::kernel("peers", |k| {
        k.cluster(2, 1, 1);
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        let t = k.tile::<u32>("t", 2, 32).unswizzled().declare();
        k.role("all").warps(1).body(|| {
            let (rank, lane) = (cluster_rank(), lane_id());
            let peer = rank ^ 1;
            let at = |row: u32| (rank * 2 + row) * 32 + lane;
            t.whole().store(0u32, lane, x.load(at(0)));
            t.whole().peer(peer).store(1u32, lane, x.load(at(1)));
            cluster_sync();
            out.store(at(0), t.whole().peer(peer).load(0u32, lane ^ 5));
            out.store(at(1), t.whole().load(1u32, lane ^ 9));
        });
    });
    OpTrial::new(
        "load and store, peers",
        &["load", "store", "cluster_arrive", "cluster_wait"],
        kernel,
    )
    .input(&super::words(128, 2))
    .output("out", Type::U32, 128)
}

/// Prefetches and eviction hints do not change loaded values.
fn prefetch() -> OpTrial {
    let kernel = super::kernel("prefetch", |k| {
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        k.role("all").warps(1).body(|| {
            let levels = [
                PrefetchLevel::L1,
                PrefetchLevel::L2,
                PrefetchLevel::L2EvictLast,
                PrefetchLevel::L2EvictNormal,
            ];
            for (line, level) in (0u32..).zip(levels) {
                elect(|| {
                    x.prefetch(line * 32, level);
                    x.evict_normal(line * 32);
                });
                let at = lane_id() + line * 32;
                out.store(at, x.load(at));
            }
        });
    });
    OpTrial::new("prefetch", &["prefetch", "apply_priority"], kernel)
        .input(&super::words(128, 3))
        .output("out", Type::U32, 128)
}

/// Discards the second of three cache lines and writes it again.
fn discard() -> OpTrial {
    let kernel = super::kernel("discard", |k| {
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        k.role("all").warps(1).body(|| {
            elect(|| out.discard(32u32));
            warp_sync();
            out.store(lane_id() + 32, x.load(lane_id()));
        });
    });
    OpTrial::new("discard", &["discard"], kernel)
        .input(&super::words(32, 4))
        .in_out("out", Type::U32, &super::words(96, 5))
}

/// Every fence, between a store and another thread's load.
fn fences() -> OpTrial {
    const SCOPES: [Scope; 4] = [Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys];
    let kernel = super::kernel("fences", |k| {
        k.cluster(2, 1, 1);
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        let map = k.pointer::<u64>("map");
        let t = k.tile::<u32>("t", 1, 64).unswizzled().declare();
        k.role("all").warps(2).body(|| {
            let mut round = 0;
            let mut exchange = |fence: &dyn Fn()| {
                let at = (cta_id() * 64) + thread_id();
                t.whole().store(0u32, thread_id(), x.load(at) + round);
                fence();
                cta_sync();
                let other = t.whole().load(0u32, thread_id() ^ 33);
                cta_sync();
                out.store(at + 128 * round, other);
                round += 1;
            };
            exchange(&fence_async);
            exchange(&fence_async_cluster);
            exchange(&fence_async_global);
            exchange(&fence_async_all);
            exchange(&fence_async_release);
            exchange(&fence_async_acquire);
            exchange(&fence_alias);
            exchange(&fence_mbarrier_init);
            exchange(&fence_acquire_shared);
            exchange(&fence_release_shared);
            for scope in SCOPES {
                exchange(&|| fence(scope));
                exchange(&|| fence_acquire(scope));
                exchange(&|| fence_release(scope));
                exchange(&|| fence_sc(scope));
                exchange(&|| fence_tensor_map_release(scope));
                exchange(&|| fence_tensor_map_acquire(scope, map.address(0u32)));
            }
        });
    });
    OpTrial::new("fence", &["fence"], kernel)
        .input(&super::words(128, 6))
        .output("out", Type::U32, 34 * 128)
        .input(&[0u64; 16])
}

/// A load and a store with a cache policy created by the kernel.
fn cache_policies() -> OpTrial {
    let kernel = super::kernel("cache_policies", |k| {
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        k.role("all").warps(1).body(|| {
            let policies = [
                cache_policy(EvictionPriority::First, 0.5f32),
                range_policy(EvictionPriority::Last, x.address(0u32), 256u32, 512u32),
            ];
            for (i, hint) in (0u32..).zip(policies) {
                let at = lane_id() + 32 * i;
                let mut cache = LoadCache::DEFAULT;
                cache.hint = Some(hint);
                let [value] = x.load_cached::<u32, 1>(at, cache);
                let mut cache = StoreCache::DEFAULT;
                cache.hint = Some(hint);
                out.store_cached(at, [value], cache);
            }
        });
    });
    OpTrial::new(
        "load and store, policies",
        &["create_policy", "create_range_policy"],
        kernel,
    )
    .input(&super::words(128, 7))
    .output("out", Type::U32, 64)
}
