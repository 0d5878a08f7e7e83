//! Prepared plans: all kernels are proved.

use crate::device::Device;
use crate::error::Error;
use crate::gpu::{BuildTimes, LoadOptions, LoadedPlan};
use crate::tune;
use serde::Serialize;
use std::sync::Arc;
use std::time::Instant;
use warpline_check::{Checked, Diagnostic, Diagnostics, rules};
use warpline_cuda::Stream;
use warpline_ir::{Fault, Kernel, Launch, ParamId, Target};
use warpline_kernels::{
    AnyWorkload, Buffer, BufferAddresses, BufferBytes, LaunchStep, Plan, Proof,
};
use warpline_ptx::Ptx;

/// A plan whose kernels are all proved.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The steps, in order.
    pub steps: Vec<PreparedStep>,
    /// The size of the workspace in bytes.
    pub workspace: u64,
    /// The time to build and to check the kernels.
    pub times: BuildTimes,
    /// The baseline that replaced the selected config, if that config is undecided.
    pub fallback: Option<Fallback>,
}

/// A baseline config that replaces an undecided config.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Fallback {
    /// The baseline config.
    pub config: serde_json::Value,
    /// The replaced config.
    pub selected: serde_json::Value,
    /// The reason why the checker could not decide the selected config.
    pub reason: String,
}

/// One step of a prepared plan.
#[derive(Clone, Debug)]
pub struct PreparedStep {
    /// The kernel.
    pub kernel: Arc<Checked>,
    /// The [program hash](Kernel::program_hash).
    pub hash: Arc<str>,
    /// The [text hash](Kernel::text_hash).
    pub(crate) text_hash: Arc<str>,
    step: Arc<LaunchStep>,
}

impl PreparedStep {
    /// Returns the grid size in CTAs.
    pub fn grid(&self) -> [u32; 3] {
        self.step.grid
    }

    /// Returns the number of CTAs.
    pub fn ctas(&self) -> u64 {
        self.step.grid.into_iter().map(u64::from).product()
    }

    /// Returns a step without a proof, for the given reason.
    pub(crate) fn unproved(step: LaunchStep, reason: &str) -> Self {
        let kernel = Checked::unproved(Kernel::clone(&step.kernel), reason);
        Self {
            hash: kernel.program_hash().into(),
            text_hash: kernel.text_hash().into(),
            kernel: Arc::new(kernel),
            step: Arc::new(step),
        }
    }

    /// Returns the launch step.
    pub(crate) fn step(&self) -> &LaunchStep {
        &self.step
    }

    /// Returns the target of the proof.
    pub(crate) fn target(&self) -> Target {
        self.kernel.target().copied().unwrap_or(self.kernel.target)
    }

    /// Prints the kernel as PTX for a target. The translation check reads the PTX back, so that no
    /// bug of the printer reaches a GPU.
    pub fn ptx(&self, target: &Target) -> Result<Ptx, Error> {
        let ptx = warpline_ptx::print(&self.kernel, target)?;
        warpline_translation::verify(&self.kernel, &ptx.text)?;
        Ok(ptx)
    }

    /// Returns whether this is a dependent launch (PDL).
    pub fn is_dependent(&self) -> bool {
        self.step.dependent
    }

    /// Returns the launch for given buffer addresses, checked against the kernel's parameters.
    pub fn launch(&self, addresses: &BufferAddresses) -> Result<Launch, Error> {
        let launch = self.step.launch(addresses);
        let checked = launch.check(&self.kernel);
        checked.map_err(|fault| self.rejected(fault))?;
        Ok(launch)
    }

    fn rejected(&self, fault: Fault) -> Error {
        Error::Launch {
            kernel: self.kernel.name.clone(),
            why: fault.text,
        }
    }
}

impl Prepared {
    /// Proves every kernel of a plan for the target.
    pub fn new(plan: Plan, target: &Target) -> Result<Self, Error> {
        let start = Instant::now();
        for i in 0..plan.steps.len() {
            check_pdl_safe(&plan.steps[..=i], target)?;
        }
        let prove_step = |step: LaunchStep| -> Result<PreparedStep, Error> {
            let Proof {
                kernel,
                hash,
                text_hash,
            } = step.kernel.proof(target)?;
            if step.dependent {
                let diagnostics = rules::dependent_launch(&kernel, target);
                require_no_diagnostics(&kernel, diagnostics)?;
            }
            tracing::debug!(kernel = kernel.name, grid = ?step.grid, "checked a kernel");
            Ok(PreparedStep {
                hash,
                text_hash,
                kernel,
                step: Arc::new(step),
            })
        };
        let steps = plan.steps.into_iter().map(prove_step);
        Ok(Self {
            steps: steps.collect::<Result<_, _>>()?,
            workspace: plan.workspace,
            times: BuildTimes {
                check: start.elapsed(),
                ..BuildTimes::default()
            },
            fallback: None,
        })
    }

    /// Checks that the buffers are as large as the extents that the kernels declare.
    pub fn check_extents(&self, bytes: &BufferBytes) -> Result<(), Error> {
        for step in &self.steps {
            let checked = step.step.check_extents(bytes);
            checked.map_err(|fault| step.rejected(fault))?;
        }
        Ok(())
    }

    /// Returns the config of the kernels: that of the workload, or of its baseline.
    pub fn config(&self, work: &dyn AnyWorkload) -> serde_json::Value {
        let fallback = self.fallback.as_ref();
        fallback.map_or_else(|| work.config(), |fallback| fallback.config.clone())
    }

    /// Loads every kernel of the plan onto a GPU. The code comes from this process, from disk or from
    /// the driver's compiler.
    ///
    /// ```no_run
    /// use warpline::cuda::Stream;
    /// use warpline::kernels::{BufferAddresses, DeviceKind, registry};
    /// use warpline::{Device, prepare};
    ///
    /// # fn main() -> Result<(), warpline::Error> {
    /// # let addresses = BufferAddresses::default();
    /// let device = Device::cuda(0)?;
    /// let work = registry()[0].default_workload(DeviceKind::Gpu, &device.target())?;
    /// let loaded = prepare(work.as_ref(), &device.target())?.load(&device)?;
    /// let stream = Stream::new(loaded.context())?;
    /// let plan = loaded.bind(&addresses)?;
    /// plan.launch(&stream)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn load(&self, device: &Device) -> Result<LoadedPlan, Error> {
        self.load_with(device, &LoadOptions::default())
    }

    /// Loads the plan as [`load`](Self::load) does, with options.
    pub fn load_with(&self, device: &Device, options: &LoadOptions) -> Result<LoadedPlan, Error> {
        LoadedPlan::new(self, device, options)
    }

    /// Launches the plan once, and loads it first if needed. Returns an error if it must compile during
    /// stream capture.
    pub fn launch(
        &self,
        device: &Device,
        stream: &Stream,
        addresses: &BufferAddresses,
    ) -> Result<(), Error> {
        let options = LoadOptions::default();
        self.can_load(device, stream, &options)?;
        self.load_with(device, &options)?.launch(stream, addresses)
    }

    /// Returns an error if a kernel must be compiled during stream capture.
    pub(crate) fn can_load(
        &self,
        device: &Device,
        stream: &Stream,
        options: &LoadOptions,
    ) -> Result<(), Error> {
        let is_missing = |step: &&PreparedStep| {
            let gpu = device.gpu();
            gpu.is_some_and(|gpu| !gpu.has_kernel(step, &options.jit))
        };
        if stream.is_capturing()?
            && let Some(step) = self.steps.iter().find(is_missing)
        {
            return Err(Error::Capture {
                kernel: step.kernel.name.clone(),
            });
        }
        Ok(())
    }
}

/// Rejects a dependent launch, the last of `steps`, whose PDL-safe parameter points to memory that a
/// still running step may write.
fn check_pdl_safe(steps: &[LaunchStep], target: &Target) -> Result<(), Diagnostics> {
    let Some((last, before)) = steps.split_last() else {
        return Ok(());
    };
    if !last.dependent || !last.kernel.params.iter().any(|p| p.pdl_safe) {
        return Ok(());
    }
    // All steps before the last non-dependent step have ended.
    let first = before.iter().rposition(|step| !step.dependent);
    let written: Vec<Option<Buffer>> = match first {
        // Launches before the plan may write any buffer.
        None => vec![None],
        Some(first) => (before[first..].iter())
            .flat_map(|step| {
                let params = rules::written_params(&step.kernel, target);
                params.into_iter().map(|p| step.arg(p)?.buffer())
            })
            .collect(),
    };
    let params = (0..).map(ParamId).zip(last.args());
    let conflicts = params.filter(|(_, arg)| {
        let buffer = arg.buffer();
        buffer.is_some() && written.iter().any(|w| w.is_none() || *w == buffer)
    });
    let conflicts: Vec<_> = conflicts.map(|(id, _)| id).collect();
    require_no_diagnostics(&last.kernel, rules::pdl_unsafe(&last.kernel, &conflicts))
}

/// Returns an error if there are diagnostics.
fn require_no_diagnostics(
    kernel: &Kernel,
    diagnostics: Vec<Diagnostic>,
) -> Result<(), Diagnostics> {
    if diagnostics.is_empty() {
        return Ok(());
    }
    Err(Diagnostics {
        kernel: kernel.name.clone(),
        diagnostics,
    })
}

/// Plans a workload and proves every kernel of the plan for the target. If the checker cannot decide
/// the selected config, the family's [baseline](warpline_kernels::Family::baseline) replaces it,
/// with a [notice](crate::tune::notices()).
///
/// ```
/// use warpline::kernels::{DeviceKind, registry};
/// use warpline::{Device, prepare};
///
/// # fn main() -> Result<(), warpline::Error> {
/// let target = Device::cpu().target();
/// let work = registry()[0].default_workload(DeviceKind::Cpu, &target)?;
/// for step in prepare(work.as_ref(), &target)?.steps {
///     assert!(step.kernel.is_proved());
/// }
/// # Ok(())
/// # }
/// ```
pub fn prepare(work: &dyn AnyWorkload, target: &Target) -> Result<Prepared, Error> {
    let undecided = match prepare_selected(work, target) {
        Err(Error::NotProved(all)) if all.diagnostics.iter().all(|r| r.undecided) => all,
        other => return other,
    };
    let Some(baseline) = work.baseline(target) else {
        return Err(undecided.into());
    };
    // The baseline itself has no fallback.
    let Ok(mut prepared) = prepare_selected(baseline.as_ref(), target) else {
        return Err(undecided.into());
    };
    let fallback = Fallback {
        config: baseline.config(),
        selected: work.config(),
        reason: undecided.to_string(),
    };
    tune::notify(format!(
        "the selected config of {} is undecided; the baseline {} replaces it: {}",
        work.family(),
        fallback.config,
        fallback.reason
    ));
    prepared.fallback = Some(fallback);
    Ok(prepared)
}

/// Prepares a workload as [`prepare()`] does, but without falling back to the baseline.
pub fn prepare_selected(work: &dyn AnyWorkload, target: &Target) -> Result<Prepared, Error> {
    let start = Instant::now();
    let plan = work.plan(target)?;
    let build = start.elapsed();
    let mut prepared = Prepared::new(plan, target)?;
    prepared.times.build = build;
    Ok(prepared)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpline_ir::builder::{elect, lane_id, steps, wait_prerequisites};

    /// Returns a plan of one kernel with declared bounds.
    fn bounded(count: u32, offset: u64) -> Prepared {
        let kernel = Kernel::build("fill", &Target::SM_90A, |k| {
            let count = k.param::<u32>("count").at_least(8).at_most(64);
            count.multiple_of(8);
            let y = k.pointer::<f32>("y").aligned_to(16).elements(count);
            k.role("all").body(|| {
                steps(count).each(|i| elect(|| y.store(i, 1.0)));
            });
        });
        let step = LaunchStep::new(kernel.unwrap(), [1, 1, 1])
            .scalar("count", count)
            .pointer("y", Buffer::Output(0).at(offset));
        Prepared::new(Plan::new(vec![step], 0).unwrap(), &Target::SM_90A).unwrap()
    }

    #[test]
    fn a_launch_must_keep_declared_bounds() {
        let launch = |count, address| {
            let addresses = BufferAddresses {
                outputs: vec![address],
                ..BufferAddresses::default()
            };
            let launch = bounded(count, 0).steps[0].launch(&addresses);
            launch.map(|_| ()).map_err(|e| e.to_string())
        };
        for count in [8, 32, 64] {
            assert_eq!(launch(count, 0x1000), Ok(()));
        }
        for (count, address, rule) in [
            (0, 0x1000, "at least 8"),
            (72, 0x1000, "at most 64"),
            (12, 0x1000, "a multiple of 8"),
            (8, 0x1004, "a multiple of 16 bytes"),
        ] {
            let text = launch(count, address).unwrap_err();
            assert!(text.contains(rule) && text.contains("\nhelp: "), "{text}");
        }
    }

    #[test]
    fn buffers_must_have_the_declared_extents() {
        let check = |offset, bytes| {
            let buffers = BufferBytes {
                outputs: vec![bytes],
                ..BufferBytes::default()
            };
            let checked = bounded(16, offset).check_extents(&buffers);
            checked.map_err(|e| e.to_string())
        };
        assert_eq!(check(0, Some(64)), Ok(()));
        assert_eq!(check(32, Some(96)), Ok(()));
        assert_eq!(check(0, None), Ok(()), "the size is unknown");
        for (offset, bytes) in [(0, 63), (32, 95), (128, 64)] {
            let text = check(offset, Some(bytes)).unwrap_err();
            let rule = "f32 elements, but the kernel takes at least count = 16";
            assert!(text.contains(rule), "{text}");
        }
    }

    /// Prepares a dependent launch. Its kernel waits for its predecessor if `waits` is set.
    fn dependent_launch(waits: bool) -> Result<Prepared, Error> {
        let kernel = Kernel::build("second", &Target::SM_90A, |k| {
            let out = k.pointer::<u32>("out");
            k.role("all").body(|| {
                if waits {
                    wait_prerequisites();
                }
                out.store(lane_id(), 1u32);
            });
        });
        let step = LaunchStep::new(kernel.unwrap(), [1, 1, 1]).pointer("out", Buffer::Output(0));
        let plan = Plan::new(vec![step.dependent()], 0)?;
        Prepared::new(plan, &Target::SM_90A)
    }

    /// Prepares two steps. The second is a dependent launch that reads an input before its wait; the
    /// first writes `first_writes`. If `only_second` is set, the plan has only the second step.
    fn pdl_safe_read(first_writes: Buffer, only_second: bool) -> Result<Prepared, Error> {
        let first = Kernel::build("first", &Target::SM_90A, |k| {
            let to = k.pointer::<u32>("to");
            k.role("all").body(|| to.store(lane_id(), 1u32));
        });
        let second = Kernel::build("second", &Target::SM_90A, |k| {
            let (x, y) = (k.pointer::<u32>("x").pdl_safe(), k.pointer::<u32>("y"));
            k.role("all").body(|| {
                let x = x.load(lane_id());
                wait_prerequisites();
                y.store(lane_id(), x);
            });
        });
        let first = LaunchStep::new(first.unwrap(), [1, 1, 1]).pointer("to", first_writes);
        let second = LaunchStep::new(second.unwrap(), [1, 1, 1])
            .pointer("x", Buffer::Input(0))
            .pointer("y", Buffer::Output(0))
            .dependent();
        let steps = match only_second {
            true => vec![second],
            false => vec![first, second],
        };
        Prepared::new(Plan::new(steps, 0)?, &Target::SM_90A)
    }

    #[test]
    fn a_pdl_safe_read_must_not_conflict_with_a_running_step() {
        assert!(pdl_safe_read(Buffer::Output(0), false).is_ok());
        for broken in [
            pdl_safe_read(Buffer::Input(0), false),
            pdl_safe_read(Buffer::Output(0), true),
        ] {
            match broken {
                Err(Error::NotProved(all)) => assert_eq!(all.diagnostics[0].code(), "R16.pdl-safe"),
                other => panic!("must not be proved: {other:?}"),
            }
        }
    }

    #[test]
    fn a_dependent_launch_must_wait() {
        assert!(dependent_launch(true).is_ok());
        match dependent_launch(false) {
            Err(Error::NotProved(all)) => assert_eq!(all.diagnostics[0].code(), "R16.wait"),
            other => panic!("must not be proved: {other:?}"),
        }
    }
}
