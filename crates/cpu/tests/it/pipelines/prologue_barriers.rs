//! A role that starts before the prologue barrier: trip counts 0, 1, S±1, every timing, first and last
//! role, with idle warps, with `setmaxnreg`.

use crate::pipelines::harness::{Input, run_words, seeds, timings, words};
use warpline_ir::builder::*;
use warpline_ir::{Kernel, Op, StmtKind, Target};

const STAGES: u32 = 3;

#[derive(Clone, Copy, Debug)]
struct Line {
    /// Slots filled before the prologue barrier.
    early: u32,
    /// Whether the producer is declared first.
    first: bool,
    /// Whether roles run `setmaxnreg`; the producer is then one warp of a warpgroup.
    moves: bool,
}

/// Copies rows of 32 words through a ring.
fn line(l: Line) -> Kernel {
    let kernel = Kernel::build("line", &Target::SM_90A, |k| {
        let n = k.param::<u32>("n");
        let [x, y] = ["x", "y"].map(|name| k.pointer::<u32>(name));
        let ring = k.ring("rows", STAGES, |s| s.vector::<u32>(32));
        let role = |name: &str, registers: u32| match l.moves {
            true => k.role(name).warpgroups(1).registers(registers),
            false => k.role(name),
        };
        let load = || {
            role("load", 24).body(|| {
                let bring = |i: Reg<u32>| {
                    let slot = ring.acquire();
                    slot.load_bytes(slot.tiles(), x.address(i * 32), 128);
                    slot.commit();
                };
                elect(|| (0..l.early).for_each(|i| if_(n.gt(i), || bring(i.reg()))));
                prologue_barrier();
                elect(|| range(l.early, n).each(bring));
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
        let all: [&dyn Fn(); 2] = match l.first {
            true => [&load, &store],
            false => [&store, &load],
        };
        all.into_iter().for_each(|role| role());
    });
    kernel.unwrap_or_else(|e| panic!("{e}"))
}

fn lines() -> impl Iterator<Item = Line> {
    let some = [false, true];
    (0..=STAGES).flat_map(move |early| {
        some.into_iter().flat_map(move |first| {
            some.map(|moves| Line {
                early,
                first,
                moves,
            })
        })
    })
}

#[test]
fn an_early_start_keeps_all_rows() {
    for l in lines() {
        let kernel = line(l);
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

/// The early part also runs before `setmaxnreg`, which waits for the registers of other warpgroups.
#[test]
fn setmaxnreg_runs_after_the_prologue_barrier() {
    let kernel = line(Line {
        early: 1,
        first: true,
        moves: true,
    });
    for role in &kernel.roles {
        let at = |which: fn(&Op) -> bool| {
            let is = |s: &warpline_ir::Stmt| matches!(&s.kind, StmtKind::Op(o) if which(o));
            role.body.0.iter().position(is)
        };
        let meets = at(|o| matches!(o, Op::CtaSync(_)));
        let moves = at(|o| matches!(o, Op::SetMaxRegs(_)));
        assert!(
            meets.is_some() && meets < moves,
            "{}: {meets:?}, {moves:?}",
            role.name
        );
    }
}
