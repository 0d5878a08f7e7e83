//! (e) A stream-K GEMM: every CTA computes the same number of k-tiles. CTAs that share an output tile add
//! their partial tiles through a declared workspace.

use crate::probe::{GemmProbe, box_map, extent_param};
use half::bf16;
use serde_json::{Value as Json, json};
use warpline_ir::builder::*;
use warpline_ir::{BuildErrors, DType, Kernel, Target};
use warpline_kernels::{Buffer, LaunchStep, TensorArg};

const BM: u32 = 64;
const BN: u32 = 128;

/// `C[M, N] = A[M, K] · B[N, K]ᵀ` in bf16.
fn stream_k(stages: u32, target: &Target) -> Result<Kernel, BuildErrors> {
    Kernel::build("stream_k", target, |k| {
        let [m, n, k_extent] = ["m", "n", "k"].map(|name| extent_param(k, name));
        let a = k.tensor_map("a", box_map(DType::Bf16, 64, BM));
        let b = k.tensor_map("b", box_map(DType::Bf16, 64, BN));
        let out = k.tensor_map("c", box_map(DType::Bf16, 64, BM));
        let partials = k.partial_tiles("partials", BM, BN);
        let ab = k.ring("ab", stages, |s| {
            (s.tile::<bf16>(BM, 64), s.tile::<bf16>(BN, 64))
        });
        let outbox = k.outbox::<bf16>("out", 1, BM, BN);
        let tiles = Rasterization::RowMajor.tiles(m.div_ceil(BM), n.div_ceil(BN));
        let stream = tiles.stream_k(k_extent.div_ceil(64));

        k.role("load").warps(4).body(|| {
            elect(|| {
                stream.each(|share| {
                    share.k_tiles().each(|i| {
                        let slot = ab.acquire();
                        slot.load(a, slot.0, [i * 64, share.tile.m * BM]);
                        slot.load(b, slot.1, [i * 64, share.tile.n * BN]);
                        slot.commit();
                    });
                });
            });
        });

        k.role("compute").warpgroups(1).body(|| {
            stream.each(|share| {
                let acc = Acc::new(BM, BN);
                share.k_tiles().each(|_| {
                    let slot = ab.wait();
                    acc.mma(&slot.0, &slot.1);
                    slot.release_after(&acc);
                });
                let own = acc.into_frag();
                if_else(
                    share.finishes_tile(),
                    || {
                        let add = |cta, sum| partials.wait_and_add(cta, sum);
                        let sum = share.contributors().fold(own.clone(), add);
                        outbox.store(&sum, out, [share.tile.n * BN, share.tile.m * BM]);
                    },
                    || partials.store(share.partial_index(), &own),
                );
            });
        });
    })
}

pub(crate) struct StreamK {
    shape: [u32; 3],
    stages: u32,
    ctas: u32,
}

impl GemmProbe for StreamK {
    const NAME: &'static str = "stream-k";
    const OUT: DType = DType::Bf16;
    fn shape(&self) -> [u32; 3] {
        self.shape
    }
    fn config(&self) -> Json {
        json!({ "stages": self.stages, "ctas": self.ctas })
    }
    fn step(&self, target: &Target) -> Result<LaunchStep, BuildErrors> {
        let [m, n, k] = self.shape;
        let partials_bytes = u64::from(self.ctas * BM * BN * 4);
        let step = LaunchStep::new(stream_k(self.stages, target)?, [self.ctas, 1, 1])
            .tensor("a", TensorArg::dense(Buffer::Input(0), &[k, m]))
            .tensor("b", TensorArg::dense(Buffer::Input(1), &[k, n]))
            .tensor("c", TensorArg::dense(Buffer::Output(0), &[n, m]))
            .pointer("partials", Buffer::Workspace)
            .pointer("partials_flags", Buffer::Workspace.at(partials_bytes));
        Ok(step)
    }
    /// Returns the bytes of the partial tiles of every CTA, and of a flag for each of its four warps.
    fn workspace(&self) -> u64 {
        u64::from(self.ctas) * u64::from(BM * BN * 4 + 16)
    }
}

/// Returns cases with shares of less than a tile, of more, and of exactly one; more CTAs than k-tiles;
/// ragged edges.
pub(crate) fn cases() -> Vec<StreamK> {
    let case = |shape, ctas| StreamK {
        shape,
        stages: 3,
        ctas,
    };
    vec![
        case([72, 136, 320], 3),
        case([64, 128, 448], 5),
        case([64, 128, 64], 4),
        case([128, 128, 128], 2),
        case([200, 264, 200], 4),
    ]
}

/// Returns additional cases for a GPU.
pub(crate) fn gpu_cases() -> Vec<StreamK> {
    vec![StreamK {
        shape: [640, 1280, 4096],
        stages: 6,
        ctas: 132,
    }]
}
