//! Random calls of a family: every valid call must run a proved plan.
//!
//! [`check_call`] draws a valid problem and maybe a legal config ([`draw::call`]) and prepares them as a
//! call does: the selected config, then the family's baseline. It also binds the launches, which checks the
//! bounds that the kernels declare.

use crate::error::Error;
use crate::prepare::{Prepared, prepare};
use serde::Serialize;
use std::time::Instant;
use warpline_ir::Target;
use warpline_kernels::draw::{self, DrawnCall};
use warpline_kernels::numbers::Random;
use warpline_kernels::{
    AnyFamily, AnyWorkload, BufferAddresses, BufferBytes, FamilyError, TensorSpec,
};

/// The verdict of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallVerdict {
    /// The plan is proved and its launches can be bound.
    Proved,
    /// The checker cannot decide the plan, and no proved baseline replaces it.
    Undecided,
    /// The checker found a bug.
    Refuted,
    /// The family or a kernel rejects the problem, or the plan cannot be built.
    Rejected,
}

/// A drawn call and its verdict.
#[derive(Clone, Debug)]
pub struct CheckedCall {
    /// The call.
    pub call: DrawnCall,
    /// The verdict.
    pub verdict: CallVerdict,
    /// The reason of a verdict other than [`CallVerdict::Proved`].
    pub reason: Option<String>,
    /// Whether the baseline replaced the selected config.
    pub uses_baseline: bool,
    /// The seconds to plan, build and check the call.
    pub seconds: f64,
}

/// Draws call `index` of a seed and checks it. A call does not depend on the calls before it.
///
/// ```
/// use warpline::fuzz::{CallVerdict, check_call};
/// use warpline::kernels::vector_add::VectorAdd;
/// use warpline_ir::Target;
///
/// for index in 0..3 {
///     let checked = check_call(&VectorAdd, 1, index, &Target::SM_90A);
///     assert_eq!(checked.verdict, CallVerdict::Proved);
/// }
/// ```
pub fn check_call(family: &dyn AnyFamily, seed: u64, index: u64, target: &Target) -> CheckedCall {
    let mut seeds = Random::new(seed);
    seeds.skip(index);
    let call = draw::call(family, &mut Random::new(seeds.bits()), target);
    check(family, call, target)
}

/// Checks one call.
fn check(family: &dyn AnyFamily, call: DrawnCall, target: &Target) -> CheckedCall {
    let start = Instant::now();
    let prepared = prepare_call(family, &call, target);
    let seconds = start.elapsed().as_secs_f64();
    let (verdict, reason) = match &prepared {
        Ok(_) => (CallVerdict::Proved, None),
        Err(error) => (verdict(error), Some(error.to_string())),
    };
    CheckedCall {
        call,
        verdict,
        reason,
        uses_baseline: prepared.is_ok_and(|prepared| prepared.fallback.is_some()),
        seconds,
    }
}

/// Prepares a call and binds its launches.
fn prepare_call(
    family: &dyn AnyFamily,
    call: &DrawnCall,
    target: &Target,
) -> Result<Prepared, Error> {
    let work = family.workload(&call.request, draw::DEVICE, None, target)?;
    let prepared = prepare(work.as_ref(), target)?;
    bind_launches(work.as_ref(), &prepared)?;
    Ok(prepared)
}

/// Binds the launches to buffers of the declared sizes at aligned addresses. Rejects arguments that
/// break a bound of the kernel, and tensors that TMA cannot address.
fn bind_launches(work: &dyn AnyWorkload, prepared: &Prepared) -> Result<(), Error> {
    let (inputs, outputs) = (work.inputs(), work.outputs());
    let bytes = |specs: &[TensorSpec]| {
        let bytes = specs.iter().map(|spec| Some(spec.bytes() as u64));
        bytes.collect()
    };
    prepared.check_extents(&BufferBytes {
        inputs: bytes(&inputs),
        outputs: bytes(&outputs),
        workspace: prepared.workspace,
    })?;
    let addresses = BufferAddresses {
        inputs: vec![1 << 40; inputs.len()],
        outputs: vec![1 << 41; outputs.len()],
        workspace: 1 << 42,
    };
    let mut steps = prepared.steps.iter();
    steps.try_for_each(|step| step.launch(&addresses).map(|_| ()))
}

/// Returns the verdict of a call that cannot run.
fn verdict(error: &Error) -> CallVerdict {
    let diagnostics = match error {
        Error::NotProved(all) | Error::Family(FamilyError::NotProved(all)) => all,
        _ => return CallVerdict::Rejected,
    };
    match diagnostics.diagnostics.iter().all(|d| d.undecided) {
        true => CallVerdict::Undecided,
        false => CallVerdict::Refuted,
    }
}

/// The counts of a fuzz run.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct FuzzSummary {
    /// The calls.
    pub problems: usize,
    /// The calls whose plan is proved.
    pub proved: usize,
    /// The calls that are undecided.
    pub undecided: usize,
    /// The calls that are refuted.
    pub refuted: usize,
    /// The valid calls that are rejected.
    pub rejected: usize,
    /// The calls with an explicit config.
    pub explicit: usize,
    /// The calls in which the baseline replaced the selected config.
    pub baseline: usize,
    /// The seconds of the slowest call.
    pub slowest_s: f64,
}

impl FuzzSummary {
    /// Counts the verdicts.
    pub fn new(calls: &[CheckedCall]) -> Self {
        let count = |verdict| calls.iter().filter(|c| c.verdict == verdict).count();
        Self {
            problems: calls.len(),
            proved: count(CallVerdict::Proved),
            undecided: count(CallVerdict::Undecided),
            refuted: count(CallVerdict::Refuted),
            rejected: count(CallVerdict::Rejected),
            explicit: calls.iter().filter(|c| c.call.is_explicit).count(),
            baseline: calls.iter().filter(|c| c.uses_baseline).count(),
            slowest_s: calls.iter().map(|c| c.seconds).fold(0.0, f64::max),
        }
    }
}
