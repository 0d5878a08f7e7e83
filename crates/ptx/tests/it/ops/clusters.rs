//! Cluster ops: bulk copies to peers, reductions, `st.async`; fences.

use crate::ops::op_kernel::{OpKernel, bar, shared_address};
use warpline_ir::ops::bulk::*;
use warpline_ir::ops::memory::Fence;
use warpline_ir::ops::remote::*;
use warpline_ir::ops::tensor::TensorStore;
use warpline_ir::*;

const DTYPES: [DType; 7] = [
    DType::U32,
    DType::I32,
    DType::U64,
    DType::I64,
    DType::F32,
    DType::F16,
    DType::Bf16,
];

/// Returns an address and a barrier in this CTA, and in a peer.
fn local_and_peer(s: &mut OpKernel) -> [(SharedAddress, BarRef); 2] {
    s.raw.0.cluster = [2, 1, 1];
    let tile = s.tile("x", 8, 64, Swizzle::None, 4);
    let full = s.barrier("full", 4);
    let stage = s.value(Type::U32);
    let (local, full) = (
        shared_address(tile, stage, Operand::Imm(0)),
        bar(full, stage),
    );
    let peer = Some(stage.into());
    [
        (local, full),
        (SharedAddress { peer, ..local }, BarRef { peer, ..full }),
    ]
}

pub(crate) fn reduce() -> OpKernel {
    let mut s = OpKernel::new("reduce");
    let [(src, _), (dst, bar)] = local_and_peer(&mut s);
    let (global, bytes) = (s.value(Type::U64).into(), s.value(Type::U32).into());
    let all = Reduction::ALL
        .into_iter()
        .flat_map(|op| DTYPES.map(|dtype| Some(BulkReduce { op, dtype })));
    for reduce in all.chain([None]) {
        s.op_if_legal(BulkStore {
            src,
            dst: global,
            bytes,
            reduce,
            hint: None,
        });
        s.op_if_legal(BulkSend {
            src,
            dst,
            bytes,
            bar,
            reduce,
        });
    }
    s.op(BulkStore {
        src,
        dst: global,
        bytes: Operand::Imm(64),
        reduce: Some(BulkReduce {
            op: Reduction::Add,
            dtype: DType::Bf16,
        }),
        hint: Some(CacheHint::EvictFirst),
    });
    let decl = TensorMapDecl {
        dtype: DType::U32,
        tile: vec![32, 8],
        swizzle: Swizzle::None,
        mode: TensorMapMode::Strided {
            element_strides: vec![1, 2],
        },
    };
    let map = s.param("map", ParamKind::TensorMap(decl));
    let words = s.tile("words", 8, 32, Swizzle::None, 1);
    let tile = &mut s.raw.0.tiles[words.index()];
    (tile.dtype, tile.layout.element_bytes) = (DType::U32, 4);
    s.raw.0.shared_bytes += tile.layout.stage_bytes() / 2;
    let x = s.value(Type::I32).into();
    for op in Reduction::ALL {
        s.op(TensorStore {
            map,
            src: crate::ops::op_kernel::view(words, Operand::Imm(0), [0, 8, 0, 32]),
            coords: vec![x; 2],
            im2col: false,
            reduce: Some(op),
            hint: None,
        });
    }
    s
}

pub(crate) fn remote() -> OpKernel {
    let mut s = OpKernel::new("remote");
    for (dst, bar) in local_and_peer(&mut s) {
        for ty in [Type::U32, Type::F32, Type::Bf16x2, Type::U64, Type::I64] {
            for n in [1, 2, 4] {
                let [value, constant] = s.reg_and_imm(ty);
                let mut src = vec![value; n];
                src[0] = constant;
                s.op_if_legal(StoreAsync { ty, src, dst, bar });
            }
        }
        for ty in [Type::U32, Type::I32, Type::U64, Type::I64] {
            for op in Reduction::ALL {
                let src = s.value(ty).into();
                s.op_if_legal(ReduceAsync {
                    op,
                    ty,
                    src,
                    dst,
                    bar,
                });
            }
        }
    }
    s
}

pub(crate) fn fences() -> OpKernel {
    let mut s = OpKernel::new("fences");
    let scopes = [Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys];
    let plain = [
        FenceKind::ProxyAsyncShared,
        FenceKind::ProxyAsyncCluster,
        FenceKind::ProxyAsyncGlobal,
        FenceKind::ProxyAsync,
        FenceKind::ProxyAsyncRelease,
        FenceKind::ProxyAsyncAcquire,
        FenceKind::ProxyAlias,
        FenceKind::MbarrierInit,
        FenceKind::AcquireShared,
        FenceKind::ReleaseShared,
    ];
    let map = s.value(Type::U64).into();
    let scoped = scopes.map(|scope| {
        [
            FenceKind::AcqRel(scope),
            FenceKind::Acquire(scope),
            FenceKind::Release(scope),
            FenceKind::Sc(scope),
            FenceKind::TensorMapRelease(scope),
            FenceKind::TensorMapAcquire(scope, map),
        ]
    });
    for fence in plain.into_iter().chain(scoped.into_iter().flatten()) {
        s.op(Fence { kind: fence });
    }
    s
}
