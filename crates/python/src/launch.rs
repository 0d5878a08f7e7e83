//! Calls on a GPU.

use crate::arguments::{convert_value, op};
use crate::direct;
use crate::errors::{exception, input_error};
use crate::torch;
use crate::tune;
use crate::view::View;
use crate::workspace::workspace;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::ffi::c_void;
use std::sync::Mutex;
use warpline::cuda::Stream;
use warpline::ops::{ArgValue, Call, PlannedCall, TensorView};
use warpline::{Device, Error};
use warpline_kernels::op::OpParamKind;

/// Launches an op on a stream: the given one, else torch's current one.
///
/// Tensors are torch tensors, or a `View` of another library's arrays. Does not synchronize. `new`
/// states that the op allocated the outputs.
#[pyfunction]
#[pyo3(signature = (index, args, outs, stream=None, new=false))]
pub(crate) fn launch(
    py: Python<'_>,
    index: usize,
    args: &Bound<'_, PyTuple>,
    outs: &Bound<'_, PyTuple>,
    stream: Option<usize>,
    new: bool,
) -> PyResult<()> {
    let cached = match stream {
        None => launch_cached(py, index, args, outs)?,
        Some(_) => None,
    };
    let (device, planned) = match cached {
        Some(launched) => launched,
        None => launch_call(py, index, args, outs, stream)?,
    };
    match new {
        true => direct::remember(index, op(py, index)?, args, outs, &device, &planned),
        false => Ok(()),
    }
}

/// Launches a call whose plan is cached on torch's current stream; returns its device and its plan.
/// Returns `None` for every other call.
fn launch_cached(
    py: Python<'_>,
    index: usize,
    args: &Bound<'_, PyTuple>,
    outs: &Bound<'_, PyTuple>,
) -> PyResult<Option<(Device, PlannedCall)>> {
    direct::with_key(|key| {
        let Some(ordinal) = direct::read_call(key, index, op(py, index)?, args, outs)? else {
            return Ok(None);
        };
        // A GPU that cannot be opened is reported after bad input.
        let Ok(device) = open_device(ordinal) else {
            return Ok(None);
        };
        let (Some(planned), Some(context)) = (PlannedCall::cached(key, &device), device.context())
        else {
            return Ok(None);
        };
        if planned.overlaps(key.addresses()) {
            return Ok(None);
        }
        let handle = torch::current_stream(py, ordinal)?;
        // SAFETY: the handle is torch's current stream of this device.
        let stream = unsafe { Stream::from_raw(context, handle as *mut c_void) };
        direct::launch_planned(py, &planned, key, ordinal, &stream)?;
        Ok(Some((device, planned)))
    })
}

/// Launches any call; returns its device and its plan.
fn launch_call(
    py: Python<'_>,
    index: usize,
    args: &Bound<'_, PyTuple>,
    outs: &Bound<'_, PyTuple>,
    stream: Option<usize>,
) -> PyResult<(Device, PlannedCall)> {
    let LaunchRequest {
        call,
        ordinal,
        device,
        stream: call_stream,
    } = launch_request(py, index, args, outs, stream)?;
    let planned = plan(py, &call, &device, &call_stream)?;
    // SAFETY: torch or the other library keeps the tensors alive in stream order, and `call`
    // has their shapes and strides.
    let result = unsafe {
        match stream {
            None => {
                let workspace = workspace(py, planned.workspace(), ordinal, &call_stream)?;
                call.launch_planned(&planned, &call_stream, workspace.address)
            }
            Some(_) => call.launch(&device, &call_stream),
        }
    };
    result.map_err(|e| exception(py, &e))?;
    Ok((device, planned))
}

/// A call, its device and its stream.
pub(crate) struct LaunchRequest {
    pub(crate) call: Call,
    pub(crate) ordinal: u32,
    pub(crate) device: Device,
    pub(crate) stream: Stream,
}

/// Converts Python arguments to a call on the given stream, else torch's current one.
pub(crate) fn launch_request(
    py: Python<'_>,
    index: usize,
    args: &Bound<'_, PyTuple>,
    outs: &Bound<'_, PyTuple>,
    stream: Option<usize>,
) -> PyResult<LaunchRequest> {
    let (call, ordinal) = convert_call(py, index, args, outs)?;
    let device = open_device(ordinal).map_err(|unusable| {
        // Bad input is reported before a GPU that no kernel supports.
        exception(py, &call.check().err().unwrap_or(unusable))
    })?;
    let context = device
        .context()
        .ok_or_else(|| exception(py, &Error::NoGpu))?;
    let handle = match stream {
        Some(handle) => handle,
        None => torch::current_stream(py, ordinal)?,
    };
    // SAFETY: the handle is a stream of this device: torch's, or the caller's.
    let stream = unsafe { Stream::from_raw(context, handle as *mut c_void) };
    Ok(LaunchRequest {
        call,
        ordinal,
        device,
        stream,
    })
}

/// Returns the plan of a call; releases the GIL while it plans or compiles.
fn plan(py: Python<'_>, call: &Call, device: &Device, stream: &Stream) -> PyResult<PlannedCall> {
    match call.cached_plan(device) {
        Some(planned) => Ok(planned),
        None => {
            let planned = py.detach(|| call.plan(device, stream));
            tune::warn(py)?;
            planned.map_err(|e| exception(py, &e))
        }
    }
}

/// Returns the call and the device of all its tensors.
fn convert_call(
    py: Python<'_>,
    index: usize,
    args: &Bound<'_, PyTuple>,
    outs: &Bound<'_, PyTuple>,
) -> PyResult<(Call, u32)> {
    let op = op(py, index)?;
    let name = op.signature.name;
    let mut device = CallDevice {
        op: name,
        first: None,
    };
    let mut values = Vec::with_capacity(args.len());
    for (param, arg) in op.signature.params.iter().zip(args) {
        values.push(match param.kind {
            OpParamKind::Tensor if arg.is_none() => ArgValue::None,
            OpParamKind::Tensor => ArgValue::Tensor(device.tensor(param.name, &arg)?),
            _ => convert_value(op, param, &arg)?,
        });
    }
    let mut views = Vec::with_capacity(outs.len());
    for (output, out) in op.signature.outputs.iter().zip(outs) {
        views.push(device.tensor(output.name, &out)?);
    }
    match device.first {
        Some((first, device)) => match u32::try_from(device) {
            Ok(ordinal) => {
                let call = Call::with(index, values, views);
                Ok((call.deterministic(tune::deterministic()), ordinal))
            }
            Err(_) => Err(input_error(py, format!("{name}: {first} is not on a GPU"))),
        },
        None => Err(input_error(py, format!("{name}: no tensor given"))),
    }
}

/// The device of a call, which is the device of its first tensor.
struct CallDevice {
    op: &'static str,
    first: Option<(&'static str, i64)>,
}

impl CallDevice {
    fn tensor(&mut self, name: &'static str, value: &Bound<'_, PyAny>) -> PyResult<TensorView> {
        let (view, device) = match value.cast::<View>() {
            Ok(view) => (view.get().tensor.clone(), view.get().device),
            Err(_) => torch::view(self.op, name, value)?,
        };
        let &mut (first, known) = self.first.get_or_insert((name, device));
        if device == known {
            return Ok(view);
        }
        let device_name = |n: i64| match n {
            -1 => "the CPU".to_owned(),
            n => format!("cuda:{n}"),
        };
        Err(input_error(
            value.py(),
            format!(
                "{}: all tensors must be on one device, but {first} is on {} and {name} is on {}",
                self.op,
                device_name(known),
                device_name(device)
            ),
        ))
    }
}

/// Opens a GPU once and keeps it open.
fn open_device(ordinal: u32) -> Result<Device, Error> {
    static DEVICES: Mutex<Vec<(u32, Device)>> = Mutex::new(Vec::new());
    let mut devices = DEVICES.lock().unwrap_or_else(|e| e.into_inner());
    if let Some((_, device)) = devices.iter().find(|(n, _)| *n == ordinal) {
        return Ok(device.clone());
    }
    let device = Device::cuda(ordinal)?;
    devices.push((ordinal, device.clone()));
    Ok(device)
}
