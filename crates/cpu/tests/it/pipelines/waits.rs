//! Turns, queues and flags.

use crate::pipelines::harness::{Input, run, run_words, seeds, timings, to_words, words};
use warpline_ir::builder::*;
use warpline_ir::{Kernel, Target};

/// Two roles append to a list in turn; their entries alternate.
#[test]
fn a_turn_orders_two_roles() {
    let kernel = Kernel::build("turns", &Target::SM_90A, |k| {
        let (n, out) = (k.param::<u32>("n"), k.pointer::<u32>("out"));
        let length = k.tile::<u32>("length", 1, 4).unswizzled().declare();
        let turn = k.turn("list", ["ping", "pong"]);
        for (i, who) in ["ping", "pong"].into_iter().enumerate() {
            k.role(who).warps(1).body(|| {
                steps(n).each(|t| {
                    turn.hold(|| {
                        elect(|| {
                            let first = (t.eq(0)) & Value::<u32>::reg(i as u32).eq(0);
                            let len = Var::new(0u32);
                            if_(!first, || len.set(length.whole().load(0u32, 0u32)));
                            out.store(len.get(), t * 10 + i as u32);
                            length.whole().store(0u32, 0u32, len.get() + 1);
                        });
                    });
                });
            });
        }
    })
    .expect("a valid kernel");
    for n in [0u32, 1, 2, 7] {
        let want: Vec<u32> = (0..n).flat_map(|t| [t * 10, t * 10 + 1]).collect();
        for options in timings(seeds(10)) {
            let inputs = [Input::U32(n), Input::Output(want.len() * 4)];
            assert_eq!(run_words(&kernel, 1, &inputs, &options), want);
        }
    }
}

/// Every role of every CTA of a cluster receives each item once, and the queue counters are zero
/// afterwards.
#[test]
fn a_work_queue_distributes_every_item_once_and_resets() {
    for size in [1, 2, 4] {
        let kernel = Kernel::build("queue", &Target::SM_90A, |k| {
            if size > 1 {
                k.cluster(size, 1, 1);
            }
            let (n, out) = (k.param::<u32>("n"), k.pointer::<u32>("out"));
            let queue = k.work_queue("queue", 2);
            let values = k.ring("values", 2, |s| s.vector::<u32>(32));
            k.role("fetch").body(|| {
                elect(|| {
                    queue.fetch_each(n, |item| {
                        let slot = values.acquire();
                        slot.store(0u32, 0u32, item * 3);
                        slot.commit();
                    });
                });
            });
            k.role("work").warps(2).body(|| {
                queue.each(n, |item| {
                    let slot = values.wait();
                    let x = slot.load(0u32, 0u32);
                    slot.release();
                    elect(|| out.store(item * size + cluster_rank(), x + 1));
                });
            });
        })
        .expect("a valid kernel");
        for n in [0u32, 1, 5, 17] {
            let want: Vec<u32> = (0..n * size).map(|i| i / size * 3 + 1).collect();
            for options in timings(seeds(5)) {
                let out = Input::Output(want.len() * 4);
                let inputs = [Input::U32(n), out, Input::Zeros(8)];
                let outputs = run(&kernel, 3 * size, &inputs, &options);
                let outputs = outputs.unwrap_or_else(|e| panic!("{size}, {n}: {e}"));
                assert_eq!(to_words(&outputs[0]), want, "cluster of {size}");
                assert_eq!(to_words(&outputs[1]), [0, 0], "cluster of {size}");
            }
        }
    }
}

/// CTA i waits for CTA i − 1 through a flag, and adds to its value in memory.
#[test]
fn flags_pass_a_value_from_cta_to_cta() {
    let kernel = Kernel::build("flags", &Target::SM_90A, |k| {
        let out = k.pointer::<u32>("out");
        let flags = k.flags("flags");
        k.role("all").warps(1).body(|| {
            elect(|| {
                let me = cta_id();
                let x = Var::new(1u32);
                if_(me.gt(0), || {
                    flags.wait(me - 1, 1u32);
                    x.set(out.load(me - 1) * 2);
                });
                out.store(me, x.get());
                flags.signal(me);
            });
        });
    })
    .expect("a valid kernel");
    let want: Vec<u32> = (0..9).map(|i| 1 << i).collect();
    for options in timings(seeds(5)) {
        let inputs = [Input::Output(36), words([0; 9])];
        assert_eq!(run_words(&kernel, 9, &inputs, &options), want);
    }
}

/// `wait_group.read` passes only when the sources of all three copies are read.
#[test]
fn a_read_wait_covers_every_copy_of_its_group() {
    let kernel = Kernel::build("group", &Target::SM_90A, |k| {
        let out = k.pointer::<u32>("out");
        let tile = k.tile::<u32>("tile", 3, 32).unswizzled().declare();
        k.role("all").body(|| {
            steps(3).each(|t| {
                for row in 0..3 {
                    tile.whole().store(row, lane_id(), t * 100 + row);
                }
                fence_async();
                warp_sync();
                elect(|| {
                    for row in 0..3 {
                        let part = tile.whole().slice(row..row + 1, 0..32);
                        bulk_store(part, out.address((t * 3 + row) * 32), 128);
                    }
                    bulk_commit();
                    bulk_wait_read(0);
                });
                warp_sync();
            });
        });
    })
    .expect("a valid kernel");
    let want: Vec<u32> = (0..9 * 32).map(|i| i / 96 * 100 + i / 32 % 3).collect();
    for options in timings(seeds(5)) {
        let got = run_words(&kernel, 1, &[Input::Output(want.len() * 4)], &options);
        assert_eq!(got, want);
    }
}
