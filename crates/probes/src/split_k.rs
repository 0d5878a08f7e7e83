//! (d) A split-K GEMM on a cluster: neighboring CTAs compute halves of K, CTAs of one column share B by
//! multicast, and the partial sums are added through distributed shared memory.

use crate::probe::{GemmProbe, box_map, extent_param};
use half::bf16;
use serde_json::{Value as Json, json};
use warpline_ir::builder::*;
use warpline_ir::{Axis, BuildErrors, DType, Kernel, Target};
use warpline_kernels::{Buffer, LaunchStep, TensorArg};

const BM: u32 = 64;
const BN: u32 = 64;
/// CTAs that split K.
const SPLIT: u32 = 2;
/// Tiles of one column that share B.
const ROWS: u32 = 2;

/// `C[M, N] = A[M, K] · B[N, K]ᵀ`, bf16 in and f32 out.
fn split_k(stages: u32, target: &Target) -> Result<Kernel, BuildErrors> {
    Kernel::build("split_k", target, |k| {
        k.cluster(SPLIT, ROWS, 1);
        let [m, n, k_extent] = ["m", "n", "k"].map(|name| extent_param(k, name));
        let a = k.tensor_map("a", box_map(DType::Bf16, 64, BM));
        let b = k.tensor_map("b", box_map(DType::Bf16, 64, BN / ROWS));
        let out = k.tensor_map("c", box_map(DType::F32, 32, BM));
        let ab = k
            .ring("ab", stages, |s| {
                (s.tile::<bf16>(BM, 64), s.tile::<bf16>(BN, 64))
            })
            .multicast_along(Axis::Y);
        let partials = k
            .ring("partials", 1, |s| s.tile::<f32>(BM, BN))
            .across_cluster();
        let outbox = k.outbox::<f32>("out", 1, BM, BN);
        let tiles = Rasterization::RowMajor.tiles(m.div_ceil(BM * ROWS), n.div_ceil(BN));
        // This CTA's half of K, and its row of tiles.
        let (k_half, tile_row) = (cluster_rank() % SPLIT, cluster_rank() / SPLIT);
        let k_tiles = k_extent.div_ceil(64).div_ceil(SPLIT);
        let row = |tile: TileIndex| (tile.m * ROWS + tile_row) * BM;

        k.role("load").warps(4).body(|| {
            elect(|| {
                tiles.each_cluster(|tile| {
                    steps(k_tiles).each(|i| {
                        let slot = ab.acquire();
                        let col = (k_half * k_tiles + i) * 64;
                        slot.load(a, slot.0, [col, row(tile)]);
                        slot.load_multicast(b, slot.1, [col, tile.n * BN]);
                        slot.commit();
                    });
                });
            });
        });

        k.role("compute").warpgroups(1).body(|| {
            tiles.each_cluster(|tile| {
                let acc = Acc::new(BM, BN);
                steps(k_tiles).each(|_| {
                    let slot = ab.wait();
                    acc.mma(&slot.0, &slot.1);
                    slot.release_after(&acc);
                });
                let own = acc.into_frag();
                // The CTA of the second half sends its accumulators; the CTA of the first half adds them.
                let (first, second) = (tile_row * SPLIT, tile_row * SPLIT + 1);
                if_else(
                    k_half.eq(1u32),
                    || {
                        let slot = partials.acquire_remote(first);
                        own.store(&slot.tiles());
                        slot.commit();
                    },
                    || {
                        let slot = partials.wait();
                        let other = Frag::load(&slot.tiles());
                        slot.release_remote(second);
                        let sum = own.clone().zip(&other, |x, y| x + y);
                        outbox.store(&sum, out, [tile.n * BN, row(tile)]);
                    },
                );
            });
        });
    })
}

pub(crate) struct SplitK {
    shape: [u32; 3],
    stages: u32,
    clusters: u32,
}

impl GemmProbe for SplitK {
    const NAME: &'static str = "split-k";
    const OUT: DType = DType::F32;
    fn shape(&self) -> [u32; 3] {
        self.shape
    }
    fn config(&self) -> Json {
        json!({ "stages": self.stages, "clusters": self.clusters })
    }
    fn step(&self, target: &Target) -> Result<LaunchStep, BuildErrors> {
        let [m, n, k] = self.shape;
        let grid = [SPLIT * self.clusters, ROWS, 1];
        let step = LaunchStep::new(split_k(self.stages, target)?, grid)
            .tensor("a", TensorArg::dense(Buffer::Input(0), &[k, m]))
            .tensor("b", TensorArg::dense(Buffer::Input(1), &[k, n]))
            .tensor("c", TensorArg::dense(Buffer::Output(0), &[n, m]));
        Ok(step)
    }
}

/// Returns cases with halves of 1, S−1, S, S+1 k-tiles; an odd number of k-tiles; ragged edges; several tiles
/// per cluster.
pub(crate) fn cases() -> Vec<SplitK> {
    let case = |shape, clusters| SplitK {
        shape,
        stages: 3,
        clusters,
    };
    vec![
        case([136, 136, 456], 2),
        case([128, 64, 128], 1),
        case([64, 64, 64], 1),
        case([200, 72, 256], 1),
        case([128, 128, 512], 1),
    ]
}

/// Returns additional cases for a GPU.
pub(crate) fn gpu_cases() -> Vec<SplitK> {
    vec![SplitK {
        shape: [1024, 1024, 4096],
        stages: 6,
        clusters: 32,
    }]
}
