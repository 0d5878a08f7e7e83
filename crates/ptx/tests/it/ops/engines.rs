//! mbarriers, bulk and tensor copies.

use crate::ops::op_kernel::{OpKernel, bar, shared_address, view};
use warpline_ir::ops::bulk::*;
use warpline_ir::ops::mbarrier::*;
use warpline_ir::ops::tensor::*;
use warpline_ir::*;

const HINTS: [Option<CacheHint>; 4] = [
    None,
    Some(CacheHint::EvictNormal),
    Some(CacheHint::EvictFirst),
    Some(CacheHint::EvictLast),
];

pub(crate) fn mbarrier() -> OpKernel {
    let mut s = OpKernel::new("mbarrier");
    s.raw.0.cluster = [2, 1, 1];
    let full = s.barrier("full", 4);
    let stage = s.value(Type::U32);
    let parity = s.value(Type::U32).into();
    let local = bar(full, stage);
    let remote = BarRef {
        peer: Some(stage.into()),
        ..local
    };
    for index in 0..2 {
        s.op(MbarrierInit {
            bar: bar(full, Operand::Imm(index)),
            count: 2,
        });
    }
    for bar in [local, remote] {
        for scope in [Scope::Cta, Scope::Cluster] {
            for tx in [None, Some(Operand::Imm(4096)), Some(parity)] {
                for count in [Operand::Imm(1), Operand::Imm(2), parity] {
                    for drop in [false, true] {
                        s.op_if_legal(MbarrierArrive {
                            bar,
                            count,
                            tx,
                            scope,
                            drop,
                        });
                    }
                }
            }
            s.op_if_legal(MbarrierWait { bar, parity, scope });
            for may_suspend in [false, true] {
                let dst = s.reg(Type::Pred);
                s.op_if_legal(MbarrierTest {
                    dst,
                    bar,
                    parity: Operand::Imm(1),
                    scope,
                    may_suspend,
                });
            }
        }
        s.op_if_legal(MbarrierExpectTx {
            bar,
            tx: Operand::Imm(256),
        });
    }
    s.op(MbarrierInval { bar: local });
    s
}

pub(crate) fn bulk() -> OpKernel {
    let mut s = OpKernel::new("bulk");
    s.raw.0.cluster = [2, 1, 1];
    let tile = s.tile("x", 8, 64, Swizzle::None, 4);
    let full = s.barrier("full", 4);
    let (stage, mask) = (s.value(Type::U32), s.value(Type::U32).into());
    let at = shared_address(tile, stage, Operand::Imm(0));
    let (global, bytes) = (s.value(Type::U64).into(), s.value(Type::U32).into());
    let full = bar(full, stage);
    for hint in HINTS {
        for multicast in [None, Some(Operand::Imm(3)), Some(mask)] {
            let bytes = if hint.is_none() {
                bytes
            } else {
                Operand::Imm(512)
            };
            s.op(BulkLoad {
                dst: at,
                src: global,
                bytes,
                bar: full,
                multicast,
                hint,
            });
        }
        s.op(BulkStore {
            src: at,
            dst: global,
            bytes,
            reduce: None,
            hint,
        });
        let src = global;
        s.op(BulkPrefetch { src, bytes, hint });
    }
    s.op(BulkCommit);
    for read in [false, true] {
        s.op(BulkWait { pending: 1, read });
    }
    s
}

pub(crate) fn tensor() -> OpKernel {
    let mut s = OpKernel::new("tensor");
    s.raw.0.cluster = [2, 1, 1];
    let full = s.barrier("full", 2);
    let (stage, x) = (s.value(Type::U32), s.value(Type::I32));
    let full = bar(full, stage);
    for rank in 1..=5 {
        let swizzle = if rank == 1 {
            Swizzle::None
        } else {
            Swizzle::B128
        };
        let rows = if rank == 1 { 1 } else { 16 };
        let mut sides = vec![1; rank];
        sides[0] = 64;
        if rank > 1 {
            sides[1] = 16;
        }
        let tile = s.tile(&format!("t{rank}"), rows, 64, swizzle, 2);
        let decl = TensorMapDecl {
            dtype: DType::Bf16,
            tile: sides,
            swizzle,
            mode: TensorMapMode::Tiled,
        };
        let map = s.param(&format!("map{rank}"), ParamKind::TensorMap(decl));
        let box_ = view(tile, stage, [0, rows, 0, 64]);
        let mut coords = vec![x.into(); rank];
        coords[0] = Operand::Imm(0xffff_fff0);
        s.op(TensorPrefetch { map });
        for hint in HINTS {
            for multicast in [None, Some(Operand::Imm(3))] {
                let (dst, coords, offsets) = (box_, coords.clone(), vec![]);
                s.op(TensorLoad {
                    map,
                    dst,
                    coords,
                    offsets,
                    bar: full,
                    multicast,
                    hint,
                });
            }
            let (src, im2col) = (box_, false);
            // A load may start at negative coordinates, a store may not.
            let mut store_coords = coords.clone();
            store_coords[0] = Operand::Imm(8);
            for reduce in [None, Some(Reduction::Add)] {
                s.op(TensorStore {
                    map,
                    src,
                    coords: store_coords.clone(),
                    im2col,
                    reduce,
                    hint,
                });
            }
            s.op(TensorPrefetchBox {
                map,
                coords: coords.clone(),
                offsets: vec![],
                hint,
            });
        }
    }
    for rank in 3..=5 {
        let tile = s.tile(&format!("w{rank}"), 16, 64, Swizzle::B128, 1);
        let decl = TensorMapDecl {
            dtype: DType::Bf16,
            tile: vec![],
            swizzle: Swizzle::B128,
            mode: TensorMapMode::Im2col {
                lower: vec![0; rank - 2],
                upper: vec![0; rank - 2],
                channels: 64,
                pixels: 16,
                element_strides: vec![2; rank - 2],
            },
        };
        let map = s.param(&format!("im2col{rank}"), ParamKind::TensorMap(decl));
        let dst = view(tile, Operand::Imm(0), [0, 16, 0, 64]);
        let offset = s.value(Type::U16);
        for (multicast, hint) in [
            (None, None),
            (Some(Operand::Imm(3)), None),
            (Some(Operand::Imm(3)), Some(CacheHint::EvictFirst)),
        ] {
            let (coords, mut offsets) = (vec![x.into(); rank], vec![offset.into(); rank - 2]);
            offsets[0] = Operand::Imm(1);
            s.op(TensorLoad {
                map,
                dst,
                coords: coords.clone(),
                offsets: offsets.clone(),
                bar: full,
                multicast,
                hint,
            });
            s.op(TensorPrefetchBox {
                map,
                coords,
                offsets,
                hint,
            });
        }
        for reduce in [None, Some(Reduction::Add)] {
            s.op(TensorStore {
                map,
                src: dst,
                coords: vec![x.into(); rank],
                im2col: true,
                reduce,
                hint: None,
            });
        }
    }
    s
}
