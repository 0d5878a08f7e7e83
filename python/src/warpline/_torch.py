"""The ops as ops of torch: schemas, implementations, fake implementations.

Imported once torch is. An op of the name ``softmax`` becomes
``torch.ops.warpline.softmax``, which makes its outputs, and
``torch.ops.warpline.softmax_out``, which writes those it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import _host, _warpline
from ._call import torch as _loaded
from ._declared import Op, OPS
from ._errors import refuse
from ._functions import function, parameters

#: The library of ops; what is registered lives as long as it does.
_LIBRARY = torch.library.Library("warpline", "DEF")

#: The overloads of each op: new outputs, given outputs.
_OVERLOADS: dict[str, tuple[Any, Any]] = {}

# Written out for each op, so that a call costs as little as it can.
_CUDA = """\
def {name}({params}):
    if _grad_enabled() and ({grads}):
        _refuse_grad(_op)
    {outs} = {allocate}
    _launch({index}, ({args},), ({outs},))
    return {outs}

def {name}_out({params}, *, {outs}):
    if _grad_enabled() and ({grads} or {out_grads}):
        _refuse_grad(_op)
    _launch({index}, ({args},), ({outs},))
    _written(({outs},))
"""

_CPU = """\
def {name}({params}):
    if _grad_enabled() and ({grads}):
        _refuse_grad(_op)
    {outs} = {allocate}
    _simulate(_op, ({args},), ({outs},), False)
    return {outs}

def {name}_out({params}, *, {outs}):
    if _grad_enabled() and ({grads} or {out_grads}):
        _refuse_grad(_op)
    _simulate(_op, ({args},), ({outs},), False)
    _written(({outs},))
"""

_FAKE = """\
def {name}({params}):
    if _grad_enabled() and ({grads}):
        _refuse_grad(_op)
    {outs} = {allocate}
    return {outs}

def {name}_out({params}, *, {outs}):
    if _grad_enabled() and ({grads} or {out_grads}):
        _refuse_grad(_op)
"""

_TRANSFORMED = """\
def {name}({params}):
    return _untransformed(_op, 0, ({args},), {{}})

def {name}_out({params}, *, {outs}):
    return _untransformed(_op, 1, ({args},), {{{named_outs}}})
"""


def register() -> None:
    """Registers every op with torch."""
    _warpline.use_torch(torch, _current_stream, _workspace)
    for op in OPS:
        _define(op)
    _loaded.call = _call
    _loaded.Tensor = torch.Tensor


def _define(op: Op) -> None:
    _LIBRARY.define(op.schema, tags=(torch.Tag.needs_fixed_stride_order,))
    _LIBRARY.define(op.out_schema, tags=(torch.Tag.needs_fixed_stride_order,))
    for source, key in ((_CUDA, "CUDA"), (_CPU, "CPU"), (_TRANSFORMED, _TRANSFORMS)):
        for name, made in _functions(op, source):
            _LIBRARY.impl(name, made, key)
    for name, made in _functions(op, _FAKE):
        torch.library.register_fake(f"warpline::{name}", made, lib=_LIBRARY)
        # Nothing to differentiate: what requires grad is refused by the implementations.
        _LIBRARY.impl(name, torch.library.fallthrough_kernel, "Autograd")
    namespace = torch.ops.warpline
    _OVERLOADS[op.name] = (
        getattr(namespace, op.name).default,
        getattr(namespace, f"{op.name}_out").default,
    )


#: Where torch asks first while a function is transformed: vmap, grad, jvp.
_TRANSFORMS = "FuncTorchDynamicLayerFrontMode"


def _functions(op: Op, source: str) -> list[tuple[str, Callable[..., Any]]]:
    """The two functions of a source for an op."""
    outs = [o.name for o in op.outputs]
    text = source.format(
        name=op.name,
        index=op.index,
        params=parameters(op),
        args=", ".join(p.name for p in op.params),
        outs=", ".join(outs),
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
        "_written": torch.autograd.graph.increment_version,
        "_untransformed": _untransformed,
        "_empty": torch.empty,
        "_empty_like": torch.empty_like,
    }
    return [(name, function(text, name, names)) for name in (op.name, f"{op.name}_out")]


def _requires_grad(param: Any) -> str:
    text = f"{param.name}.requires_grad"
    return text if param.required else f"({param.name} is not None and {text})"


def _allocation(op: Op) -> list[str]:
    """What makes each output, as source."""
    made = []
    for output in op.outputs:
        if output.like is not None:
            made.append(f"_empty_like({output.like})")
            continue
        sides = []
        for side in output.sides:
            match side:
                case {"all": name}:
                    sides.append(f"*{name}.shape")
                case {"leading": name}:
                    sides.append(f"*{name}.shape[:-1]")
                case {"at": [name, i]}:
                    sides.append(f"{name}.shape[{i}]")
        like = output.dtype_of
        made.append(f"_empty(({', '.join(sides)},), dtype={like}.dtype, device={like}.device)")
    return made


def _call(
    op: Op,
    args: tuple[Any, ...],
    outs: tuple[Any, ...] | None,
    simulated: bool,
    stream: int | None,
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
    functional, out_variant = _OVERLOADS[op.name]
    if outs is None:
        if simulated and _on_cpu(args):
            return _simulated(op, args)
        return functional(*args)
    for output, out in zip(op.outputs, outs):
        if not isinstance(out, torch.Tensor):
            kind = type(out).__name__
            raise refuse(f"{op.name}: out is a torch tensor as the inputs are, not of type {kind}", "bad-type")
    named = {output.name: out for output, out in zip(op.outputs, outs)}
    if simulated and _on_cpu(args):
        simulate(op, args, outs, True)
    else:
        out_variant(*args, **named)
    return outs[0] if len(outs) == 1 else outs


def _on_cpu(args: tuple[Any, ...]) -> bool:
    return all(a.device.type == "cpu" for a in args if isinstance(a, torch.Tensor))


def _simulated(op: Op, args: tuple[Any, ...]) -> Any:
    """Calls an op on the simulator, for as long as it takes."""
    named = {p.name: value for p, value in zip(op.params, args)}
    shapes = {n: v.shape for n, v in named.items() if isinstance(v, torch.Tensor)}
    outs = tuple(torch.empty(o.shape(shapes), dtype=named[o.dtype_of].dtype) for o in op.outputs)
    simulate(op, args, outs, True)
    return outs[0] if len(outs) == 1 else outs


def simulate(op: Op, args: tuple[Any, ...], outs: tuple[Any, ...], for_long: bool) -> None:
    """Calls an op on tensors of the CPU, through the simulator."""
    for output, out in zip(op.outputs, outs):
        for param, value in zip(op.params, args):
            if isinstance(value, torch.Tensor) and _share(out, value):
                raise refuse(
                    f"{op.name}: {output.name} shares memory with {param.name}, and an output must lie apart"
                )
    values = tuple(
        _native(op, p.name, v, v.contiguous()) if isinstance(v, torch.Tensor) else v
        for p, v in zip(op.params, args)
    )
    dense = [torch.empty(out.shape, dtype=out.dtype) for out in outs]
    targets = tuple(_native(op, o.name, out, d) for o, out, d in zip(op.outputs, outs, dense))
    _warpline.simulate(op.index, values, targets, for_long)
    with torch.no_grad():
        for out, made in zip(outs, dense):
            out.copy_(made)


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
        return _OVERLOADS[op.name][which](*args, **named)


def _current_stream(device: int) -> int:
    return torch.cuda.current_stream(device).cuda_stream


_current_stream = getattr(torch._C, "_cuda_getCurrentRawStream", _current_stream)


def _workspace(nbytes: int, device: int) -> torch.Tensor:
    """Zeros to work in."""
    return torch.zeros(nbytes, dtype=torch.uint8, device=f"cuda:{device}")
