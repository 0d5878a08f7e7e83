//! The family: problem, config, float64 reference, test cases.

use super::kernel::{TILE, scale_bias_relu};
use warpline_family::prelude::*;

pub(crate) struct ScaleBiasRelu;

fields! {
    pub(crate) struct Problem {
        /// Rows of x and y
        rows: u32,
        /// Columns of x and y, a multiple of 4 (16 bytes)
        cols: u32 where multiple_of(4),
    }
}

config! {
    pub(crate) struct Config {
        /// Stages of each ring
        pub(crate) stages: u32 where at_least(1),
        /// CTAs of the grid
        pub(crate) ctas: u32 where at_least(1),
    }
    /// The config fields that the caller sets; the family selects the rest.
    pub(crate) struct Choice;
}

impl Family for ScaleBiasRelu {
    type Problem = Problem;
    type Choice = Choice;
    type Config = Config;

    const NAME: &'static str = "scale-bias-relu";
    const ABOUT: &'static str = "y = relu(x · scale + bias), scale and bias by column";

    fn default_problem(device: DeviceKind) -> Problem {
        let (rows, cols) = match device {
            DeviceKind::Cpu => (100, 1000),
            DeviceKind::Gpu => (8192, 8192),
        };
        Problem { rows, cols }
    }

    fn check(p: &Problem) -> Result<(), FamilyError> {
        // Element indices, up to the end of the last tile, must fit 32 bits.
        FieldRule::at_most(1 << 31).check_problem("--rows times --cols", elements(p))
    }

    fn config(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
        let stages = choice.stages.unwrap_or(3);
        let (description, config) = (format!("{stages} stages"), Config { stages, ctas: 1 });
        let needed = resources(&description, target, |k| scale_bias_relu(k, &config))?.shared_bytes;
        // Registers limit an SM to four CTAs.
        let per_sm = (target.shared_bytes / needed).min(4);
        let tiles = elements(p).div_ceil(TILE.into()).max(1) as u32;
        let ctas = choice.ctas.unwrap_or(tiles.min(target.sms * per_sm));
        Ok(Config { stages, ctas })
    }

    fn choices(_: &Problem) -> Vec<Choice> {
        let choice = |stages| Choice {
            stages: Some(stages),
            ..Choice::default()
        };
        [3, 2, 6, 1].map(choice).into()
    }

    fn plan(p: &Problem, c: &Config, target: &Target) -> Result<Plan, FamilyError> {
        let kernel = Kernel::build("scale_bias_relu", target, |k| scale_bias_relu(k, c))?;
        let step = LaunchStep::new(kernel, [c.ctas, 1, 1])
            .scalar("n", elements(p) as u32)
            .scalar("cols", p.cols)
            .pointers(&Self::inputs(p), &Self::outputs(p));
        Plan::new(vec![step], 0)
    }

    fn inputs(p: &Problem) -> Vec<TensorSpec> {
        let column = |name| TensorSpec::new(name, DType::F32, &[p.cols]);
        let x = TensorSpec::new("x", DType::F32, &[p.rows, p.cols]);
        vec![x, column("scale"), column("bias")]
    }

    fn outputs(p: &Problem) -> Vec<TensorSpec> {
        vec![TensorSpec::new("y", DType::F32, &[p.rows, p.cols])]
    }

    fn flops(p: &Problem) -> f64 {
        2.0 * elements(p) as f64
    }

    fn reference(p: &Problem, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        let [scale, bias] = [1, 2].map(|i| inputs[i].values().collect::<Vec<f64>>());
        let y = inputs[0].values().enumerate().map(|(i, x)| {
            let col = i % p.cols as usize;
            let sum = x * scale[col] + bias[col];
            // Tolerance: one f32 rounding of the kernel, plus the float64 rounding of this sum.
            let bound = half_ulp(DType::F32, sum) + sum.abs() * f64::EPSILON;
            (sum.max(0.0), bound)
        });
        vec![y.collect()]
    }

    fn cases() -> Vec<TestCase<Problem, Choice>> {
        let case = |rows, cols, stages, ctas| {
            TestCase::new(Problem { rows, cols }, &Config { stages, ctas })
        };
        let mut cases = vec![
            case(1, 4, 3, 1),        // the smallest problem
            case(5, 0, 3, 1),        // no columns
            case(3, TILE + 4, 3, 1), // rows longer than a tile
            case(9, 1000, 2, 7),     // more CTAs than tiles
        ];
        for (stages, ctas) in [(1, 1), (1, 2), (3, 1), (3, 2)] {
            for tiles in trip_counts(stages).map(|trips| ctas * trips) {
                cases.push(case(tiles * 4, TILE / 4, stages, ctas)); // whole tiles
                cases.push(case(tiles * TILE / 100, 100, stages, ctas)); // a partial last tile
            }
        }
        cases
    }

    fn bench() -> Vec<(&'static str, Problem)> {
        vec![("memory", Self::default_problem(DeviceKind::Gpu))]
    }
}

fn elements(p: &Problem) -> u64 {
    u64::from(p.rows) * u64::from(p.cols)
}
