//! Loops that never end.

use crate::rules::kernel;
use warpline_check::{Verdict, examine};
use warpline_ir::builder::*;
use warpline_ir::{Block, Kernel, MemoryOrder, Operand, Scope, StmtKind, Target, Type};
use warpline_testkit::raw::RawKernel;
use warpline_testkit::verdict::{NONE, codes, violations};

fn all(body: impl FnOnce(Reg<u32>, Global<u32>)) -> Kernel {
    kernel(|k| {
        let (n, x) = (k.param::<u32>("n"), k.pointer::<u32>("x"));
        k.role("all").body(|| body(n, x));
    })
}

#[test]
fn a_loop_with_a_constant_condition_is_refuted() {
    let mut at = 0;
    let k = all(|_, x| {
        let on = Var::new(true);
        at = line!() + 1;
        while_(|| on.get(), || x.store(lane_id(), 1u32));
    });
    assert_eq!(violations(&k), [("R17.endless", at, Some(at))]);
    let set = |value: bool| {
        all(|_, x| {
            let on = Var::new(true);
            while_(
                || on.get(),
                || {
                    x.store(lane_id(), 1u32);
                    on.set(value);
                },
            );
        })
    };
    assert_eq!(codes(&set(true)), ["R17.endless"]);
    assert_eq!(codes(&set(false)), NONE);
    let compared = all(|_, x| while_(|| lane_id().lt(32u32), || x.store(lane_id(), 1u32)));
    assert_eq!(codes(&compared), ["R17.endless"]);
}

#[test]
fn a_loop_with_an_invariant_condition_is_refuted() {
    let k = all(|n, x| {
        let go = n.gt(4u32);
        while_(|| go, || x.store(lane_id(), 1u32));
    });
    assert_eq!(codes(&k), ["R17.endless"]);
    let counted = |counts: bool| {
        all(|n, x| {
            let i = Var::new(0u32);
            let other = Var::new(0u32);
            while_(
                || (i.get() * 2).lt(n),
                || {
                    x.store(i.get(), 1u32);
                    let to = if counts { i } else { other };
                    to.set(to.get() + 1);
                },
            );
        })
    };
    assert_eq!(codes(&counted(false)), ["R17.endless"]);
    assert_eq!(codes(&counted(true)), NONE);
}

#[test]
fn a_loop_on_a_barrier_or_a_flag_passes() {
    let k = kernel(|k| {
        let done = k.barrier("done", 1).arrivals(1);
        k.role("set").body(|| elect_lane(|| done.at(0u32).arrive()));
        k.role("ask")
            .body(|| while_(|| !done.at(0u32).test(0u32), || nanosleep(20)));
    });
    assert!(!codes(&k).contains(&"R17.endless"));
    let mut k = kernel(|k| {
        let x = k.pointer::<u32>("x");
        let order = MemoryOrder::acquire(Scope::Gpu);
        k.role("all").body(|| {
            elect_lane(|| {
                let release = MemoryOrder::release(Scope::Gpu);
                if_(cta_id().eq(0u32), || {
                    x.atomic_ref(0u32).store(1u32, release)
                });
                while_(|| x.atomic_ref(0u32).load(order).eq(0u32), || nanosleep(20));
            });
        });
    });
    k.co_resident = true;
    assert_eq!(codes(&k), NONE);
}

#[test]
fn a_loop_with_an_exit_passes() {
    let k = |leaves: bool| {
        all(|n, x| {
            let (on, i) = (Var::new(true), Var::new(0u32));
            while_(
                || on.get(),
                || {
                    x.store(lane_id(), 1u32);
                    i.set(i.get() + 1);
                    if leaves {
                        if_(i.get().gt(n), exit);
                    }
                },
            );
        })
    };
    assert_eq!(codes(&k(false)), ["R17.endless"]);
    assert!(!codes(&k(true)).contains(&"R17.endless"));
}

#[test]
fn a_loop_with_step_zero_is_refuted() {
    let by = |step: u32| {
        all(move |_, x| {
            let step = Var::new(step);
            range(0u32, 8u32)
                .step_by(step.get())
                .each(|i| x.store(i, 1u32));
        })
    };
    assert_eq!(codes(&by(0)), ["R17.step"]);
    assert_eq!(codes(&by(2)), NONE);
    // The step is an immediate operand.
    let constant = |step: u64| {
        let mut k = RawKernel::one();
        let var = k.reg(Type::U32);
        let kind = StmtKind::For {
            var,
            from: Operand::Imm(0),
            to: Operand::Imm(8),
            step: Operand::Imm(step),
            body: Block::default(),
            unroll: None,
        };
        let stmt = k.stmt(12, kind);
        k.run(0, stmt);
        k
    };
    constant(0).refuted("R17.step", 12);
    constant(1).passes();
}

#[test]
fn a_step_parameter_needs_a_declared_lower_bound() {
    let k = |least: u32, product: bool| {
        kernel(|k| {
            let (step, x) = (k.param::<u32>("step"), k.pointer::<u32>("x"));
            let step = if least > 0 {
                step.at_least(least)
            } else {
                step
            };
            k.role("all").body(|| {
                let step = if product { grid_ctas() * step } else { step };
                range(0u32, 8u32).step_by(step).each(|i| x.store(i, 1u32));
            });
        })
    };
    for product in [false, true] {
        let report = examine(&k(0, product), &Target::SM_90A);
        assert_eq!(report.verdict(), Verdict::Undecided);
        let [found] = report.diagnostics.as_slice() else {
            panic!("one diagnostic: {:?}", report.diagnostics);
        };
        assert_eq!(found.code(), "R17.step");
        let help = found.help.as_deref().unwrap_or_default();
        assert!(help.contains("step.at_least(1)"), "{help}");
        let report = examine(&k(1, product), &Target::SM_90A);
        assert_eq!(report.verdict(), Verdict::Proved);
        // A product of two launch values may wrap around.
        let wraps = report.assumptions.iter().any(|a| a.code == "A.wrap");
        assert_eq!(wraps, product);
    }
    // The extents of a grid are at least 1, and the end may be a product.
    let k = all(|n, x| {
        range(cta_id(), grid_ctas() * n)
            .step_by(grid_ctas())
            .each(|i| x.store(i, 1u32));
    });
    let report = examine(&k, &Target::SM_90A);
    assert_eq!(report.verdict(), Verdict::Proved);
    assert!(report.assumptions.iter().all(|a| a.code != "A.wrap"));
}
