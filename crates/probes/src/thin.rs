//! (e) A GEMM with at most 16 rows: `mma.sync` on warps, fed by `cp.async`.

use crate::probe::{GemmProbe, extent_param};
use half::bf16;
use serde_json::{Value as Json, json};
use warpline_ir::builder::*;
use warpline_ir::{BuildErrors, DType, Kernel, Target};
use warpline_kernels::{Buffer, LaunchStep};

const TILE_M: u32 = 16;
/// Columns of a CTA: 32 for each of four warps.
const TILE_N: u32 = 128;
const TILE_K: u32 = 64;

/// `C[M, N] = A[M, K] · B[N, K]ᵀ` for M up to 16, bf16 in and f32 out; K is a multiple of 8.
fn thin(stages: u32, target: &Target) -> Result<Kernel, BuildErrors> {
    Kernel::build("thin", target, |k| {
        let [m, n, k_extent] = ["m", "n", "k"].map(|name| extent_param(k, name));
        let [a, b] = ["a", "b"].map(|name| k.pointer::<bf16>(name));
        let c = k.pointer::<f32>("c");
        let ab = k.ring("ab", stages, |s| {
            (
                s.tile::<bf16>(TILE_M, TILE_K),
                s.tile::<bf16>(TILE_N, TILE_K),
            )
        });
        let first = cta_id() * TILE_N;

        k.role("load").warps(4).body(|| {
            steps(k_extent.div_ceil(TILE_K)).each(|i| {
                let slot = ab.acquire();
                // Eight elements per thread at a time; out-of-range elements are zero-filled.
                let fill =
                    |to: TileRef<bf16>, from: Global<bf16>, first: Reg<u32>, rows: Reg<u32>| {
                        for chunk in (0..to.rows() * TILE_K / 8).step_by(role_threads() as usize) {
                            let chunk = thread_in_role() + chunk;
                            let (row, col) = (chunk / (TILE_K / 8), chunk % (TILE_K / 8) * 8);
                            let (y, x) = (first + row, i * TILE_K + col);
                            let valid = select(y.lt(rows) & x.lt(k_extent), 16u32, 0u32);
                            let offset = y.mul_wide(k_extent) + x.cast::<u64>();
                            to.copy_zfill_from(row, col, from.address(offset), 16, valid);
                        }
                    };
                fill(slot.0, a, 0u32.reg(), m);
                fill(slot.1, b, first, n);
                slot.commit_after_copies();
            });
        });

        k.role("compute").warps(4).body(|| {
            let first_col = warp_in_role() * (TILE_N / 4);
            let zeros = Frag::warp_zeros(TILE_M, TILE_N / 4);
            let acc = steps(k_extent.div_ceil(TILE_K)).fold(zeros, |_, acc| {
                let slot = ab.wait();
                let acc = acc.mma_sync(&slot.0, 0u32, &slot.1, first_col);
                slot.release();
                acc
            });
            acc.each_pair(|coord, pair| {
                let col = first + first_col + coord.col;
                for (j, x) in pair.into_iter().enumerate() {
                    let col = col + j as u32;
                    if_(coord.row.lt(m) & col.lt(n), || {
                        c.store(coord.row * n + col, x)
                    });
                }
            });
        });
    })
}

pub(crate) struct Thin {
    shape: [u32; 3],
    stages: u32,
}

impl GemmProbe for Thin {
    const NAME: &'static str = "thin";
    const OUT: DType = DType::F32;
    fn shape(&self) -> [u32; 3] {
        self.shape
    }
    fn config(&self) -> Json {
        json!({ "stages": self.stages })
    }
    fn step(&self, target: &Target) -> Result<LaunchStep, BuildErrors> {
        let grid = [self.shape[1].div_ceil(TILE_N), 1, 1];
        let step = LaunchStep::new(thin(self.stages, target)?, grid)
            .pointer("a", Buffer::Input(0))
            .pointer("b", Buffer::Input(1))
            .pointer("c", Buffer::Output(0));
        Ok(step)
    }
}

/// Returns cases with K of 1, S−1, S, S+1 and 2S+1 k-tiles; one row; ragged N and K.
pub(crate) fn cases() -> Vec<Thin> {
    let case = |shape| Thin { shape, stages: 3 };
    vec![
        case([13, 200, 264]),
        case([16, 128, 64]),
        case([1, 8, 8]),
        case([16, 128, 128]),
        case([5, 130, 192]),
        case([16, 72, 448]),
    ]
}

/// Returns additional cases for a GPU.
pub(crate) fn gpu_cases() -> Vec<Thin> {
    vec![Thin {
        shape: [16, 16896, 4096],
        stages: 6,
    }]
}
