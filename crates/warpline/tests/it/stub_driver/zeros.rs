//! A test family with one kernel.

use warpline::kernels::{
    DeviceKind, Family, FamilyError, HostTensor, LaunchStep, Plan, TensorSpec, TestCase, Workload,
};
use warpline::kernels::{config, fields};
use warpline::{Device, Error, Prepared, RunOptions, RunReport, prepare, run};
use warpline_ir::builder::wait_prerequisites;
use warpline_ir::{DType, Kernel, Target};

/// Fills a vector with zeros.
pub(crate) struct Zeros;

config! {
    /// The config.
    pub(crate) struct Config {
        /// Whether the kernel contains `setmaxnreg`
        pub(crate) has_setmaxnreg: bool,
    }
    /// The fields that the caller fixes.
    pub(crate) struct Choice;
}

fields! {
    /// The vector.
    pub(crate) struct Problem {
        /// Elements
        pub(crate) n: u64,
    }
}

impl Family for Zeros {
    type Problem = Problem;
    type Choice = Choice;
    type Config = Config;

    const NAME: &'static str = "zeros";
    const ABOUT: &'static str = "a vector of zeros";

    fn default_problem(_: DeviceKind) -> Problem {
        Problem { n: 8 }
    }
    fn config(_: &Problem, choice: &Choice, _: &Target) -> Result<Config, FamilyError> {
        let has_setmaxnreg = choice.has_setmaxnreg.unwrap_or(false);
        Ok(Config { has_setmaxnreg })
    }
    fn plan(_: &Problem, config: &Config, _: &Target) -> Result<Plan, FamilyError> {
        let kernel = Kernel::build("scale", &Target::SM_90A, |k| {
            if config.has_setmaxnreg {
                let role = k.role("all").warpgroups(1).registers(24);
                role.body(|| wait_prerequisites());
            } else {
                k.role("all").warps(1).body(|| wait_prerequisites());
            }
        })?;
        Plan::new(vec![LaunchStep::new(kernel, [1, 1, 1])], 64)
    }
    fn inputs(_: &Problem) -> Vec<TensorSpec> {
        vec![]
    }
    fn outputs(p: &Problem) -> Vec<TensorSpec> {
        vec![TensorSpec {
            name: "zeros",
            dtype: DType::F32,
            shape: vec![p.n as usize],
        }]
    }
    fn reference(p: &Problem, _: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        vec![vec![(0.0, f64::INFINITY); p.n as usize]]
    }
    fn cases() -> Vec<TestCase<Problem, Choice>> {
        vec![]
    }
}

/// Returns the workload of `n` zeros.
pub(crate) fn work(n: u64, device: &Device) -> Workload<Zeros> {
    Workload::new(Problem { n }, &Choice::default(), &device.target()).unwrap()
}

/// Returns a workload whose kernel contains `setmaxnreg`.
pub(crate) fn with_setmaxnreg(device: &Device) -> Workload<Zeros> {
    let choice = Choice {
        has_setmaxnreg: Some(true),
    };
    Workload::new(Problem { n: 8 }, &choice, &device.target()).unwrap()
}

/// Prepares a plan of one kernel.
pub(crate) fn plan(device: &Device) -> Prepared {
    prepare(&work(8, device), &device.target()).unwrap()
}

/// Runs a workload of 8 zeros.
pub(crate) fn run_zeros(device: &Device, options: &RunOptions) -> Result<RunReport, Error> {
    run(&work(8, device), device, options)
}
