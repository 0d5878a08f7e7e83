//! mbarriers: all kinds of arrivals, transaction bytes, phases and tests.

use crate::trial::OpTrial;
use warpline_ir::Type;
use warpline_ir::builder::*;

pub(crate) fn trials() -> Vec<OpTrial> {
    vec![
        phases(),
        transaction_bytes(),
        dropped_arrival(),
        peer_arrivals(),
        reinitialization(),
    ]
}

fn to_word(x: Reg<bool>) -> Reg<u32> {
    select(x, 1u32, 0u32)
}

/// Words passed between threads over the phases of one mbarrier, and every kind of test.
fn phases() -> OpTrial {
    let kernel = super::kernel("phases", |k| {
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        let t = k.tile::<u32>("t", 1, 64).unswizzled().stages(2).declare();
        let bar = k.barrier("bar", 1).arrivals(128);
        k.role("all").warps(2).body(|| {
            let thread = thread_id();
            let tests = |round: u32| {
                let bar = bar.at(0);
                let results = [
                    bar.test(0),
                    bar.test(1),
                    bar.try_wait(0),
                    bar.try_wait(1),
                    bar.test_cluster(0),
                    bar.try_wait_cluster(1),
                ];
                for (i, result) in (0u32..).zip(results) {
                    out.store(thread + (round * 7 + i) * 64, to_word(result));
                }
            };
            for round in 0..4u32 {
                tests(round);
                cta_sync();
                t.stage(round % 2)
                    .store(0u32, thread, x.load(thread + round * 64));
                match round % 2 {
                    0 => bar.at(0).arrive_many(2u32),
                    _ => {
                        bar.at(0).arrive();
                        bar.at(0).arrive();
                    }
                }
                bar.at(0).wait(round % 2);
                let other = t.stage(round % 2).load(0u32, thread ^ 37);
                out.store(thread + (round * 7 + 6) * 64, other);
            }
        });
    });
    OpTrial::new(
        "mbarrier phases",
        &[
            "mbarrier_init",
            "mbarrier_arrive",
            "mbarrier_wait",
            "mbarrier_test",
        ],
        kernel,
    )
    .input(&super::words(256, 40))
    .output("tests and words", Type::U32, 4 * 7 * 64)
}

/// Transaction bytes expected by an arrival and by a separate op.
fn transaction_bytes() -> OpTrial {
    let kernel = super::kernel("bytes", |k| {
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        let t = k.tile::<u32>("t", 2, 32).unswizzled().declare();
        let bar = k.barrier("bar", 2).arrivals(1);
        k.role("all").warps(1).body(|| {
            elect(|| {
                let row = |i: u32| t.whole().slice(i..i + 1, 0..32);
                bulk_load(row(0), x.address(0u32), 128u32, bar.at(0));
                bar.at(0).arrive_expect(128u32);
                bar.at(1).expect(128u32);
                bulk_load(row(1), x.address(32u32), 128u32, bar.at(1));
                bar.at(1).arrive();
            });
            for i in 0..2u32 {
                bar.at(i).wait(0);
                out.store(lane_id() + i * 32, t.whole().load(i, lane_id() ^ 5));
            }
        });
    });
    OpTrial::new(
        "mbarrier bytes",
        &["mbarrier_arrive", "mbarrier_expect_tx"],
        kernel,
    )
    .input(&super::words(64, 41))
    .output("words", Type::U32, 64)
}

/// One warp arrives with `arrive_drop`; later phases do not expect it.
fn dropped_arrival() -> OpTrial {
    let kernel = super::kernel("leaving", |k| {
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        let t = k.tile::<u32>("t", 1, 32).unswizzled().stages(3).declare();
        let bar = k.barrier("bar", 1).arrivals(64);
        k.role("arrive").warps(1).body(|| {
            for round in 0..3u32 {
                let value = x.load(lane_id() + round * 32);
                t.stage(round).store(0u32, lane_id(), value);
                bar.at(0).arrive();
                bar.at(0).wait(round % 2);
                let other = t.stage(round).load(0u32, lane_id() ^ 9);
                out.store(lane_id() + round * 32, other);
            }
        });
        k.role("drop").warps(1).body(|| bar.at(0).arrive_drop());
    });
    OpTrial::new("mbarrier, one that leaves", &["mbarrier_arrive"], kernel)
        .input(&super::words(96, 42))
        .output("words", Type::U32, 96)
}

/// Arrivals at the mbarrier of a peer publish the stores to its memory.
fn peer_arrivals() -> OpTrial {
    let kernel = super::kernel("arrivals", |k| {
        k.cluster(4, 1, 1);
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
        let full = k.barrier("full", 1).arrivals(32);
        k.role("all").warps(1).body(|| {
            let at = cta_id() * 32 + lane_id();
            let next = (cluster_rank() + 1) & 3;
            t.whole().peer(next).store(0u32, lane_id(), x.load(at));
            full.at(0).peer(next).arrive_cluster();
            full.at(0).wait_cluster(0);
            out.store(at, t.whole().load(0u32, lane_id() ^ 3));
        });
    });
    OpTrial::new(
        "mbarrier of a peer",
        &["mbarrier_arrive", "mbarrier_wait"],
        kernel,
    )
    .ctas(8)
    .input(&super::words(256, 43))
    .output("words", Type::U32, 256)
}

/// An mbarrier that is invalidated and initialized with another count.
fn reinitialization() -> OpTrial {
    let kernel = super::kernel("again", |k| {
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        let t = k.tile::<u32>("t", 1, 64).unswizzled().declare();
        let bar = k.barrier("bar", 1).arrivals(1);
        k.role("all").warps(2).body(|| {
            let (thread, bar) = (thread_id(), bar.at(0));
            elect(|| bar.arrive());
            bar.wait(0);
            cta_sync();
            elect(|| {
                bar.inval();
                bar.init(64);
                fence_mbarrier_init();
            });
            cta_sync();
            t.whole().store(0u32, thread, x.load(thread));
            bar.arrive();
            bar.wait(0);
            out.store(thread, t.whole().load(0u32, thread ^ 37));
        });
    });
    OpTrial::new(
        "mbarrier, ended and begun anew",
        &["mbarrier_inval", "mbarrier_init"],
        kernel,
    )
    .input(&super::words(64, 44))
    .output("words", Type::U32, 64)
}
