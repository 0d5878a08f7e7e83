//! torch's tensors, element types and streams.

use crate::arguments::dtype_named;
use crate::direct::Hooks;
use crate::errors::{exception, input_error};
use crate::exchange::Exchange;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use warpline::DType;
use warpline::ops::TensorView;
use warpline_kernels::FamilyError;

/// The parts of torch in use; set when Python imports torch.
pub(crate) struct Torch {
    /// torch's element types and Warpline's.
    dtypes: Vec<(Py<PyAny>, DType)>,
    /// The fast path to a tensor's shape and address, if torch has it.
    pub(crate) exchange: Option<Exchange>,
    /// The parts that calls without the dispatcher use, if torch has them.
    pub(crate) hooks: Option<Hooks>,
    /// Maps a device index to the handle of its current stream.
    stream: Py<PyAny>,
    /// Maps bytes and device index to a zeroed tensor.
    workspace: Py<PyAny>,
}

static TORCH: PyOnceLock<Torch> = PyOnceLock::new();

/// The plain tensor classes, the functions of which each returns a true value if a call needs the
/// dispatcher, and `is_grad_enabled`, `get_float32_matmul_precision`, `empty`, `empty_like`.
type HookArgs = (Vec<Py<PyAny>>, Vec<Py<PyAny>>, [Py<PyAny>; 4]);

/// Sets the parts of torch in use: tensor class, element types with Warpline's names, current
/// stream, workspace, and the parts that direct calls use, if torch has them.
#[pyfunction]
pub(crate) fn use_torch(
    tensor: &Bound<'_, PyAny>,
    dtypes: Vec<(Py<PyAny>, String)>,
    stream: Py<PyAny>,
    workspace: Py<PyAny>,
    hooks: Option<HookArgs>,
) -> PyResult<()> {
    let py = tensor.py();
    let named =
        |(torch_dtype, name): (Py<PyAny>, String)| Ok((torch_dtype, dtype_named(py, &name)?));
    let parts = Torch {
        dtypes: dtypes.into_iter().map(named).collect::<PyResult<_>>()?,
        exchange: Exchange::of(tensor),
        hooks: hooks.map(|(classes, needs_dispatcher, others)| {
            let [is_grad_enabled, float32_precision, empty, empty_like] = others;
            Hooks {
                classes,
                needs_dispatcher,
                is_grad_enabled,
                float32_precision,
                empty,
                empty_like,
            }
        }),
        stream,
        workspace,
    };
    // A second call passes the same values.
    let _ = TORCH.set(py, parts);
    Ok(())
}

pub(crate) fn torch(py: Python<'_>) -> PyResult<&'static Torch> {
    imported(py).ok_or_else(|| input_error(py, "torch is not imported".into()))
}

/// Returns the parts of torch in use, once it is imported.
pub(crate) fn imported(py: Python<'_>) -> Option<&'static Torch> {
    TORCH.get(py)
}

impl Torch {
    /// Returns Warpline's element type of one of torch's.
    pub(crate) fn dtype(&self, value: &Bound<'_, PyAny>) -> Option<DType> {
        let mut all = self.dtypes.iter();
        all.find(|(torch, _)| torch.is(value))
            .map(|&(_, dtype)| dtype)
    }
}

/// Returns the handle of the current stream.
pub(crate) fn current_stream(py: Python<'_>, device: u32) -> PyResult<usize> {
    torch(py)?.stream.bind(py).call1((device,))?.extract()
}

/// Allocates a zeroed tensor.
pub(crate) fn zeros(py: Python<'_>, bytes: u64, device: u32) -> PyResult<Bound<'_, PyAny>> {
    torch(py)?.workspace.bind(py).call1((bytes, device))
}

/// Returns the address of a tensor.
pub(crate) fn address(tensor: &Bound<'_, PyAny>) -> PyResult<u64> {
    let py = tensor.py();
    tensor.call_method0(intern!(py, "data_ptr"))?.extract()
}

/// Returns a tensor and its device index; -1 is the CPU.
pub(crate) fn view(op: &str, name: &str, tensor: &Bound<'_, PyAny>) -> PyResult<(TensorView, i64)> {
    let py = tensor.py();
    let exchange = torch(py)?.exchange.as_ref();
    if let Some(found) = exchange.and_then(|exchange| exchange.view(tensor)) {
        return Ok(found);
    }
    let torch_dtype = tensor.getattr(intern!(py, "dtype"))?;
    let Some(dtype) = torch(py)?.dtype(&torch_dtype) else {
        let text = format!("{op}: {name} has the unsupported element type {torch_dtype}");
        return Err(match torch_dtype.to_string() == "torch.float64" {
            true => exception(py, &FamilyError::Unsupported(text).into()),
            false => input_error(py, text),
        });
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
