//! (d) A product whose K is split over a cluster: CTAs side by side take
//! halves of K, CTAs one above the other share B by multicast, and the sums
//! meet in distributed shared memory.

use crate::probe::{Gemm, boxes, side};
use half::bf16;
use serde_json::{Value as Json, json};
use warpline_ir::build::*;
use warpline_ir::{Axis, BuildErrors, DType, Kernel, Target};
use warpline_kernels::{Buffer, Step, TensorArg};

const BM: u32 = 64;
const BN: u32 = 64;
/// CTAs that split K.
const SPLIT: u32 = 2;
/// Tiles above each other that share B.
const ROWS: u32 = 2;

/// `C[M, N] = A[M, K] · B[N, K]ᵀ`, bf16 in and f32 out.
fn split_k(stages: u32, target: &Target) -> Result<Kernel, BuildErrors> {
    Kernel::build("split_k", target, |k| {
        k.cluster(SPLIT, ROWS, 1);
        let [m, n, depth] = ["m", "n", "k"].map(|name| side(k, name));
        let a = k.tensor_map("a", boxes(DType::Bf16, 64, BM));
        let b = k.tensor_map("b", boxes(DType::Bf16, 64, BN / ROWS));
        let out = k.tensor_map("c", boxes(DType::F32, 32, BM));
        let ab = k
            .ring("ab", stages, |s| {
                (s.tile::<bf16>(BM, 64), s.tile::<bf16>(BN, 64))
            })
            .multicast_along(Axis::Y);
        let sums = k.ring("sums", 1, |s| s.tile::<f32>(BM, BN)).across();
        let outbox = k.outbox::<f32>("out", 1, BM, BN);
        let tiles = Order::RowMajor.tiles(m.div_ceil(BM * ROWS), n.div_ceil(BN));
        // This CTA's part of K, and its row of tiles.
        let (half, above) = (cluster_rank() % SPLIT, cluster_rank() / SPLIT);
        let part = depth.div_ceil(64).div_ceil(SPLIT);
        let row = |tile: TileAt| (tile.m * ROWS + above) * BM;

        k.role("load").warps(4).body(|| {
            elect(|| {
                tiles.each_cluster(|tile| {
                    steps(part).each(|i| {
                        let slot = ab.acquire();
                        let col = (half * part + i) * 64;
                        slot.load(a, slot.0, [col, row(tile)]);
                        slot.load_multicast(b, slot.1, [col, tile.n * BN]);
                        slot.commit();
                    });
                });
            });
        });

        k.role("math").warpgroups(1).body(|| {
            tiles.each_cluster(|tile| {
                let acc = Acc::new(BM, BN);
                steps(part).each(|_| {
                    let slot = ab.wait();
                    acc.mma(&slot.0, &slot.1);
                    slot.release_after(&acc);
                });
                let mine = acc.finish();
                // The second half goes to the CTA of the first, which adds it.
                let (first, second) = (above * SPLIT, above * SPLIT + 1);
                if_else(
                    half.eq(1u32),
                    || {
                        let slot = sums.acquire_at(first);
                        mine.store(&slot.tiles());
                        slot.commit();
                    },
                    || {
                        let slot = sums.wait();
                        let more = Frag::load(&slot.tiles());
                        slot.release_to(second);
                        let sum = mine.clone().zip(&more, |x, y| x + y);
                        outbox.send(&sum, out, [tile.n * BN, row(tile)]);
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

impl Gemm for SplitK {
    const NAME: &'static str = "split-k";
    const OUT: DType = DType::F32;
    fn shape(&self) -> [u32; 3] {
        self.shape
    }
    fn config(&self) -> Json {
        json!({ "stages": self.stages, "clusters": self.clusters })
    }
    fn step(&self, target: &Target) -> Result<Step, BuildErrors> {
        let [m, n, k] = self.shape;
        let grid = [SPLIT * self.clusters, ROWS, 1];
        let step = Step::new(split_k(self.stages, target)?, grid)
            .tensor("a", TensorArg::dense(Buffer::Input(0), &[k, m]))
            .tensor("b", TensorArg::dense(Buffer::Input(1), &[k, n]))
            .tensor("c", TensorArg::dense(Buffer::Output(0), &[n, m]));
        Ok(step)
    }
}

/// Halves of 1, S−1, S, S+1 steps, an odd number of steps, ragged edges, several tiles per cluster.
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

/// What a GPU is given besides.
pub(crate) fn gpu_cases() -> Vec<SplitK> {
    vec![SplitK {
        shape: [1024, 1024, 4096],
        stages: 6,
        clusters: 32,
    }]
}
