//! The ladder: one GEMM, `C[M, N] = A[M, K] · B[N, K]ᵀ` in bf16, as nine kernels. Each kernel is one change to the
//! previous one, so that the ratio of two measurements is the gain of one technique.
//!
//! | | step | change |
//! |---|---|---|
//! | 1 | plain tensor cores | all warps copy a stage, synchronize, multiply, synchronize, and store from registers |
//! | 2 | TMA | one thread issues the loads of a stage |
//! | 3 | ring | several stages: the multiplying warpgroups load ahead |
//! | 4 | roles | a separate warp loads |
//! | 5 | setmaxnreg | the load role gives its registers to the consumers |
//! | 6 | persistent | one CTA per SM computes tile after tile, in grouped rasterization |
//! | 7 | ping-pong | two consumers take tiles in turn: one multiplies while the other stores |
//! | 8 | wave-exact tile | the tile width that fills the waves of CTAs best |
//! | 9 | TMA store | tiles are stored by TMA through shared memory |
//!
//! Module `steps` has the programs; `gemm` has their common parts.

mod gemm;
mod steps;

use crate::ProbeSet;
use crate::probe::{GemmProbe, workloads};
use gemm::{TILE_K, TILE_M};
use serde_json::{Value as Json, json};
use warpline_ir::builder::Builder;
use warpline_ir::{BuildErrors, DType, Kernel, ParamKind, Target};
use warpline_kernels::{Buffer, LaunchStep, TensorArg};

/// Tile widths for ping-pong, the widest first: accumulators of wider tiles exceed 232 registers, and narrower
/// tiles load too much per multiplication.
const TILE_WIDTHS: [u32; 7] = [192, 176, 160, 144, 128, 112, 96];
/// M = N = K of the GPU cases.
const GPU_SIZES: [u32; 2] = [4096, 8192];
/// Maximum shared memory of barriers in bytes.
const BARRIER_BYTES: u32 = 1024;

/// Columns of a tile, stages of the ring, and CTAs of the grid.
#[derive(Clone, Copy)]
struct Config {
    tile_n: u32,
    stages: u32,
    ctas: u32,
}

impl Config {
    /// Creates a config with one CTA per tile.
    fn one_cta_per_tile([m, n, _]: [u32; 3], tile_n: u32, stages: u32) -> Self {
        Self {
            tile_n,
            stages,
            ctas: m.div_ceil(TILE_M) * n.div_ceil(tile_n),
        }
    }

    /// Returns the columns of one TMA store: at most 128 bytes of a row.
    fn store_cols(self) -> u32 {
        1 << self.tile_n.trailing_zeros().min(6)
    }

    /// Returns the config with as many stages as fit next to two outboxes of two stages each.
    fn with_max_stages(self) -> Self {
        let outbox_bytes = 2 * 2 * TILE_M * self.store_cols() * 2;
        let stage_bytes = (TILE_M + self.tile_n) * TILE_K * 2;
        let available = Target::default().shared_bytes - BARRIER_BYTES - outbox_bytes;
        Self {
            stages: available / stage_bytes,
            ..self
        }
    }
}

/// Returns the tile width that minimizes ⌈tiles / SMs⌉ · width, the columns of the busiest SM; of
/// several such widths, the widest.
fn wave_exact_tile_n([m, n, _]: [u32; 3], sms: u32) -> u32 {
    let waves = |tile_n: u32| (m.div_ceil(TILE_M) * n.div_ceil(tile_n)).div_ceil(sms);
    let best = TILE_WIDTHS
        .into_iter()
        .min_by_key(|&tile_n| waves(tile_n) * tile_n);
    best.unwrap_or(TILE_WIDTHS[0])
}

/// A step of the ladder.
#[derive(Clone, Copy)]
struct LadderStep {
    name: &'static str,
    program: fn(Builder, Config),
    /// Returns the config for a shape, a number of SMs and a size.
    config: fn([u32; 3], u32, Size) -> Config,
}

/// Tiles and stages for a GPU, or smaller ones for the CPU executor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Size {
    Full,
    Small,
}

impl Size {
    fn select(self, full: u32, small: u32) -> u32 {
        match self {
            Size::Full => full,
            Size::Small => small,
        }
    }
}

/// The steps in order.
const STEPS: [LadderStep; 9] = [
    LadderStep {
        name: "ladder, plain tensor cores",
        program: steps::plain,
        config: single_stage,
    },
    LadderStep {
        name: "ladder, TMA",
        program: steps::tma,
        config: single_stage,
    },
    LadderStep {
        name: "ladder, ring",
        program: steps::ring,
        config: multi_stage,
    },
    LadderStep {
        name: "ladder, roles",
        program: steps::roles,
        config: multi_stage,
    },
    LadderStep {
        name: "ladder, setmaxnreg",
        program: steps::registers,
        config: multi_stage,
    },
    LadderStep {
        name: "ladder, persistent",
        program: steps::persistent,
        config: |shape, ctas, size| Config {
            ctas,
            ..multi_stage(shape, ctas, size)
        },
    },
    LadderStep {
        name: "ladder, ping-pong",
        program: steps::ping_pong,
        config: |_, ctas, size| ping_pong_config(size.select(128, 32), ctas, size),
    },
    LadderStep {
        name: "ladder, wave-exact tile",
        program: steps::ping_pong,
        config: |shape, ctas, size| ping_pong_config(wave_exact_tile_n(shape, ctas), ctas, size),
    },
    LadderStep {
        name: "ladder, TMA store",
        program: steps::store,
        config: |shape, ctas, size| ping_pong_config(wave_exact_tile_n(shape, ctas), ctas, size),
    },
];

fn single_stage(shape: [u32; 3], _: u32, size: Size) -> Config {
    Config::one_cta_per_tile(shape, size.select(256, 32), 1)
}

fn multi_stage(shape: [u32; 3], _: u32, size: Size) -> Config {
    Config::one_cta_per_tile(shape, size.select(256, 32), size.select(4, 3))
}

fn ping_pong_config(tile_n: u32, ctas: u32, size: Size) -> Config {
    let config = Config {
        tile_n,
        stages: 3,
        ctas,
    };
    match size {
        Size::Full => config.with_max_stages(),
        Size::Small => config,
    }
}

/// A step at a shape.
pub(crate) struct LadderCase {
    step: LadderStep,
    shape: [u32; 3],
    config: Config,
}

impl GemmProbe for LadderCase {
    const NAME: &'static str = "ladder";
    const OUT: DType = DType::Bf16;
    fn shape(&self) -> [u32; 3] {
        self.shape
    }
    fn config(&self) -> Json {
        let Config {
            tile_n,
            stages,
            ctas,
        } = self.config;
        let step = self.step.name.trim_start_matches("ladder, ");
        json!({ "step": step, "tile": [TILE_M, tile_n], "stages": stages, "ctas": ctas })
    }
    fn step(&self, target: &Target) -> Result<LaunchStep, BuildErrors> {
        let ([m, n, k], config) = (self.shape, self.config);
        let kernel = Kernel::build("ladder", target, |k| (self.step.program)(k, config))?;
        let tensors = [
            ("a", Buffer::Input(0), [k, m]),
            ("b", Buffer::Input(1), [k, n]),
            ("c", Buffer::Output(0), [n, m]),
        ];
        let mut step = LaunchStep::new(kernel, [config.ctas, 1, 1]);
        for (name, buffer, extents) in tensors {
            // A pointer or a tensor map, as declared by the step.
            let param = step.kernel.find_param(name).map(|p| step.kernel.param(p));
            step = match param.map(|p| &p.kind) {
                Some(ParamKind::TensorMap(_)) => {
                    step.tensor(name, TensorArg::dense(buffer, &extents))
                }
                _ => step.pointer(name, buffer),
            };
        }
        Ok(step)
    }
}

impl LadderStep {
    /// Returns this step at a shape on `sms` SMs.
    fn case(self, shape: [u32; 3], sms: u32, size: Size) -> LadderCase {
        LadderCase {
            step: self,
            shape,
            config: (self.config)(shape, sms, size),
        }
    }

    /// Returns small cases and the GPU cases. The small ones have K of 1, S−1, S and S+1 k-tiles, ragged edges,
    /// and more and fewer tiles than CTAs.
    fn set(self) -> ProbeSet {
        let small = [
            ([136, 24, 136], 1),
            ([8, 8, 8], 2),
            ([128, 104, 128], 2),
            ([264, 32, 200], 2),
        ];
        let small = small.map(|(shape, sms)| self.case(shape, sms, Size::Small));
        ProbeSet {
            name: self.name,
            cases: workloads(small.into()),
            gpu_cases: workloads(GPU_SIZES.map(|side| self.at_gpu_size(side)).into()),
        }
    }

    /// Returns this step at M = N = K = `side`.
    fn at_gpu_size(self, side: u32) -> LadderCase {
        self.case([side; 3], Target::default().sms, Size::Full)
    }
}

/// Returns the GPU cases: for each size, the steps in order.
pub(crate) fn gpu_cases() -> Vec<LadderCase> {
    let steps = |side| STEPS.map(|step| step.at_gpu_size(side));
    GPU_SIZES.into_iter().flat_map(steps).collect()
}

/// Returns the cases of every step, in order.
pub(crate) fn sets() -> impl Iterator<Item = ProbeSet> {
    STEPS.into_iter().map(LadderStep::set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wave_exact_width_fills_the_waves() {
        // 9 waves of 112 columns instead of 8 of 128; 21 of 192 instead of 32 of 128.
        assert_eq!(wave_exact_tile_n([4096; 3], 132), 112);
        assert_eq!(wave_exact_tile_n([8192; 3], 132), 192);
        // Two SMs and one row of tiles: two tiles of 160 columns fill one wave.
        assert_eq!(wave_exact_tile_n([128, 300, 64], 2), 160);
    }

    #[test]
    fn max_stages_fit_next_to_the_outboxes() {
        let stages = |tile_n| ping_pong_config(tile_n, 132, Size::Full).stages;
        assert_eq!([112, 128, 192].map(stages), [7, 5, 4]);
    }
}
