//! Distributed shared memory: bulk copies to peers, reductions, `st.async`.

use crate::executor::harness::{edit, strict, timings};
use warpline_cpu::{Options, Timing};
use warpline_ir::builder::*;
use warpline_ir::ops::bulk::Reduction;
use warpline_ir::{FaultKind, Kernel, Op};
use warpline_testkit::kernel::build;
use warpline_testkit::launch::Setup;

/// CTAs of a cluster.
const SIZE: u32 = 4;
/// Stages of the exchange.
const STAGES: u32 = 3;

/// How the CTAs send their parts to rank 0.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Transport {
    /// Bulk reductions.
    BulkSum,
    /// Bulk copies, one row each.
    BulkRows,
    /// `st.async`, one row each.
    Stores,
    /// `red.async`.
    Reductions,
}

const TRANSPORTS: [Transport; 4] = [
    Transport::BulkSum,
    Transport::BulkRows,
    Transport::Stores,
    Transport::Reductions,
];

/// Each of `n` steps sums one vector per CTA at rank 0. Rank 0 expects `bytes` bytes per step and
/// writes `out`.
fn reduction(transport: Transport, bytes: u32) -> Kernel {
    build("reduction", |k| {
        k.cluster(SIZE, 1, 1);
        let (n, out) = (k.param::<u32>("n"), k.pointer::<u32>("out"));
        let mine = k
            .tile::<u32>("mine", 1, 32)
            .unswizzled()
            .stages(STAGES)
            .declare();
        let all = k
            .tile::<u32>("all", SIZE, 32)
            .unswizzled()
            .stages(STAGES)
            .declare();
        let full = k.barrier("full", STAGES).arrivals(1);
        let empty = k.barrier("empty", STAGES).arrivals(1);
        k.role("all").body(|| {
            let (rank, lane) = (cluster_rank(), lane_id());
            let clear = |stage: Reg<u32>| {
                for row in 0..SIZE {
                    all.stage(stage).store(row, lane, 0u32);
                }
                fence_async();
                warp_sync();
            };
            for stage in 0..STAGES {
                clear(stage.reg());
            }
            cluster_sync();
            steps(n).each(|t| {
                let (stage, parity) = (t % STAGES, t / STAGES % 2u32);
                empty.at(stage).wait_cluster(parity ^ 1u32);
                let part = t * 1000 + rank * 100 + lane;
                let (to, bar) = (all.stage(stage).peer(0u32), full.at(stage).peer(0u32));
                let from = mine.stage(stage);
                if matches!(transport, Transport::BulkSum | Transport::BulkRows) {
                    from.store(0u32, lane, part);
                    fence_async();
                    warp_sync();
                }
                match transport {
                    Transport::BulkSum => elect(|| {
                        bulk_reduce_to_peer(Reduction::Add, from, to, 128, bar);
                    }),
                    Transport::BulkRows => elect(|| {
                        for row in 0..SIZE {
                            if_(rank.eq(row), || {
                                bulk_copy_to_peer(from, to.slice(row..row + 1, 0..32), 128, bar);
                            });
                        }
                    }),
                    Transport::Stores => store_async(to, rank, lane, [part], bar),
                    Transport::Reductions => {
                        reduce_async(Reduction::Add, to, 0u32, lane, part, bar)
                    }
                }
                if_(rank.eq(0u32), || {
                    elect(|| full.at(stage).arrive_expect(bytes));
                    full.at(stage).wait_cluster(parity);
                    let mut sum = all.stage(stage).load(0u32, lane);
                    for row in 1..SIZE {
                        sum = sum + all.stage(stage).load(row, lane);
                    }
                    out.store(t * 32 + lane, sum);
                    clear(stage);
                    if_(lane.lt(SIZE), || {
                        empty.at(stage).peer(lane).arrive_cluster();
                    });
                });
            });
        });
    })
}

fn setup(n: u32) -> Setup {
    Setup::new()
        .scalar(n)
        .output("out", (n * 128).max(4) as usize)
}

#[test]
fn every_transport_sums_across_a_cluster_at_every_trip_count() {
    for transport in TRANSPORTS {
        let k = reduction(transport, SIZE * 128);
        for n in [0, 1, STAGES - 1, STAGES, STAGES + 1, 2 * STAGES + 1] {
            let want: Vec<u32> = (0..n * 32)
                .map(|i| SIZE * (i / 32 * 1000 + i % 32) + 600)
                .collect();
            for options in timings() {
                let setup = setup(n);
                let stats = setup
                    .run(&k, SIZE, &options)
                    .unwrap_or_else(|e| panic!("{transport:?}, {n} steps, {options:?}: {e}"));
                if n > 0 {
                    assert_eq!(setup.values::<u32>(0), want, "{transport:?}, {options:?}");
                }
                let moved = stats.bytes.peer_store;
                assert_eq!(moved, u64::from(n * SIZE * 128), "{transport:?}");
            }
        }
    }
}

#[test]
fn missing_bytes_are_a_deadlock() {
    for transport in TRANSPORTS {
        let k = reduction(transport, SIZE * 128 + 16);
        for options in timings() {
            let e = setup(1).run(&k, SIZE, &options).unwrap_err();
            assert_eq!(e.kind, FaultKind::Deadlock, "{transport:?}: {e}");
            assert!(e.to_string().contains("full"), "{e}");
        }
    }
}

#[test]
fn a_read_before_the_wait_is_a_race() {
    for transport in TRANSPORTS {
        let mut k = reduction(transport, SIZE * 128);
        let full = k.barriers.iter().position(|b| b.name == "full");
        edit(&mut k, 0, &|op| match &op {
            Op::MbarrierWait(w) if Some(w.bar.bar.index()) == full => None,
            _ => Some(op),
        });
        let late = Options::with_timing(Timing::Late);
        let e = setup(1).run(&k, SIZE, &late).unwrap_err();
        assert_eq!(e.kind, FaultKind::Race, "{transport:?}: {e}");
    }
}

#[test]
fn reusing_a_stage_before_its_release_is_a_race() {
    for transport in [Transport::BulkRows, Transport::Stores] {
        let mut k = reduction(transport, SIZE * 128);
        let empty = k.barriers.iter().position(|b| b.name == "empty");
        edit(&mut k, 0, &|op| match &op {
            Op::MbarrierWait(w) if Some(w.bar.bar.index()) == empty => None,
            _ => Some(op),
        });
        for options in strict() {
            let e = setup(2 * STAGES).run(&k, SIZE, &options).unwrap_err();
            let kinds = [FaultKind::Race, FaultKind::Barrier];
            assert!(kinds.contains(&e.kind), "{transport:?}: {e}");
        }
    }
}

/// Rank 1 sends to rank 0, which may have exited.
fn send_to_exiting_peer(transport: Transport) -> Kernel {
    let mut k = build("send_to_exiting_peer", |k| {
        k.cluster(2, 1, 1);
        let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
        let full = k.barrier("full", 1).arrivals(1);
        k.role("all").body(|| {
            if_(cluster_rank().eq(1u32), || {
                let (to, bar) = (t.whole().peer(0u32), full.at(0).peer(0u32));
                match transport {
                    Transport::Stores => store_async(to, 0u32, lane_id(), [1u32.reg()], bar),
                    _ => {
                        t.whole().store(0u32, lane_id(), 1u32);
                        fence_async();
                        warp_sync();
                        elect(|| bulk_copy_to_peer(t.whole(), to, 128, bar));
                    }
                }
            });
        });
    });
    // Removes the final cluster barrier.
    k.epilogue.0.clear();
    k
}

#[test]
fn a_send_to_an_exited_peer_is_a_fault() {
    for transport in [Transport::Stores, Transport::BulkRows] {
        let k = send_to_exiting_peer(transport);
        let late = Options::with_timing(Timing::Late);
        let e = Setup::new().run(&k, 2, &late).unwrap_err();
        assert_eq!(e.kind, FaultKind::PeerExited, "{transport:?}: {e}");
    }
}

#[test]
fn a_bulk_send_of_generic_writes_needs_a_proxy_fence() {
    let mut k = reduction(Transport::BulkSum, SIZE * 128);
    edit(&mut k, 0, &|op| match op {
        Op::Fence(_) => None,
        op => Some(op),
    });
    for options in strict() {
        let e = setup(1).run(&k, SIZE, &options).unwrap_err();
        assert_eq!(e.kind, FaultKind::MissingProxyFence, "{e}");
    }
}

/// `st.async` uses the generic proxy.
#[test]
fn st_async_needs_no_proxy_fence() {
    for transport in [Transport::Stores, Transport::Reductions] {
        let mut k = reduction(transport, SIZE * 128);
        edit(&mut k, 0, &|op| match op {
            Op::Fence(_) => None,
            op => Some(op),
        });
        for options in timings() {
            let run = setup(2 * STAGES).run(&k, SIZE, &options);
            run.unwrap_or_else(|e| panic!("{transport:?}, {options:?}: {e}"));
        }
    }
}
