//! Calls on torch tensors that skip torch's dispatcher.
//!
//! A call of an eager program needs none of it: no mode, no transform, no trace, no gradient. Then
//! [`direct`] reads the tensors, allocates the outputs and launches, from one native function.
//! Everything else, and the first call of its kind, takes the dispatcher.

use crate::arguments::op;
use crate::torch::{self, Torch};
use crate::tune;
use crate::workspace::workspace;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use warpline::cuda::Stream;
use warpline::ops::{AnyOp, CallKey, PlannedCall};
use warpline::{DType, Device};
use warpline_kernels::op::{DefaultValue, OpOutput, OpParamKind, OutputDim};

/// The capacity of the cache. A full cache is cleared.
const MAX_CALLS: usize = 4096;

/// The families that multiply f32 operands as tf32.
const GEMMS: [&str; 3] = ["gemm", "linear", "dual-gemm"];

/// The parts of torch that a direct call uses.
pub(crate) struct Hooks {
    /// The classes of plain tensors. Other subclasses have their own behavior.
    pub(crate) classes: Vec<Py<PyAny>>,
    /// Functions that return a true value if a call must take the dispatcher.
    pub(crate) needs_dispatcher: Vec<Py<PyAny>>,
    pub(crate) is_grad_enabled: Py<PyAny>,
    pub(crate) float32_precision: Py<PyAny>,
    pub(crate) empty: Py<PyAny>,
    pub(crate) empty_like: Py<PyAny>,
}

/// A call that was launched before: its plan and its outputs.
struct DirectCall {
    device: Device,
    planned: PlannedCall,
    outputs: Vec<NewOutput>,
}

/// The allocation of an output.
enum NewOutput {
    /// As `torch.empty_like` of an argument.
    Like(usize),
    /// As `new_empty` of an argument, with this shape; cheaper than `torch.empty`.
    Shaped { of: usize, shape: Py<PyTuple> },
    /// As `torch.empty` with another element type than every argument: its arguments.
    Converted {
        shape: Py<PyTuple>,
        options: Py<PyDict>,
    },
}

/// The direct calls by the key of their arguments and the GPU.
static CALLS: LazyLock<Mutex<HashMap<Vec<u64>, Arc<DirectCall>>>> = LazyLock::new(Mutex::default);

thread_local! {
    /// Refilled by every call, so that a call does not allocate.
    static KEY: Cell<CallKey> = Cell::default();
    /// Whether the last call of this thread could be direct, but is not in the cache.
    static IS_WANTED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a function with this thread's key.
pub(crate) fn with_key<T>(run: impl FnOnce(&mut CallKey) -> T) -> T {
    // Taken, because torch may run Python code, which may call an op.
    let mut key = KEY.take();
    let result = run(&mut key);
    KEY.set(key);
    result
}

/// Launches an op on torch tensors without torch's dispatcher, and returns its outputs. Returns
/// `None` if the call must take the dispatcher. `dispatched` states that the dispatcher calls.
#[pyfunction]
#[pyo3(signature = (index, args, dispatched=false))]
pub(crate) fn direct<'py>(
    py: Python<'py>,
    index: usize,
    args: &Bound<'py, PyTuple>,
    dispatched: bool,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let torch = torch::torch(py)?;
    let Some(hooks) = &torch.hooks else {
        return Ok(None);
    };
    if !dispatched && hooks.must_dispatch(args)? {
        return Ok(None);
    }
    with_key(|key| {
        let op = op(py, index)?;
        let Some(ordinal) = read_args(key, index, op, args, torch, hooks)? else {
            return Ok(None);
        };
        key.integer(i64::from(ordinal));
        let found = lock_calls().get(key.words()).cloned();
        match found.filter(|call| call.planned.is_current()) {
            Some(call) => call.launch(key, ordinal, args, torch, hooks),
            None => {
                IS_WANTED.set(true);
                Ok(None)
            }
        }
    })
}

impl Hooks {
    /// Returns whether an eager call needs the dispatcher: a mode, a transform, a trace, the profiler
    /// or a gradient.
    fn must_dispatch(&self, args: &Bound<'_, PyTuple>) -> PyResult<bool> {
        let py = args.py();
        for function in &self.needs_dispatcher {
            if function.bind(py).call0()?.is_truthy()? {
                return Ok(true);
            }
        }
        if self.is_grad_enabled.bind(py).call0()?.is_truthy()? {
            for arg in args.iter_borrowed() {
                let name = intern!(py, "requires_grad");
                if self.is_plain(&arg) && arg.getattr(name)?.is_truthy()? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Returns whether an object is a plain tensor.
    fn is_plain(&self, object: &Bound<'_, PyAny>) -> bool {
        let class = object.get_type();
        self.classes.iter().any(|plain| class.is(plain))
    }
}

impl DirectCall {
    fn launch<'py>(
        &self,
        key: &mut CallKey,
        ordinal: u32,
        args: &Bound<'py, PyTuple>,
        torch: &Torch,
        hooks: &Hooks,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = args.py();
        let (Some(exchange), Some(context)) = (&torch.exchange, self.device.context()) else {
            return Ok(None);
        };
        let mut outs = Vec::with_capacity(self.outputs.len());
        for output in &self.outputs {
            let out = match output {
                NewOutput::Like(i) => hooks.empty_like.bind(py).call1((args.get_item(*i)?,))?,
                NewOutput::Shaped { of, shape } => args
                    .get_item(*of)?
                    .call_method1(intern!(py, "new_empty"), (shape.bind(py),))?,
                NewOutput::Converted { shape, options } => {
                    let options = options.bind(py);
                    (hooks.empty.bind(py)).call((shape.bind(py),), Some(options))?
                }
            };
            // SAFETY: torch's functions return torch tensors.
            let raw = unsafe { exchange.raw(&out) };
            match raw.map(|raw| raw.address()) {
                Some(address) if address.is_multiple_of(16) => key.implied_output(address),
                _ => return Ok(None),
            }
            outs.push(out);
        }
        let handle = torch::current_stream(py, ordinal)?;
        // SAFETY: the handle is torch's current stream of this device.
        let stream = unsafe { Stream::from_raw(context, handle as *mut c_void) };
        launch_planned(py, &self.planned, key, ordinal, &stream)?;
        Ok(Some(match outs.len() {
            1 => outs.remove(0),
            _ => PyTuple::new(py, outs)?.into_any(),
        }))
    }
}

/// Launches a plan at the addresses of a key, which overlap nothing.
pub(crate) fn launch_planned(
    py: Python<'_>,
    planned: &PlannedCall,
    key: &mut CallKey,
    ordinal: u32,
    stream: &Stream,
) -> PyResult<()> {
    let workspace = workspace(py, planned.workspace(), ordinal, stream)?;
    key.set_workspace(workspace.address);
    // SAFETY: torch keeps the tensors alive in stream order, the key has their shapes and strides,
    // and the workspace belongs to the stream.
    let launched = unsafe { planned.launch_at(stream, key.addresses()) };
    launched.map_err(|e| crate::errors::exception(py, &e))
}

/// Starts a key with the arguments of a call; returns the index of their GPU. Returns `None` for
/// arguments that only the dispatcher handles.
fn read_args(
    key: &mut CallKey,
    index: usize,
    op: &AnyOp,
    args: &Bound<'_, PyTuple>,
    torch: &Torch,
    hooks: &Hooks,
) -> PyResult<Option<u32>> {
    if args.len() != op.signature.params.len() {
        return Ok(None);
    }
    key.begin(index, tune::deterministic());
    let mut gpu = None;
    for (param, arg) in op.signature.params.iter().zip(args.iter_borrowed()) {
        let is_read = match param.kind {
            _ if arg.is_none() && param.default == Some(DefaultValue::Nothing) => {
                key.none();
                true
            }
            OpParamKind::Tensor => {
                let is_first = gpu.is_none();
                let Some(dtype) = read_tensor(key, &mut gpu, &arg, true, torch, hooks) else {
                    return Ok(None);
                };
                let is_tf32 = is_first && dtype == DType::F32 && GEMMS.contains(&op.family);
                !is_tf32 || hooks.allows_tf32(arg.py())?
            }
            OpParamKind::Number => arg.extract().map(|x| key.number(x)).is_ok(),
            OpParamKind::Integer => arg.extract().map(|n| key.integer(n)).is_ok(),
            OpParamKind::Flag => arg.extract().map(|flag| key.flag(flag)).is_ok(),
            OpParamKind::Pair => arg.extract().map(|pair: [i64; 2]| key.pair(pair)).is_ok(),
            OpParamKind::Text => read_text(key, &arg),
            OpParamKind::Type => match torch.dtype(&arg) {
                Some(dtype) => {
                    key.text(dtype.name());
                    true
                }
                None => read_text(key, &arg),
            },
            OpParamKind::Integers | OpParamKind::Pairs => false,
        };
        if !is_read {
            return Ok(None);
        }
    }
    Ok(gpu)
}

/// Reads the arguments and outputs of a call that the dispatcher has handled. Returns the index of
/// their GPU, or `None` if a tensor is none of torch's.
pub(crate) fn read_call(
    key: &mut CallKey,
    index: usize,
    op: &AnyOp,
    args: &Bound<'_, PyTuple>,
    outs: &Bound<'_, PyTuple>,
) -> PyResult<Option<u32>> {
    let Some(torch) = torch::imported(args.py()) else {
        return Ok(None);
    };
    let Some(hooks) = &torch.hooks else {
        return Ok(None);
    };
    let Some(ordinal) = read_args(key, index, op, args, torch, hooks)? else {
        return Ok(None);
    };
    let mut gpu = Some(ordinal);
    for out in outs.iter_borrowed() {
        if read_tensor(key, &mut gpu, &out, false, torch, hooks).is_none() {
            return Ok(None);
        }
    }
    Ok(gpu)
}

/// Appends a tensor to a key; returns its element type. Returns `None` for a tensor that only the
/// dispatcher handles, or of another GPU.
fn read_tensor(
    key: &mut CallKey,
    gpu: &mut Option<u32>,
    tensor: &Bound<'_, PyAny>,
    is_input: bool,
    torch: &Torch,
    hooks: &Hooks,
) -> Option<DType> {
    if !hooks.is_plain(tensor) {
        return None;
    }
    // SAFETY: a plain tensor is an instance of torch's tensor class.
    let raw = unsafe { torch.exchange.as_ref()?.raw(tensor) }?;
    let (dtype, ordinal) = raw.on_gpu()?;
    // SAFETY: filled in by torch; the tensor does not change before the last use.
    let (shape, strides) = unsafe { raw.layout() }?;
    if *gpu.get_or_insert(ordinal) != ordinal {
        return None;
    }
    let extents = shape.iter().map(|&n| n.max(0) as u64);
    let steps = strides.iter().copied();
    if is_input {
        key.input(dtype, extents, steps, raw.address());
    } else {
        key.output(dtype, extents, steps, raw.address());
    }
    // The imaginary part of a conjugate is a view that torch negates lazily. All its strides are
    // even, so that most tensors need no call into torch.
    let mut dims = shape.iter().zip(strides);
    let may_be_negated = dims.all(|(&n, &stride)| n <= 1 || stride % 2 == 0);
    if may_be_negated {
        let is_neg = tensor.call_method0(intern!(tensor.py(), "is_neg")).ok()?;
        if is_neg.is_truthy().ok()? {
            return None;
        }
    }
    Some(dtype)
}

fn read_text(key: &mut CallKey, value: &Bound<'_, PyAny>) -> bool {
    let text = value.cast::<PyString>();
    text.is_ok_and(|text| text.to_str().map(|text| key.text(text)).is_ok())
}

impl Hooks {
    fn allows_tf32(&self, py: Python<'_>) -> PyResult<bool> {
        let precision = self.float32_precision.bind(py).call0()?;
        Ok(!precision.eq(intern!(py, "highest"))?)
    }
}

/// Makes later calls with these arguments direct, if the last direct call of this thread asked for
/// it. The outputs have the layout that the op allocates.
pub(crate) fn remember(
    index: usize,
    op: &'static AnyOp,
    args: &Bound<'_, PyTuple>,
    outs: &Bound<'_, PyTuple>,
    device: &Device,
    planned: &PlannedCall,
) -> PyResult<()> {
    let py = args.py();
    let Some(torch) = torch::imported(py).filter(|_| IS_WANTED.take()) else {
        return Ok(());
    };
    let Some(hooks) = &torch.hooks else {
        return Ok(());
    };
    let mut outputs = Vec::with_capacity(outs.len());
    for (output, out) in op.signature.outputs.iter().zip(outs) {
        outputs.push(new_output(op, output, args, &out)?);
    }
    let key = with_key(|key| -> PyResult<_> {
        let ordinal = read_args(key, index, op, args, torch, hooks)?;
        Ok(ordinal.map(|ordinal| {
            key.integer(i64::from(ordinal));
            key.words().to_vec()
        }))
    })?;
    if let Some(key) = key {
        let call = DirectCall {
            device: device.clone(),
            planned: planned.clone(),
            outputs,
        };
        let mut calls = lock_calls();
        if calls.len() >= MAX_CALLS {
            calls.clear();
        }
        calls.insert(key, Arc::new(call));
    }
    Ok(())
}

/// Returns the allocation of an output, as `warpline._torch` does.
fn new_output(
    op: &AnyOp,
    output: &OpOutput,
    args: &Bound<'_, PyTuple>,
    out: &Bound<'_, PyAny>,
) -> PyResult<NewOutput> {
    let py = out.py();
    match (output.dims, output.dtype_override) {
        (&[OutputDim::All(name)], None)
            if name == output.dtype_of && output.fixed_dtype.is_none() =>
        {
            Ok(NewOutput::Like(op.signature.position(name).unwrap_or(0)))
        }
        _ => {
            let shape: Vec<i64> = out.getattr(intern!(py, "shape"))?.extract()?;
            let shape = PyTuple::new(py, shape)?.unbind();
            let dtype = out.getattr(intern!(py, "dtype"))?;
            let of = op.signature.position(output.dtype_of).unwrap_or(0);
            let like = args.get_item(of)?;
            if like.getattr(intern!(py, "dtype"))?.is(&dtype) {
                return Ok(NewOutput::Shaped { of, shape });
            }
            let options = PyDict::new(py);
            options.set_item("dtype", dtype)?;
            options.set_item("device", out.getattr(intern!(py, "device"))?)?;
            Ok(NewOutput::Converted {
                shape,
                options: options.unbind(),
            })
        }
    }
}

fn lock_calls() -> std::sync::MutexGuard<'static, HashMap<Vec<u64>, Arc<DirectCall>>> {
    CALLS.lock().unwrap_or_else(PoisonError::into_inner)
}
