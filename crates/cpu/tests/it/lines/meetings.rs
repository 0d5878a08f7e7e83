//! A role that begins before the CTA meets: trip counts 0, 1, S±1, every timing,
//! first and last of the roles, with idle warps, with registers moved.

use crate::lines::harness::{Input, run_words, seeds, timings, words};
use warpline_ir::build::*;
use warpline_ir::{Kernel, Op, StmtKind, Target};

const STAGES: u32 = 3;

#[derive(Clone, Copy, Debug)]
struct Line {
    /// Slots filled before the meeting.
    early: u32,
    /// The loader is declared first.
    first: bool,
    /// Moves registers: warpgroups, of which one warp loads.
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
                meet();
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
fn rows_come_through_whoever_begins_early() {
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

/// What comes before the meeting comes before registers are moved, too: who
/// takes some waits for those who give some.
#[test]
fn registers_are_moved_behind_the_meeting() {
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
