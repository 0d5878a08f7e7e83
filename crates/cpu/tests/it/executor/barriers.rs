//! Barriers beyond rings: dropped arrivals, arrival counts, polls, barrier reductions; bulk
//! multicast; cluster axes.

use crate::executor::harness::{expect_fault, expect_pass, timings};
use warpline_ir::builder::*;
use warpline_ir::{Axis, FaultKind, Kernel, Operand};
use warpline_testkit::launch::Setup;

fn build(body: impl FnOnce(Builder)) -> Kernel {
    warpline_testkit::kernel::build("barriers", body)
}

#[test]
fn arrive_drop_lowers_the_count_of_later_phases() {
    let k = build(|k| {
        let bar = k.barrier("bar", 1).arrivals(2);
        k.role("leaves").body(|| elect(|| bar.at(0).arrive_drop()));
        k.role("stays").body(|| {
            steps(5u32).each(|t| {
                elect(|| bar.at(0).arrive());
                bar.at(0).wait(t % 2u32);
            });
        });
    });
    for options in timings() {
        expect_pass(&k, &options);
    }
}

#[test]
fn a_parameter_arrival_count_and_a_polled_wait_pass() {
    let k = build(|k| {
        let (n, out) = (k.param::<u32>("n"), k.pointer::<u32>("out"));
        let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
        let bar = k.barrier("bar", 1).arrivals(12);
        k.role("writes").body(|| {
            t.whole().store(0u32, lane_id(), lane_id() * 3);
            warp_sync();
            elect(|| bar.at(0).arrive_many(n));
        });
        k.role("reads").body(|| {
            while_(|| !bar.at(0).try_wait(0), || nanosleep(20));
            let x = t.whole().load(0u32, lane_id());
            out.store(lane_id(), x);
        });
    });
    for options in timings() {
        let setup = Setup::new().scalar(12).output("out", 128);
        setup
            .run(&k, 1, &options)
            .unwrap_or_else(|e| panic!("{options:?}: {e}"));
        let want: Vec<u32> = (0..32).map(|i| i * 3).collect();
        assert_eq!(setup.values::<u32>(0), want);
    }
}

#[test]
fn a_bulk_load_multicasts_with_a_mask_and_a_cache_hint() {
    use warpline_ir::ops::bulk::CacheHint;
    let k = build(|k| {
        k.cluster(4, 1, 1);
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
        let full = k.barrier("full", 1).arrivals(1);
        k.role("all").body(|| {
            elect(|| {
                full.at(0).arrive_expect(128);
                if_(cluster_rank().eq(2u32), || {
                    let (mask, hint) = (Operand::imm(0b1111u32), CacheHint::EvictFirst);
                    bulk_prefetch(x.address(0), 128, Some(hint));
                    bulk_load_with(
                        t.whole(),
                        x.address(0),
                        128,
                        full.at(0),
                        Some(mask),
                        Some(hint),
                    );
                });
            });
            full.at(0).wait_cluster(0);
            let y = t.whole().load(0u32, lane_id());
            out.store(cta_id() * 32 + lane_id(), y);
        });
    });
    for options in timings() {
        let setup = Setup::new()
            .input("x", &(0..32).collect::<Vec<u32>>())
            .output("out", 4 * 128);
        let stats = setup
            .run(&k, 4, &options)
            .unwrap_or_else(|e| panic!("{options:?}: {e}"));
        let want: Vec<u32> = (0..128).map(|i| i % 32).collect();
        assert_eq!(setup.values::<u32>(1), want);
        assert_eq!(stats.bytes.bulk_load, 512);
    }
}

#[test]
fn special_registers_return_cluster_and_grid_indices() {
    let k = build(|k| {
        k.cluster(2, 1, 1);
        let out = k.pointer::<u32>("out");
        k.role("all").body(|| {
            launch_dependents();
            wait_prerequisites();
            elect(|| {
                let seen = [
                    cluster_cta_id(Axis::X),
                    cluster_dim(Axis::X),
                    cluster_dim(Axis::Y),
                    cluster_id_along(Axis::X),
                    grid_clusters_along(Axis::X),
                    grid_ctas_along(Axis::Y),
                    cluster_size(),
                ];
                for (i, x) in seen.into_iter().enumerate() {
                    out.store(cta_id() * 7 + i as u32, x);
                }
            });
            cluster_arrive_relaxed();
            cluster_wait();
        });
    });
    for options in timings() {
        let setup = Setup::new().output("out", 6 * 28);
        setup.run(&k, 6, &options).unwrap();
        let want: Vec<u32> = (0..6).flat_map(|c| [c % 2, 2, 1, c / 2, 3, 1, 2]).collect();
        assert_eq!(setup.values::<u32>(0), want);
    }
}

#[test]
fn a_barrier_reduction_returns_count_all_and_any() {
    let k = build(|k| {
        let out = k.pointer::<u32>("out");
        let t = k.tile::<u32>("t", 4, 32).unswizzled().declare();
        let met = k.named_barrier("met");
        k.role("all").warps(4).body(|| {
            steps(6u32).each(|step| {
                t.whole().store(warp_id(), lane_id(), step + lane_id());
                let high = (warp_id() * 32 + lane_id()).lt(step * 20);
                let n = met.count(128, high);
                let sum = t.whole().load((warp_id() + 1) % 4, lane_id()) + n;
                let (all, any) = (met.all(128, high), met.any(128, high));
                let code = select(all, 2u32, select(any, 1u32, 0u32));
                let at = (step * 4 + warp_id()) * 32 + lane_id();
                out.store(at, sum * 4 + code);
            });
        });
    });
    for options in timings() {
        let setup = Setup::new().output("out", 6 * 128 * 4);
        setup
            .run(&k, 1, &options)
            .unwrap_or_else(|e| panic!("{options:?}: {e}"));
        let want = (0..6u32).flat_map(|step| {
            (0..128).map(move |i| {
                let n = (step * 20).min(128);
                let code = if n == 128 { 2 } else { u32::from(n > 0) };
                (step + i % 32 + n) * 4 + code
            })
        });
        assert_eq!(setup.values::<u32>(0), want.collect::<Vec<_>>());
    }
}

#[test]
fn a_reduction_mixed_with_a_sync_is_a_fault() {
    let k = build(|k| {
        let met = k.named_barrier("met");
        k.role("counts").body(|| {
            met.count(64, true);
        });
        k.role("syncs").body(|| met.sync(64));
    });
    for options in timings() {
        let e = expect_fault(&k, &options, FaultKind::Barrier);
        assert!(
            e.text.contains("but other warps at this barrier perform"),
            "{e}"
        );
        assert!(e.text.contains("met"), "{e}");
    }
}
