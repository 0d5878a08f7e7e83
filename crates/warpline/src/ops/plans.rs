//! What calls came to, kept by what they have in common.

use super::call::Call;
use crate::device::Device;
use crate::error::Error;
use crate::gpu::{LoadOptions, Ready, held};
use crate::prepare::prepare;
use crate::tune;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use warpline_cuda::Stream;
use warpline_kernels::AnyWork;
use warpline_kernels::op::{TensorView, Value};

/// The most plans that are kept; beyond, all are forgotten.
const MOST: usize = 4096;

/// Plans on a device, by calls that differ in addresses alone.
#[derive(Debug, Default)]
pub(crate) struct Plans(Mutex<HashMap<Vec<u64>, Arc<Plan>>>);

/// What a call came to.
#[derive(Debug)]
pub(super) struct Plan {
    /// The kernels on the device; none where nothing comes out.
    pub(super) ready: Option<Ready>,
    /// Bytes of workspace.
    pub(super) workspace: u64,
}

impl Plans {
    /// The plan of a call, if it was made before.
    pub(super) fn known(&self, call: &Call) -> Option<Arc<Plan>> {
        held(&self.0).get(&key(call)).cloned()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        held(&self.0).len()
    }

    /// Forgets all of them: a tuned config may take the place of one.
    pub(crate) fn clear(&self) {
        held(&self.0).clear();
    }

    /// The plan of a call, made where there is none yet. In a capture it is
    /// made only if its kernels are on the device already.
    pub(super) fn of(
        &self,
        call: &Call,
        device: &Device,
        stream: &Stream,
    ) -> Result<Arc<Plan>, Error> {
        if let Some(plan) = self.known(call) {
            return Ok(plan);
        }
        let plan = Arc::new(plan(call, device, stream)?);
        let mut plans = held(&self.0);
        if plans.len() >= MOST {
            plans.clear();
        }
        plans.insert(key(call), plan.clone());
        Ok(plan)
    }
}

fn plan(call: &Call, device: &Device, stream: &Stream) -> Result<Plan, Error> {
    let target = device.target();
    let Some(work) = call.op.solve(&call.args, &call.outs, &target)? else {
        return Ok(Plan {
            ready: None,
            workspace: 0,
        });
    };
    let options = LoadOptions::default();
    let load = |work: &dyn AnyWork| {
        let prepared = prepare(work, &target)?;
        prepared.check_extents(&call.bytes(prepared.workspace))?;
        prepared.can_load(device, stream, &options)?;
        let ready = prepared.load_with(device, &options)?;
        tracing::debug!(
            op = call.op.signature.name,
            problem = %work.problem(),
            config = %work.config(),
            baseline = prepared.fallback.is_some(),
            jits = ready.jits(),
            "planned a call"
        );
        Ok(Plan {
            workspace: prepared.workspace,
            ready: Some(ready),
        })
    };
    let (plan, _) = tune::first_good(work.as_ref(), device, call.deterministic, load)?;
    Ok(plan)
}

/// All that a plan depends on: of addresses, whether they are on 16 bytes.
fn key(call: &Call) -> Vec<u64> {
    let mut key = Vec::with_capacity(32);
    key.push(call.index as u64 | u64::from(call.deterministic) << 32);
    for value in &call.args {
        match value {
            Value::None => key.push(0),
            Value::Tensor(view) => push(&mut key, view),
            Value::Number(x) => key.extend([2, x.to_bits()]),
            Value::Integer(n) => key.extend([3, *n as u64]),
            Value::Flag(yes) => key.extend([5, u64::from(*yes)]),
            Value::Integers(all) => {
                key.extend([6, all.len() as u64]);
                key.extend(all.iter().map(|&n| n as u64));
            }
            Value::Text(word) => {
                let bytes = word.as_bytes().chunks(8);
                key.extend([4, word.len() as u64]);
                key.extend(bytes.map(|b| b.iter().fold(0, |n, &x| n << 8 | u64::from(x))));
            }
        }
    }
    for view in &call.outs {
        push(&mut key, view);
    }
    key
}

fn push(key: &mut Vec<u64>, view: &TensorView) {
    let about = 1
        | u64::from(view.on_16_bytes()) << 8
        | (view.dtype as u64) << 16
        | (view.shape.len() as u64) << 32;
    key.push(about);
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
    fn calls_share_a_plan_if_they_differ_in_aligned_addresses_alone() {
        let at = |address| TensorView::dense(DType::F32, &[4, 8], address);
        let one = call(at(1024), -1, at(4096));
        assert_eq!(one, call(at(2048), -1, at(8192)));
        let mut gap = at(1024);
        gap.strides[0] = 9;
        let others = [
            call(at(1028), -1, at(4096)),
            call(at(1024), -1, at(4100)),
            call(at(1024), 1, at(4096)),
            call(gap, -1, at(4096)),
            call(TensorView::dense(DType::Bf16, &[4, 8], 1024), -1, at(4096)),
            call(TensorView::dense(DType::F32, &[8, 4], 1024), -1, at(4096)),
            call(
                TensorView::dense(DType::F32, &[4, 8, 1], 1024),
                -1,
                at(4096),
            ),
        ];
        for (i, other) in others.iter().enumerate() {
            assert_ne!(&one, other, "{i}");
        }
    }

    #[test]
    fn calls_with_other_integers_have_other_plans() {
        let with = |first: Vec<i64>, then: Vec<i64>| {
            key(&Call::with(1, vec![first.into(), then.into()], Vec::new()))
        };
        let one = with(vec![4, 6], vec![0]);
        assert_eq!(one, with(vec![4, 6], vec![0]));
        for other in [
            with(vec![6, 4], vec![0]),
            with(vec![4], vec![6, 0]),
            with(vec![4, 6], vec![]),
        ] {
            assert_ne!(one, other);
        }
    }
}
