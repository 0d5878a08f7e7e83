//! A plan whose kernels have all been checked.

use crate::device::Device;
use crate::error::Error;
use crate::gpu::{BuildTimes, LoadOptions, Ready};
use crate::tune;
use serde::Serialize;
use std::sync::Arc;
use std::time::Instant;
use warpline_check::{Checked, Refusal, Refusals, rules};
use warpline_cuda::Stream;
use warpline_ir::{Fault, Kernel, Launch, ParamId, Target};
use warpline_kernels::{AnyWork, Bound, Buffer, BufferBytes, Plan, Proof, Step};
use warpline_ptx::Ptx;

/// The kernels of a plan, each let pass by the checker.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// In order.
    pub steps: Vec<PreparedStep>,
    /// Bytes of workspace.
    pub workspace: u64,
    /// How long it took to build and to check them.
    pub times: BuildTimes,
    /// The baseline that took the place of the selected config, where that is undecided.
    pub fallback: Option<Fallback>,
}

/// A baseline config in the place of a selected one that is undecided.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Fallback {
    /// The baseline config.
    pub config: serde_json::Value,
    /// The config that was selected.
    pub selected: serde_json::Value,
    /// Why the checker proves nothing of the selected config.
    pub reason: String,
}

/// One kernel of a plan, checked.
#[derive(Clone, Debug)]
pub struct PreparedStep {
    /// The kernel.
    pub kernel: Arc<Checked>,
    /// Its [program hash](Kernel::program_hash).
    pub hash: Arc<str>,
    /// Its [text hash](Kernel::text_hash).
    pub(crate) text_hash: Arc<str>,
    step: Arc<Step>,
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

    /// A kernel that the checker is not asked about, and why.
    pub(crate) fn unproved(step: Step, reason: &str) -> Self {
        let kernel = Checked::unproved(Kernel::clone(&step.kernel), reason);
        Self {
            hash: kernel.program_hash().into(),
            text_hash: kernel.text_hash().into(),
            kernel: Arc::new(kernel),
            step: Arc::new(step),
        }
    }

    /// The step of the plan.
    pub(crate) fn step(&self) -> &Step {
        &self.step
    }

    /// The target it was checked for.
    pub(crate) fn target(&self) -> Target {
        self.kernel.target().copied().unwrap_or(self.kernel.target)
    }

    /// The kernel as PTX for a target: printed, and read again, so that no bug
    /// of the printer reaches a GPU.
    pub fn ptx(&self, target: &Target) -> Result<Ptx, Error> {
        let ptx = warpline_ptx::print(&self.kernel, target)?;
        warpline_translation::verify(&self.kernel, &ptx.text)?;
        Ok(ptx)
    }

    /// May a GPU start it before the step before it has ended?
    pub fn is_dependent(&self) -> bool {
        self.step.dependent
    }

    /// The launch on buffers that have addresses, checked against the kernel's parameters.
    pub fn launch(&self, bound: &Bound) -> Result<Launch, Error> {
        let launch = self.step.launch(bound);
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
    /// Checks every kernel of a plan for the target.
    pub fn new(plan: Plan, target: &Target) -> Result<Self, Error> {
        let start = Instant::now();
        for i in 0..plan.steps.len() {
            finds_it_settled(&plan.steps[..=i], target)?;
        }
        let checked = |step: Step| -> Result<PreparedStep, Error> {
            let Proof {
                kernel,
                hash,
                text_hash,
            } = step.kernel.proof(target)?;
            if step.dependent {
                let early = rules::early_start(&kernel, target);
                refused(&kernel, early)?;
            }
            tracing::debug!(kernel = kernel.name, grid = ?step.grid, "checked a kernel");
            Ok(PreparedStep {
                hash,
                text_hash,
                kernel,
                step: Arc::new(step),
            })
        };
        let steps = plan.steps.into_iter().map(checked);
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

    /// Checks the extents that the kernels declare for their pointers against the plan's buffers.
    pub fn check_extents(&self, bytes: &BufferBytes) -> Result<(), Error> {
        for step in &self.steps {
            let checked = step.step.check_extents(bytes);
            checked.map_err(|fault| step.rejected(fault))?;
        }
        Ok(())
    }

    /// The config of the kernels: that of the work they were prepared for, or
    /// of its baseline.
    pub fn config(&self, of: &dyn AnyWork) -> serde_json::Value {
        let fallback = self.fallback.as_ref();
        fallback.map_or_else(|| of.config(), |fallback| fallback.config.clone())
    }

    /// Brings every kernel of the plan onto a GPU: from this process, from
    /// disk, or compiled by the driver.
    ///
    /// ```no_run
    /// use warpline::cuda::Stream;
    /// use warpline::kernels::{Bound, Place, registry};
    /// use warpline::{Device, prepare};
    ///
    /// # fn main() -> Result<(), warpline::Error> {
    /// # let bound = Bound::default();
    /// let device = Device::cuda(0)?;
    /// let work = registry()[0].default_work(Place::Gpu, &device.target())?;
    /// let ready = prepare(work.as_ref(), &device.target())?.load(&device)?;
    /// let stream = Stream::new(ready.context())?;
    /// let launches = ready.bind(&bound)?;
    /// launches.launch(&stream)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn load(&self, device: &Device) -> Result<Ready, Error> {
        self.load_with(device, &LoadOptions::default())
    }

    /// As [`load`](Self::load), with options.
    pub fn load_with(&self, device: &Device, options: &LoadOptions) -> Result<Ready, Error> {
        Ready::new(self, device, options)
    }

    /// Launches the plan once, and loads it first where it is not on the
    /// device yet. Inside a capture that is refused: compiling would spoil it.
    pub fn launch(&self, device: &Device, stream: &Stream, bound: &Bound) -> Result<(), Error> {
        let options = LoadOptions::default();
        self.can_load(device, stream, &options)?;
        self.load_with(device, &options)?.launch(stream, bound)
    }

    /// Refuses to compile while a stream is captured.
    pub(crate) fn can_load(
        &self,
        device: &Device,
        stream: &Stream,
        options: &LoadOptions,
    ) -> Result<(), Error> {
        let missing = |step: &&PreparedStep| {
            let gpu = device.gpu();
            gpu.is_some_and(|gpu| !gpu.has(step, &options.jit))
        };
        if stream.is_capturing()?
            && let Some(step) = self.steps.iter().find(missing)
        {
            return Err(Error::Capture {
                kernel: step.kernel.name.clone(),
            });
        }
        Ok(())
    }
}

/// Refuses the last of the steps if it may start early and reads at once what
/// one that may still run writes.
fn finds_it_settled(steps: &[Step], target: &Target) -> Result<(), Refusals> {
    let Some((last, before)) = steps.split_last() else {
        return Ok(());
    };
    if !last.dependent || !last.kernel.params.iter().any(|p| p.settled) {
        return Ok(());
    }
    // A step that starts when the one before it has ended ends the search.
    let first = before.iter().rposition(|step| !step.dependent);
    let written: Vec<Option<Buffer>> = match first {
        // Nobody knows what the grids before the plan write.
        None => vec![None],
        Some(first) => (before[first..].iter())
            .flat_map(|step| {
                let params = rules::writes(&step.kernel, target);
                params.into_iter().map(|p| step.arg(p)?.buffer())
            })
            .collect(),
    };
    let params = (0..).map(ParamId).zip(last.args());
    let met = params.filter(|(_, arg)| {
        let buffer = arg.buffer();
        buffer.is_some() && written.iter().any(|w| w.is_none() || *w == buffer)
    });
    let met: Vec<_> = met.map(|(id, _)| id).collect();
    refused(&last.kernel, rules::unsettled(&last.kernel, &met))
}

/// An error, if a kernel breaks rules.
fn refused(kernel: &Kernel, refusals: Vec<Refusal>) -> Result<(), Refusals> {
    if refusals.is_empty() {
        return Ok(());
    }
    Err(Refusals {
        kernel: kernel.name.clone(),
        refusals,
    })
}

/// Plans the work and checks every kernel of the plan for the target. Where
/// the checker decides nothing of the selected config, the family's
/// [baseline](warpline_kernels::Family::baseline) takes its place, with a
/// [notice](crate::tune::notices()).
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
    let undecided = match prepare_exactly(work, target) {
        Err(Error::Refused(all)) if all.refusals.iter().all(|r| r.undecided) => all,
        other => return other,
    };
    let Some(baseline) = work.baseline(target) else {
        return Err(undecided.into());
    };
    // A baseline has no baseline of its own: nothing is tried a third time.
    let Ok(mut prepared) = prepare_exactly(baseline.as_ref(), target) else {
        return Err(undecided.into());
    };
    let fallback = Fallback {
        config: baseline.config(),
        selected: work.config(),
        reason: undecided.to_string(),
    };
    tune::say(format!(
        "the selected config of {} is undecided, and the baseline {} takes its place: {}",
        work.family(),
        fallback.config,
        fallback.reason
    ));
    prepared.fallback = Some(fallback);
    Ok(prepared)
}

/// As [`prepare()`], with the config that the work has and no other.
pub fn prepare_exactly(work: &dyn AnyWork, target: &Target) -> Result<Prepared, Error> {
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
    use warpline_ir::build::{elect, lane_id, steps, wait_prerequisites};

    /// A plan of one kernel that declares bounds, with a count and a buffer at an address.
    fn bounded(count: u32, offset: u64) -> Prepared {
        let kernel = Kernel::build("fill", &Target::SM_90A, |k| {
            let count = k.param::<u32>("count").at_least(8).at_most(64);
            count.multiple_of(8);
            let y = k.pointer::<f32>("y").aligned_to(16).elements(count);
            k.role("all").body(|| {
                steps(count).each(|i| elect(|| y.store(i, 1.0)));
            });
        });
        let step = Step::new(kernel.unwrap(), [1, 1, 1])
            .scalar("count", count)
            .pointer("y", Buffer::Output(0).at(offset));
        Prepared::new(Plan::new(vec![step], 0).unwrap(), &Target::SM_90A).unwrap()
    }

    #[test]
    fn a_prepared_launch_keeps_declared_bounds() {
        let launch = |count, address| {
            let bound = Bound {
                outputs: vec![address],
                ..Bound::default()
            };
            let launch = bounded(count, 0).steps[0].launch(&bound);
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
    fn a_plan_has_buffers_of_the_declared_extents() {
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
        assert_eq!(check(0, None), Ok(()), "nothing is known of it");
        for (offset, bytes) in [(0, 63), (32, 95), (128, 64)] {
            let text = check(offset, Some(bytes)).unwrap_err();
            let rule = "f32 elements, but the kernel takes at least count = 16";
            assert!(text.contains(rule), "{text}");
        }
    }

    /// A step that may start early, by a kernel that waits or does not.
    fn early(waits: bool) -> Result<Prepared, Error> {
        let kernel = Kernel::build("second", &Target::SM_90A, |k| {
            let out = k.pointer::<u32>("out");
            k.role("all").body(|| {
                if waits {
                    wait_prerequisites();
                }
                out.store(lane_id(), 1u32);
            });
        });
        let step = Step::new(kernel.unwrap(), [1, 1, 1]).pointer("out", Buffer::Output(0));
        let plan = Plan::new(vec![step.dependent()], 0)?;
        Prepared::new(plan, &Target::SM_90A)
    }

    /// Two steps, of which the second may start early and reads an input at
    /// once: the first writes there or to the output.
    fn settled(first_writes: Buffer, dependent: bool) -> Result<Prepared, Error> {
        let first = Kernel::build("first", &Target::SM_90A, |k| {
            let to = k.pointer::<u32>("to");
            k.role("all").body(|| to.store(lane_id(), 1u32));
        });
        let second = Kernel::build("second", &Target::SM_90A, |k| {
            let (x, y) = (k.pointer::<u32>("x").settled(), k.pointer::<u32>("y"));
            k.role("all").body(|| {
                let x = x.load(lane_id());
                wait_prerequisites();
                y.store(lane_id(), x);
            });
        });
        let first = Step::new(first.unwrap(), [1, 1, 1]).pointer("to", first_writes);
        let second = Step::new(second.unwrap(), [1, 1, 1])
            .pointer("x", Buffer::Input(0))
            .pointer("y", Buffer::Output(0))
            .dependent();
        let steps = match dependent {
            true => vec![second],
            false => vec![first, second],
        };
        Prepared::new(Plan::new(steps, 0)?, &Target::SM_90A)
    }

    #[test]
    fn what_a_step_reads_at_once_no_step_that_runs_writes() {
        assert!(settled(Buffer::Output(0), false).is_ok());
        for broken in [
            settled(Buffer::Input(0), false),
            settled(Buffer::Output(0), true),
        ] {
            match broken {
                Err(Error::Refused(all)) => assert_eq!(all.refusals[0].code(), "R16.settled"),
                other => panic!("must be refused: {other:?}"),
            }
        }
    }

    #[test]
    fn a_step_that_may_start_early_waits() {
        assert!(early(true).is_ok());
        match early(false) {
            Err(Error::Refused(all)) => assert_eq!(all.refusals[0].code(), "R16.wait"),
            other => panic!("must be refused: {other:?}"),
        }
    }
}
