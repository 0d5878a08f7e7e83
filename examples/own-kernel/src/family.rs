//! What the tool needs to know of the kernel: problem, config, reference, test table.

use super::kernel::{TILE, scale};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use warpline_ir::{DType, Target, Type};
use warpline_kernels::numbers::{Random, half_ulp};
use warpline_kernels::{
    Buffer, Case, Cost, Family, FamilyError, HostTensor, Place, Plan, PlanArg, Step, TensorSpec,
};

/// The family.
pub(crate) struct Scale;

/// What is asked.
#[derive(Clone, Debug, Args, Serialize)]
pub(crate) struct Problem {
    /// Elements, a multiple of 1024
    #[arg(long)]
    n: u32,
    /// What each is multiplied by
    #[arg(long)]
    factor: f32,
}

/// With the bug or without it.
#[derive(Clone, Copy, PartialEq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Form {
    /// A slot is given back while a copy still reads it
    Broken,
    /// The copy is waited for first
    Repaired,
}

/// What the caller fixes of the config.
#[derive(Clone, Debug, Default, Args, Serialize)]
pub(crate) struct Choice {
    /// With the bug or without it
    #[arg(long)]
    form: Option<Form>,
    /// Stages of each ring, 1 to 16
    #[arg(long)]
    stages: Option<u32>,
}

/// A complete config.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Config {
    pub(crate) form: Form,
    pub(crate) stages: u32,
}

impl Family for Scale {
    type Problem = Problem;
    type Choice = Choice;
    type Config = Config;

    const NAME: &'static str = "scale";
    const ABOUT: &'static str = "y = factor · x, element by element";

    fn default_problem(place: Place) -> Problem {
        let n = match place {
            Place::Cpu => 1 << 14,
            Place::Gpu => 1 << 26,
        };
        Problem { n, factor: 0.1 }
    }

    fn check(p: &Problem) -> Result<(), FamilyError> {
        match p.n.is_multiple_of(TILE) {
            true => Ok(()),
            false => Err(FamilyError::Problem(format!(
                "--n is a multiple of {TILE}, not {}",
                p.n
            ))),
        }
    }

    fn config(_: &Problem, choice: &Choice, _: &Target) -> Result<Config, FamilyError> {
        let stages = choice.stages.unwrap_or(3);
        if !(1..=16).contains(&stages) {
            let text = format!("a ring has 1 to 16 stages, not {stages}");
            return Err(FamilyError::Config(text));
        }
        let form = choice.form.unwrap_or(Form::Repaired);
        Ok(Config { form, stages })
    }

    fn candidates(_: &Problem, _: &Target) -> Vec<Config> {
        let form = Form::Repaired;
        let config = |stages| Config { form, stages };
        [3, 2, 4].map(config).into()
    }

    fn plan(p: &Problem, c: &Config, target: &Target) -> Result<Plan, FamilyError> {
        let tiles = p.n / TILE;
        let args = vec![
            PlanArg::Scalar(Type::U32, tiles.into()),
            PlanArg::Scalar(Type::F32, p.factor.to_bits().into()),
            PlanArg::Pointer(Buffer::Input(0), 0),
            PlanArg::Pointer(Buffer::Output(0), 0),
        ];
        let ctas = tiles.clamp(1, target.sms);
        Ok(Plan {
            steps: vec![Step::new(scale(c)?, [ctas, 1, 1], args)],
            workspace: 0,
        })
    }

    fn cost(p: &Problem) -> Cost {
        let n = f64::from(p.n);
        Cost {
            flops: n,
            bytes: 8.0 * n,
        }
    }

    fn inputs(p: &Problem, seed: u64) -> Vec<HostTensor> {
        let mut random = Random::new(seed);
        let values = (0..p.n).map(|_| random.normal());
        vec![HostTensor::round(vector("x", p), values)]
    }

    fn outputs(p: &Problem) -> Vec<TensorSpec> {
        vec![vector("y", p)]
    }

    fn reference(p: &Problem, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        let products = inputs[0].values().map(|x| x * f64::from(p.factor));
        // One rounding.
        vec![products.map(|y| (y, half_ulp(DType::F32, y))).collect()]
    }

    fn cases() -> Vec<Case<Problem, Choice>> {
        let case = |tiles: u32| Case {
            problem: Problem {
                n: tiles * TILE,
                factor: 0.3,
            },
            choice: Choice::default(),
        };
        [0, 1, 3, 4, 1000].map(case).into()
    }
}

fn vector(name: &'static str, p: &Problem) -> TensorSpec {
    TensorSpec {
        name,
        dtype: DType::F32,
        shape: vec![p.n as usize],
    }
}
