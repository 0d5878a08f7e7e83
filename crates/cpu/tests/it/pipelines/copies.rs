//! Rings that `cp.async` fills.

use crate::pipelines::harness::{Input, run, run_words, seeds, timings, words};
use warpline_cpu::Timing;
use warpline_ir::builder::*;
use warpline_ir::{FaultKind, Kernel};

const ROW: u32 = 64;

fn build(body: impl FnOnce(Builder)) -> Kernel {
    warpline_testkit::kernel::build("copies", body)
}

/// How a producer commits a slot.
#[derive(Clone, Copy, PartialEq, Debug)]
enum CommitMode {
    /// Every thread arrives after its copies, without a wait.
    AfterCopies,
    /// Commits after a wait.
    Wait,
    /// Commits without a wait.
    WithoutWait,
}

/// A producer of two warps copies rows; two warps add one and store them.
fn copy_add_pipeline(stages: u32, mode: CommitMode) -> Kernel {
    build(|k| {
        let (n, x, y) = (
            k.param::<u32>("n"),
            k.pointer::<u32>("x"),
            k.pointer::<u32>("y"),
        );
        let ring = k.ring("rows", stages, |s| s.tile::<u32>(2, ROW));
        k.role("load").warps(2).body(|| {
            steps(n).each(|i| {
                let slot = ring.acquire();
                // One row per warp; the last bytes of each row are zeros.
                let row = warp_in_role();
                let at = x.address((i * 2 + row) * ROW + lane_id() * 2);
                let valid = select(lane_id().lt(30u32), 8u32, 0u32);
                slot.copy_zfill_from(row, lane_id() * 2, at, 8, valid);
                match mode {
                    CommitMode::AfterCopies => slot.commit_after_copies(),
                    CommitMode::Wait => {
                        copy_wait_all();
                        slot.commit();
                    }
                    CommitMode::WithoutWait => slot.commit(),
                }
            });
        });
        k.role("add").warps(2).body(|| {
            steps(n).each(|i| {
                let slot = ring.wait();
                let row = warp_in_role() ^ 1;
                for c in [0, 32] {
                    let col = lane_id() + c;
                    let v = slot.load(row, col);
                    y.store((i * 2 + row) * ROW + col, v + 1);
                }
                slot.release();
            });
        });
    })
}

#[test]
fn a_ring_filled_by_cp_async_is_correct_at_every_trip_count() {
    for stages in [1, 2, 3] {
        for mode in [CommitMode::AfterCopies, CommitMode::Wait] {
            let k = copy_add_pipeline(stages, mode);
            for n in [0, 1, stages - 1, stages, stages + 1, 3 * stages + 2] {
                let len = (2 * ROW * n.max(1)) as usize;
                let inputs = [
                    Input::U32(n),
                    words((0..len as u32).map(|i| 5 * i)),
                    Input::Output(4 * len),
                ];
                for options in timings(seeds(4)) {
                    if n == 0 {
                        // The kernel must end without a write.
                        let inputs = [Input::U32(0), words([0]), words([0])];
                        run(&k, 1, &inputs, &options).unwrap_or_else(|e| panic!("{e}"));
                        continue;
                    }
                    let got = run_words(&k, 1, &inputs, &options);
                    for (i, v) in (0..).zip(got) {
                        let want = if i % ROW < 60 { 5 * i + 1 } else { 1 };
                        assert_eq!(v, want, "{stages} stages, {mode:?}, {n} slots, word {i}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_slot_committed_before_its_copies_complete_is_reported_at_its_reader() {
    let k = copy_add_pipeline(2, CommitMode::WithoutWait);
    let inputs = [
        Input::U32(3),
        words(0..2 * ROW * 3),
        Input::Output(4 * 2 * 3 * ROW as usize),
    ];
    for options in timings(seeds(6)) {
        if options.timing == Timing::Eager {
            continue;
        }
        let e = run(&k, 1, &inputs, &options).unwrap_err();
        assert_eq!(e.kind, FaultKind::Race, "{e}");
        let role = e.at.as_ref().map_or("", |s| s.role.as_str());
        assert_eq!(role, "add", "{e}");
    }
}
