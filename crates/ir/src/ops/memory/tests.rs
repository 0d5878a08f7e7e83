//! Loads, stores, prefetches and fences.

use super::*;
use crate::job::fake::{Cta, GLOBAL, Rng, shared_address};
use crate::lanes::fake::{arg, ptx, reg};
use crate::layout::{Swizzle, TileLayout};
use crate::machine::{Effects, FaultKind, MemoryAccess, PerLane, WARP};
use crate::ops::Instr;
use crate::ops::policy::CacheHint;
use crate::sync::{Scope, SyncOp};
use crate::target::Target;
use crate::value::{Operand, RegId, SharedAddress};

const TILE: TileLayout = TileLayout {
    element_bytes: 4,
    rows: 32,
    cols: 8,
    swizzle: Swizzle::None,
};

/// Returns a CTA in which lane `i` has global byte `32 i` in register 1 and tile byte `32 i` in register 2.
fn cta() -> Cta {
    let mut cta = Cta::new(2, 1024).tile(256, TILE);
    cta.global = Rng(1).bytes(1024);
    let addresses: PerLane<u64> = std::array::from_fn(|i| GLOBAL + 32 * i as u64);
    let offsets: PerLane<u32> = std::array::from_fn(|i| 32 * i as u32);
    cta.warp = cta.warp.clone().with(1, &addresses).with(2, &offsets);
    cta
}

const IN_GLOBAL: MemoryAddress = MemoryAddress::Global {
    addr: Operand::Reg(RegId(1)),
    offset: 16,
};

fn in_shared(peer: Option<u64>) -> MemoryAddress {
    MemoryAddress::Shared(SharedAddress {
        offset: 16,
        peer: peer.map(Operand::Imm),
        ..shared_address(0, arg(2))
    })
}

fn load(ty: Type, n: u32, at: MemoryAddress) -> Load {
    Load {
        ty,
        dst: (0..n).map(|i| reg(10 + i)).collect(),
        at,
        cache: LoadCache::DEFAULT,
    }
}

fn store(ty: Type, n: u32, at: MemoryAddress) -> Store {
    Store {
        ty,
        src: (0..n).map(|i| arg(10 + i)).collect(),
        at,
        cache: StoreCache::DEFAULT,
    }
}

#[test]
fn load_and_store_round_trip_in_the_active_lanes() {
    for (ty, n) in [
        (Type::U8, 1),
        (Type::U8, 4),
        (Type::Bf16, 1),
        (Type::F16, 2),
        (Type::F32, 1),
        (Type::U32, 4),
        (Type::F16x2, 2),
        (Type::U64, 1),
        (Type::I64, 2),
    ] {
        let bytes = ty.bytes() * n as usize;
        let mut cta = cta();
        let (before, odd) = (cta.shared.clone(), 0xaaaa_aaaa);
        cta.run(&load(ty, n, IN_GLOBAL));
        cta.warp.active = odd;
        cta.run(&store(ty, n, in_shared(Some(1))));
        for lane in 0..WARP {
            let (from, to) = (32 * lane + 16, 256 + 32 * lane + 16);
            let got = &cta.shared[1][to..to + 16];
            let moved = if odd >> lane & 1 == 1 { bytes } else { 0 };
            assert_eq!(got[..moved], cta.global[from..from + moved], "{ty} {n}");
            assert_eq!(got[moved..], before[1][to + moved..to + 16], "{ty} {n}");
        }
        assert_eq!(cta.shared[0], before[0]);
    }
}

#[test]
fn vector_registers_have_ascending_addresses() {
    let mut cta = cta();
    cta.global[16..32].copy_from_slice(bytemuck::cast_slice(&[1.5f32, -2.0, 3.0, 4.0]));
    cta.run(&load(Type::F32, 4, IN_GLOBAL));
    let lane0: Vec<f32> = (0..4).map(|i| cta.warp.read::<f32>(10 + i)[0]).collect();
    assert_eq!(lane0, [1.5, -2.0, 3.0, 4.0]);
}

#[test]
fn a_fence_is_one_sync_op() {
    let mut cta = cta();
    for fence in [
        crate::sync::FenceKind::ProxyAsyncShared,
        crate::sync::FenceKind::AcqRel(Scope::Gpu),
        crate::sync::FenceKind::TensorMapAcquire(Scope::Sys, arg(1)),
    ] {
        cta.run(&Fence { kind: fence });
        assert_eq!(cta.warp.syncs.pop(), Some(SyncOp::Fence(fence)));
    }
}

#[test]
fn loads_print_their_cache_modifiers() {
    let print_with = |cache| {
        let load = Load {
            cache,
            ..load(Type::U32, 4, IN_GLOBAL)
        };
        ptx(&load).join("; ")
    };
    let hint = CacheHint::Policy(arg(5));
    for (cache, text) in [
        (LoadCache::DEFAULT, "ld.global.v4.b32 V"),
        (LoadCache::READ_ONLY, "ld.global.nc.v4.b32 V"),
        (LoadCache::VOLATILE, "ld.volatile.global.v4.b32 V"),
        (
            LoadCache::DEFAULT.l1(L1Policy::Streaming),
            "ld.global.cs.v4.b32 V",
        ),
        (
            LoadCache::DEFAULT.l1(L1Policy::LastUse),
            "ld.global.lu.v4.b32 V",
        ),
        (
            LoadCache::DEFAULT.l1(L1Policy::Refetch).hint(hint),
            "ld.global.cv.L2::cache_hint.v4.b32 V, %5",
        ),
        (
            LoadCache::READ_ONLY
                .l1(L1Policy::Bypass)
                .l2_prefetch(L2Prefetch::B64),
            "ld.global.cg.nc.L2::64B.v4.b32 V",
        ),
        (
            LoadCache::READ_ONLY
                .l1(L1Policy::NoAllocate)
                .l2_prefetch(L2Prefetch::B256)
                .hint(hint),
            "ld.global.nc.L1::no_allocate.L2::cache_hint.L2::256B.v4.b32 V, %5",
        ),
        (
            LoadCache::DEFAULT.hint(CacheHint::EvictFirst),
            "mov.b64 %t0, 0x12f0000000000000; ld.global.L2::cache_hint.v4.b32 V, %t0",
        ),
        (
            LoadCache::VOLATILE.l2_prefetch(L2Prefetch::B128),
            "ld.volatile.global.L2::128B.v4.b32 V",
        ),
    ] {
        let text = text.replace('V', "{%10, %11, %12, %13}, [address]");
        assert_eq!(print_with(cache), text);
    }
    assert_eq!(
        ptx(&load(Type::U8, 1, in_shared(None))),
        ["ld.shared.b8 %10, [address]"]
    );
    assert_eq!(
        ptx(&load(Type::Bf16, 2, in_shared(Some(1)))),
        ["ld.shared::cluster.v2.b16 {%10, %11}, [address]"]
    );
}

#[test]
fn stores_print_their_cache_modifiers() {
    assert_eq!(
        ptx(&store(Type::U64, 1, in_shared(None))),
        ["st.shared.b64 [address], %10"]
    );
    let print_with = |cache, at| {
        let store = Store {
            src: vec![Operand::Imm(7), arg(1)],
            cache,
            ..store(Type::I32, 2, at)
        };
        ptx(&store).pop()
    };
    let text = |before: &str, after: &str| Some(format!("st{before}.v2.b32 [address], {after}"));
    assert_eq!(
        print_with(StoreCache::DEFAULT.l1(L1Policy::Streaming), IN_GLOBAL),
        text(".global.cs", "{%t0, %1}")
    );
    assert_eq!(
        print_with(StoreCache::DEFAULT.l1(L1Policy::WriteThrough), IN_GLOBAL),
        text(".global.wt", "{%t0, %1}")
    );
    assert_eq!(
        print_with(StoreCache::VOLATILE, in_shared(Some(1))),
        text(".volatile.shared::cluster", "{%t0, %1}")
    );
    let hint = CacheHint::Policy(arg(5));
    assert_eq!(
        print_with(
            StoreCache::DEFAULT.l1(L1Policy::EvictLast).hint(hint),
            IN_GLOBAL
        ),
        text(".global.L1::evict_last.L2::cache_hint", "{%t0, %1}, %5")
    );
}

#[test]
fn discard_overwrites_only_its_line() {
    let mut cta = cta();
    let before = cta.global.clone();
    let line: PerLane<u64> = std::array::from_fn(|_| GLOBAL + 256);
    cta.warp = cta.warp.clone().with(3, &line).with_active(1);
    cta.run(&Discard { addr: arg(3) });
    assert_eq!(cta.global[..256], before[..256]);
    assert_eq!(cta.global[384..], before[384..]);
    let junk = &cta.global[256..384];
    assert!(junk.iter().all(|&b| b == junk[0]) && junk[0] != 0);
    cta.run(&ApplyPriority { addr: arg(3) });
    let odd: PerLane<u64> = std::array::from_fn(|_| GLOBAL + 64);
    cta.warp = cta.warp.clone().with(3, &odd);
    let faults = [
        Discard { addr: arg(3) }.exec(&mut cta),
        ApplyPriority { addr: arg(3) }.exec(&mut cta),
    ];
    for fault in faults.map(|f| f.unwrap_err()) {
        assert_eq!(fault.kind, FaultKind::Misaligned);
        assert!(fault.text.contains("a multiple of 128"), "{}", fault.text);
    }
}

#[test]
fn cache_line_ops_and_fences_print_their_operands() {
    let (discard, apply) = (Discard { addr: arg(1) }, ApplyPriority { addr: arg(1) });
    assert_eq!(ptx(&discard), ["discard.global.L2 [%1], 128"]);
    assert_eq!(
        ptx(&apply),
        ["applypriority.global.L2::evict_normal [%1], 128"]
    );
    let prefetch = |to| ptx(&Prefetch { addr: arg(1), to });
    assert_eq!(prefetch(PrefetchLevel::L1), ["prefetch.global.L1 [%1]"]);
    assert_eq!(
        prefetch(PrefetchLevel::L2EvictLast),
        ["prefetch.global.L2::evict_last [%1]"]
    );
    let fence = |fence| ptx(&Fence { kind: fence });
    use crate::sync::FenceKind::*;
    assert_eq!(fence(ProxyAsyncShared), ["fence.proxy.async.shared::cta"]);
    assert_eq!(fence(ProxyAsyncGlobal), ["fence.proxy.async.global"]);
    assert_eq!(fence(MbarrierInit), ["fence.mbarrier_init.release.cluster"]);
    assert_eq!(fence(AcqRel(Scope::Cluster)), ["fence.acq_rel.cluster"]);
    assert_eq!(fence(Release(Scope::Sys)), ["fence.release.sys"]);
    assert_eq!(
        fence(AcquireShared),
        ["fence.acquire.sync_restrict::shared::cluster.cluster"]
    );
    assert_eq!(
        fence(ProxyAsyncRelease),
        ["fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster"]
    );
    assert_eq!(
        fence(TensorMapRelease(Scope::Gpu)),
        ["fence.proxy.tensormap::generic.release.gpu"]
    );
    assert_eq!(
        fence(TensorMapAcquire(Scope::Cta, arg(1))),
        ["fence.proxy.tensormap::generic.acquire.cta [%1], 128"]
    );
}

#[test]
fn fences_have_a_ptx_version_and_a_memory_order() {
    use crate::sync::FenceKind::*;
    use crate::sync::MemoryOrder;
    let op = |fence| Fence { kind: fence };
    assert_eq!(op(Sc(Scope::Gpu)).ptx_version(), (8, 0));
    assert_eq!(op(TensorMapRelease(Scope::Gpu)).ptx_version(), (8, 3));
    assert_eq!(op(ReleaseShared).ptx_version(), (8, 6));
    assert_eq!(
        Acquire(Scope::Sys).order(),
        Some(MemoryOrder::acquire(Scope::Sys))
    );
    assert_eq!(
        ReleaseShared.order(),
        Some(MemoryOrder::release(Scope::Cluster))
    );
    assert_eq!(ProxyAsyncRelease.order(), None);
    assert!(!ProxyAsyncRelease.is_proxy_shared());
}

#[test]
fn a_policy_in_a_register_is_an_operand() {
    struct Args(Vec<Operand>);
    impl Effects for Args {
        fn def(&mut self, _: RegId) {}
        fn arg(&mut self, o: Operand, ty: Type) {
            assert_eq!(ty, Type::U64);
            self.0.push(o);
        }
        fn access(&mut self, _: &MemoryAccess) {}
        fn sync(&mut self, _: &SyncOp) {}
        fn whole_warp(&mut self) {}
    }
    let mut args = Args(vec![]);
    for hint in [CacheHint::EvictLast, CacheHint::Policy(arg(7))] {
        let cache = LoadCache::DEFAULT.hint(hint);
        let op = Load {
            cache,
            ..load(Type::U32, 1, IN_GLOBAL)
        };
        op.effects(&mut args);
    }
    assert_eq!(args.0, [arg(7)]);
}

#[test]
fn unsupported_widths_and_cache_modifiers_are_rejected() {
    let t = Target::SM_90A;
    let assert_rejected = |r: Result<(), String>, text: &str| {
        let why = r.unwrap_err();
        assert!(why.contains(text), "{why}");
    };
    assert_eq!(load(Type::U64, 2, IN_GLOBAL).legal(&t), Ok(()));
    assert_rejected(
        load(Type::U64, 4, IN_GLOBAL).legal(&t),
        "4 registers of u64",
    );
    assert_rejected(load(Type::U8, 3, IN_GLOBAL).legal(&t), "3 registers of u8");
    assert_rejected(
        load(Type::U32, 0, IN_GLOBAL).legal(&t),
        "0 registers of u32",
    );
    assert_rejected(store(Type::Pred, 1, IN_GLOBAL).legal(&t), "a pred cannot");
    let legal_with = |cache, at| {
        let load = Load {
            cache,
            ..load(Type::U32, 1, at)
        };
        load.legal(&t)
    };
    assert_eq!(legal_with(LoadCache::VOLATILE, in_shared(None)), Ok(()));
    assert_rejected(
        legal_with(LoadCache::READ_ONLY, in_shared(None)),
        "load.nc on a shared-memory tile",
    );
    assert_rejected(
        legal_with(
            LoadCache::DEFAULT.l2_prefetch(L2Prefetch::B64),
            in_shared(None),
        ),
        "load.L2::64B on a shared-memory tile",
    );
    assert_rejected(
        legal_with(LoadCache::VOLATILE.l1(L1Policy::Bypass), IN_GLOBAL),
        "load.volatile.cg: a volatile load",
    );
    assert_rejected(
        legal_with(LoadCache::VOLATILE.hint(CacheHint::EvictLast), IN_GLOBAL),
        "load.volatile.evict_last: a volatile load",
    );
    assert_rejected(
        legal_with(LoadCache::DEFAULT.l1(L1Policy::WriteThrough), IN_GLOBAL),
        "load.wt: the cache operator .wt applies to stores only",
    );
    assert_rejected(
        legal_with(LoadCache::READ_ONLY.l1(L1Policy::Refetch), IN_GLOBAL),
        "load.nc.cv: the cache operator .cv applies to coherent loads only",
    );
    let legal_with = |cache, at| {
        let store = Store {
            cache,
            ..store(Type::U32, 1, at)
        };
        store.legal(&t)
    };
    assert_eq!(legal_with(StoreCache::VOLATILE, in_shared(Some(1))), Ok(()));
    assert_rejected(
        legal_with(StoreCache::DEFAULT.l1(L1Policy::Streaming), in_shared(None)),
        "store.cs on a shared-memory tile",
    );
    assert_rejected(
        legal_with(StoreCache::VOLATILE.l1(L1Policy::NoAllocate), IN_GLOBAL),
        "store.volatile.L1::no_allocate: a volatile store",
    );
    assert_rejected(
        legal_with(StoreCache::DEFAULT.l1(L1Policy::LastUse), IN_GLOBAL),
        "store.lu: the cache operator .lu applies to loads only",
    );
}
