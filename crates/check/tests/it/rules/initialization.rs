use warpline_ir::ops::arith::Mov;
use warpline_ir::*;
use warpline_testkit::raw::RawKernel;

fn mov(dst: RegId, src: impl Into<Operand>) -> Mov {
    Mov {
        ty: Type::U32,
        dst,
        src: src.into(),
    }
}

const ONE: Operand = Operand::Imm(1);

#[test]
fn a_register_read_before_it_is_written_is_refuted() {
    let mut k = RawKernel::one();
    let (x, y) = (k.reg(Type::U32), k.reg(Type::U32));
    k.push(10, mov(y, x));
    k.push(11, mov(x, ONE));
    let text = k.refuted("S.defined", 10);
    assert!(
        text.contains("register %0 (u32) may be read before it is written"),
        "{text}"
    );
}

#[test]
fn a_register_written_on_one_of_two_paths_is_refuted() {
    let mut k = RawKernel::one();
    let (x, y, cond) = (k.reg(Type::U32), k.reg(Type::U32), k.value(Type::Pred));
    let write = k.op(11, mov(x, ONE));
    let then = Block(vec![write]);
    let stmt = k.stmt(
        10,
        StmtKind::If {
            cond,
            then,
            other: Block::default(),
        },
    );
    k.run(0, stmt);
    k.push(13, mov(y, x));
    k.refuted("S.defined", 13);
}

#[test]
fn a_register_written_on_both_paths_passes() {
    let mut k = RawKernel::one();
    let (x, y, cond) = (k.reg(Type::U32), k.reg(Type::U32), k.value(Type::Pred));
    let then = Block(vec![k.op(11, mov(x, ONE))]);
    let other = Block(vec![k.op(12, mov(x, ONE))]);
    let stmt = k.stmt(10, StmtKind::If { cond, then, other });
    k.run(0, stmt);
    k.push(13, mov(y, x));
    k.passes();
}

#[test]
fn a_register_that_only_a_loop_writes_is_refuted_after_the_loop() {
    let mut k = RawKernel::one();
    let (x, y, var, n) = (
        k.reg(Type::U32),
        k.reg(Type::U32),
        k.reg(Type::U32),
        k.value(Type::U32),
    );
    let body = Block(vec![k.op(11, mov(x, ONE))]);
    let kind = StmtKind::For {
        var,
        from: Operand::Imm(0),
        to: n.into(),
        step: ONE,
        body,
        unroll: None,
    };
    let stmt = k.stmt(10, kind);
    k.run(0, stmt);
    k.push(13, mov(y, x));
    k.refuted("S.defined", 13);
}

#[test]
fn the_head_of_a_while_runs_at_least_once() {
    let mut k = RawKernel::one();
    let (x, y, cond) = (k.reg(Type::U32), k.reg(Type::U32), k.reg(Type::Pred));
    let set = Mov {
        ty: Type::Pred,
        dst: cond,
        src: Operand::Imm(0),
    };
    let head = Block(vec![k.op(11, mov(x, ONE)), k.op(11, set)]);
    let stmt = k.stmt(
        10,
        StmtKind::While {
            head,
            cond,
            body: Block::default(),
        },
    );
    k.run(0, stmt);
    k.push(13, mov(y, x));
    k.passes();
}

#[test]
fn a_register_that_the_elected_lane_writes_is_refuted_in_other_lanes() {
    let mut k = RawKernel::one();
    let (x, y) = (k.reg(Type::U32), k.reg(Type::U32));
    let body = Block(vec![k.op(11, mov(x, ONE))]);
    let stmt = k.stmt(10, StmtKind::Elect { body });
    k.run(0, stmt);
    k.push(13, mov(y, x));
    k.refuted("S.defined", 13);
}

#[test]
fn the_epilogue_may_read_a_register_that_every_role_writes() {
    let mut k = RawKernel::new(&[("a", 1), ("b", 1)]);
    let (x, y) = (k.reg(Type::U32), k.reg(Type::U32));
    for role in 0..2 {
        let stmt = k.op(10, mov(x, ONE));
        k.run(role, stmt);
    }
    let read = k.op(13, mov(y, x));
    k.0.epilogue.0.push(read);
    k.passes();
}
