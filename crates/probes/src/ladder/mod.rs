//! The ladder: one product, `C[M, N] = A[M, K] · B[N, K]ᵀ` in bf16, as nine
//! kernels. Each is one change of the one before, so that what an idea gives
//! can be read from two numbers.
//!
//! | | step | what is new |
//! |---|---|---|
//! | 1 | plain tensor cores | all warps copy a stage, meet, multiply it, meet, and store from registers |
//! | 2 | TMA | one thread asks for the stage |
//! | 3 | ring | several stages: those who multiply load ahead |
//! | 4 | roles | a warp of its own loads |
//! | 5 | registers moved | it gives its registers to those who multiply |
//! | 6 | persistent | one CTA for each SM walks the tiles, in bands |
//! | 7 | ping-pong | two warpgroups take tiles in turn: one multiplies while the other stores |
//! | 8 | wave-exact tile | tiles as wide as fill the waves of CTAs |
//! | 9 | store | tiles leave through shared memory by TMA |
//!
//! The programs are in `steps`, what they share is in `parts`.

mod parts;
mod steps;

use crate::ProbeSet;
use crate::probe::{Gemm, works};
use parts::{DEPTH, ROWS};
use serde_json::{Value as Json, json};
use warpline_ir::build::Builder;
use warpline_ir::{BuildErrors, DType, Kernel, ParamKind, Target};
use warpline_kernels::{Buffer, Step, TensorArg};

/// Widths of tiles that take turns, the widest first: sums of wider ones do not
/// fit 232 registers, and narrower ones load much for what they multiply.
const WIDTHS: [u32; 7] = [192, 176, 160, 144, 128, 112, 96];
/// Sides of the cubes that a GPU is given.
const SIDES: [u32; 2] = [4096, 8192];
/// Bytes of shared memory that barriers need, at most.
const BARRIERS: u32 = 1024;

/// Columns of a tile, stages of the ring, and CTAs of the grid.
#[derive(Clone, Copy)]
struct Config {
    width: u32,
    stages: u32,
    ctas: u32,
}

impl Config {
    /// A CTA for each tile.
    fn a_cta_for_each_tile([m, n, _]: [u32; 3], width: u32, stages: u32) -> Self {
        Self {
            width,
            stages,
            ctas: m.div_ceil(ROWS) * n.div_ceil(width),
        }
    }

    /// Columns of a tile that leave at a time: at most 128 bytes of a row.
    fn parcel(self) -> u32 {
        1 << self.width.trailing_zeros().min(6)
    }

    /// As many stages as fit beside two outboxes of two stages each.
    fn deepest(self) -> Self {
        let outboxes = 2 * 2 * ROWS * self.parcel() * 2;
        let stage = (ROWS + self.width) * DEPTH * 2;
        let room = Target::default().shared_bytes - BARRIERS - outboxes;
        Self {
            stages: room / stage,
            ..self
        }
    }
}

/// The width at which the busiest SM has the fewest columns to compute: the
/// least ⌈tiles / SMs⌉ · width, and of equal ones the widest.
fn wave_exact([m, n, _]: [u32; 3], sms: u32) -> u32 {
    let waves = |width: u32| (m.div_ceil(ROWS) * n.div_ceil(width)).div_ceil(sms);
    let least = WIDTHS.into_iter().min_by_key(|&width| waves(width) * width);
    least.unwrap_or(WIDTHS[0])
}

/// A step of the ladder.
#[derive(Clone, Copy)]
struct Rung {
    name: &'static str,
    program: fn(Builder, Config),
    /// Its config for a shape, by as many SMs, with tiles and stages of a size.
    config: fn([u32; 3], u32, Size) -> Config,
}

/// Tiles and stages as a GPU is given them, or smaller ones for the simulator.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Size {
    Full,
    Small,
}

impl Size {
    fn pick(self, full: u32, small: u32) -> u32 {
        match self {
            Size::Full => full,
            Size::Small => small,
        }
    }
}

/// The steps, from the bottom up.
const RUNGS: [Rung; 9] = [
    Rung {
        name: "ladder, plain tensor cores",
        program: steps::plain,
        config: one_stage,
    },
    Rung {
        name: "ladder, TMA",
        program: steps::tma,
        config: one_stage,
    },
    Rung {
        name: "ladder, ring",
        program: steps::ring,
        config: some_stages,
    },
    Rung {
        name: "ladder, roles",
        program: steps::roles,
        config: some_stages,
    },
    Rung {
        name: "ladder, registers moved",
        program: steps::registers,
        config: some_stages,
    },
    Rung {
        name: "ladder, persistent",
        program: steps::persistent,
        config: |shape, ctas, size| Config {
            ctas,
            ..some_stages(shape, ctas, size)
        },
    },
    Rung {
        name: "ladder, ping-pong",
        program: steps::ping_pong,
        config: |_, ctas, size| in_turns(size.pick(128, 32), ctas, size),
    },
    Rung {
        name: "ladder, wave-exact tile",
        program: steps::ping_pong,
        config: |shape, ctas, size| in_turns(wave_exact(shape, ctas), ctas, size),
    },
    Rung {
        name: "ladder, store",
        program: steps::store,
        config: |shape, ctas, size| in_turns(wave_exact(shape, ctas), ctas, size),
    },
];

fn one_stage(shape: [u32; 3], _: u32, size: Size) -> Config {
    Config::a_cta_for_each_tile(shape, size.pick(256, 32), 1)
}

fn some_stages(shape: [u32; 3], _: u32, size: Size) -> Config {
    Config::a_cta_for_each_tile(shape, size.pick(256, 32), size.pick(4, 3))
}

fn in_turns(width: u32, ctas: u32, size: Size) -> Config {
    let config = Config {
        width,
        stages: 3,
        ctas,
    };
    match size {
        Size::Full => config.deepest(),
        Size::Small => config,
    }
}

/// A step at a shape.
pub(crate) struct Climb {
    rung: Rung,
    shape: [u32; 3],
    config: Config,
}

impl Gemm for Climb {
    const NAME: &'static str = "ladder";
    const OUT: DType = DType::Bf16;
    fn shape(&self) -> [u32; 3] {
        self.shape
    }
    fn config(&self) -> Json {
        let Config {
            width,
            stages,
            ctas,
        } = self.config;
        let step = self.rung.name.trim_start_matches("ladder, ");
        json!({ "step": step, "tile": [ROWS, width], "stages": stages, "ctas": ctas })
    }
    fn step(&self, target: &Target) -> Result<Step, BuildErrors> {
        let ([m, n, k], config) = (self.shape, self.config);
        let kernel = Kernel::build("ladder", target, |k| (self.rung.program)(k, config))?;
        let tensors = [
            ("a", Buffer::Input(0), [k, m]),
            ("b", Buffer::Input(1), [k, n]),
            ("c", Buffer::Output(0), [n, m]),
        ];
        let mut step = Step::new(kernel, [config.ctas, 1, 1]);
        for (name, buffer, extents) in tensors {
            // By address or by a map, as the rung has declared it.
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

impl Rung {
    /// This step at a shape, on as many SMs.
    fn at(self, shape: [u32; 3], sms: u32, size: Size) -> Climb {
        Climb {
            rung: self,
            shape,
            config: (self.config)(shape, sms, size),
        }
    }

    /// K of 1, S−1, S and S+1 stages, ragged edges, and tiles more and fewer
    /// than CTAs; what a GPU is given besides.
    fn set(self) -> ProbeSet {
        let small = [
            ([136, 24, 136], 1),
            ([8, 8, 8], 2),
            ([128, 104, 128], 2),
            ([264, 32, 200], 2),
        ];
        let small = small.map(|(shape, sms)| self.at(shape, sms, Size::Small));
        ProbeSet {
            name: self.name,
            cases: works(small.into()),
            gpu_cases: works(SIDES.map(|side| self.large(side)).into()),
        }
    }

    /// This step at a large cube.
    fn large(self, side: u32) -> Climb {
        self.at([side; 3], Target::default().sms, Size::Full)
    }
}

/// What a GPU is given: size by size, the steps from the bottom up.
pub(crate) fn gpu_cases() -> Vec<Climb> {
    let steps = |side| RUNGS.map(|rung| rung.large(side));
    SIDES.into_iter().flat_map(steps).collect()
}

/// The cases of every step, from the bottom up.
pub(crate) fn sets() -> impl Iterator<Item = ProbeSet> {
    RUNGS.into_iter().map(Rung::set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tile_fills_the_waves() {
        // 9 waves of 112 columns instead of 8 of 128; 21 of 192 instead of 32 of 128.
        assert_eq!(wave_exact([4096; 3], 132), 112);
        assert_eq!(wave_exact([8192; 3], 132), 192);
        // Two SMs, a row of tiles: one wave if two tiles are enough.
        assert_eq!(wave_exact([128, 300, 64], 2), 160);
    }

    #[test]
    fn stages_are_what_fits_beside_the_outboxes() {
        let stages = |width| in_turns(width, 132, Size::Full).stages;
        assert_eq!([112, 128, 192].map(stages), [7, 5, 4]);
    }
}
