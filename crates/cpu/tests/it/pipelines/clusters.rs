//! Clusters of 2 and 4: multicast rings, remote arrivals, shared memory of peers.

use crate::pipelines::harness::{Input, run_grid, run_words, seeds, timings, to_words};
use warpline_ir::builder::*;
use warpline_ir::{Axis, DType, Kernel, Swizzle, Target, TensorMapDecl, TensorMapMode};
use warpline_testkit::kernel::build;

fn row_map() -> TensorMapDecl {
    TensorMapDecl {
        dtype: DType::U32,
        tile: vec![32],
        swizzle: Swizzle::None,
        mode: TensorMapMode::Tiled,
    }
}

/// Each CTA multicasts one part of every slot to all CTAs of the cluster.
fn multicast(size: u32, stages: u32) -> Kernel {
    Kernel::build("multicast", &Target::SM_90A, |k| {
        k.cluster(size, 1, 1);
        let (n, x) = (k.param::<u32>("n"), k.tensor_map("x", row_map()));
        let out = k.pointer::<u32>("out");
        let ring = k
            .ring("parts", stages, |s| s.unswizzled::<u32>(size, 32))
            .multicast();
        k.role("load").body(|| {
            elect(|| {
                let rank = cluster_rank();
                steps(n).each(|t| {
                    let slot = ring.acquire();
                    for r in 0..size {
                        if_(rank.eq(r), || {
                            let part = slot.slice(r..r + 1, 0..32);
                            let mask = (1 << size) - 1;
                            slot.load_with(x, part, [(t * size + r) * 32], Some(mask), None);
                        });
                    }
                    slot.commit();
                });
            });
        });
        k.role("sum").warps(2).body(|| {
            steps(n).each(|t| {
                let slot = ring.wait();
                let mut sum = slot.load(0u32, lane_id());
                for r in 1..size {
                    sum = sum + slot.load(r, lane_id());
                }
                slot.release();
                let row = (t * size + cluster_rank()) * 2 + warp_in_role();
                out.store(row * 32 + lane_id(), sum);
            });
        });
    })
    .expect("a valid kernel")
}

#[test]
fn a_multicast_ring_is_correct_at_every_trip_count() {
    for size in [2u32, 4] {
        for stages in [1u32, 2, 3] {
            let kernel = multicast(size, stages);
            for n in [0, 1, stages, 2 * stages + 1] {
                let x: Vec<u8> = (0..(n * size * 32).max(32))
                    .flat_map(u32::to_le_bytes)
                    .collect();
                let extent = u64::from((n * size * 32).max(32));
                let want: Vec<u32> = (0..n * size * 2 * 32)
                    .map(|i| {
                        let (t, lane) = (i / (size * 64), i % 32);
                        (0..size).map(|r| (t * size + r) * 32 + lane).sum()
                    })
                    .collect();
                for options in timings(seeds(8)) {
                    let inputs = [
                        Input::U32(n),
                        Input::Map(row_map(), x.clone(), vec![extent]),
                        Input::Output(want.len() * 4),
                    ];
                    let got = run_words(&kernel, size, &inputs, &options);
                    assert_eq!(
                        got, want,
                        "{size} CTAs, {stages} stages, n = {n}, {}, seed {}",
                        options.timing, options.seed
                    );
                }
            }
        }
    }
}

/// Every CTA reads a number from its neighbor's shared memory.
#[test]
fn a_cta_reads_the_shared_memory_of_its_peer() {
    for size in [2u32, 4] {
        let kernel = Kernel::build("peer", &Target::SM_90A, |k| {
            k.cluster(size, 1, 1);
            let out = k.pointer::<u32>("out");
            let box_ = k.tile::<u32>("box", 1, 32).unswizzled().declare();
            k.role("all").body(|| {
                let rank = cluster_rank();
                box_.whole().store(0u32, lane_id(), rank * 100 + lane_id());
                cluster_sync();
                let next = (rank + 1) % size;
                let x = box_.whole().peer(next).load(0u32, lane_id());
                out.store(cta_id() * 32 + lane_id(), x);
                cluster_sync();
            });
        })
        .expect("a valid kernel");
        let want: Vec<u32> = (0..2 * size * 32)
            .map(|i| ((i / 32 % size + 1) % size) * 100 + i % 32)
            .collect();
        for options in timings(seeds(5)) {
            let got = run_words(
                &kernel,
                2 * size,
                &[Input::Output(want.len() * 4)],
                &options,
            );
            assert_eq!(got, want);
        }
    }
}

/// Declares a tensor map with boxes of `rows` × 32 words.
fn box_map(rows: u32) -> TensorMapDecl {
    TensorMapDecl {
        tile: vec![32, rows],
        ..row_map()
    }
}

/// The CTAs of a cluster that share a multicast.
#[derive(Clone, Copy, Debug)]
enum MulticastGroup {
    All,
    Along(Axis),
}

impl MulticastGroup {
    /// Returns the CTAs per group, the number of groups, and the function from rank to group.
    fn groups(self, [x, y]: [u32; 2]) -> (u32, u32, fn(u32, u32) -> u32) {
        match self {
            MulticastGroup::All => (x * y, 1, |_, _| 0),
            MulticastGroup::Along(Axis::X) => (x, y, |rank, x| rank / x),
            MulticastGroup::Along(_) => (y, x, |rank, x| rank % x),
        }
    }
}

/// Every group of CTAs loads its tile, one part per CTA. Every CTA stores the tile and a row of its
/// own.
fn shared_tiles(group_kind: MulticastGroup, [x, y]: [u32; 2], stages: u32) -> Kernel {
    let (sharing, groups, _) = group_kind.groups([x, y]);
    Kernel::build("shared_tiles", &Target::SM_90A, |k| {
        k.cluster(x, y, 1);
        let n = k.param::<u32>("n");
        let tiles = k.tensor_map("tiles", box_map(8 / sharing));
        let rows = k.tensor_map("rows", box_map(1));
        let out = k.pointer::<u32>("out");
        let ring = k.ring("tiles", stages, |s| {
            (s.unswizzled::<u32>(8, 32), s.unswizzled::<u32>(1, 32))
        });
        let ring = match group_kind {
            MulticastGroup::All => ring.multicast(),
            MulticastGroup::Along(axis) => ring.multicast_along(axis),
        };
        let (rank, cluster) = (cluster_rank(), cluster_id());
        let group = match group_kind {
            MulticastGroup::All => 0u32.reg(),
            MulticastGroup::Along(Axis::X) => rank / x,
            MulticastGroup::Along(_) => rank % x,
        };
        let cta = cluster * (x * y) + rank;
        k.role("load").body(|| {
            elect(|| {
                steps(n).each(|t| {
                    let slot = ring.acquire();
                    let tile = (t * grid_clusters() + cluster) * groups + group;
                    slot.load_multicast(tiles, slot.0, (0u32, tile * 8));
                    let row = t * (grid_clusters() * (x * y)) + cta;
                    slot.load(rows, slot.1, (0u32, row));
                    slot.commit();
                });
            });
        });
        k.role("read").warps(3).body(|| {
            steps(n).each(|t| {
                let slot = ring.wait();
                let first = (t * (grid_clusters() * (x * y)) + cta) * 9;
                // Each of the three warps stores three rows: eight rows of the tile, and the own
                // row.
                for i in 0..3 {
                    let row = warp_in_role() * 3 + i;
                    let to = (first + row) * 32 + lane_id();
                    let from_tile = row.lt(8u32);
                    if_else(
                        from_tile,
                        || out.store(to, slot.0.load(row, lane_id())),
                        || out.store(to, slot.1.load(0u32, lane_id())),
                    );
                }
                slot.release();
            });
        });
    })
    .unwrap_or_else(|e| panic!("{group_kind:?}: {e}"))
}

#[test]
fn tiles_multicast_to_a_cluster_or_along_an_axis() {
    let along = [
        MulticastGroup::All,
        MulticastGroup::Along(Axis::X),
        MulticastGroup::Along(Axis::Y),
    ];
    for cluster @ [x, y] in [[2, 1], [1, 2], [2, 2], [4, 1]] {
        for group_kind in along {
            let (stages, clusters, ctas) = (2, 2, x * y);
            let (sharing, groups, group_of) = group_kind.groups(cluster);
            let kernel = shared_tiles(group_kind, cluster, stages);
            for n in [0, 1, stages, 2 * stages + 1] {
                let tile_rows = u64::from((n * clusters * groups * 8).max(8));
                let own_rows = u64::from((n * clusters * ctas).max(1));
                let bytes = |rows: u64, base: u32| -> Vec<u8> {
                    let words = 0..rows as u32 * 32;
                    words.flat_map(|i| (base + i).to_le_bytes()).collect()
                };
                let want: Vec<u32> = (0..n * clusters * ctas * 9 * 32)
                    .map(|i| {
                        let (line, row, lane) = (i / (9 * 32), i / 32 % 9, i % 32);
                        let (t, cta) = (line / (clusters * ctas), line % (clusters * ctas));
                        let (cluster, rank) = (cta / ctas, cta % ctas);
                        let tile = (t * clusters + cluster) * groups + group_of(rank, x);
                        match row {
                            8 => 1_000_000 + line * 32 + lane,
                            row => (tile * 8 + row) * 32 + lane,
                        }
                    })
                    .collect();
                let inputs = [
                    Input::U32(n),
                    Input::Map(
                        box_map(8 / sharing),
                        bytes(tile_rows, 0),
                        vec![32, tile_rows],
                    ),
                    Input::Map(box_map(1), bytes(own_rows, 1_000_000), vec![32, own_rows]),
                    Input::Output(want.len() * 4),
                ];
                for options in timings(seeds(2)) {
                    let at = format!("{group_kind:?} in {cluster:?}, n = {n}, {}", options.timing);
                    let grid = [x * clusters, y, 1];
                    let out = run_grid(&kernel, grid, &inputs, &options);
                    let out = out.unwrap_or_else(|e| panic!("{at}, seed {}: {e}", options.seed));
                    assert!(to_words(&out[0]) == want, "{at}, seed {}", options.seed);
                }
            }
        }
    }
}

/// Every CTA sends rows to the CTA with the next rank, modulo the cluster size.
fn send_to_next(size: u32, stages: u32) -> Kernel {
    build("send_to_next", |k| {
        k.cluster(size, 1, 1);
        let (n, out) = (k.param::<u32>("n"), k.pointer::<u32>("out"));
        let ring = k
            .ring("rows", stages, |s| s.vector::<u32>(64))
            .across_cluster();
        let rank = cluster_rank();
        let (next, before) = ((rank + 1) % size, (rank + (size - 1)) % size);
        k.role("give").warps(2).body(|| {
            steps(n).each(|t| {
                let slot = ring.acquire_remote(next);
                let i = thread_in_role();
                slot.store(0u32, i, t * 10_000 + rank * 100 + i);
                slot.commit();
            });
        });
        k.role("take").body(|| {
            steps(n).each(|t| {
                let slot = ring.wait();
                let first = (t * grid_ctas() + cta_id()) * 64;
                for i in [0, 32] {
                    let i = lane_id() + i;
                    out.store(first + i, slot.load(0u32, i));
                }
                slot.release_remote(before);
            });
        });
    })
}

#[test]
fn remote_slots_carry_rows_to_the_next_cta() {
    for (size, stages) in [(2u32, 1u32), (2, 3), (4, 2)] {
        let kernel = send_to_next(size, stages);
        for n in [0, 1, stages - 1, stages, stages + 1, 2 * stages + 1] {
            let ctas = 2 * size;
            let want: Vec<u32> = (0..n * ctas * 64)
                .map(|i| {
                    let (t, rank) = (i / (ctas * 64), i / 64 % ctas % size);
                    t * 10_000 + (rank + size - 1) % size * 100 + i % 64
                })
                .collect();
            let inputs = [Input::U32(n), Input::Output(want.len() * 4)];
            for options in timings(seeds(3)) {
                let got = run_words(&kernel, ctas, &inputs, &options);
                let at = format!("{size} CTAs, {stages} stages, n = {n}, {}", options.timing);
                assert!(got == want, "{at}, seed {}", options.seed);
            }
        }
    }
}
