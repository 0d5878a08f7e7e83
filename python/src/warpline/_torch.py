"""The ops as ops of torch: schemas, implementations, fake implementations.

Imported once torch is. An op of the name ``softmax`` becomes
``torch.ops.warpline.softmax``, which makes its outputs, and
``torch.ops.warpline.softmax_out``, which writes those it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import torch

from . import _host, _known, _warpline
from ._call import not_on_a_gpu
from ._call import torch as _loaded
from ._declared import Op, OPS, Output
from ._errors import refuse
from ._functions import function, parameters

#: The library of ops; what is registered lives as long as it does.
_LIBRARY = torch.library.Library("warpline", "DEF")

#: The overloads of each op: new outputs, given outputs.
_OVERLOADS: dict[str, tuple[Any, Any]] = {}

#: Ops that take integers which the host must know, by tensors.
_BY_TENSORS: dict[str, Op] = {}

#: May the simulator work for long? Set around calls that were told so.
_FOR_LONG: ContextVar[bool] = ContextVar("warpline_for_long", default=False)

# Written out for each op, so that a call costs as little as it can.
_IMPLEMENTED = """\
def {name}({params}):
    if _grad_enabled() and ({grads}):
        _refuse_grad(_op)
    {outs} = {allocate}
    {work}
    return {outs}

def {name}_out({params}, *, {outs}):
    if _grad_enabled() and ({grads} or {out_grads}):
        _refuse_grad(_op)
    {work}
    {written}
"""

#: What an implementation does between its outputs being there and being given back, by where.
_WORK = {
    "CUDA": "_launch({index}, ({args},), ({outs},))",
    "CPU": "_simulate(_op, ({args},), ({outs},))",
    "fake": "pass",
}

_TRANSFORMED = """\
def {name}({params}):
    return _untransformed(_op, 0, ({args},), {{}})

def {name}_out({params}, *, {outs}):
    return _untransformed(_op, 1, ({args},), {{{named_outs}}})
"""


def register() -> None:
    """Registers every op with torch."""
    dtypes = [(getattr(torch, name), ours) for name, ours in _host.DTYPES.items() if hasattr(torch, name)]
    _warpline.use_torch(torch.Tensor, dtypes, _current_stream, _workspace)
    for op in OPS:
        _define(op)
        if op.lists:
            _BY_TENSORS[op.name] = op.with_tensors()
            _define(_BY_TENSORS[op.name])
    _loaded.whole = (int, torch.SymInt)
    _loaded.call = _call
    _loaded.is_compiling = torch.compiler.is_compiling
    _loaded.is_deterministic = torch.are_deterministic_algorithms_enabled
    _loaded.Tensor = torch.Tensor


def _define(op: Op) -> None:
    tags = [torch.Tag.needs_fixed_stride_order]
    if op.by_tensors and hasattr(torch.Tag, "cudagraph_unsafe"):
        # It may read them from the GPU: compiled code leaves it out of its graphs.
        tags.append(torch.Tag.cudagraph_unsafe)
    for schema in (op.schema, op.out_schema):
        _LIBRARY.define(schema, tags=tuple(tags))
    for key in ("CUDA", "CPU"):
        for name, made in _functions(op, _IMPLEMENTED, key):
            _LIBRARY.impl(name, made, key)
    for name, made in _functions(op, _TRANSFORMED):
        _LIBRARY.impl(name, made, _TRANSFORMS)
    for name, made in _functions(op, _IMPLEMENTED, "fake"):
        torch.library.register_fake(f"warpline::{name}", made, lib=_LIBRARY)
        # Nothing to differentiate: what requires grad is refused by the implementations.
        _LIBRARY.impl(name, torch.library.fallthrough_kernel, "Autograd")
    namespace = torch.ops.warpline
    _OVERLOADS[op.registered] = (
        getattr(namespace, op.registered).default,
        getattr(namespace, f"{op.registered}_out").default,
    )


#: Where torch asks first while a function is transformed: vmap, grad, jvp.
_TRANSFORMS = "FuncTorchDynamicLayerFrontMode"


def _functions(op: Op, source: str, where: str = "fake") -> list[tuple[str, Callable[..., Any]]]:
    """The two functions of a source for an op."""
    outs = [o.name for o in op.outputs]
    common = {
        "index": op.index,
        "args": ", ".join(p.name for p in op.params),
        "outs": ", ".join(outs),
    }
    text = source.format(
        **common,
        name=op.registered,
        params=parameters(op),
        work=_WORK[where].format(**{**common, "args": ", ".join(_values(op))}),
        written="pass" if where == "fake" else f"_written(({common['outs']},))",
        named_outs=", ".join(f"{name!r}: {name}" for name in outs),
        grads=" or ".join(map(_requires_grad, op.tensors)),
        out_grads=" or ".join(f"{name}.requires_grad" for name in outs),
        allocate=", ".join(_allocation(op)),
    )
    names = {
        "_op": op,
        "_grad_enabled": torch.is_grad_enabled,
        "_refuse_grad": _refuse_grad,
        "_launch": _warpline.launch,
        "_simulate": simulate,
        "_integers": _known.integers,
        "_written": torch.autograd.graph.increment_version,
        "_untransformed": _untransformed,
        "_out_dtype": _out_dtype,
        "_empty": torch.empty,
        "_empty_like": torch.empty_like,
    }
    return [(name, function(text, name, names)) for name in (op.registered, f"{op.registered}_out")]


def _values(op: Op) -> list[str]:
    """The arguments as the native part takes them, as source."""
    read = op.lists if op.by_tensors else ()
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
    """What makes each output, as source."""
    made = []
    for i, output in enumerate(op.outputs):
        if output.like is not None:
            made.append(f"_empty_like({output.like})")
            continue
        like = output.dtype_of
        shapes = ", ".join(f"{p.name!r}: {_shape(p)}" for p in op.tensors)
        shape = f"_op.outputs[{i}].shape({{{shapes}}})"
        dtype = f"{like}.dtype" if output.dtype_by is None else f"_out_dtype(_op, {output.dtype_by}, {like}.dtype)"
        made.append(f"_empty({shape}, dtype={dtype}, device={like}.device)")
    return made


def _out_dtype(op: Op, name: str | None, like: torch.dtype) -> torch.dtype:
    """The type of an output: the named one, or that of a factor, bf16 for fp8, f16 for codes."""
    if name is None:
        if like.itemsize > 1:
            return like
        return torch.float16 if like == torch.uint8 else torch.bfloat16
    dtype = _TYPES.get(name)
    if dtype is None:
        raise refuse(f"{op.name}: there is no element type {name!r}")
    return dtype


#: Torch's element types by our names.
_TYPES = {ours: getattr(torch, name) for name, ours in _host.DTYPES.items() if hasattr(torch, name)}


def _call(
    op: Op,
    args: tuple[Any, ...],
    outs: tuple[Any, ...] | None,
    simulated: bool,
    stream: int | None,
    tune: bool,
) -> Any:
    """Calls an op where one of its tensors is torch's."""
    if stream is not None:
        raise refuse(f"{op.name}: torch tensors run in torch's current stream, so stream= is not taken")
    for param, value in zip(op.params, args):
        if param.is_tensor and not isinstance(value, torch.Tensor):
            if value is None and not param.required:
                continue
            kind = type(value).__name__
            raise refuse(f"{op.name}: {param.name} is a torch tensor as the others are, not of type {kind}", "bad-type")
    for out in outs or ():
        if not isinstance(out, torch.Tensor):
            kind = type(out).__name__
            raise refuse(f"{op.name}: out is a torch tensor as the inputs are, not of type {kind}", "bad-type")
    if any(isinstance(args[i], torch.Tensor) for i in op.lists):
        op, args = _by_tensors(op, args)
    if tune:
        _tune(op, args, outs)
    if not simulated:
        return _overload(op, args, outs)
    token = _FOR_LONG.set(True)
    try:
        return _overload(op, args, outs)
    finally:
        _FOR_LONG.reset(token)


def _by_tensors(op: Op, args: tuple[Any, ...]) -> tuple[Op, tuple[Any, ...]]:
    """The op that takes integers by tensors, and these: it reads them when it runs, also where
    the call is traced."""

    def tensor(i: int, value: Any) -> Any:
        if i not in op.lists or isinstance(value, torch.Tensor):
            return value
        made = torch.tensor(value, dtype=torch.int64)
        return made.reshape(-1, 2) if op.params[i].kind == "pairs" else made

    return _BY_TENSORS[op.name], tuple(tensor(i, value) for i, value in enumerate(args))


def _tune(op: Op, args: tuple[Any, ...], outs: tuple[Any, ...] | None) -> None:
    """Tunes the problem of a call; what would come out is made for its layout alone."""
    if op.by_tensors:
        args = tuple(
            _known.integers(op, op.params[i], value) if i in op.lists else value for i, value in enumerate(args)
        )
    values = {p.name: value for p, value in zip(op.params, args)}
    tensors = {name: value for name, value in values.items() if isinstance(value, torch.Tensor)}
    if not all(tensor.is_cuda for tensor in tensors.values()):
        raise not_on_a_gpu(op)
    if outs is None:
        outs = tuple(_empty(op, output, values, tensors) for output in op.outputs)
    _warpline.tune(op.index, args, outs)


def _empty(op: Op, output: Output, values: dict[str, Any], tensors: dict[str, torch.Tensor]) -> torch.Tensor:
    """An output as the implementations make it."""
    if output.like is not None:
        return torch.empty_like(tensors[output.like])
    like = tensors[output.dtype_of]
    shape = output.shape({name: tensor.shape for name, tensor in tensors.items()})
    named = None if output.dtype_by is None else values.get(output.dtype_by)
    dtype = like.dtype if output.dtype_by is None else _out_dtype(op, named, like.dtype)
    return torch.empty(shape, dtype=dtype, device=like.device)


def _overload(op: Op, args: tuple[Any, ...], outs: tuple[Any, ...] | None) -> Any:
    """Calls the overload of an op that makes its outputs, or the one that writes these."""
    functional, out_variant = _OVERLOADS[op.registered]
    if outs is None:
        return functional(*args)
    out_variant(*args, **{output.name: out for output, out in zip(op.outputs, outs)})
    return outs[0] if len(outs) == 1 else outs


def simulate(op: Op, args: tuple[Any, ...], outs: tuple[Any, ...]) -> None:
    """Calls an op on tensors of the CPU, through the simulator."""
    for output, out in zip(op.outputs, outs):
        for param, value in zip(op.params, args):
            if isinstance(value, torch.Tensor) and _share(out, value):
                raise refuse(
                    f"{op.name}: {output.name} shares memory with {param.name}, and an output must lie apart"
                )
    values = tuple(
        _native(op, p.name, v, _upright(v).contiguous()) if isinstance(v, torch.Tensor) else v
        for p, v in zip(op.params, args)
    )
    dense = [torch.empty(_upright(out).shape, dtype=out.dtype) for out in outs]
    targets = tuple(_native(op, o.name, out, d) for o, out, d in zip(op.outputs, outs, dense))
    _warpline.simulate(op.index, values, targets, _FOR_LONG.get())
    with torch.no_grad():
        for out, made in zip(outs, dense):
            _upright(out).copy_(made)


def _upright(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or its transpose where it lies as that."""
    return tensor.mT if _host.turned(tensor.shape, tensor.stride()) else tensor


def _share(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Do two tensors of the CPU lie in the same memory?"""
    if a.numel() == 0 or b.numel() == 0:
        return False
    reach = [
        (t.data_ptr(), t.data_ptr() + t.element_size() * (1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride()))))
        for t in (a, b)
    ]
    return reach[0][0] < reach[1][1] and reach[1][0] < reach[0][1]


def _native(op: Op, name: str, tensor: torch.Tensor, dense: torch.Tensor) -> tuple[Any, ...]:
    """A tensor of the CPU, and a dense copy, as the native part takes it."""
    dtype = _host.DTYPES.get(str(tensor.dtype).removeprefix("torch."))
    if dtype is None:
        raise refuse(f"{op.name}: {name} has elements of type {tensor.dtype}, which no kernel takes")
    octets = dense.detach().reshape(-1).view(torch.uint8).numpy()
    return dtype, tuple(tensor.shape), tensor.stride(), octets


def _refuse_grad(op: Op) -> None:
    raise refuse(
        f"{op.name}: only the forward exists, and a tensor requires grad: call it under"
        " torch.no_grad(), or on detached tensors",
        "no-grad",
    )


def _untransformed(op: Op, which: int, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Under vmap and the like: refused, unless nothing is to be differentiated."""
    from torch._C import _functorch

    def unwrapped(value: Any) -> Any:
        while isinstance(value, torch.Tensor) and _functorch.is_functorch_wrapped_tensor(value):
            if _functorch.is_batchedtensor(value):
                raise refuse(
                    f"{op.name}: torch.vmap is not taken; all leading dimensions are rows already, so"
                    " call it on the whole tensor",
                    "no-vmap",
                )
            value = _functorch.get_unwrapped(value)
        return value

    args = tuple(map(unwrapped, args))
    named = {name: unwrapped(value) for name, value in named.items()}
    if torch.is_grad_enabled():
        _refuse_grad(op)
    with torch._C._DisableFuncTorch():
        return _OVERLOADS[op.registered][which](*args, **named)


def _current_stream(device: int) -> int:
    return torch.cuda.current_stream(device).cuda_stream


_current_stream = getattr(torch._C, "_cuda_getCurrentRawStream", _current_stream)


def _workspace(nbytes: int, device: int) -> torch.Tensor:
    """Zeros to work in."""
    return torch.zeros(nbytes, dtype=torch.uint8, device=f"cuda:{device}")
