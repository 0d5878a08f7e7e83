//! A minimal family in one folder.

mod kernel;

use kernel::double;
use warpline_family::op::{OpArgs, OpOutput, OpParam, OutputDim, Signature, TensorView};
use warpline_family::prelude::*;
use warpline_family::{Op, ProblemAndChoice};

/// The family.
pub(crate) struct Double;

fields! {
    pub(crate) struct Problem {
        /// Elements of x and y
        n: u32 where at_most(1 << 30),
    }
}

config! {
    pub(crate) struct Config {
        /// Warps of a CTA
        warps: u32 where at_least(1),
    }
    /// The config fields that the caller sets.
    pub(crate) struct Choice;
}

impl Family for Double {
    type Problem = Problem;
    type Choice = Choice;
    type Config = Config;

    const NAME: &'static str = "double";
    const ABOUT: &'static str = "y = 2 x, element by element";

    fn default_problem(device: DeviceKind) -> Problem {
        let n = match device {
            DeviceKind::Cpu => 1000,
            DeviceKind::Gpu => 1 << 26,
        };
        Problem { n }
    }

    fn config(_: &Problem, choice: &Choice, _: &Target) -> Result<Config, FamilyError> {
        let warps = choice.warps.unwrap_or(4);
        Ok(Config { warps })
    }

    fn choices(_: &Problem) -> Vec<Choice> {
        [4, 8].map(|warps| Choice { warps: Some(warps) }).into()
    }

    fn plan(p: &Problem, c: &Config, target: &Target) -> Result<Plan, FamilyError> {
        let kernel = Kernel::build("double", target, |k| double(k, c))?;
        let ctas = p.n.div_ceil(c.warps * 32).max(1);
        let step = LaunchStep::new(kernel, [ctas.min(target.sms), 1, 1])
            .scalar("n", p.n)
            .pointers(&Self::inputs(p), &Self::outputs(p));
        Plan::new(vec![step], 0)
    }

    fn inputs(p: &Problem) -> Vec<TensorSpec> {
        vec![TensorSpec::new("x", DType::F32, &[p.n])]
    }

    fn outputs(p: &Problem) -> Vec<TensorSpec> {
        vec![TensorSpec::new("y", DType::F32, &[p.n])]
    }

    fn reference(_: &Problem, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        vec![inputs[0].values().map(|x| (2.0 * x, 0.0)).collect()]
    }

    fn cases() -> Vec<TestCase<Problem, Choice>> {
        let case = |n| TestCase::new(Problem { n }, &Config { warps: 1 });
        [0, 1, 31, 32, 33, 5000].map(case).into()
    }

    fn bench() -> Vec<(&'static str, Problem)> {
        vec![("memory", Self::default_problem(DeviceKind::Gpu))]
    }

    fn ops() -> Vec<Op<Self>> {
        let signature = Signature {
            name: "double",
            about: Self::ABOUT,
            params: vec![OpParam::tensor("x", "A vector of f32.")],
            outputs: vec![OpOutput {
                name: "y",
                dims: &[OutputDim::All("x")],
                dtype_of: "x",
                dtype_override: None,
                fixed_dtype: None,
            }],
            optional_output: None,
            example: ">>> warpline.double(np.ones(1, np.float32))\narray([2.], dtype=float32)",
        };
        let args = |p: &Problem| vec![TensorView::dense(DType::F32, &[p.n.into()], 0).into()];
        vec![Op {
            signature,
            problem,
            args,
        }]
    }
}

/// The problem of a call.
fn problem(call: &OpArgs<'_>) -> ProblemAndChoice<Double> {
    let n = call.tensor("x")?.elements();
    let n = u32::try_from(n).unwrap_or(u32::MAX);
    Ok((Problem { n }, Choice::default()))
}
