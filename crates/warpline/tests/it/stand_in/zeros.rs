//! A family of one kernel, which the stand-in runs as well as any.

use warpline::kernels::{
    Case, Family, FamilyError, HostTensor, Place, Plan, Step, TensorSpec, Work,
};
use warpline::kernels::{config, fields};
use warpline::{Device, Error, Outcome, Prepared, RunOptions, prepare, run};
use warpline_ir::build::wait_prerequisites;
use warpline_ir::{DType, Kernel, Target};

/// Fills a vector with zeros.
pub(crate) struct Zeros;

config! {
    /// The form of the kernel.
    pub(crate) struct Form {
        /// Has the kernel `setmaxnreg` in it?
        pub(crate) moves_registers: bool,
    }
    /// What the caller fixes of it.
    pub(crate) struct Choice;
}

fields! {
    /// The vector.
    pub(crate) struct Size {
        /// Elements
        pub(crate) n: u64,
    }
}

impl Family for Zeros {
    type Problem = Size;
    type Choice = Choice;
    type Config = Form;

    const NAME: &'static str = "zeros";
    const ABOUT: &'static str = "a vector of zeros";

    fn default_problem(_: Place) -> Size {
        Size { n: 8 }
    }
    fn config(_: &Size, choice: &Choice, _: &Target) -> Result<Form, FamilyError> {
        let moves_registers = choice.moves_registers.unwrap_or(false);
        Ok(Form { moves_registers })
    }
    fn plan(_: &Size, form: &Form, _: &Target) -> Result<Plan, FamilyError> {
        let kernel = Kernel::build("scale", &Target::SM_90A, |k| {
            if form.moves_registers {
                let role = k.role("all").warpgroups(1).registers(24);
                role.body(|| wait_prerequisites());
            } else {
                k.role("all").warps(1).body(|| wait_prerequisites());
            }
        })?;
        Plan::new(vec![Step::new(kernel, [1, 1, 1])], 64)
    }
    fn inputs(_: &Size) -> Vec<TensorSpec> {
        vec![]
    }
    fn outputs(p: &Size) -> Vec<TensorSpec> {
        vec![TensorSpec {
            name: "zeros",
            dtype: DType::F32,
            shape: vec![p.n as usize],
        }]
    }
    fn reference(p: &Size, _: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        vec![vec![(0.0, f64::INFINITY); p.n as usize]]
    }
    fn cases() -> Vec<Case<Size, Choice>> {
        vec![]
    }
}

/// The work of so many zeros.
pub(crate) fn work(n: u64, device: &Device) -> Work<Zeros> {
    Work::new(Size { n }, &Choice::default(), &device.target()).unwrap()
}

/// Work whose kernel has `setmaxnreg` in it.
pub(crate) fn moving(device: &Device) -> Work<Zeros> {
    let choice = Choice {
        moves_registers: Some(true),
    };
    Work::new(Size { n: 8 }, &choice, &device.target()).unwrap()
}

/// A plan of one kernel.
pub(crate) fn plan(device: &Device) -> Prepared {
    prepare(&work(8, device), &device.target()).unwrap()
}

pub(crate) fn zeros(device: &Device, options: &RunOptions) -> Result<Outcome, Error> {
    run(&work(8, device), device, options)
}
