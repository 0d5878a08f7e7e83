//! Warp ops, special registers, named barriers, clusters.

use crate::ops::op_kernel::{ALL_LANES, OpKernel, TYPES, stmt};
use warpline_ir::ops::cluster::*;
use warpline_ir::ops::control::*;
use warpline_ir::ops::special::*;
use warpline_ir::ops::warp::*;
use warpline_ir::*;

pub(crate) fn warp() -> OpKernel {
    let mut s = OpKernel::new("warp");
    for ty in TYPES {
        for src in s.reg_and_imm(ty) {
            let (dst, lane) = (s.reg(ty), s.value(Type::U32).into());
            let (mode, clamp, mask) = (ShuffleMode::Idx, 31, ALL_LANES);
            s.op_if_legal(Shuffle {
                mode,
                ty,
                dst,
                src,
                lane,
                clamp,
                mask,
            });
        }
    }
    for (mode, clamp) in [
        (ShuffleMode::Up, 0),
        (ShuffleMode::Down, 31),
        (ShuffleMode::Bfly, 0x1c1f),
    ] {
        let (dst, src, mask) = (
            s.reg(Type::U32),
            s.value(Type::U32).into(),
            s.value(Type::U32).into(),
        );
        let (ty, lane) = (Type::U32, Operand::Imm(1));
        s.op(Shuffle {
            mode,
            ty,
            dst,
            src,
            lane,
            clamp,
            mask,
        });
    }
    for src in s.reg_and_imm(Type::Pred) {
        for mode in [VoteMode::All, VoteMode::Any, VoteMode::Uniform] {
            let dst = s.reg(Type::Pred);
            s.op(Vote {
                mode,
                dst,
                src,
                mask: ALL_LANES,
            });
        }
        let dst = s.reg(Type::U32);
        s.op(Ballot {
            dst,
            src,
            mask: ALL_LANES,
        });
    }
    let mask = s.value(Type::U32).into();
    for ty in TYPES {
        for src in s.reg_and_imm(ty) {
            let dst = s.reg(Type::U32);
            s.op_if_legal(MatchAny { ty, dst, src, mask });
            let (dst, all) = (s.reg(Type::U32), s.reg(Type::Pred));
            s.op_if_legal(MatchAll {
                ty,
                dst,
                all,
                src,
                mask: ALL_LANES,
            });
            for mode in ReduxMode::ALL {
                let dst = s.reg(ty);
                s.op_if_legal(Redux {
                    mode,
                    ty,
                    dst,
                    src,
                    mask,
                });
            }
        }
    }
    s.op(WarpSync { mask });
    s.op(WarpSync { mask: ALL_LANES });
    s
}

pub(crate) fn special() -> OpKernel {
    let mut s = OpKernel::new("special");
    s.raw.0.cluster = [2, 1, 1];
    let which = [
        Special::Tid,
        Special::LaneId,
        Special::WarpId,
        Special::CtaId(Axis::X),
        Special::CtaId(Axis::Y),
        Special::CtaId(Axis::Z),
        Special::GridDim(Axis::X),
        Special::GridDim(Axis::Y),
        Special::GridDim(Axis::Z),
        Special::ClusterRank,
        Special::ClusterSize,
        Special::ClusterCtaId(Axis::Y),
        Special::ClusterDim(Axis::X),
        Special::ClusterId(Axis::X),
        Special::ClusterId(Axis::Z),
        Special::GridClusters(Axis::Y),
        Special::SmId,
        Special::SmCount,
        Special::Clock,
    ];
    for which in which {
        let dst = s.reg(Type::U32);
        s.op(ReadSpecial { dst, which });
    }
    let (dst, which) = (s.reg(Type::U64), Special::GlobalTimer);
    s.op(ReadSpecial { dst, which });
    for ty in TYPES.into_iter().filter(|t| *t != Type::Pred) {
        let param = s.param(ty.name(), ParamKind::Scalar(ty));
        let dst = s.reg(ty);
        s.op(ReadParam { dst, param, ty });
    }
    let param = s.param("x", ParamKind::Pointer(DType::Bf16));
    let (dst, ty) = (s.reg(Type::U64), Type::U64);
    s.op(ReadParam { dst, param, ty });
    s
}

pub(crate) fn control() -> OpKernel {
    let mut s = OpKernel::new("control");
    let mut second = s.raw.0.roles[0].clone();
    (second.name, second.first_warp) = ("math".to_owned(), 4);
    s.raw.0.named.push(NamedBarrier {
        name: "ready".to_owned(),
        id: 1,
        loc: Loc(0),
    });
    let (bar, threads) = (NamedId(0), 256);
    let ops: [Op; 3] = [
        SetMaxRegs {
            count: 248,
            grow: true,
        }
        .into(),
        NamedSync { bar, threads }.into(),
        CtaSync.into(),
    ];
    second.body.0.extend(ops.map(|op| stmt(StmtKind::Op(op))));
    s.raw.0.roles.push(second);
    s.op(SetMaxRegs {
        count: 64,
        grow: false,
    });
    s.op(NamedArrive { bar, threads });
    s.raw.0.named.push(NamedBarrier {
        name: "agreed".to_owned(),
        id: 2,
        loc: Loc(0),
    });
    for (reduction, ty) in [
        (BarrierReduction::Count, Type::U32),
        (BarrierReduction::All, Type::Pred),
        (BarrierReduction::Any, Type::Pred),
    ] {
        for pred in s.reg_and_imm(Type::Pred) {
            let (bar, dst) = (NamedId(1), s.reg(ty));
            s.op(NamedReduce {
                bar,
                threads: 128,
                reduction,
                pred,
                dst,
            });
        }
    }
    s.op(CtaSync);
    s.op(LaunchDependents);
    s.op(WaitPrerequisites);
    s.op(Nanosleep { ns: 100 });
    s.op(Exit);
    s.op(Trap);
    s
}

pub(crate) fn cluster() -> OpKernel {
    let mut s = OpKernel::new("cluster");
    s.raw.0.cluster = [2, 2, 1];
    for release in [false, true] {
        s.op(ClusterArrive { release });
        s.op(ClusterWait);
    }
    s
}
