//! The cache of plans, keyed by calls without their addresses.

use super::call::Call;
use crate::device::Device;
use crate::error::Error;
use crate::gpu::{LoadOptions, LoadedPlan, lock};
use crate::prepare::prepare;
use crate::tune;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use warpline_cuda::Stream;
use warpline_kernels::AnyWorkload;
use warpline_kernels::op::{ArgValue, TensorView};

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
}

impl Plans {
    /// Returns the cached plan of a call.
    pub(super) fn get(&self, call: &Call) -> Option<Arc<CachedPlan>> {
        lock(&self.0).get(&key(call)).cloned()
    }

    /// Returns the number of plans.
    pub(super) fn len(&self) -> usize {
        lock(&self.0).len()
    }

    /// Removes all plans, because a tuned config may replace the config of a plan.
    pub(crate) fn clear(&self) {
        lock(&self.0).clear();
    }

    /// Returns the plan of a call, and plans it on a miss. During stream capture, a miss succeeds only
    /// if the kernels are already loaded.
    pub(super) fn get_or_plan(
        &self,
        call: &Call,
        device: &Device,
        stream: &Stream,
    ) -> Result<Arc<CachedPlan>, Error> {
        if let Some(plan) = self.get(call) {
            return Ok(plan);
        }
        let plan = Arc::new(plan(call, device, stream)?);
        let mut plans = lock(&self.0);
        if plans.len() >= MAX_PLANS {
            plans.clear();
        }
        plans.insert(key(call), plan.clone());
        Ok(plan)
    }
}

fn plan(call: &Call, device: &Device, stream: &Stream) -> Result<CachedPlan, Error> {
    let target = device.target();
    let Some(work) = call.op.workload(&call.args, &call.outs, &target)? else {
        return Ok(CachedPlan {
            loaded: None,
            workspace: 0,
        });
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
        Ok(CachedPlan {
            workspace: prepared.workspace,
            loaded: Some(loaded),
        })
    };
    let (plan, _) = tune::first_usable(work.as_ref(), device, call.deterministic, load)?;
    Ok(plan)
}

/// Encodes everything that a plan depends on. The key contains only the 16-byte alignment of
/// addresses.
fn key(call: &Call) -> Vec<u64> {
    let mut key = Vec::with_capacity(32);
    key.push(call.index as u64 | u64::from(call.deterministic) << 32);
    for value in &call.args {
        match value {
            ArgValue::None => key.push(0),
            ArgValue::Tensor(view) => push_view(&mut key, view),
            ArgValue::Number(x) => key.extend([2, x.to_bits()]),
            ArgValue::Integer(n) => key.extend([3, *n as u64]),
            ArgValue::Flag(flag) => key.extend([5, u64::from(*flag)]),
            ArgValue::Integers(all) => {
                key.extend([6, all.len() as u64]);
                key.extend(all.iter().map(|&n| n as u64));
            }
            ArgValue::Text(text) => {
                let bytes = text.as_bytes().chunks(8);
                key.extend([4, text.len() as u64]);
                key.extend(bytes.map(|b| b.iter().fold(0, |n, &x| n << 8 | u64::from(x))));
            }
        }
    }
    for view in &call.outs {
        push_view(&mut key, view);
    }
    key
}

fn push_view(key: &mut Vec<u64>, view: &TensorView) {
    let header = 1
        | u64::from(view.is_16_byte_aligned()) << 8
        | (view.dtype as u64) << 16
        | (view.shape.len() as u64) << 32;
    key.push(header);
    key.extend(&view.shape);
    key.extend(view.strides.iter().map(|&stride| stride as u64));
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpline_ir::DType;

    fn call(x: TensorView, dim: i64, y: TensorView) -> Vec<u64> {
        key(&Call::with(1, vec![x.into(), dim.into()], vec![y]))
    }

    #[test]
    fn calls_with_other_aligned_addresses_share_a_plan() {
        let at = |address| TensorView::dense(DType::F32, &[4, 8], address);
        let key = call(at(1024), -1, at(4096));
        assert_eq!(key, call(at(2048), -1, at(8192)));
        let mut padded = at(1024);
        padded.strides[0] = 9;
        let others = [
            call(at(1028), -1, at(4096)),
            call(at(1024), -1, at(4100)),
            call(at(1024), 1, at(4096)),
            call(padded, -1, at(4096)),
            call(TensorView::dense(DType::Bf16, &[4, 8], 1024), -1, at(4096)),
            call(TensorView::dense(DType::F32, &[8, 4], 1024), -1, at(4096)),
            call(
                TensorView::dense(DType::F32, &[4, 8, 1], 1024),
                -1,
                at(4096),
            ),
        ];
        for (i, other) in others.iter().enumerate() {
            assert_ne!(&key, other, "{i}");
        }
    }

    #[test]
    fn calls_with_other_integers_have_other_plans() {
        let call = |first: Vec<i64>, second: Vec<i64>| {
            key(&Call::with(
                1,
                vec![first.into(), second.into()],
                Vec::new(),
            ))
        };
        let expected = call(vec![4, 6], vec![0]);
        assert_eq!(expected, call(vec![4, 6], vec![0]));
        for other in [
            call(vec![6, 4], vec![0]),
            call(vec![4], vec![6, 0]),
            call(vec![4, 6], vec![]),
        ] {
            assert_ne!(expected, other);
        }
    }
}
