//! Clusters: remote arrivals, exited peers.

use crate::executor::harness::{expect_pass, line, strict, timings};
use warpline_cpu::{Options, Timing};
use warpline_ir::builder::*;
use warpline_ir::{FaultKind, Kernel};
use warpline_testkit::launch::Setup;

fn build(body: impl FnOnce(Builder)) -> Kernel {
    warpline_testkit::kernel::build("cluster", body)
}

#[test]
fn a_remote_arrival_publishes_the_writes_of_its_thread() {
    // Each CTA writes to its neighbor's tile and arrives at its neighbor's barrier.
    let k = build(|k| {
        k.cluster(4, 1, 1);
        let out = k.pointer::<u32>("out");
        let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
        let full = k.barrier("full", 1).arrivals(32);
        k.role("all").body(|| {
            let next = (cluster_rank() + 1) % 4u32;
            t.whole()
                .peer(next)
                .store(0u32, lane_id(), cluster_rank() * 100 + lane_id());
            full.at(0).peer(next).arrive_cluster();
            full.at(0).wait_cluster(0);
            let x = t.whole().load(0u32, lane_id());
            out.store(cta_id() * 32 + lane_id(), x);
        });
    });
    for options in timings() {
        let setup = Setup::new().output("out", 8 * 128);
        setup
            .run(&k, 8, &options)
            .unwrap_or_else(|e| panic!("{options:?}: {e}"));
        let want: Vec<u32> = (0..256).map(|i| (i / 32 + 3) % 4 * 100 + i % 32).collect();
        assert_eq!(setup.values::<u32>(0), want);
    }
}

/// Removes the final cluster barrier of a kernel.
fn without_final_barrier(mut k: Kernel) -> Kernel {
    k.epilogue.0.clear();
    k
}

#[test]
fn an_access_to_a_peer_that_may_have_exited_is_a_fault() {
    let mut at = 0;
    let k = build(|k| {
        k.cluster(2, 1, 1);
        let bar = k.barrier("bar", 1).arrivals(1);
        k.role("all").body(|| {
            elect(|| {
                let first = cluster_rank().eq(0u32);
                if_(first, || {
                    at = line!() + 1;
                    bar.at(0).peer(1u32).arrive();
                });
            });
        });
    });
    for options in timings() {
        expect_pass(&k, &options);
    }
    let k = without_final_barrier(k);
    // `late` lets the peer exit first; `random` finds the fault with most seeds.
    let found: Vec<_> = strict()
        .filter_map(|o| Setup::new().run(&k, 2, &o).err().map(|e| (o, e)))
        .collect();
    assert_eq!(found[0].0.timing, Timing::Late);
    assert!(found.len() > 3);
    for (_, e) in found {
        assert_eq!((e.kind, line(&e)), (FaultKind::PeerExited, at), "{e}");
    }
    expect_pass(&k, &Options::default());
}

#[test]
fn a_cta_exit_during_a_copy_from_its_memory_is_a_fault() {
    let k = build(|k| {
        let out = k.pointer::<u32>("out");
        let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
        k.role("all").body(|| {
            t.whole().store(0u32, lane_id(), 1u32);
            fence_async();
            warp_sync();
            elect(|| {
                bulk_store(t.whole(), out.address(0), 128);
                bulk_commit();
            });
        });
    });
    let setup = || Setup::new().output("out", 128);
    let late = strict().next().unwrap();
    let e = setup().run(&k, 1, &late).unwrap_err();
    assert_eq!(e.kind, FaultKind::PeerExited, "{e}");
    assert!(e.at.unwrap().op.starts_with("bulk_store"));
    setup().run(&k, 1, &Options::default()).unwrap();
}

#[test]
fn a_copy_to_global_memory_may_complete_after_the_cta_exits() {
    let k = build(|k| {
        let out = k.pointer::<u32>("out");
        let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
        k.role("all").body(|| {
            t.whole().store(0u32, lane_id(), lane_id());
            fence_async();
            warp_sync();
            elect(|| {
                bulk_store(t.whole(), out.address(0), 128);
                bulk_commit();
                bulk_wait_read(0);
            });
        });
    });
    for options in timings() {
        let setup = Setup::new().output("out", 128);
        setup.run(&k, 1, &options).unwrap();
        assert_eq!(setup.values::<u32>(0), (0..32).collect::<Vec<_>>());
    }
}
