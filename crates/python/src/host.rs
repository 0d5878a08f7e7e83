//! A call on the simulator.

use crate::arguments::{number, op};
use crate::errors::{exception, input};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use warpline::ops::{Call, TensorView, Value};
use warpline::{DType, RunOptions};
use warpline_kernels::op::Kind;

/// An array: the name of its element type, its shape, its bytes.
type Array<'py> = (String, Vec<u64>, Bound<'py, PyAny>);

/// Runs an op on the CPU simulator. Arrays are `(dtype, shape, bytes)`, dense
/// and little-endian; the bytes of outputs are written.
#[pyfunction]
pub(crate) fn simulate(
    py: Python<'_>,
    index: usize,
    args: &Bound<'_, PyTuple>,
    outs: &Bound<'_, PyTuple>,
    simulate: bool,
) -> PyResult<()> {
    let op = op(py, index)?;
    let (mut values, mut inputs) = (Vec::new(), Vec::new());
    for (param, arg) in op.signature.params.iter().zip(args) {
        values.push(match param.kind {
            Kind::Tensor if arg.is_none() => Value::None,
            Kind::Tensor => {
                let (view, bytes) = view(py, arg.extract()?)?;
                inputs.push(bytes.to_vec(py)?);
                Value::Tensor(view)
            }
            _ => number(op, param, &arg)?,
        });
    }
    let (mut views, mut targets) = (Vec::new(), Vec::new());
    for out in outs {
        let (view, bytes) = view(py, out.extract()?)?;
        views.push(view);
        targets.push(bytes);
    }
    let mut options = RunOptions::default();
    options.simulate = simulate;
    let call = Call::with(index, values, views);
    let done = py.detach(|| {
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        call.simulate(&inputs, &options)
    });
    let outputs = done.map_err(|e| exception(py, &e))?;
    for (target, bytes) in targets.iter().zip(&outputs) {
        target.copy_from_slice(py, bytes)?;
    }
    Ok(())
}

fn view(py: Python<'_>, (dtype, shape, bytes): Array<'_>) -> PyResult<(TensorView, PyBuffer<u8>)> {
    let dtype =
        of_name(&dtype).ok_or_else(|| input(py, format!("there is no element type {dtype:?}")))?;
    Ok((TensorView::dense(dtype, &shape, 0), PyBuffer::get(&bytes)?))
}

fn of_name(name: &str) -> Option<DType> {
    use DType::*;
    let all = [U8, U16, U32, I32, U64, I64, F32, F16, Bf16, E4m3, E5m2];
    all.into_iter().find(|dtype| dtype.name() == name)
}
