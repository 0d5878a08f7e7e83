use warpline_ir::ops::control::{Exit, SetMaxRegs};
use warpline_ir::{Block, StmtKind, Type};
use warpline_testkit::raw::RawKernel;

/// A producer and two consumers that request these counts, at lines 10, 11, 12.
fn three_roles(counts: [(u32, bool); 3]) -> RawKernel {
    let mut k = RawKernel::new(&[("load", 4), ("ping", 4), ("pong", 4)]);
    for (i, (count, grow)) in counts.into_iter().enumerate() {
        let stmt = k.op(10 + i as u32, SetMaxRegs { count, grow });
        k.run(i, stmt);
    }
    k
}

#[test]
fn budgets_that_fit_pass() {
    three_roles([(24, false), (240, true), (240, true)]).passes();
    three_roles([(40, false), (232, true), (232, true)]).passes();
}

#[test]
fn budgets_that_exceed_the_register_pool_are_refuted() {
    let text = three_roles([(32, false), (240, true), (240, true)]).refuted("R9.pool", 12);
    assert!(
        text.contains("the roles request 65536 registers, and the CTA has 64512"),
        "{text}"
    );
}

#[test]
fn a_missing_decrease_is_refuted() {
    let mut k = three_roles([(24, false), (240, true), (240, true)]);
    k.0.roles[0].body.0.clear();
    k.refuted("R9.pool", 12);
}

#[test]
fn a_count_that_is_not_a_multiple_of_8_is_refuted() {
    let text = three_roles([(30, false), (232, true), (232, true)]).refuted("R9.count", 10);
    assert!(text.contains("setmaxnreg to 30 registers"), "{text}");
}

#[test]
fn a_count_out_of_range_is_refuted() {
    three_roles([(16, false), (232, true), (232, true)]).refuted("R9.count", 10);
}

#[test]
fn an_exit_before_setmaxnreg_is_refuted() {
    let mut k = three_roles([(24, false), (240, true), (240, true)]);
    let conditional_exit = |k: &mut RawKernel| {
        let then = Block(vec![k.op(6, Exit)]);
        let (cond, other) = (k.value(Type::Pred), Block::default());
        k.stmt(5, StmtKind::If { cond, then, other })
    };
    let exit = conditional_exit(&mut k);
    // In the first role the exit follows `setmaxnreg`, which is legal.
    k.run(0, exit.clone());
    k.0.roles[1].body.0.insert(0, exit);
    k.refuted("R9.place", 11);
}

#[test]
fn a_decrease_that_raises_is_refuted() {
    three_roles([(24, false), (176, false), (168, true)]).refuted("R9.direction", 11);
}

#[test]
fn an_increase_that_lowers_is_refuted() {
    let text = three_roles([(24, true), (168, true), (168, true)]).refuted("R9.direction", 10);
    assert!(
        text.contains(
            "`setmaxnreg.inc` sets 24 registers per thread in role `load`, which has 168"
        ),
        "{text}"
    );
}

#[test]
fn setmaxnreg_in_a_partial_warpgroup_is_refuted() {
    let mut k = RawKernel::new(&[("load", 2), ("math", 6)]);
    let stmt = k.op(
        10,
        SetMaxRegs {
            count: 24,
            grow: false,
        },
    );
    k.run(0, stmt);
    let text = k.refuted("R9.warpgroup", 10);
    assert!(
        text.contains("role `load` has 2 warps from warp 0 on"),
        "{text}"
    );
}

#[test]
fn setmaxnreg_under_a_condition_is_refuted() {
    let mut k = RawKernel::one();
    let cond = k.value(Type::Pred);
    let inner = k.op(
        11,
        SetMaxRegs {
            count: 24,
            grow: false,
        },
    );
    let kind = StmtKind::If {
        cond,
        then: Block(vec![inner]),
        other: Block::default(),
    };
    let stmt = k.stmt(10, kind);
    k.run(0, stmt);
    k.refuted("R9.place", 11);
}
