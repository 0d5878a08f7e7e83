//! A call on a GPU.

use crate::arguments::{op, plain};
use crate::errors::{exception, input};
use crate::torch;
use crate::tune;
use crate::view::View;
use crate::workspace::workspace;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::ffi::c_void;
use std::sync::Mutex;
use warpline::cuda::Stream;
use warpline::ops::{Call, Planned, TensorView, Value};
use warpline::{Device, Error};
use warpline_kernels::op::Kind;

/// Puts an op into a stream: torch's current one, or the one of that handle.
///
/// Tensors are torch's, or a `View` of those of another library. Waits for nothing.
#[pyfunction]
#[pyo3(signature = (index, args, outs, stream=None))]
pub(crate) fn launch(
    py: Python<'_>,
    index: usize,
    args: &Bound<'_, PyTuple>,
    outs: &Bound<'_, PyTuple>,
    stream: Option<usize>,
) -> PyResult<()> {
    let Asked {
        call,
        ordinal,
        device,
        stream: stream_of,
    } = asked(py, index, args, outs, stream)?;
    let planned = plan(py, &call, &device, &stream_of)?;
    // SAFETY: tensors that torch or their library keeps alive, in the order of
    // the stream that they are used in; `call` has their shapes and strides.
    let done = unsafe {
        match stream {
            None => {
                let workspace = workspace(py, planned.workspace(), ordinal, &stream_of)?;
                call.launch_planned(&planned, &stream_of, workspace.address)
            }
            Some(_) => call.launch(&device, &stream_of),
        }
    };
    done.map_err(|e| exception(py, &e))
}

/// A call, its device and the stream that it works in.
pub(crate) struct Asked {
    pub(crate) call: Call,
    pub(crate) ordinal: u32,
    pub(crate) device: Device,
    pub(crate) stream: Stream,
}

/// What arguments of Python's ask for, in the stream of that handle or torch's current one.
pub(crate) fn asked(
    py: Python<'_>,
    index: usize,
    args: &Bound<'_, PyTuple>,
    outs: &Bound<'_, PyTuple>,
    stream: Option<usize>,
) -> PyResult<Asked> {
    let (call, ordinal) = call(py, index, args, outs)?;
    let device = device(ordinal).map_err(|e| exception(py, &e))?;
    let context = device
        .context()
        .ok_or_else(|| exception(py, &Error::NoGpu))?;
    let handle = match stream {
        Some(handle) => handle,
        None => torch::current_stream(py, ordinal)?,
    };
    // SAFETY: the handle is that of a stream of this device: torch's own, or
    // the one that the caller works with.
    let stream = unsafe { Stream::borrowed(context, handle as *mut c_void) };
    Ok(Asked {
        call,
        ordinal,
        device,
        stream,
    })
}

/// Others can run meanwhile where something is to be planned or compiled.
fn plan(py: Python<'_>, call: &Call, device: &Device, stream: &Stream) -> PyResult<Planned> {
    match call.known(device) {
        Some(planned) => Ok(planned),
        None => {
            let planned = py.detach(|| call.plan(device, stream));
            tune::warn(py)?;
            planned.map_err(|e| exception(py, &e))
        }
    }
}

/// The call, and the device that all of its tensors are on.
fn call(
    py: Python<'_>,
    index: usize,
    args: &Bound<'_, PyTuple>,
    outs: &Bound<'_, PyTuple>,
) -> PyResult<(Call, u32)> {
    let op = op(py, index)?;
    let name = op.signature.name;
    let mut place = Place {
        op: name,
        first: None,
    };
    let mut values = Vec::with_capacity(args.len());
    for (param, arg) in op.signature.params.iter().zip(args) {
        values.push(match param.kind {
            Kind::Tensor if arg.is_none() => Value::None,
            Kind::Tensor => Value::Tensor(place.tensor(param.name, &arg)?),
            _ => plain(op, param, &arg)?,
        });
    }
    let mut views = Vec::with_capacity(outs.len());
    for (output, out) in op.signature.outputs.iter().zip(outs) {
        views.push(place.tensor(output.name, &out)?);
    }
    match place.first {
        Some((first, device)) => match u32::try_from(device) {
            Ok(ordinal) => {
                let call = Call::with(index, values, views);
                Ok((call.deterministic(tune::deterministic()), ordinal))
            }
            Err(_) => Err(input(py, format!("{name}: {first} is not on a GPU"))),
        },
        None => Err(input(py, format!("{name}: no tensor was given"))),
    }
}

/// The device of a call: that of its first tensor.
struct Place {
    op: &'static str,
    first: Option<(&'static str, i64)>,
}

impl Place {
    fn tensor(&mut self, name: &'static str, value: &Bound<'_, PyAny>) -> PyResult<TensorView> {
        let (view, device) = match value.cast::<View>() {
            Ok(view) => (view.get().tensor.clone(), view.get().device),
            Err(_) => torch::view(self.op, name, value)?,
        };
        let &mut (first, known) = self.first.get_or_insert((name, device));
        if device == known {
            return Ok(view);
        }
        let text = |n: i64| match n {
            -1 => "the CPU".to_owned(),
            n => format!("cuda:{n}"),
        };
        Err(input(
            value.py(),
            format!(
                "{}: all tensors are on one device, and {first} is on {}, {name} on {}",
                self.op,
                text(known),
                text(device)
            ),
        ))
    }
}

/// Each GPU, opened once and kept open.
fn device(ordinal: u32) -> Result<Device, Error> {
    static OPEN: Mutex<Vec<(u32, Device)>> = Mutex::new(Vec::new());
    let mut open = OPEN.lock().unwrap_or_else(|e| e.into_inner());
    if let Some((_, device)) = open.iter().find(|(n, _)| *n == ordinal) {
        return Ok(device.clone());
    }
    let device = Device::cuda(ordinal)?;
    open.push((ordinal, device.clone()));
    Ok(device)
}
