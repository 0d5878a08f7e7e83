//! Calls on the CPU executor.

use crate::arguments::{convert_value, dtype_named, op};
use crate::errors::exception;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use warpline::RunOptions;
use warpline::ops::{ArgValue, Call, TensorView};
use warpline_kernels::op::OpParamKind;

/// An array: name of the element type, shape, strides in elements, bytes of a dense copy.
type Array<'py> = (String, Vec<u64>, Vec<i64>, Bound<'py, PyAny>);

/// An array without its bytes: name of the element type, shape, strides in elements.
type Layout = (String, Vec<u64>, Vec<i64>);

/// Runs an op on the CPU executor.
///
/// Arrays are `(dtype, shape, strides, bytes)`. The layout is checked as on a GPU. The bytes
/// hold a dense little-endian copy, or a copy of the transpose if the last two dimensions are
/// transposed. The call writes the bytes of the outputs.
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
            OpParamKind::Tensor if arg.is_none() => ArgValue::None,
            OpParamKind::Tensor => {
                let (view, bytes) = view(py, arg.extract()?)?;
                inputs.push(bytes);
                ArgValue::Tensor(view)
            }
            _ => convert_value(op, param, &arg)?,
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
    let request = Call::with(index, values.clone(), views.clone());
    request
        .check_simulation(&options)
        .map_err(|e| exception(py, &e))?;

    let inputs: Vec<Vec<u8>> = inputs
        .iter()
        .map(|b| b.to_vec(py))
        .collect::<PyResult<_>>()?;
    let call = Call::with(
        index,
        values.into_iter().map(with_dense_layout).collect(),
        views.iter().map(TensorView::packed).collect(),
    );
    let result = py.detach(|| {
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        call.simulate(&inputs, &options)
    });
    let outputs = result.map_err(|e| exception(py, &e))?;
    for (target, bytes) in targets.iter().zip(&outputs) {
        target.copy_from_slice(py, bytes)?;
    }
    Ok(())
}

/// Rejects a call that breaks a rule of the op, and accepts one that no kernel supports.
///
/// Arrays are `(dtype, shape, strides)`.
#[pyfunction]
pub(crate) fn check_call(
    py: Python<'_>,
    index: usize,
    args: &Bound<'_, PyTuple>,
    outs: Vec<Layout>,
) -> PyResult<()> {
    let op = op(py, index)?;
    let mut values = Vec::new();
    for (param, arg) in op.signature.params.iter().zip(args) {
        values.push(match param.kind {
            OpParamKind::Tensor if arg.is_none() => ArgValue::None,
            OpParamKind::Tensor => ArgValue::Tensor(layout(py, arg.extract()?)?),
            _ => convert_value(op, param, &arg)?,
        });
    }
    let outs = outs.into_iter().map(|out| layout(py, out));
    let call = Call::with(index, values, outs.collect::<PyResult<_>>()?);
    call.check().map_err(|e| exception(py, &e))
}

fn with_dense_layout(value: ArgValue) -> ArgValue {
    match value {
        ArgValue::Tensor(view) => ArgValue::Tensor(view.packed()),
        other => other,
    }
}

fn view(
    py: Python<'_>,
    (dtype, shape, strides, bytes): Array<'_>,
) -> PyResult<(TensorView, PyBuffer<u8>)> {
    let view = layout(py, (dtype, shape, strides))?;
    Ok((view, PyBuffer::get(&bytes)?))
}

fn layout(py: Python<'_>, (dtype, shape, strides): Layout) -> PyResult<TensorView> {
    Ok(TensorView {
        dtype: dtype_named(py, &dtype)?,
        shape,
        strides,
        address: 0,
    })
}
