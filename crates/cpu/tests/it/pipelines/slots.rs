//! Slots held while others are acquired, and across loop iterations.

use crate::pipelines::harness::{Input, run_words, seeds, timings, words};
use warpline_ir::builder::*;
use warpline_ir::{Kernel, Target};
use warpline_testkit::kernel::build;

/// A producer loads `n + extra` rows of 32 words through a ring; two warps read them.
fn row_pipeline(
    stages: u32,
    extra: u32,
    read: impl Fn(Ring<Tile<u32>>, Reg<u32>, Global<u32>),
) -> Kernel {
    build("line", |k| {
        let n = k.param::<u32>("n");
        let [x, y] = ["x", "y"].map(|name| k.pointer::<u32>(name));
        let ring = k.ring("rows", stages, |s| s.vector::<u32>(32));
        k.role("load").body(|| {
            elect(|| {
                steps(n + extra).each(|t| {
                    let slot = ring.acquire();
                    slot.load_bytes(slot.tiles(), x.address(t * 32), 128u32);
                    slot.commit();
                });
            });
        });
        k.role("read").warps(2).body(|| read(ring, n, y));
    })
}

/// Returns the index of this thread's word in row `t` of the output, with 64 words per row.
fn output_index(t: impl Value<u32>) -> Reg<u32> {
    t.reg() * 64 + thread_in_role()
}

/// Asserts that the word of row `t` and lane `l` of the output is `want(t, l)`.
#[track_caller]
fn check(
    kernel: &Kernel,
    stages: u32,
    n: u32,
    extra: u32,
    rows: u32,
    want: impl Fn(u32, u32) -> u32,
) {
    let inputs = [
        Input::U32(n),
        words((0..(n + extra).max(1) * 32).map(|i| word(i / 32, i % 32))),
        Input::Output((rows * 64 * 4) as usize),
    ];
    let want: Vec<u32> = (0..rows * 64).map(|i| want(i / 64, i % 32)).collect();
    for options in timings(seeds(3)) {
        let got = run_words(kernel, 1, &inputs, &options);
        let what = format!(
            "{stages} stages, n = {n}, {}, seed {}",
            options.timing, options.seed
        );
        assert!(got == want, "{what}: {got:?} is not {want:?}");
    }
}

fn word(t: u32, lane: u32) -> u32 {
    t * 1000 + lane * 7 + 1
}

fn trip_counts(stages: u32) -> [u32; 6] {
    [0, 1, stages - 1, stages, stages + 1, 2 * stages + 1]
}

/// Each iteration reads its own slot and the slot of the previous iteration.
#[test]
fn a_slot_is_carried_across_iterations() {
    for stages in [2, 3, 4] {
        let kernel = row_pipeline(stages, 1, |ring, n, y| {
            let last = steps(n).fold(ring.wait(), |t, before| {
                let slot = ring.wait();
                let (old, new) = (before.load(0u32, lane_id()), slot.load(0u32, lane_id()));
                before.release();
                y.store(output_index(t), new * 3 - old);
                slot
            });
            y.store(output_index(n), last.load(0u32, lane_id()));
            last.release();
        });
        for n in trip_counts(stages) {
            check(&kernel, stages, n, 1, n + 1, |t, lane| match t {
                t if t < n => (word(t + 1, lane) * 3).wrapping_sub(word(t, lane)),
                _ => word(n, lane),
            });
        }
    }
}

/// Each iteration releases the previous slot before it waits for its own.
#[test]
fn a_read_slot_is_released_in_the_next_iteration() {
    for stages in [1, 2, 3] {
        let kernel = row_pipeline(stages, 1, |ring, n, y| {
            let last = steps(n).fold(ring.wait(), |t, before| {
                before.release();
                let slot = ring.wait();
                y.store(output_index(t), slot.load(0u32, lane_id()));
                slot
            });
            last.release();
        });
        for n in trip_counts(stages) {
            check(&kernel, stages, n, 1, n, |t, lane| word(t + 1, lane));
        }
    }
}

#[test]
fn a_slot_and_a_sum_are_carried_together() {
    let stages = 2;
    let kernel = row_pipeline(stages, 1, |ring, n, y| {
        let first = (ring.wait(), 0u32.reg());
        let (last, sum) = steps(n).fold(first, |_, (before, sum)| {
            let sum = sum + before.load(0u32, lane_id());
            before.release();
            (ring.wait(), sum)
        });
        y.store(output_index(0u32), sum + last.load(0u32, lane_id()));
        last.release();
    });
    for n in trip_counts(stages) {
        check(&kernel, stages, n, 1, 1, |_, lane| {
            (0..=n).map(|t| word(t, lane)).sum()
        });
    }
}

#[test]
fn a_slot_is_released_after_the_next_is_acquired() {
    for stages in [2, 3] {
        let kernel = row_pipeline(stages, 0, |ring, n, y| {
            steps(n / 2).each(|t| {
                let first = ring.wait();
                let x = first.load(0u32, lane_id());
                let second = ring.wait();
                first.release();
                y.store(output_index(t), x + second.load(0u32, lane_id()));
                second.release();
            });
        });
        for n in [0, 2, 4, 8] {
            check(&kernel, stages, n, 0, n / 2, |t, lane| {
                word(2 * t, lane) + word(2 * t + 1, lane)
            });
        }
    }
}

/// Lanes fill two slots and commit the first after they acquire the second; TMA reads both.
#[test]
fn a_slot_is_committed_after_the_next_is_acquired() {
    let kernel = Kernel::build("fill", &Target::SM_90A, |k| {
        let n = k.param::<u32>("n");
        let y = k.pointer::<u32>("y");
        let ring = k.ring("rows", 2, |s| s.vector::<u32>(32));
        k.role("fill").body(|| {
            steps(n).each(|t| {
                let first = ring.acquire();
                first.store(0u32, lane_id(), t * 2000 + lane_id());
                let second = ring.acquire();
                first.commit();
                second.store(0u32, lane_id(), t * 2000 + 1000 + lane_id());
                second.commit();
            });
        });
        k.role("send").body(|| {
            elect(|| {
                steps(n * 2).each(|t| {
                    let slot = ring.wait();
                    bulk_store(slot.tiles(), y.address(t * 32), 128u32);
                    bulk_commit();
                    bulk_wait_read(0);
                    slot.release();
                });
            });
        });
    })
    .expect("a valid kernel");
    for n in [1u32, 2, 3] {
        let want: Vec<u32> = (0..n * 64).map(|i| i / 32 * 1000 + i % 32).collect();
        let inputs = [Input::U32(n), Input::Output(want.len() * 4)];
        for options in timings(seeds(3)) {
            assert_eq!(run_words(&kernel, 1, &inputs, &options), want, "n = {n}");
        }
    }
}
