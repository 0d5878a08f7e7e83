use warpline_ir::ops::arith::{Add, Mov};
use warpline_ir::*;
use warpline_testkit::raw::RawKernel;

#[test]
fn a_float_operand_of_an_integer_op_is_refuted() {
    let mut k = RawKernel::one();
    let x = k.value(Type::F32);
    let dst = k.reg(Type::U32);
    k.push(
        10,
        Add {
            ty: Type::U32,
            dst,
            a: x.into(),
            b: Operand::Imm(1),
        },
    );
    let text = k.refuted("S.type", 10);
    assert!(
        text.contains("`add.u32` takes u32, but gets %0, which is f32"),
        "{text}"
    );
}

#[test]
fn integers_of_one_width_are_interchangeable() {
    let mut k = RawKernel::one();
    let x = k.value(Type::I32);
    let dst = k.reg(Type::U32);
    k.push(
        10,
        Add {
            ty: Type::U32,
            dst,
            a: x.into(),
            b: Operand::Imm(1),
        },
    );
    k.passes();
}

#[test]
fn a_constant_wider_than_its_type_is_refuted() {
    let mut k = RawKernel::one();
    let dst = k.reg(Type::U32);
    k.push(
        10,
        Mov {
            ty: Type::U32,
            dst,
            src: Operand::Imm(1 << 32),
        },
    );
    k.refuted("S.type", 10);
}

#[test]
fn a_condition_that_is_not_a_predicate_is_refuted() {
    let mut k = RawKernel::one();
    let cond = k.value(Type::U32);
    let kind = StmtKind::If {
        cond,
        then: Block::default(),
        other: Block::default(),
    };
    let stmt = k.stmt(10, kind);
    k.run(0, stmt);
    k.refuted("S.type", 10);
}

#[test]
fn a_loop_over_floats_is_refuted() {
    let mut k = RawKernel::one();
    let var = k.reg(Type::F32);
    let stmt = counted(&mut k, var, Block::default());
    k.run(0, stmt);
    k.refuted("S.type", 10);
}

#[test]
fn a_register_of_another_role_is_refuted_with_both_lines() {
    let mut k = RawKernel::new(&[("load", 4), ("math", 4)]);
    let (x, y) = (k.reg(Type::U32), k.reg(Type::U32));
    k.0.regs[x.index()].role = Some(RoleId(0));
    k.0.regs[x.index()].loc = k.loc(8);
    let ty = Type::U32;
    let write = k.op(
        9,
        Mov {
            ty,
            dst: x,
            src: Operand::Imm(0),
        },
    );
    let read = k.op(
        12,
        Mov {
            ty,
            dst: y,
            src: x.into(),
        },
    );
    k.run(0, write);
    k.run(1, read);
    let all = k.diagnostics();
    let scope = &all[0];
    assert_eq!(
        (scope.code(), scope.at.map(|f| f.line)),
        ("S.scope", Some(12))
    );
    assert!(
        scope.text.contains("register %0 belongs to role `load`"),
        "{scope}"
    );
    assert_eq!(scope.role.as_deref(), Some("math"));
}

#[test]
fn a_counter_written_by_its_loop_is_refuted() {
    let mut k = RawKernel::one();
    let var = k.reg(Type::U32);
    let write = k.op(
        11,
        Mov {
            ty: Type::U32,
            dst: var,
            src: Operand::Imm(9),
        },
    );
    let stmt = counted(&mut k, var, Block(vec![write]));
    k.run(0, stmt);
    let text = k.refuted("S.loop", 11);
    assert!(
        text.contains("writes register %0, the counter, end or step of an enclosing loop"),
        "{text}"
    );
}

fn counted(k: &mut RawKernel, var: RegId, body: Block) -> Stmt {
    let kind = StmtKind::For {
        var,
        from: Operand::Imm(0),
        to: Operand::Imm(4),
        step: Operand::Imm(1),
        body,
        unroll: None,
    };
    k.stmt(10, kind)
}
