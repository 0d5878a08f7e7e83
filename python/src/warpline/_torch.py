"""Registers the ops with torch: schemas, implementations, fake implementations, gradients.

Imported as soon as torch is. The op ``softmax`` becomes ``torch.ops.warpline.softmax``,
which allocates its outputs, and ``torch.ops.warpline.softmax_out``, which writes to the
given ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import torch

from . import _composed, _fallback, _host, _integer_cache, _warpline
from ._autograd import differentiate, reject_out
from ._call import tune_needs_gpu
from ._call import torch as _loaded
from ._declared import matmul_shape, Op, OPS, Output
from ._errors import UNSUPPORTED, Error, input_error
from ._fallback import is_strict, recover, reject_overlap, warn
from ._functions import function, parameters

#: Major and minor version of torch.
_TORCH_VERSION = tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2])

#: The torch library; registrations live as long as this object.
_LIBRARY = torch.library.Library("warpline", "DEF")

#: The overloads of each op: functional, out variant.
_OVERLOADS: dict[str, tuple[Any, Any]] = {}

#: Variants of ops that take lists of integers as tensors, by op name.
_LIST_TENSOR_VARIANTS: dict[str, Op] = {}

#: Whether the CPU executor may run for longer than 30 s; ``simulate=True`` sets it.
_LONG_SIMULATION: ContextVar[bool] = ContextVar("warpline_long_simulation", default=False)

# Generated source per op, to minimize the overhead of a call.
_IMPLEMENTED = """\
def {name}({params}):
    if _grad_enabled() and ({grads}):
        return _differentiate(_op, _overloads[{name!r}][0], ({args},))
    {launched}{outs} = {allocate}
    {new_work}
    return {outs}

def {name}_out({params}, *, {outs}):
    if _grad_enabled() and ({grads} or {out_grads}):
        _reject_out(_op)
    {work}
    {written}
"""

#: The body of an implementation, by dispatch key.
_WORK = {
    "CUDA": "_launch({index}, native, ({outs},){new})",
    "CPU": "_simulate(_op, native, ({outs},))",
    "fake": "pass",
}

# A call that was launched before allocates its outputs in the native module.
_LAUNCHED = """\
found = _direct({index}, ({args},), True)
    if found is not None:
        return found
    """

_RECOVERED = """\
native = ({native},)
    try:{require_tf32}
        {work}
    except _Error as error:
        _recover(_op, _run[{key!r}], native, ({outs},), error)"""

#: The families that multiply f32 operands as tf32.
_GEMMS = ("gemm", "linear", "dual-gemm")

_REQUIRE_TF32 = """
        if {}.dtype is _float32:
            _require_tf32(_op)"""

# Modes and tensor subclasses: the op is recorded for its gradient before they see it.
_RECORDED = """\
def {name}(keyset, {params}):
    if _grad_enabled() and ({grads}):
        return _differentiate(_op, _overloads[{name!r}][0], ({args},))
    return _overloads[{name!r}][0].redispatch(keyset & _below_autograd, {args})

def {name}_out(keyset, {params}, *, {outs}):
    if _grad_enabled() and ({grads} or {out_grads}):
        _reject_out(_op)
    return _overloads[{name!r}][1].redispatch(keyset & _below_autograd, {args}, {keyword_outs})
"""

_TRANSFORMED = """\
def {name}({params}):
    return _in_transform(_op, 0, ({args},), {{}})

def {name}_out({params}, *, {outs}):
    return _in_transform(_op, 1, ({args},), {{{named_outs}}})
"""


def register() -> None:
    """Registers every op with torch."""
    dtypes = [(getattr(torch, name), ours) for name, ours in _host.DTYPES.items() if hasattr(torch, name)]
    _warpline.use_torch(torch.Tensor, dtypes, _current_stream, _workspace, _direct_hooks())
    for op in OPS:
        _define(op)
        if op.lists:
            _LIST_TENSOR_VARIANTS[op.name] = op.with_list_tensors()
            _define(_LIST_TENSOR_VARIANTS[op.name])
    _loaded.integer_types = (int, torch.SymInt)
    _loaded.call = _call
    _loaded.direct = _warpline.direct
    _loaded.is_tracing = torch.compiler.is_dynamo_compiling
    _loaded.is_compiling = torch.compiler.is_compiling
    _loaded.is_deterministic = torch.are_deterministic_algorithms_enabled
    _loaded.Tensor = torch.Tensor


def _direct_hooks() -> tuple[list[Any], list[Any], list[Any]] | None:
    """Returns the parts of torch that calls without the dispatcher use: the plain tensor classes, functions
    that return a true value if a call needs the dispatcher, and four others. None in a torch without them."""
    try:
        from torch._C import _functorch

        needs_dispatcher = [
            torch._C._len_torch_dispatch_stack,
            torch._C._len_torch_function_stack,
            _functorch.peek_interpreter_stack,
            torch._C._get_tracing_state,
            # The dispatcher reports the op to the profiler.
            torch.autograd._profiler_enabled,
        ]
        if any(function() for function in needs_dispatcher):
            return None
    except (AttributeError, ImportError):
        return None
    others = [torch.is_grad_enabled, torch.get_float32_matmul_precision, torch.empty, torch.empty_like]
    return [torch.Tensor, torch.nn.Parameter], needs_dispatcher, others


def _define(op: Op) -> None:
    tags = [torch.Tag.needs_fixed_stride_order]
    if op.takes_list_tensors and hasattr(torch.Tag, "cudagraph_unsafe"):
        # It may copy from the GPU, so torch.compile must keep it out of CUDA graphs.
        tags.append(torch.Tag.cudagraph_unsafe)
    for schema in (op.schema, op.out_schema):
        _LIBRARY.define(schema, tags=tuple(tags))
    for key in ("CUDA", "CPU"):
        for name, implementation in _functions(op, _IMPLEMENTED, key):
            _LIBRARY.impl(name, implementation, key)
    for name, implementation in _functions(op, _TRANSFORMED):
        _LIBRARY.impl(name, implementation, _TRANSFORMS)
    for name, implementation in _functions(op, _IMPLEMENTED, "fake"):
        torch.library.register_fake(f"warpline::{name}", implementation, lib=_LIBRARY)
        if _MODES != "Autograd":
            # The implementations record the gradient, so that a call has one dispatch to Python.
            _LIBRARY.impl(name, torch.library.fallthrough_kernel, "Autograd")
    for name, implementation in _functions(op, _RECORDED):
        _LIBRARY.impl(name, implementation, _MODES, with_keyset=True)
    namespace = torch.ops.warpline
    _OVERLOADS[op.torch_name] = (
        getattr(namespace, op.torch_name).default,
        getattr(namespace, f"{op.torch_name}_out").default,
    )


#: The dispatch key of functorch transforms: vmap, grad, jvp.
_TRANSFORMS = "FuncTorchDynamicLayerFrontMode"

#: The dispatch key, before Autograd, of dispatch modes and tensor subclasses. Before torch 2.15 torch's own
#: kernel of that key must run, so the gradient is recorded at Autograd, which costs every call some 2 µs.
_MODES = "PythonTLSSnapshot" if _TORCH_VERSION >= (2, 15) else "Autograd"


def _functions(op: Op, source: str, key: str = "fake") -> list[tuple[str, Callable[..., Any]]]:
    """Compiles the functional and the out variant of an op."""
    outs = [o.name for o in op.outputs]
    common = {
        "index": op.index,
        "args": ", ".join(p.name for p in op.params),
        "outs": ", ".join(outs),
    }
    new_work, work = (_WORK[key].format(**common, new=new) for new in (", None, True", ""))
    if key != "fake":
        require_tf32 = _REQUIRE_TF32.format(op.params[0].name) if op.family in _GEMMS else ""
        recovered = {**common, "native": ", ".join(_values(op)), "key": key, "require_tf32": require_tf32}
        new_work, work = (_RECOVERED.format(**recovered, work=text) for text in (new_work, work))
    text = source.format(
        **common,
        name=op.torch_name,
        params=parameters(op),
        work=work,
        new_work=new_work,
        launched=_LAUNCHED.format(**common) if key == "CUDA" and not op.lists else "",
        keyword_outs=", ".join(f"{name}={name}" for name in outs),
        written="pass" if key == "fake" else f"_mark_written(({common['outs']},))",
        named_outs=", ".join(f"{name!r}: {name}" for name in outs),
        grads=" or ".join(map(_requires_grad, op.tensors)),
        out_grads=" or ".join(f"{name}.requires_grad" for name in outs),
        allocate=", ".join(_allocation(op)),
    )
    names = {
        "_op": op,
        "_grad_enabled": torch.is_grad_enabled,
        "_overloads": _OVERLOADS,
        "_differentiate": differentiate,
        "_reject_out": reject_out,
        "_below_autograd": torch._C._after_autograd_keyset,
        "_Error": Error,
        "_recover": recover,
        "_run": _RUN,
        "_matmul_shape": matmul_shape,
        "_float32": torch.float32,
        "_require_tf32": _require_tf32,
        "_launch": _warpline.launch,
        "_direct": _warpline.direct,
        "_simulate": simulate,
        "_integers": _integer_cache.integers,
        "_mark_written": torch.autograd.graph.increment_version,
        "_in_transform": _in_transform,
        "_out_dtype": _out_dtype,
        "_types": _TYPES,
        "_empty": torch.empty,
        "_empty_like": torch.empty_like,
    }
    return [(name, function(text, name, names)) for name in (op.torch_name, f"{op.torch_name}_out")]


def _values(op: Op) -> list[str]:
    """Returns the arguments of the native module, as source."""
    read = op.lists if op.takes_list_tensors else ()
    return [
        f"_integers(_op, _op.params[{i}], {p.name})" if i in read else p.name
        for i, p in enumerate(op.params)
    ]


def _requires_grad(param: Any) -> str:
    text = f"{param.name}.requires_grad"
    return text if param.required else f"({param.name} is not None and {text})"


def _shape(param: Any) -> str:
    text = f"{param.name}.shape"
    return text if param.required else f"None if {param.name} is None else {text}"


def _allocation(op: Op) -> list[str]:
    """Returns the allocation of each output, as source."""
    allocations = []
    for i, output in enumerate(op.outputs):
        if output.like is not None:
            allocations.append(f"_empty_like({output.like})")
            continue
        like = output.dtype_of
        shapes = ", ".join(f"{p.name!r}: {_shape(p)}" for p in op.tensors)
        shape = f"_op.outputs[{i}].shape({{{shapes}}})"
        match output.dims:
            case ({"mat-mul": [a, b]},):
                # Without a dictionary, as every call computes it.
                shape = f"_matmul_shape({a}.shape, {b}.shape)"
        dtype = f"{like}.dtype"
        if output.fixed_dtype is not None:
            dtype = f"_types[{output.fixed_dtype!r}]"
        elif output.dtype_override is not None:
            dtype = f"_out_dtype(_op, {output.dtype_override}, {like}.dtype)"
        allocations.append(f"_empty({shape}, dtype={dtype}, device={like}.device)")
    return allocations


def _out_dtype(op: Op, name: str | None, like: torch.dtype) -> torch.dtype:
    """Returns the element type of an output: the named one, else that of the operand; bf16 for fp8
    operands, f16 for NVFP4 codes."""
    if name is None:
        if like.itemsize > 1:
            return like
        return torch.float16 if like == torch.uint8 else torch.bfloat16
    dtype = _TYPES.get(name)
    if dtype is None:
        raise input_error(f"{op.name}: unknown element type {name!r}")
    return dtype


#: torch's element types by Warpline's names.
_TYPES = {ours: getattr(torch, name) for name, ours in _host.DTYPES.items() if hasattr(torch, name)}


def _call(
    op: Op,
    args: tuple[Any, ...],
    outs: tuple[Any, ...] | None,
    simulated: bool,
    stream: int | None,
    tune: bool,
) -> Any:
    """Calls an op with at least one torch tensor."""
    if stream is not None:
        raise input_error(f"{op.name}: stream= is not allowed with torch tensors, which use torch's current stream")
    for param, value in zip(op.params, args):
        if param.is_tensor and not isinstance(value, torch.Tensor):
            if value is None and not param.required:
                continue
            kind = type(value).__name__
            raise input_error(f"{op.name}: {param.name} must be a torch tensor like the others, not of type {kind}", "bad-type")
    for out in outs or ():
        if not isinstance(out, torch.Tensor):
            kind = type(out).__name__
            raise input_error(f"{op.name}: out must be a torch tensor like the inputs, not of type {kind}", "bad-type")
    if any(isinstance(args[i], torch.Tensor) for i in op.lists):
        op, args = _with_list_tensors(op, args)
    if tune:
        _tune(op, args, outs)
    if not simulated:
        return _overload(op, args, outs)
    token = _LONG_SIMULATION.set(True)
    try:
        return _overload(op, args, outs)
    finally:
        _LONG_SIMULATION.reset(token)


def _with_list_tensors(op: Op, args: tuple[Any, ...]) -> tuple[Op, tuple[Any, ...]]:
    """Returns the variant that takes lists of integers as tensors, and its arguments. The variant
    reads the tensors when it runs, also in a traced call."""

    def tensor(i: int, value: Any) -> Any:
        if i not in op.lists or isinstance(value, torch.Tensor):
            return value
        numbers = torch.tensor(value, dtype=torch.int64)
        return numbers.reshape(-1, 2) if op.params[i].kind == "pairs" else numbers

    return _LIST_TENSOR_VARIANTS[op.name], tuple(tensor(i, value) for i, value in enumerate(args))


def _tune(op: Op, args: tuple[Any, ...], outs: tuple[Any, ...] | None) -> None:
    """Autotunes the problem of a call; allocates missing outputs only for their layout."""
    if op.takes_list_tensors:
        args = tuple(
            _integer_cache.integers(op, op.params[i], value) if i in op.lists else value for i, value in enumerate(args)
        )
    values = {p.name: value for p, value in zip(op.params, args)}
    tensors = {name: value for name, value in values.items() if isinstance(value, torch.Tensor)}
    if not all(tensor.is_cuda for tensor in tensors.values()):
        raise tune_needs_gpu(op)
    if outs is None:
        outs = tuple(_empty(op, output, values, tensors) for output in op.outputs)
    _fallback.tune(op, args, outs)


def _empty(op: Op, output: Output, values: dict[str, Any], tensors: dict[str, torch.Tensor]) -> torch.Tensor:
    """Allocates an output as the implementations do."""
    if output.like is not None:
        return torch.empty_like(tensors[output.like])
    shape = output.shape({name: tensor.shape for name, tensor in tensors.items()})
    return torch.empty(shape, dtype=_dtype(op, output, values, tensors), device=tensors[output.dtype_of].device)


def _dtype(op: Op, output: Output, values: dict[str, Any], tensors: dict[str, torch.Tensor]) -> torch.dtype:
    """Returns the element type of an output."""
    if output.fixed_dtype is not None:
        return _TYPES[output.fixed_dtype]
    like = tensors[output.dtype_of].dtype
    return like if output.dtype_override is None else _out_dtype(op, values.get(output.dtype_override), like)


def _overload(op: Op, args: tuple[Any, ...], outs: tuple[Any, ...] | None) -> Any:
    """Calls the functional overload of an op, or the out variant if outputs are given."""
    functional, out_variant = _OVERLOADS[op.torch_name]
    if outs is None:
        return functional(*args)
    out_variant(*args, **{output.name: out for output, out in zip(op.outputs, outs)})
    return outs[0] if len(outs) == 1 else outs


def simulate(op: Op, args: tuple[Any, ...], outs: tuple[Any, ...]) -> None:
    """Calls an op on CPU tensors, on the CPU executor."""
    for output, out in zip(op.outputs, outs):
        reject_overlap(op, output.name, out, args)
    values = tuple(
        _native(op, p.name, v, _row_major(v).contiguous()) if isinstance(v, torch.Tensor) else v
        for p, v in zip(op.params, args)
    )
    dense = [torch.empty(_row_major(out).shape, dtype=out.dtype) for out in outs]
    targets = tuple(_native(op, o.name, out, d) for o, out, d in zip(op.outputs, outs, dense))
    _warpline.simulate(op.index, values, targets, _LONG_SIMULATION.get())
    with torch.no_grad():
        for out, result in zip(outs, dense):
            _row_major(out).copy_(result)


def _row_major(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the tensor, or its transpose if the tensor is a transposed row-major one."""
    return tensor.mT if _host.is_transposed(tensor.shape, tensor.stride()) else tensor


def _native(op: Op, name: str, tensor: torch.Tensor, dense: torch.Tensor) -> tuple[Any, ...]:
    """Returns the native module's array: element type, shape, strides, and the bytes of a dense copy."""
    dtype = _host.DTYPES.get(str(tensor.dtype).removeprefix("torch."))
    if dtype is None:
        code = UNSUPPORTED if tensor.dtype == torch.float64 else "bad-problem"
        raise input_error(f"{op.name}: {name} has the unsupported element type {tensor.dtype}", code)
    data = dense.detach().reshape(-1).view(torch.uint8).numpy()
    return dtype, tuple(tensor.shape), tensor.stride(), data


def _require_tf32(op: Op) -> None:
    """Rejects f32 operands unless torch allows tf32 for them."""
    if torch.get_float32_matmul_precision() == "highest":
        raise input_error(
            f"{op.name}: f32 operands are multiplied as tf32, which torch does not allow\n"
            "help: set torch.backends.cuda.matmul.allow_tf32 = True",
            UNSUPPORTED,
        )


def _launch(op: Op, args: tuple[Any, ...], outs: tuple[Any, ...]) -> None:
    """Calls an op on CUDA tensors."""
    _warpline.launch(op.index, args, outs)


#: Runs an op on arguments of the native module, by dispatch key.
_RUN = {"CUDA": _launch, "CPU": simulate}


def _in_transform(op: Op, overload: int, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Calls an op inside a functorch transform: as torch ops if the transform needs it.

    The kernel computes constants of the transform, which are recorded for no gradient.
    """
    from torch._C import _functorch

    is_batched = False

    def unwrapped(value: Any) -> Any:
        nonlocal is_batched
        while isinstance(value, torch.Tensor) and _functorch.is_functorch_wrapped_tensor(value):
            is_batched |= _functorch.is_batchedtensor(value)
            value = _functorch.get_unwrapped(value)
        return value

    constants = tuple(map(unwrapped, args))
    constant_outs = {name: unwrapped(value) for name, value in named.items()}
    if not is_batched and not torch.is_grad_enabled():
        with torch._C._DisableFuncTorch():
            return _OVERLOADS[op.torch_name][overload](*constants, **constant_outs)
    if is_batched:
        error = input_error(
            f"{op.name}: no kernel supports torch.vmap; leading dimensions are batch dimensions"
            " already, so call it on the whole tensor",
            "no-vmap",
        )
    else:
        error = input_error(f"{op.name}: no kernel supports the transforms of torch.func", "no-transform")
    if overload or is_strict():
        raise error
    _fallback.reject_batch_invariant(op, args, error)
    warn(op, (error.code,), str(error))
    tensors = {p.name: value for p, value in zip(op.params, args) if isinstance(value, torch.Tensor)}
    values = {p.name: value for p, value in zip(op.params, args)}
    found = _composed.call(op.name, tuple(_dtype(op, o, values, tensors) for o in op.outputs), args)
    return found[0] if len(found) == 1 else found


def _current_stream(device: int) -> int:
    return torch.cuda.current_stream(device).cuda_stream


_current_stream = getattr(torch._C, "_cuda_getCurrentRawStream", _current_stream)


def _workspace(nbytes: int, device: int) -> torch.Tensor:
    """Allocates a zeroed workspace."""
    return torch.zeros(nbytes, dtype=torch.uint8, device=f"cuda:{device}")
