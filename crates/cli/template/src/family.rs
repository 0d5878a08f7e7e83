//! What the tool needs to know of the kernel: problem, config, reference, test table.

use super::kernel::{TILE, scale_bias_relu};
use clap::Args;
use serde::{Deserialize, Serialize};
use warpline_ir::{DType, Target, Type};
use warpline_kernels::numbers::{Random, half_ulp};
use warpline_kernels::{
    Buffer, Case, Cost, Family, FamilyError, HostTensor, Place, Plan, PlanArg, Step, TensorSpec,
};

/// The family.
pub(crate) struct ScaleBiasRelu;

/// What is asked.
#[derive(Clone, Debug, Args, Serialize)]
pub(crate) struct Problem {
    /// Rows of x and y
    #[arg(long, value_name = "COUNT")]
    rows: u32,
    /// Columns, a multiple of 4: rows of whole 16 bytes
    #[arg(long, value_name = "COUNT")]
    cols: u32,
}

impl Problem {
    fn elements(&self) -> u64 {
        u64::from(self.rows) * u64::from(self.cols)
    }
}

/// What the caller fixes of the config.
#[derive(Clone, Debug, Default, Args, Serialize)]
pub(crate) struct Choice {
    /// Stages of each ring
    #[arg(long, value_name = "COUNT")]
    stages: Option<u32>,
    /// CTAs of the grid
    #[arg(long, value_name = "COUNT")]
    ctas: Option<u32>,
}

/// A complete config.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Config {
    pub(crate) stages: u32,
    pub(crate) ctas: u32,
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
        let refuse = |text| Err(FamilyError::Problem(text));
        match (p.cols.is_multiple_of(4), p.elements()) {
            (false, _) => refuse(format!("--cols is a multiple of 4, not {}", p.cols)),
            (_, n) if n > MOST => refuse(format!("--rows times --cols is at most {MOST}, not {n}")),
            _ => Ok(()),
        }
    }

    fn config(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
        let refuse = |text| Err(FamilyError::Config(text));
        // Of a CTA: a tile in each ring for every stage, and what barriers need.
        let (stage, rest) = (2 * TILE * 4, 1024);
        let most = (target.shared_bytes - rest) / stage;
        let stages = choice.stages.unwrap_or(3);
        if !(1..=most).contains(&stages) {
            return refuse(format!("a ring has 1 to {most} stages, not {stages}"));
        }
        let tiles = p.elements().div_ceil(TILE.into()).max(1) as u32;
        // More than four find no registers on an SM.
        let per_sm = (target.shared_bytes / (stages * stage + rest)).min(4);
        let ctas = choice.ctas.unwrap_or(tiles.min(target.sms * per_sm));
        match ctas {
            0 => refuse("a grid has at least 1 CTA, not 0".into()),
            _ => Ok(Config { stages, ctas }),
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

    fn plan(p: &Problem, c: &Config, _: &Target) -> Result<Plan, FamilyError> {
        let args = vec![
            PlanArg::Scalar(Type::U32, p.elements()),
            PlanArg::Scalar(Type::U32, p.cols.into()),
            PlanArg::Pointer(Buffer::Input(0), 0),
            PlanArg::Pointer(Buffer::Input(1), 0),
            PlanArg::Pointer(Buffer::Input(2), 0),
            PlanArg::Pointer(Buffer::Output(0), 0),
        ];
        Ok(Plan {
            steps: vec![Step::new(scale_bias_relu(c)?, [c.ctas, 1, 1], args)],
            workspace: 0,
        })
    }

    fn cost(p: &Problem) -> Cost {
        let (n, cols) = (p.elements() as f64, f64::from(p.cols));
        Cost {
            flops: 2.0 * n,
            bytes: 4.0 * (2.0 * n + 2.0 * cols),
        }
    }

    fn inputs(p: &Problem, seed: u64) -> Vec<HostTensor> {
        let mut random = Random::new(seed);
        let mut draw = |spec: TensorSpec| {
            let values: Vec<f64> = (0..spec.elements()).map(|_| random.normal()).collect();
            HostTensor::round(spec, values)
        };
        let column = |name| tensor(name, vec![p.cols]);
        [matrix("x", p), column("scale"), column("bias")]
            .map(&mut draw)
            .into()
    }

    fn outputs(p: &Problem) -> Vec<TensorSpec> {
        vec![matrix("y", p)]
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

fn matrix(name: &'static str, p: &Problem) -> TensorSpec {
    tensor(name, vec![p.rows, p.cols])
}

fn tensor(name: &'static str, shape: Vec<u32>) -> TensorSpec {
    TensorSpec {
        name,
        dtype: DType::F32,
        shape: shape.into_iter().map(|n| n as usize).collect(),
    }
}
