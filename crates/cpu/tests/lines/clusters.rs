//! Clusters of 2 and 4: multicast rings, remote arrivals, shared memory of peers.

use crate::harness::{Input, run_words, seeds, timings};
use warpline_ir::build::*;
use warpline_ir::{DType, Kernel, MapMode, Swizzle, TensorMapDecl};

fn row_map() -> TensorMapDecl {
    TensorMapDecl {
        dtype: DType::U32,
        tile: vec![32],
        swizzle: Swizzle::None,
        mode: MapMode::Tiled,
    }
}

/// Each CTA copies one part of every slot to all CTAs of the cluster.
fn multicast(size: u32, stages: u32) -> Kernel {
    Kernel::build("multicast", |k| {
        k.cluster(size, 1, 1);
        let (n, x) = (k.param::<u32>("n"), k.tensor_map("x", row_map()));
        let out = k.pointer::<u32>("out");
        let ring = k
            .ring("parts", stages, |s| s.plain::<u32>(size, 32))
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
    .expect("a fine kernel")
}

#[test]
fn a_multicast_ring() {
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

/// Every CTA reads a number that its neighbour wrote into its own shared memory.
#[test]
fn shared_memory_of_a_peer() {
    for size in [2u32, 4] {
        let kernel = Kernel::build("peer", |k| {
            k.cluster(size, 1, 1);
            let out = k.pointer::<u32>("out");
            let box_ = k.tile::<u32>("box", 1, 32).plain().declare();
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
        .expect("a fine kernel");
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
