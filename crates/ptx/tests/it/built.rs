//! Builder features (rings, turns, queues, clusters) pass the checker and ptxas.

use half::bf16;
use warpline_ir::builder::*;
use warpline_ir::*;
use warpline_testkit::assemble::assembled;
use warpline_testkit::kernel::build;
use warpline_testkit::verdict::checked;

/// Builds, checks, prints, verifies and assembles a kernel. Requires that ptxas reports no advisory and no spill.
#[track_caller]
fn assert_assembles(name: &str, body: impl FnOnce(Builder)) {
    let checked = checked(build(name, body));
    let made = assembled(&checked).unwrap_or_else(|e| panic!("{e}"));
    let advisories = &made.report.advisories;
    assert!(advisories.is_empty(), "{name}: {advisories:#?}");
}

/// Declares a tensor map with boxes of `rows` × 64.
fn box_of_rows(rows: u32) -> TensorMapDecl {
    TensorMapDecl {
        dtype: DType::Bf16,
        tile: vec![64, rows],
        swizzle: Swizzle::B128,
        mode: TensorMapMode::Tiled,
    }
}

#[test]
fn ping_pong_with_turns_assembles_for_every_rasterization() {
    for rasterization in [
        Rasterization::RowMajor,
        Rasterization::Grouped(8),
        Rasterization::Hilbert,
    ] {
        assert_assembles("ping_pong", |k| {
            let (m, n, k_tiles) = (k.param("m"), k.param("n"), k.param::<u32>("k_tiles"));
            let (a, b) = (
                k.tensor_map("a", box_of_rows(128)),
                k.tensor_map("b", box_of_rows(192)),
            );
            let c = k.tensor_map("c", box_of_rows(64));
            let ab = k
                .ring("ab", 4, |s| {
                    (s.tile::<bf16>(128, 64), s.tile::<bf16>(192, 64))
                })
                .round_robin();
            let turn = k.turn("math", ["ping", "pong"]);
            let tiles = rasterization.tiles(m, n);
            k.role("load").warpgroups(1).registers(24).body(|| {
                elect(|| {
                    tiles.each(|at| {
                        steps(k_tiles).each(|ks| {
                            let slot = ab.acquire();
                            let (ta, tb) = slot.tiles();
                            slot.load(a, ta, [ks * 64, at.m * 128]);
                            slot.load(b, tb, [ks * 64, at.n * 192]);
                            slot.commit();
                        });
                    });
                });
            });
            for (i, role) in ["ping", "pong"].into_iter().enumerate() {
                let out = k.tile::<bf16>(role, 64, 64).declare();
                let barrier = k.named_barrier(role);
                k.role(role).warpgroups(1).registers(240).body(|| {
                    tiles
                        .round_robin(i as u32, 2, |_| ab.skip(k_tiles))
                        .each(|at| {
                            let acc = turn.hold(|| {
                                let acc = Acc::new(128, 192);
                                steps(k_tiles).each(|_| {
                                    let slot = ab.wait();
                                    let (ta, tb) = slot.tiles();
                                    acc.mma(&ta, &tb);
                                    slot.release_after(&acc);
                                });
                                acc
                            });
                            let y = acc.into_frag().map(silu);
                            y.each_pair(|cell, [x, _]| {
                                if_(cell.row.lt(64u32) & cell.col.lt(64u32), || {
                                    out.whole().store(cell.row, cell.col, x.cast::<bf16>());
                                });
                            });
                            fence_async();
                            barrier.sync(128u32);
                            elect(|| {
                                c.store(out.whole(), [at.n * 192, at.m * 128]);
                                bulk_commit();
                                bulk_wait_read(0);
                            });
                            barrier.sync(128u32);
                        });
                });
            }
        });
    }
}

#[test]
fn a_work_queue_around_wgmmas_assembles() {
    assert_assembles("queue", |k| {
        let (items, k_tiles) = (k.param::<u32>("items"), k.param::<u32>("k_tiles"));
        let (a, out) = (k.tensor_map("a", box_of_rows(64)), k.pointer::<f32>("out"));
        let work = k.work_queue("next", 2);
        let tiles = k.ring("tiles", 3, |s| s.tile::<bf16>(64, 64)).broadcast();
        k.role("fetch").warps(4).body(|| {
            elect(|| {
                work.fetch_each(items, |item| {
                    steps(k_tiles).each(|i| {
                        let slot = tiles.acquire();
                        slot.load(a, slot.tiles(), [i * 64, item * 64]);
                        slot.commit();
                    });
                });
            });
        });
        k.role("math").warpgroups(1).body(|| {
            work.each(items, |item| {
                let acc = Acc::new(64, 64);
                steps(k_tiles).each(|_| {
                    let slot = tiles.wait();
                    acc.mma(&slot.tiles(), &slot.tiles());
                    slot.release_after(&acc);
                });
                let y = acc.into_frag();
                y.each_pair(|at, v| out.store_vec((item * 64 + at.row) * 64 + at.col, v));
            });
        });
    });
}

#[test]
fn multicast_in_a_cluster_assembles() {
    assert_assembles("multicast", |k| {
        k.cluster(2, 1, 1);
        let (k_tiles, out) = (k.param::<u32>("k_tiles"), k.pointer::<f32>("out"));
        let a = k.tensor_map("a", box_of_rows(64));
        let ring = k
            .ring("a", 4, |s| s.tile::<bf16>(128, 64))
            .broadcast()
            .multicast();
        k.role("load").warpgroups(1).registers(40).body(|| {
            elect(|| {
                steps(k_tiles).each(|i| {
                    let slot = ring.acquire();
                    slot.load_multicast(a, slot.tiles(), [i * 64, 0u32.reg()]);
                    slot.commit();
                });
            });
        });
        k.role("math").warpgroups(1).registers(232).body(|| {
            let acc = Acc::new(128, 128);
            steps(k_tiles).each(|_| {
                let slot = ring.wait();
                acc.mma(&slot.tiles(), &slot.tiles());
                slot.release_after(&acc);
            });
            acc.into_frag()
                .each_pair(|at, v| out.store_vec(at.row * 128 + at.col, v));
        });
    });
}

#[test]
fn flags_in_global_memory_assemble() {
    assert_assembles("flags", |k| {
        let (flags, x) = (k.flags("flags"), k.pointer::<f32>("x"));
        k.role("all").warps(4).body(|| {
            x.store(cta_id() * 128 + thread_id(), 1.0f32);
            flags.signal(cta_id());
            flags.wait((cta_id() + 1) % grid_ctas(), 4u32);
            cta_sync();
        });
    });
}
