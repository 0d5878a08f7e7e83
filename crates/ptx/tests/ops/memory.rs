//! Loads, stores, atomics, fences, matrices.

use crate::sheet::{Sheet, TYPES, place};
use warpline_ir::ops::atomic::*;
use warpline_ir::ops::matrix::*;
use warpline_ir::ops::memory::{Fence, Load, LoadCache, Store, StoreCache};
use warpline_ir::*;

const SCOPES: [Scope; 3] = [Scope::Cta, Scope::Cluster, Scope::Gpu];

/// One place of each kind: global, shared, of a peer.
fn places(s: &mut Sheet) -> [At; 3] {
    s.kernel.cluster = [2, 1, 1];
    let tile = s.tile("a", 64, 64, Swizzle::None, 4);
    let (stage, byte) = (s.value(Type::U32), s.value(Type::U32));
    let shared = place(tile, stage, byte);
    let peer = Place {
        peer: Some(Operand::Imm(1)),
        ..shared
    };
    [s.global(-32), At::Shared(shared), At::Shared(peer)]
}

pub(crate) fn memory() -> Sheet {
    let mut s = Sheet::new("memory");
    let at = places(&mut s);
    let loads = [
        LoadCache::Default,
        LoadCache::NonCoherent,
        LoadCache::Streaming,
        LoadCache::Volatile,
    ];
    let stores = [StoreCache::Default, StoreCache::Streaming];
    for at in at {
        for ty in [Type::U8, Type::F16, Type::F32, Type::I64] {
            for n in [1, 2, 4] {
                for cache in loads {
                    let dst = s.regs(ty, n);
                    s.form(Load { ty, dst, at, cache });
                }
                for cache in stores {
                    let [value, constant] = s.both(ty);
                    let mut src = vec![value; n];
                    src[0] = constant;
                    s.form(Store { ty, src, at, cache });
                }
            }
        }
    }
    // Constants fold into the offset.
    let tile = TileId(0);
    for at in [
        place(tile, Operand::Imm(0), Operand::Imm(0)),
        place(tile, Operand::Imm(3), Operand::Imm(64)),
    ] {
        let (at, cache) = (At::Shared(at), LoadCache::Default);
        let dst = s.regs(Type::F32, 4);
        s.op(Load {
            ty: Type::F32,
            dst,
            at,
            cache,
        });
    }
    let fences = [
        warpline_ir::Fence::ProxyAsyncShared,
        warpline_ir::Fence::ProxyAsyncGlobal,
        warpline_ir::Fence::MbarrierInit,
    ];
    for fence in fences
        .into_iter()
        .chain(SCOPES.map(warpline_ir::Fence::AcqRel))
    {
        s.op(Fence { fence });
    }
    s
}

pub(crate) fn atomic() -> Sheet {
    let mut s = Sheet::new("atomic");
    let at = places(&mut s);
    let ops = [
        AtomicOp::Add,
        AtomicOp::Min,
        AtomicOp::Max,
        AtomicOp::And,
        AtomicOp::Or,
        AtomicOp::Exch,
        AtomicOp::Cas,
    ];
    for at in at {
        for ty in TYPES {
            for op in ops {
                let (dst, value, scope) = (s.reg(ty), s.value(ty).into(), Scope::Gpu);
                let compare = (op == AtomicOp::Cas).then_some(value);
                s.form(Atomic {
                    op,
                    ty,
                    dst,
                    at,
                    value,
                    compare,
                    scope,
                });
                s.form(RedRelease {
                    op,
                    ty,
                    at,
                    value,
                    scope,
                });
            }
        }
        for scope in SCOPES {
            let (op, ty, value) = (AtomicOp::Add, Type::U32, Operand::Imm(1));
            let (dst, compare) = (s.reg(ty), None);
            s.op(Atomic {
                op,
                ty,
                dst,
                at,
                value,
                compare,
                scope,
            });
            s.op(RedRelease {
                op,
                ty,
                at,
                value,
                scope,
            });
            for ty in TYPES {
                let dst = s.reg(ty);
                s.form(LoadAcquire { ty, dst, at, scope });
                for src in s.both(ty) {
                    s.form(StoreRelease { ty, src, at, scope });
                }
            }
        }
    }
    s
}

pub(crate) fn matrix() -> Sheet {
    let mut s = Sheet::new("matrix");
    let tile = s.tile("c", 64, 64, Swizzle::B128, 2);
    let byte = s.value(Type::U32);
    let at = place(tile, Operand::Imm(1), byte);
    for n in [1, 2, 4] {
        for trans in [false, true] {
            let dst = s.regs(Type::U32, n);
            s.op(LoadMatrix { dst, at, trans });
            let src = vec![s.value(Type::U32).into(); n];
            s.op(StoreMatrix { src, at, trans });
        }
    }
    s
}
