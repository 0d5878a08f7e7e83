//! Torch's tensors, types and streams.

use crate::arguments::dtype_named;
use crate::errors::input;
use crate::exchange::Exchange;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use warpline::DType;
use warpline::ops::TensorView;

/// What is used of torch, once Python has imported it.
struct Torch {
    /// Its types, and ours.
    dtypes: Vec<(Py<PyAny>, DType)>,
    /// The quick way to a tensor's shape and address, where it has one.
    exchange: Option<Exchange>,
    /// The handle of the current stream of a device, by its index.
    stream: Py<PyAny>,
    /// Zeros to work in: bytes and device to a tensor.
    workspace: Py<PyAny>,
}

static TORCH: PyOnceLock<Torch> = PyOnceLock::new();

/// Tells what is used of torch: its class of tensors, its types with the names
/// that they have here, how the handle of a stream is had, and how a workspace.
#[pyfunction]
pub(crate) fn use_torch(
    tensor: &Bound<'_, PyAny>,
    dtypes: Vec<(Py<PyAny>, String)>,
    stream: Py<PyAny>,
    workspace: Py<PyAny>,
) -> PyResult<()> {
    let py = tensor.py();
    let named = |(theirs, name): (Py<PyAny>, String)| Ok((theirs, dtype_named(py, &name)?));
    let made = Torch {
        dtypes: dtypes.into_iter().map(named).collect::<PyResult<_>>()?,
        exchange: Exchange::of(tensor),
        stream,
        workspace,
    };
    // A second one is the same.
    let _ = TORCH.set(py, made);
    Ok(())
}

fn torch(py: Python<'_>) -> PyResult<&'static Torch> {
    TORCH
        .get(py)
        .ok_or_else(|| input(py, "torch is not imported".into()))
}

/// The handle of the current stream.
pub(crate) fn current_stream(py: Python<'_>, device: u32) -> PyResult<usize> {
    torch(py)?.stream.bind(py).call1((device,))?.extract()
}

/// A new tensor of zeros to work in.
pub(crate) fn zeros(py: Python<'_>, bytes: u64, device: u32) -> PyResult<Bound<'_, PyAny>> {
    torch(py)?.workspace.bind(py).call1((bytes, device))
}

/// Where a tensor starts.
pub(crate) fn address(tensor: &Bound<'_, PyAny>) -> PyResult<u64> {
    let py = tensor.py();
    tensor.call_method0(intern!(py, "data_ptr"))?.extract()
}

/// A tensor, and the index of its device: -1 for the CPU.
pub(crate) fn view(op: &str, name: &str, tensor: &Bound<'_, PyAny>) -> PyResult<(TensorView, i64)> {
    let py = tensor.py();
    let exchange = torch(py)?.exchange.as_ref();
    if let Some(found) = exchange.and_then(|exchange| exchange.view(tensor)) {
        return Ok(found);
    }
    let theirs = tensor.getattr(intern!(py, "dtype"))?;
    let known = torch(py)?.dtypes.iter().find(|(d, _)| d.is(&theirs));
    let Some(&(_, dtype)) = known else {
        return Err(input(
            py,
            format!("{op}: {name} has elements of type {theirs}, which no kernel takes"),
        ));
    };
    let view = TensorView {
        dtype,
        shape: tensor.getattr(intern!(py, "shape"))?.extract()?,
        strides: tensor.call_method0(intern!(py, "stride"))?.extract()?,
        address: address(tensor)?,
    };
    let device = tensor.call_method0(intern!(py, "get_device"))?.extract()?;
    Ok((view, device))
}
