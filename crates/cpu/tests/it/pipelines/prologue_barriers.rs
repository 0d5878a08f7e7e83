//! A role that starts its loads before the prologue barrier: every trip count and timing, as the
//! first and the last role, with idle warps, with `setmaxnreg`.

use crate::pipelines::harness::{Input, run_words, seeds, timings, words};
use warpline_ir::builder::*;
use warpline_ir::{Kernel, Op, StmtKind, Target};

const STAGES: u32 = 3;

#[derive(Clone, Copy, Debug)]
struct Case {
    /// Slots filled before the prologue barrier.
    prologue_slots: u32,
    /// Whether the producer is declared first.
    producer_first: bool,
    /// Whether roles run `setmaxnreg`; the producer is then one warp of a warpgroup.
    set_registers: bool,
}

/// Copies rows of 32 words through a ring.
fn copy_rows(l: Case) -> Kernel {
    let kernel = Kernel::build("copy_rows", &Target::SM_90A, |k| {
        let n = k.param::<u32>("n");
        let [x, y] = ["x", "y"].map(|name| k.pointer::<u32>(name));
        let ring = k.ring("rows", STAGES, |s| s.vector::<u32>(32));
        let role = |name: &str, registers: u32| match l.set_registers {
            true => k.role(name).warpgroups(1).registers(registers),
            false => k.role(name),
        };
        let load = || {
            role("load", 24).body(|| {
                let load_row = |i: Reg<u32>| {
                    let slot = ring.acquire();
                    slot.load_bytes(slot.tiles(), x.address(i * 32), 128);
                    slot.commit();
                };
                elect(|| (0..l.prologue_slots).for_each(|i| if_(n.gt(i), || load_row(i.reg()))));
                prologue_barrier();
                elect(|| range(l.prologue_slots, n).each(load_row));
            });
        };
        let store = || {
            role("store", 232).body(|| {
                steps(n).each(|i| {
                    let slot = ring.wait();
                    if_(warp_in_role().eq(0u32), || {
                        y.store(i * 32 + lane_id(), slot.load(0u32, lane_id()));
                    });
                    slot.release();
                });
            });
        };
        let all: [&dyn Fn(); 2] = match l.producer_first {
            true => [&load, &store],
            false => [&store, &load],
        };
        all.into_iter().for_each(|role| role());
    });
    kernel.unwrap_or_else(|e| panic!("{e}"))
}

fn cases() -> impl Iterator<Item = Case> {
    let both = [false, true];
    (0..=STAGES).flat_map(move |prologue_slots| {
        both.into_iter().flat_map(move |producer_first| {
            both.map(|set_registers| Case {
                prologue_slots,
                producer_first,
                set_registers,
            })
        })
    })
}

#[test]
fn loads_before_the_prologue_barrier_keep_all_rows() {
    for l in cases() {
        let kernel = copy_rows(l);
        for n in [0, 1, STAGES - 1, STAGES, STAGES + 1, 2 * STAGES + 1] {
            let x: Vec<u32> = (0..32 * n.max(1)).map(|i| i * 7 + 1).collect();
            let inputs = [
                Input::U32(n),
                words(x.iter().copied()),
                Input::Zeros(128 * n.max(1) as usize),
            ];
            for o in timings(seeds(4)) {
                let y = run_words(&kernel, 1, &inputs, &o);
                let want = &x[..32 * n as usize];
                assert_eq!(&y[..want.len()], want, "{l:?}, {n} rows, {o:?}");
            }
        }
    }
}

/// `setmaxnreg` may wait for the registers of other warpgroups, so it must follow the prologue
/// barrier.
#[test]
fn setmaxnreg_runs_after_the_prologue_barrier() {
    let kernel = copy_rows(Case {
        prologue_slots: 1,
        producer_first: true,
        set_registers: true,
    });
    for role in &kernel.roles {
        let at = |which: fn(&Op) -> bool| {
            let is = |s: &warpline_ir::Stmt| matches!(&s.kind, StmtKind::Op(o) if which(o));
            role.body.0.iter().position(is)
        };
        let barrier_at = at(|o| matches!(o, Op::CtaSync(_)));
        let set_registers = at(|o| matches!(o, Op::SetMaxRegs(_)));
        assert!(
            barrier_at.is_some() && barrier_at < set_registers,
            "{}: {barrier_at:?}, {set_registers:?}",
            role.name
        );
    }
}
