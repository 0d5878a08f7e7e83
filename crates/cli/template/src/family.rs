//! What the tool needs to know of the kernel: problem, config, reference, test table.

use super::kernel::{TILE, scale_bias_relu};
use warpline_family::numbers::{Random, half_ulp};
use warpline_family::{
    Buffer, Case, Cost, Family, FamilyError, HostTensor, Place, Plan, Step, TensorSpec,
};
use warpline_family::{config, fields};
use warpline_ir::build::Resources;
use warpline_ir::{DType, Kernel, Target};

/// The family.
pub(crate) struct ScaleBiasRelu;

fields! {
    /// The problem.
    pub(crate) struct Problem {
        /// Rows of x and y
        rows: u32,
        /// Columns, a multiple of 4: rows of whole 16 bytes
        cols: u32,
    }
}

impl Problem {
    fn elements(&self) -> u64 {
        u64::from(self.rows) * u64::from(self.cols)
    }
}

config! {
    /// A complete config.
    pub(crate) struct Config {
        /// Stages of each ring
        pub(crate) stages: u32,
        /// CTAs of the grid
        pub(crate) ctas: u32,
    }
    /// What the caller fixes of the config.
    pub(crate) struct Choice;
}

/// The most elements: their indices fit 32 bits, and so does the end of the last tile.
const MOST: u64 = 1 << 31;

impl Family for ScaleBiasRelu {
    type Problem = Problem;
    type Choice = Choice;
    type Config = Config;

    const NAME: &'static str = "scale-bias-relu";
    const ABOUT: &'static str = "y = relu(x · scale + bias), scale and bias by column";

    fn default_problem(place: Place) -> Problem {
        let (rows, cols) = match place {
            Place::Cpu => (100, 1000),
            Place::Gpu => (8192, 8192),
        };
        Problem { rows, cols }
    }

    fn check(p: &Problem) -> Result<(), FamilyError> {
        let reject = |text| Err(FamilyError::Problem(text));
        match (p.cols.is_multiple_of(4), p.elements()) {
            (false, _) => reject(format!("--cols is a multiple of 4, not {}", p.cols)),
            (_, n) if n > MOST => reject(format!("--rows times --cols is at most {MOST}, not {n}")),
            _ => Ok(()),
        }
    }

    fn config(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
        let reject = |text| Err(FamilyError::Config(text));
        let stages = choice.stages.unwrap_or(3);
        let config = Config { stages, ctas: 0 };
        if stages == 0 {
            return reject("a ring has at least 1 stage, not 0".into());
        }
        let needed = Resources::of(target, |k| scale_bias_relu(k, &config))?.shared_bytes;
        let have = target.shared_bytes;
        if needed > have {
            return reject(format!(
                "{stages} stages take {needed} bytes of shared memory, and an SM has {have}\n\
                 help: choose --stages 3"
            ));
        }
        let tiles = p.elements().div_ceil(TILE.into()).max(1) as u32;
        // More than four find no registers on an SM.
        let per_sm = (have / needed).min(4);
        match choice.ctas.unwrap_or(tiles.min(target.sms * per_sm)) {
            0 => reject("a grid has at least 1 CTA, not 0".into()),
            ctas => Ok(Config { ctas, ..config }),
        }
    }

    fn candidates(p: &Problem, target: &Target) -> Vec<Config> {
        let config = |stages| {
            let stages = Some(stages);
            let choice = Choice { stages, ctas: None };
            Self::config(p, &choice, target).ok()
        };
        [3, 2, 6, 1].into_iter().filter_map(config).collect()
    }

    fn plan(p: &Problem, c: &Config, target: &Target) -> Result<Plan, FamilyError> {
        let kernel = Kernel::build("scale_bias_relu", target, |k| scale_bias_relu(k, c))?;
        let step = Step::new(kernel, [c.ctas, 1, 1])
            .scalar("n", p.elements() as u32)
            .scalar("cols", p.cols)
            .pointer("x", Buffer::Input(0))
            .pointer("scale", Buffer::Input(1))
            .pointer("bias", Buffer::Input(2))
            .pointer("y", Buffer::Output(0));
        Plan::new(vec![step], 0)
    }

    fn cost(p: &Problem) -> Cost {
        let tensors = [specs(p), Self::outputs(p)].concat();
        Cost::once(2.0 * p.elements() as f64, &tensors)
    }

    fn inputs(p: &Problem, seed: u64) -> Vec<HostTensor> {
        let mut random = Random::new(seed);
        let draw = |spec| HostTensor::normal(spec, &mut random);
        specs(p).into_iter().map(draw).collect()
    }

    fn outputs(p: &Problem) -> Vec<TensorSpec> {
        vec![TensorSpec::new("y", DType::F32, &[p.rows, p.cols])]
    }

    fn reference(p: &Problem, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        let [scale, bias] = [1, 2].map(|i| inputs[i].values().collect::<Vec<f64>>());
        let y = inputs[0].values().enumerate().map(|(i, x)| {
            let col = i % p.cols as usize;
            let sum = x * scale[col] + bias[col];
            // One rounding of ours, and a float64 one of this sum.
            let bound = half_ulp(DType::F32, sum) + sum.abs() * f64::EPSILON;
            (sum.max(0.0), bound)
        });
        vec![y.collect()]
    }

    fn cases() -> Vec<Case<Problem, Choice>> {
        let mut cases = Vec::new();
        let mut case = |rows, cols, stages, ctas| {
            cases.push(Case {
                problem: Problem { rows, cols },
                choice: Choice {
                    stages: Some(stages),
                    ctas: Some(ctas),
                },
            });
        };
        for stages in [1, 3] {
            // Tiles of one CTA, and of the first of two.
            for tiles in [0, 1, stages - 1, stages, stages + 1, 2 * stages + 1] {
                for ctas in [1, 2] {
                    case(ctas * tiles * 4, TILE / 4, stages, ctas); // whole
                    case(ctas * tiles * TILE / 100, 100, stages, ctas); // the last one ragged
                }
            }
        }
        // The least there is, columns without rows, rows longer than a tile, more CTAs than tiles.
        case(1, 4, 3, 1);
        case(5, 0, 3, 1);
        case(3, TILE + 4, 3, 1);
        case(9, 1000, 2, 7);
        cases
    }

    fn bench() -> Vec<(&'static str, Problem)> {
        vec![("memory", Self::default_problem(Place::Gpu))]
    }
}

/// The inputs.
fn specs(p: &Problem) -> Vec<TensorSpec> {
    let column = |name| TensorSpec::new(name, DType::F32, &[p.cols]);
    let x = TensorSpec::new("x", DType::F32, &[p.rows, p.cols]);
    vec![x, column("scale"), column("bias")]
}
