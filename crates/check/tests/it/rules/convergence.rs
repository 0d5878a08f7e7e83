use warpline_ir::ops::control::CtaSync;
use warpline_ir::ops::special::ReadSpecial;
use warpline_ir::ops::warp::WarpSync;
use warpline_ir::ops::{bits, compare};
use warpline_ir::*;
use warpline_testkit::raw::RawKernel;

const ALL_LANES: Operand = Operand::Imm(0xffff_ffff);

fn push_if(k: &mut RawKernel, cond: RegId, op: impl Into<Op>) {
    let then = Block(vec![k.op(11, op)]);
    let stmt = k.stmt(
        10,
        StmtKind::If {
            cond,
            then,
            other: Block::default(),
        },
    );
    k.run(0, stmt);
}

#[test]
fn an_aligned_op_under_a_uniform_condition_passes() {
    let mut k = RawKernel::one();
    let cond = k.value(Type::Pred);
    push_if(&mut k, cond, CtaSync);
    k.passes();
}

#[test]
fn an_aligned_op_under_a_lane_condition_is_refuted() {
    let mut k = RawKernel::one();
    let cond = k.lane_pred();
    push_if(&mut k, cond, CtaSync);
    let text = k.refuted("R15.warp", 11);
    assert!(
        text.contains("`cta_sync` needs all lanes of the warp, but not all reach it together"),
        "{text}"
    );
}

#[test]
fn an_aligned_op_in_an_elected_lane_is_refuted() {
    let mut k = RawKernel::one();
    let body = Block(vec![k.op(11, CtaSync)]);
    let stmt = k.stmt(10, StmtKind::Elect { body });
    k.run(0, stmt);
    let all = k.diagnostics();
    assert_eq!((all.len(), all[0].code()), (1, "R15.warp"));
    let label = &all[0].labels[0];
    assert_eq!(label.at.map(|at| at.line), Some(10));
    assert_eq!(label.text, "this `elect` splits the threads");
}

#[test]
fn an_aligned_op_in_a_loop_with_lane_dependent_count_is_refuted() {
    let mut k = RawKernel::one();
    let (lane, var) = (k.lane(), k.reg(Type::U32));
    let body = Block(vec![k.op(11, CtaSync)]);
    let kind = StmtKind::For {
        var,
        from: Operand::Imm(0),
        to: lane.into(),
        step: Operand::Imm(1),
        body,
        unroll: None,
    };
    let stmt = k.stmt(10, kind);
    k.run(0, stmt);
    k.refuted("R15.warp", 11);
}

#[test]
fn a_full_mask_in_a_divergent_branch_is_refuted() {
    let mut k = RawKernel::one();
    let cond = k.lane_pred();
    push_if(&mut k, cond, WarpSync { mask: ALL_LANES });
    k.refuted("R15.mask", 11);
}

#[test]
fn warp_collectives_with_full_mask_in_a_divergent_branch_are_refuted() {
    use warpline_ir::ops::warp::{MatchAll, MatchAny, Redux, ReduxMode};
    fn refuted(make: impl FnOnce(Type, RegId, RegId, Operand) -> Op) {
        let mut k = RawKernel::one();
        let (lane, cond) = (k.lane(), k.lane_pred());
        let (dst, all) = (k.reg(Type::U32), k.reg(Type::Pred));
        push_if(&mut k, cond, make(Type::U32, dst, all, lane.into()));
        k.refuted("R15.mask", 11);
    }
    let (mask, mode) = (ALL_LANES, ReduxMode::Add);
    refuted(|ty, dst, _, src| MatchAny { ty, dst, src, mask }.into());
    refuted(|ty, dst, all, src| {
        MatchAll {
            ty,
            dst,
            all,
            src,
            mask,
        }
        .into()
    });
    refuted(|ty, dst, _, src| {
        Redux {
            mode,
            ty,
            dst,
            src,
            mask,
        }
        .into()
    });
}

#[test]
fn a_partial_mask_in_a_divergent_branch_passes() {
    let mut k = RawKernel::one();
    let cond = k.lane_pred();
    push_if(
        &mut k,
        cond,
        WarpSync {
            mask: Operand::Imm(0x1f),
        },
    );
    k.passes();
}

#[test]
fn an_elect_in_a_divergent_branch_is_refuted() {
    let mut k = RawKernel::one();
    let cond = k.lane_pred();
    let elect = k.stmt(
        11,
        StmtKind::Elect {
            body: Block::default(),
        },
    );
    let then = Block(vec![elect]);
    let stmt = k.stmt(
        10,
        StmtKind::If {
            cond,
            then,
            other: Block::default(),
        },
    );
    k.run(0, stmt);
    k.refuted("R15.elect", 11);
}

#[test]
fn an_elect_inside_an_elect_passes() {
    let mut k = RawKernel::one();
    let inner = k.stmt(
        11,
        StmtKind::Elect {
            body: Block::default(),
        },
    );
    let stmt = k.stmt(
        10,
        StmtKind::Elect {
            body: Block(vec![inner]),
        },
    );
    k.run(0, stmt);
    k.passes();
}

/// `if (index >> shift) == 0 { op }`.
fn by_index(which: Special, shift: u64, op: impl Into<Op>) -> RawKernel {
    let mut k = RawKernel::one();
    let (index, group, cond) = (k.reg(Type::U32), k.reg(Type::U32), k.reg(Type::Pred));
    let ty = Type::U32;
    k.push(7, ReadSpecial { dst: index, which });
    k.push(
        8,
        bits::Shr {
            ty,
            dst: group,
            a: index.into(),
            b: Operand::Imm(shift),
        },
    );
    let (a, b, cmp) = (group.into(), Operand::Imm(0), compare::Cmp::Eq);
    k.push(
        9,
        compare::Setp {
            cmp,
            ty,
            dst: cond,
            a,
            b,
        },
    );
    push_if(&mut k, cond, op);
    k
}

#[test]
fn a_thread_index_divided_by_32_is_warp_uniform() {
    by_index(Special::Tid, 5, CtaSync).passes();
    by_index(Special::Tid, 4, CtaSync).refuted("R15.warp", 11);
}

#[test]
fn a_warp_index_divided_by_4_is_warpgroup_uniform() {
    use warpline_ir::ops::wgmma::WgmmaFence;
    by_index(Special::WarpId, 2, WgmmaFence).passes();
    by_index(Special::Tid, 7, WgmmaFence).passes();
    by_index(Special::WarpId, 1, WgmmaFence).refuted("R14.warpgroup", 11);
}

#[test]
fn votes_and_shuffles_from_one_lane_are_warp_uniform() {
    use warpline_ir::ops::warp::{Shuffle, ShuffleMode, Vote, VoteMode};
    let mut k = RawKernel::one();
    let (src, dst) = (k.lane_pred(), k.reg(Type::Pred));
    k.push(
        9,
        Vote {
            mode: VoteMode::Any,
            dst,
            src: src.into(),
            mask: ALL_LANES,
        },
    );
    push_if(&mut k, dst, CtaSync);
    k.passes();

    let mut k = RawKernel::one();
    let (lane, same, cond) = (k.lane(), k.reg(Type::U32), k.reg(Type::Pred));
    let shuffle = Shuffle {
        mode: ShuffleMode::Idx,
        ty: Type::U32,
        dst: same,
        src: lane.into(),
        lane: Operand::Imm(0),
        clamp: 31,
        mask: ALL_LANES,
    };
    k.push(8, shuffle);
    let (a, b, cmp) = (same.into(), Operand::Imm(0), compare::Cmp::Eq);
    k.push(
        9,
        compare::Setp {
            cmp,
            ty: Type::U32,
            dst: cond,
            a,
            b,
        },
    );
    push_if(&mut k, cond, CtaSync);
    k.passes();
}
