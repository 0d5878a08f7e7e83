//! A plan whose kernels have all been checked.

use crate::error::Error;
use warpline_check::{Checked, check};
use warpline_ir::{Launch, Target};
use warpline_kernels::{AnyWork, Bound, Step};

/// The kernels of a plan, each let pass by the checker.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// In order.
    pub steps: Vec<PreparedStep>,
    /// Bytes of workspace.
    pub workspace: u64,
}

/// One kernel of a plan, checked.
#[derive(Clone, Debug)]
pub struct PreparedStep {
    /// The kernel.
    pub kernel: Checked,
    step: Step,
}

impl PreparedStep {
    /// CTAs, by axis.
    pub fn grid(&self) -> [u32; 3] {
        self.step.grid
    }

    /// How many CTAs.
    pub fn ctas(&self) -> u64 {
        self.step.grid.into_iter().map(u64::from).product()
    }

    /// The launch on buffers that have addresses, checked against the kernel's parameters.
    pub fn launch(&self, bound: &Bound) -> Result<Launch, Error> {
        let launch = self.step.launch(bound);
        launch.check(&self.kernel).map_err(|fault| Error::Launch {
            kernel: self.kernel.name.clone(),
            why: fault.text,
        })?;
        Ok(launch)
    }
}

/// Plans the work and checks every kernel of the plan for the target.
///
/// ```
/// use warpline::kernels::{Place, registry};
/// use warpline::{Device, prepare};
///
/// # fn main() -> Result<(), warpline::Error> {
/// let target = Device::cpu().target();
/// let work = registry()[0].default_work(Place::Cpu, &target)?;
/// for step in prepare(work.as_ref(), &target)?.steps {
///     assert!(step.kernel.is_proved());
/// }
/// # Ok(())
/// # }
/// ```
pub fn prepare(work: &dyn AnyWork, target: &Target) -> Result<Prepared, Error> {
    let plan = work.plan(target)?;
    let checked = |step: Step| -> Result<PreparedStep, Error> {
        let kernel = check(step.kernel.clone(), target)?;
        tracing::debug!(kernel = kernel.name, grid = ?step.grid, "checked a kernel");
        Ok(PreparedStep { kernel, step })
    };
    Ok(Prepared {
        steps: plan
            .steps
            .into_iter()
            .map(checked)
            .collect::<Result<_, _>>()?,
        workspace: plan.workspace,
    })
}
