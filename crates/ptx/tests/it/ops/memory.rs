//! Loads, stores, prefetches, fences, atomics, cache policies, `cp.async`.

use crate::ops::op_kernel::{OpKernel, TYPES, bar, shared_address};
use warpline_ir::ops::atomic::*;
use warpline_ir::ops::copy::*;
use warpline_ir::ops::memory::*;
use warpline_ir::ops::policy::*;
use warpline_ir::{
    MemoryAddress, MemoryOrder, Operand, Scope, Semantics, SharedAddress, Swizzle, TileId, Type,
};

const SCOPES: [Scope; 4] = [Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys];

const L2_PREFETCHES: [Option<L2Prefetch>; 4] = [
    None,
    Some(L2Prefetch::B64),
    Some(L2Prefetch::B128),
    Some(L2Prefetch::B256),
];

/// Returns one address of each kind: global, shared, peer.
fn addresses(s: &mut OpKernel) -> [MemoryAddress; 3] {
    s.raw.0.cluster = [2, 1, 1];
    let tile = s.tile("a", 64, 64, Swizzle::None, 4);
    let (stage, byte) = (s.value(Type::U32), s.value(Type::U32));
    let shared = shared_address(tile, stage, byte);
    let peer = SharedAddress {
        peer: Some(Operand::Imm(1)),
        ..shared
    };
    [
        s.global(-32),
        MemoryAddress::Shared(shared),
        MemoryAddress::Shared(peer),
    ]
}

pub(crate) fn memory() -> OpKernel {
    let mut s = OpKernel::new("memory");
    let at = addresses(&mut s);
    let loads = [
        LoadCache::DEFAULT,
        LoadCache::READ_ONLY,
        LoadCache::VOLATILE,
    ];
    let stores = [StoreCache::DEFAULT, StoreCache::VOLATILE];
    for at in at {
        for ty in [Type::U8, Type::F16, Type::F32, Type::I64] {
            for n in [1, 2, 4] {
                for cache in loads {
                    let dst = s.regs(ty, n);
                    s.op_if_legal(Load { ty, dst, at, cache });
                }
                for cache in stores {
                    let [value, constant] = s.reg_and_imm(ty);
                    let mut src = vec![value; n];
                    src[0] = constant;
                    s.op_if_legal(Store { ty, src, at, cache });
                }
            }
        }
    }
    add_cache_options(&mut s, at[0]);
    // Constants fold into the offset.
    let tile = TileId(0);
    for at in [
        shared_address(tile, Operand::Imm(0), Operand::Imm(0)),
        shared_address(tile, Operand::Imm(3), Operand::Imm(64)),
    ] {
        let (at, cache) = (MemoryAddress::Shared(at), LoadCache::DEFAULT);
        let dst = s.regs(Type::F32, 4);
        s.op(Load {
            ty: Type::F32,
            dst,
            at,
            cache,
        });
    }
    let addr = s.value(Type::U64).into();
    for to in [
        PrefetchLevel::L1,
        PrefetchLevel::L2,
        PrefetchLevel::L2EvictLast,
        PrefetchLevel::L2EvictNormal,
    ] {
        s.op(Prefetch { addr, to });
    }
    s.op(ApplyPriority { addr });
    s.op(Discard { addr });
    let fences = [
        warpline_ir::FenceKind::ProxyAsyncShared,
        warpline_ir::FenceKind::ProxyAsyncGlobal,
        warpline_ir::FenceKind::MbarrierInit,
    ];
    for fence in fences
        .into_iter()
        .chain(SCOPES.map(warpline_ir::FenceKind::AcqRel))
    {
        s.op(Fence { kind: fence });
    }
    s
}

/// Adds every cache option of global loads and stores.
fn add_cache_options(s: &mut OpKernel, at: MemoryAddress) {
    let policy = CacheHint::Policy(s.value(Type::U64).into());
    for l1 in [
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
    ] {
        for hint in [None, Some(CacheHint::EvictFirst), Some(policy)] {
            for path in [LoadPath::Coherent, LoadPath::ReadOnly, LoadPath::Volatile] {
                for l2_prefetch in L2_PREFETCHES {
                    let (ty, dst) = (Type::U32, s.regs(Type::U32, 2));
                    let cache = LoadCache {
                        path,
                        l1,
                        l2_prefetch,
                        hint,
                    };
                    s.op_if_legal(Load { ty, dst, at, cache });
                }
            }
            let (ty, src) = (Type::U32, vec![s.value(Type::U32).into()]);
            let volatile = false;
            let cache = StoreCache { volatile, l1, hint };
            s.op_if_legal(Store { ty, src, at, cache });
        }
    }
}

pub(crate) fn atomic() -> OpKernel {
    let mut s = OpKernel::new("atomic");
    let at = addresses(&mut s);
    for at in at {
        for ty in TYPES {
            for op in AtomicOp::ALL {
                let value = s.value(ty).into();
                let compare = (op == AtomicOp::Cas).then_some(value);
                let order = MemoryOrder::relaxed(Scope::Gpu);
                for n in [1, 2, 4, 8] {
                    let (dst, values) = (s.regs(ty, n), vec![value; n]);
                    s.op_if_legal(Atomic {
                        op,
                        ty,
                        dst,
                        at,
                        values: values.clone(),
                        compare,
                        order,
                    });
                    s.op_if_legal(AtomicReduce {
                        op,
                        ty,
                        at,
                        values,
                        order,
                    });
                }
            }
        }
        for scope in SCOPES {
            for sem in [
                Semantics::Relaxed,
                Semantics::Acquire,
                Semantics::Release,
                Semantics::AcqRel,
            ] {
                add_memory_orders(&mut s, at, MemoryOrder { sem, scope });
            }
        }
    }
    s
}

/// Adds every access with this memory order.
fn add_memory_orders(s: &mut OpKernel, at: MemoryAddress, order: MemoryOrder) {
    let (op, ty, value) = (AtomicOp::Add, Type::U32, Operand::Imm(1));
    let (dst, values, compare) = (s.regs(ty, 1), vec![value], None);
    s.op(Atomic {
        op,
        ty,
        dst,
        at,
        values: values.clone(),
        compare,
        order,
    });
    s.op_if_legal(AtomicReduce {
        op,
        ty,
        at,
        values,
        order,
    });
    for ty in [Type::U32, Type::F32, Type::U64] {
        let dst = s.reg(ty);
        s.op_if_legal(StrongLoad { ty, dst, at, order });
        for src in s.reg_and_imm(ty) {
            s.op_if_legal(StrongStore { ty, src, at, order });
        }
    }
}

pub(crate) fn policy() -> OpKernel {
    let mut s = OpKernel::new("policy");
    for primary in [
        EvictionPriority::First,
        EvictionPriority::Last,
        EvictionPriority::Normal,
        EvictionPriority::Unchanged,
    ] {
        for secondary in [EvictionPriority::Unchanged, EvictionPriority::First] {
            for fraction in [s.value(Type::F32).into(), Operand::imm(0.25f32)] {
                let dst = s.reg(Type::U64);
                s.op(CreatePolicy {
                    dst,
                    primary,
                    secondary,
                    fraction,
                });
            }
            let size = s.value(Type::U32).into();
            for (bytes, total) in [(size, size), (Operand::Imm(4096), Operand::Imm(8192))] {
                let (dst, addr) = (s.reg(Type::U64), s.value(Type::U64).into());
                s.op(CreateRangePolicy {
                    dst,
                    primary,
                    secondary,
                    addr,
                    bytes,
                    total,
                });
            }
        }
    }
    s
}

pub(crate) fn copy() -> OpKernel {
    let mut s = OpKernel::new("copy");
    let tile = s.tile("a", 64, 64, Swizzle::B128, 4);
    let full = s.barrier("full", 4);
    let (stage, byte) = (s.value(Type::U32), s.value(Type::U32));
    let (dst, src) = (shared_address(tile, stage, byte), s.value(Type::U64).into());
    let hints = [
        None,
        Some(CacheHint::EvictLast),
        Some(CacheHint::Policy(src)),
    ];
    for bytes in [4, 8, 16] {
        for bypass_l1 in [false, true] {
            for src_size in [None, Some(Operand::Imm(3)), Some(byte.into())] {
                for hint in hints {
                    s.op_if_legal(CopyAsync {
                        dst,
                        src,
                        bytes,
                        src_size,
                        bypass_l1,
                        l2_prefetch: None,
                        hint,
                    });
                }
            }
        }
    }
    for l2_prefetch in L2_PREFETCHES {
        s.op(CopyAsync {
            dst,
            src,
            bytes: 16,
            src_size: None,
            bypass_l1: true,
            l2_prefetch,
            hint: hints[1],
        });
    }
    s.op(CopyCommit);
    for pending in [Some(0), Some(3), None] {
        s.op(CopyWait { pending });
    }
    for noinc in [false, true] {
        let bar = bar(full, stage);
        s.op(CopyArrive { bar, noinc });
    }
    s
}
