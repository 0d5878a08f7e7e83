//! The family: problem, config, float64 reference, test cases.

use super::kernel::{TILE, scale};
use warpline_family::prelude::*;

/// The family.
pub(crate) struct Scale;

fields! {
    /// The problem.
    pub(crate) struct Problem {
        /// Elements, a multiple of 1024
        n: u32 where multiple_of(TILE.into()),
        /// Factor of every element
        factor: f32,
    }
}

keywords! {
    /// The variants of the kernel.
    pub(crate) enum Variant {
        /// Releases a slot while a bulk store may still read it
        Broken = "broken",
        /// Waits for the bulk store before the release
        Repaired = "repaired",
    }
}

config! {
    /// A complete config.
    pub(crate) struct Config {
        /// Kernel with or without the bug
        pub(crate) variant: Variant,
        /// Stages of each ring, 1 to 16
        pub(crate) stages: u32,
    }
    /// The config fields that the caller sets; the family selects the rest.
    pub(crate) struct Choice;
}

impl Family for Scale {
    type Problem = Problem;
    type Choice = Choice;
    type Config = Config;

    const NAME: &'static str = "scale";
    const ABOUT: &'static str = "y = factor · x, element by element";

    fn default_problem(device: DeviceKind) -> Problem {
        let n = match device {
            DeviceKind::Cpu => 1 << 14,
            DeviceKind::Gpu => 1 << 26,
        };
        Problem { n, factor: 0.1 }
    }

    fn config(_: &Problem, choice: &Choice, _: &Target) -> Result<Config, FamilyError> {
        let stages = choice.stages.unwrap_or(3);
        if !(1..=16).contains(&stages) {
            let text = format!("a ring has 1 to 16 stages, not {stages}");
            return Err(FamilyError::Config(text));
        }
        let variant = choice.variant.unwrap_or(Variant::Repaired);
        Ok(Config { variant, stages })
    }

    fn candidates(_: &Problem, _: &Target) -> Vec<Config> {
        let variant = Variant::Repaired;
        let config = |stages| Config { variant, stages };
        [3, 2, 4].map(config).into()
    }

    fn plan(p: &Problem, c: &Config, target: &Target) -> Result<Plan, FamilyError> {
        let tiles = p.n / TILE;
        let ctas = tiles.clamp(1, target.sms);
        let step = LaunchStep::new(scale(c, target)?, [ctas, 1, 1])
            .scalar("tiles", tiles)
            .scalar("factor", p.factor)
            .pointers(&Self::inputs(p), &Self::outputs(p));
        Plan::new(vec![step], 0)
    }

    fn flops(p: &Problem) -> f64 {
        p.n.into()
    }

    fn inputs(p: &Problem) -> Vec<TensorSpec> {
        vec![TensorSpec::new("x", DType::F32, &[p.n])]
    }

    fn outputs(p: &Problem) -> Vec<TensorSpec> {
        vec![TensorSpec::new("y", DType::F32, &[p.n])]
    }

    fn reference(p: &Problem, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        let products = inputs[0].values().map(|x| x * f64::from(p.factor));
        // The kernel rounds each product once.
        vec![products.map(|y| (y, half_ulp(DType::F32, y))).collect()]
    }

    fn cases() -> Vec<TestCase<Problem, Choice>> {
        let case = |tiles: u32| TestCase {
            problem: Problem {
                n: tiles * TILE,
                factor: 0.3,
            },
            choice: Choice::default(),
        };
        [0, 1, 3, 4, 1000].map(case).into()
    }
}
