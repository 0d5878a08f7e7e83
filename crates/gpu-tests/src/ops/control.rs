//! CTA, named and cluster barriers, register budgets, dependent launches, timers.

use crate::trial::OpTrial;
use warpline_ir::Type;
use warpline_ir::builder::*;

pub(crate) fn trials() -> Vec<OpTrial> {
    vec![
        cta(),
        named(),
        named_reductions(),
        cluster(),
        registers(),
        dependent(),
        sleep(),
        exits(),
        unreached_trap(),
    ]
}

/// Each thread reads a word that a thread of another warp wrote.
fn cta() -> OpTrial {
    let kernel = super::kernel("cta_sync", |k| {
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        let t = k.tile::<u32>("t", 1, 128).unswizzled().declare();
        k.role("all").warps(4).body(|| {
            steps(8).each(|i| {
                let at = i * 128 + thread_id();
                t.whole().store(0u32, thread_id(), x.load(at));
                cta_sync();
                let other = t.whole().load(0u32, (thread_id() + i * 32 + 37) & 127);
                cta_sync();
                out.store(at, other);
            });
        });
    });
    OpTrial::new("cta_sync", &["cta_sync"], kernel)
        .input(&super::words(1024, 20))
        .output("out", Type::U32, 1024)
}

/// One role stores words and arrives; the other waits, loads and arrives.
fn named() -> OpTrial {
    let kernel = super::kernel("named", |k| {
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        let t = k.tile::<u32>("t", 1, 64).unswizzled().declare();
        let [full, empty] = ["full", "empty"].map(|name| k.named_barrier(name));
        k.role("fill").warps(2).body(|| {
            steps(8).each(|i| {
                empty.sync(128);
                let value = x.load(i * 64 + thread_in_role());
                t.whole().store(0u32, thread_in_role(), value);
                full.arrive(128);
            });
        });
        k.role("read").warps(2).body(|| {
            empty.arrive(128);
            steps(8).each(|i| {
                full.sync(128);
                let at = thread_in_role();
                out.store(i * 64 + at, t.whole().load(0u32, at ^ 33));
                if_(i.lt(7u32), || empty.arrive(128));
            });
        });
    });
    OpTrial::new(
        "named_sync and named_arrive",
        &["named_sync", "named_arrive"],
        kernel,
    )
    .input(&super::words(512, 21))
    .output("out", Type::U32, 512)
}

/// Counts the threads with a set bit, and tests whether all or any of them have it.
fn named_reductions() -> OpTrial {
    let kernel = super::kernel("named_reductions", |k| {
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        let barrier = k.named_barrier("barrier");
        k.role("all").warps(3).body(|| {
            let to_word = |x: Reg<bool>| select(x, 1u32, 0u32);
            steps(16).each(|i| {
                let value = x.load(i * 96 + thread_id());
                let odd = (value & 1).ne(0u32);
                let count = barrier.count(96, odd);
                let all = barrier.all(96, odd);
                let any = barrier.any(96, odd);
                let at = (i * 96 + thread_id()) * 3;
                out.store(at, count);
                out.store(at + 1, to_word(all));
                out.store(at + 2, to_word(any));
            });
        });
    });
    let mut bits = super::words(16 * 96, 22);
    // All, none, and all but one.
    bits[..96].fill(1);
    bits[96..192].fill(0);
    bits[192..288].fill(1);
    bits[250] = 0;
    OpTrial::new("named_tally", &["named_tally"], kernel)
        .input(&bits)
        .output("out", Type::U32, 16 * 96 * 3)
}

/// Words pass around a cluster of four, with releasing and relaxed arrivals.
fn cluster() -> OpTrial {
    let kernel = super::kernel("cluster", |k| {
        k.cluster(4, 1, 1);
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        let t = k.tile::<u32>("t", 1, 32).unswizzled().stages(2).declare();
        k.role("all").warps(1).body(|| {
            let (rank, lane) = (cluster_rank(), lane_id());
            let next = (rank + 1) & 3;
            let value = Var::new(x.load(rank * 32 + lane));
            for round in 0..6u32 {
                t.stage(round % 2)
                    .peer(next)
                    .store(0u32, lane, value.get() + round);
                cluster_arrive();
                cluster_wait();
                value.set(t.stage(round % 2).load(0u32, lane ^ 1));
                // A relaxed arrival is enough: it only orders the loads before the next stores.
                cluster_arrive_relaxed();
                cluster_wait();
            }
            out.store(cta_id() * 32 + lane, value.get());
        });
    });
    OpTrial::new(
        "cluster_arrive and cluster_wait",
        &["cluster_arrive", "cluster_wait"],
        kernel,
    )
    .input(&super::words(128, 23))
    .output("out", Type::U32, 128)
}

/// One role releases registers, the other requests and uses them.
fn registers() -> OpTrial {
    let kernel = super::kernel("registers", |k| {
        let (x, out) = (k.pointer::<f32>("x"), k.pointer::<f32>("out"));
        k.role("small_budget").warpgroups(1).registers(24).body(|| {
            let at = thread_in_role();
            out.store(at, x.load(at) * 2.0f32);
        });
        k.role("large_budget")
            .warpgroups(1)
            .registers(240)
            .body(|| {
                // 64 live values, used in another order.
                let values: Vec<Reg<f32>> = (0..64)
                    .map(|i| x.load(thread_in_role() + i * 128))
                    .collect();
                for (i, value) in values.iter().enumerate().rev() {
                    let other = values[(i * 7 + 3) % values.len()];
                    out.store(thread_in_role() + 128 * (i as u32 + 1), *value - other);
                }
            });
    });
    let x: Vec<f32> = super::words(64 * 128, 24)
        .into_iter()
        .map(|x| (x >> 8) as f32 / 1024.0)
        .collect();
    OpTrial::new("set_max_regs", &["set_max_regs"], kernel)
        .input(&x)
        .output("out", Type::F32, 65 * 128)
}

/// A kernel that launches its dependents and waits for its prerequisites.
fn dependent() -> OpTrial {
    let kernel = super::kernel("dependent", |k| {
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        k.role("all").warps(1).body(|| {
            launch_dependents();
            wait_prerequisites();
            out.store(lane_id(), x.load(lane_id()));
        });
    });
    OpTrial::new(
        "launch_dependents and wait_prerequisites",
        &["launch_dependents", "wait_prerequisites"],
        kernel,
    )
    .input(&super::words(32, 25))
    .output("out", Type::U32, 32)
}

fn sleep() -> OpTrial {
    let kernel = super::kernel("nanosleep", |k| {
        let out = k.pointer::<u32>("out");
        k.role("all").warps(1).body(|| {
            let before = global_timer();
            nanosleep(2000);
            let is_monotonic = global_timer().ge(before);
            out.store(lane_id(), select(is_monotonic, 1u32, 0u32));
        });
    });
    OpTrial::new("nanosleep", &["nanosleep"], kernel).output("forward", Type::U32, 32)
}

/// Warps that exit early store nothing more, and no barrier waits for them.
fn exits() -> OpTrial {
    let kernel = super::kernel("exit", |k| {
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        k.role("all").warps(4).body(|| {
            for round in 0..4u32 {
                let at = thread_id() + round * 128;
                out.store(at, x.load(at));
                // One warp exits in each round.
                if_(warp_id().eq(3 - round), exit);
                cta_sync();
            }
        });
    });
    OpTrial::new("exit", &["exit"], kernel)
        .input(&super::words(512, 27))
        .output("out", Type::U32, 512)
}

/// A trap that no thread reaches.
fn unreached_trap() -> OpTrial {
    let kernel = super::kernel("trap", |k| {
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        k.role("all").warps(1).body(|| {
            let value = x.load(lane_id());
            if_(value.eq(0u32), trap);
            out.store(lane_id(), value);
        });
    });
    let x: Vec<u32> = super::words(32, 26).into_iter().map(|x| x | 1).collect();
    OpTrial::new("trap", &["trap"], kernel)
        .input(&x)
        .output("out", Type::U32, 32)
}
