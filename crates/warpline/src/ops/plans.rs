//! The cache of plans, keyed by calls without their addresses.

use super::call::Call;
use super::key::CallKey;
use crate::device::Device;
use crate::error::Error;
use crate::gpu::{LoadOptions, LoadedPlan, ReboundPlan, lock};
use crate::prepare::prepare;
use crate::tune;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use warpline_cuda::Stream;
use warpline_kernels::op::{ArgValue, TensorView};
use warpline_kernels::{AnyWorkload, BufferAddresses};

/// The capacity of the cache. A full cache is cleared.
const MAX_PLANS: usize = 4096;

/// The cached plans of a device. Calls that differ only in addresses share a plan.
#[derive(Debug, Default)]
pub(crate) struct Plans(Mutex<HashMap<Vec<u64>, Arc<CachedPlan>>>);

/// The plan of a call.
#[derive(Debug)]
pub(super) struct CachedPlan {
    /// The loaded plan; `None` if all outputs are empty.
    pub(super) loaded: Option<LoadedPlan>,
    /// The size of the workspace in bytes.
    pub(super) workspace: u64,
    /// The bytes of each input and output around its address.
    spans: Spans,
    /// The launches of the last call, with encoded arguments. A call patches the addresses that
    /// differ.
    bound: Mutex<Option<ReboundPlan>>,
    /// Whether the cache dropped the plan.
    is_retired: AtomicBool,
}

impl CachedPlan {
    fn new(call: &Call, loaded: Option<LoadedPlan>, workspace: u64) -> Self {
        Self {
            loaded,
            workspace,
            spans: Spans::of(call),
            bound: Mutex::default(),
            is_retired: AtomicBool::new(false),
        }
    }

    /// Returns whether an output shares bytes with another tensor.
    pub(super) fn overlaps(&self, addresses: &BufferAddresses) -> bool {
        self.spans.overlap(addresses)
    }

    /// Returns whether the cache dropped the plan, for example because a tuned config replaces its
    /// config.
    pub(super) fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::Acquire)
    }

    /// Launches the plan at other addresses.
    pub(super) fn launch(&self, stream: &Stream, addresses: &BufferAddresses) -> Result<(), Error> {
        let Some(loaded) = &self.loaded else {
            return Ok(());
        };
        let mut bound = match self.bound.try_lock() {
            Ok(bound) => bound,
            Err(TryLockError::Poisoned(poisoned)) => {
                let mut bound = poisoned.into_inner();
                *bound = None;
                bound
            }
            // Another thread launches this plan at its own addresses.
            Err(TryLockError::WouldBlock) => return loaded.launch(stream, addresses),
        };
        // Taken, so that a failed call leaves no launch with half of its addresses.
        let previous = match bound.take() {
            Some(mut previous) => previous.rebind(addresses)?.then_some(previous),
            None => None,
        };
        let rebound = match previous {
            Some(rebound) => rebound,
            None => loaded.bind_again(addresses)?,
        };
        let launched = rebound.launch(stream);
        *bound = Some(rebound);
        launched
    }
}

/// The bytes of a tensor relative to its address: start and end; `None` if it has none.
type Span = Option<(i128, i128)>;

/// The spans of the tensors of a call.
#[derive(Debug)]
struct Spans {
    inputs: Vec<Span>,
    outputs: Vec<Span>,
}

impl Spans {
    fn of(call: &Call) -> Self {
        let span = |view: &TensorView| {
            let at = i128::from(view.address);
            view.bytes().map(|(start, end)| (start - at, end - at))
        };
        let inputs = call.args.iter().filter_map(|value| match value {
            ArgValue::Tensor(view) => Some(span(view)),
            ArgValue::Integers(_) => Some(None),
            _ => None,
        });
        Self {
            inputs: inputs.collect(),
            outputs: call.outs.iter().map(span).collect(),
        }
    }

    /// Returns whether an output shares bytes with an input or with another output.
    fn overlap(&self, addresses: &BufferAddresses) -> bool {
        let bytes = |(&address, span): (&u64, &Span)| {
            let at = i128::from(address);
            span.map(|(start, end)| (at + start, at + end))
        };
        let inputs = || addresses.inputs.iter().zip(&self.inputs);
        let outputs = || addresses.outputs.iter().zip(&self.outputs);
        outputs().enumerate().any(|(i, out)| {
            let Some((start, end)) = bytes(out).filter(|_| *out.0 != 0) else {
                return false;
            };
            let mut others = inputs().chain(outputs().take(i)).filter_map(bytes);
            others.any(|(other_start, other_end)| start < other_end && other_start < end)
        })
    }
}

impl Plans {
    /// Returns the cached plan of a call.
    pub(super) fn get(&self, key: &CallKey) -> Option<Arc<CachedPlan>> {
        lock(&self.0).get(key.words()).cloned()
    }

    /// Returns the number of plans.
    pub(super) fn len(&self) -> usize {
        lock(&self.0).len()
    }

    /// Removes all plans, because a tuned config may replace the config of a plan.
    pub(crate) fn clear(&self) {
        retire(&mut lock(&self.0));
    }

    /// Returns the plan of a call, and plans it on a miss. During stream capture, a miss succeeds only
    /// if the kernels are already loaded.
    pub(super) fn get_or_plan(
        &self,
        call: &Call,
        device: &Device,
        stream: &Stream,
    ) -> Result<Arc<CachedPlan>, Error> {
        let key = CallKey::of(call);
        if let Some(plan) = self.get(&key) {
            return Ok(plan);
        }
        let plan = Arc::new(plan(call, device, stream)?);
        let mut plans = lock(&self.0);
        if plans.len() >= MAX_PLANS {
            retire(&mut plans);
        }
        plans.insert(key.words().to_vec(), plan.clone());
        Ok(plan)
    }
}

/// Removes all plans, and tells the holders of each.
fn retire(plans: &mut HashMap<Vec<u64>, Arc<CachedPlan>>) {
    for plan in plans.values() {
        plan.is_retired.store(true, Ordering::Release);
    }
    plans.clear();
}

fn plan(call: &Call, device: &Device, stream: &Stream) -> Result<CachedPlan, Error> {
    let target = device.target();
    let Some(work) = call.op.workload(&call.args, &call.outs, &target)? else {
        return Ok(CachedPlan::new(call, None, 0));
    };
    let options = LoadOptions::default();
    let load = |work: &dyn AnyWorkload| {
        let prepared = prepare(work, &target)?;
        prepared.check_extents(&call.bytes(prepared.workspace))?;
        prepared.can_load(device, stream, &options)?;
        let loaded = prepared.load_with(device, &options)?;
        tracing::debug!(
            op = call.op.signature.name,
            problem = %work.problem(),
            config = %work.config(),
            baseline = prepared.fallback.is_some(),
            jits = loaded.jits(),
            "planned a call"
        );
        Ok(CachedPlan::new(call, Some(loaded), prepared.workspace))
    };
    let (plan, _) = tune::first_usable(work.as_ref(), device, call.deterministic, load)?;
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpline_ir::DType;

    #[test]
    fn an_output_that_shares_bytes_with_another_tensor_overlaps() {
        let at = |address| TensorView::dense(DType::F32, &[4, 8], address);
        let mut call = Call::with(1, vec![at(0).into(), (-1).into()], vec![at(0)]);
        let overlap = |spans: &Spans, x, y| {
            let addresses = BufferAddresses {
                inputs: vec![x],
                outputs: vec![y],
                workspace: 0,
            };
            spans.overlap(&addresses)
        };
        let spans = Spans::of(&call);
        for (x, y, expected) in [
            (1024, 1024, true),
            (1024, 1024 + 128, false),
            (1024 + 128, 1024, false),
            (1024, 1024 + 127, true),
            (1024 + 127, 1024, true),
            (0, 0, false),
        ] {
            assert_eq!(overlap(&spans, x, y), expected, "{x} {y}");
        }
        call.outs = vec![TensorView::dense(DType::F32, &[0, 8], 0)];
        assert!(!overlap(&Spans::of(&call), 1024, 1024), "an empty output");
    }
}
