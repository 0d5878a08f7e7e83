"""Calls that the kernels reject although torch accepts them: dense copies, then torch's own ops.

A call whose layout no kernel addresses runs on dense copies. A call that no kernel supports runs as
torch ops, with one warning per op and cause; ``WARPLINE_STRICT=1`` raises its error instead.
"""

from __future__ import annotations

import math
import os
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from . import _composed, _host, _warpline
from ._declared import Op
from ._errors import UNSUPPORTED, UNSUPPORTED_LAYOUT, Error, FallbackWarning, input_error

#: Runs an op on arguments and outputs.
Run = Callable[[Op, tuple[Any, ...], tuple[Tensor, ...]], None]

#: The codes of errors that torch's ops recover from.
_RECOVERABLE = {UNSUPPORTED, UNSUPPORTED_LAYOUT, "cuda-unsupported-device", "cuda-driver-too-old"}

#: The ops that normalize rows.
_NORMS = ("layer_norm", "rms_norm")

_FP8 = (torch.float8_e4m3fn, torch.float8_e5m2)

#: The folders whose frames a warning skips.
_INTERNAL = tuple(f"{Path(module.__file__).parent}{os.sep}" for module in (_host, torch))

#: The ops and causes of the warnings so far.
_warned: set[tuple[str, ...]] = set()


def is_strict() -> bool:
    """Returns whether calls that no kernel supports raise their error."""
    return os.environ.get("WARPLINE_STRICT", "") not in ("", "0")


def recover(op: Op, run: Run, args: tuple[Any, ...], outs: tuple[Tensor, ...], error: Error) -> None:
    """Computes a call that ``run`` has rejected, or raises the error of the call."""
    if error.code not in _RECOVERABLE:
        raise error
    if error.code == UNSUPPORTED_LAYOUT:
        try:
            return _run_on_copies(op, run, args, outs)
        except Error as remaining:
            if remaining.code not in _RECOVERABLE:
                raise
            error = remaining
    _check(op, args, outs)
    with_torch(op, args, outs, error)


def with_torch(op: Op, args: tuple[Any, ...], outs: tuple[Tensor, ...], error: Error) -> None:
    """Computes a valid call with torch's ops; warns, or raises the error if torch may not run."""
    if is_strict():
        raise error
    reject_batch_invariant(op, args, error)
    dtypes = sorted({str(a.dtype) for a in (*args, *outs) if isinstance(a, Tensor)})
    warn(op, (error.code, *dtypes), str(error))
    with torch.no_grad():
        found = _composed.call(op.name, tuple(out.dtype for out in outs), args)
        for out, result in zip(outs, found):
            out.copy_(result)


def reject_batch_invariant(op: Op, args: tuple[Any, ...], error: Error) -> None:
    """Raises the error of a call that must be batch invariant, which torch's ops are not."""
    for param, value in zip(op.params, args):
        if param.name == "batch_invariant" and value:
            raise input_error(
                f"{error}\nhelp: leave batch_invariant out, so that torch's own ops may run this call", error.code
            ) from None


def warn(op: Op, cause: tuple[str, ...], reason: str) -> None:
    """Warns that torch runs an op, once per op and cause."""
    if (op.name, *cause) in _warned:
        return
    depth, frame = 1, sys._getframe(0)
    while frame.f_back and (frame.f_code.co_filename.startswith(_INTERNAL) or frame.f_code.co_filename[:1] == "<"):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(
        f"torch's own ops run this call, without Warpline's kernels: {reason}\n"
        "help: set WARPLINE_STRICT=1 to raise this as an error",
        FallbackWarning,
        stacklevel=depth,
    )
    # Not reached if a filter turns the warning into an error, so that each such call raises it.
    _warned.add((op.name, *cause))


def tune(op: Op, args: tuple[Any, ...], outs: tuple[Tensor, ...]) -> None:
    """Autotunes the problem of a call, or of its dense copies. The call itself reports that no kernel
    supports it."""
    try:
        _warpline.tune(op.index, args, outs)
    except Error as error:
        if error.code == UNSUPPORTED_LAYOUT:
            copies, dense, _ = _copies(op, args, outs)
            _warpline.tune(op.index, copies, dense)
        elif error.code not in _RECOVERABLE:
            raise


def _run_on_copies(op: Op, run: Run, args: tuple[Any, ...], outs: tuple[Tensor, ...]) -> None:
    """Runs an op on dense, aligned copies of its tensors; copies the outputs back."""
    copies, dense, targets = _copies(op, args, outs)
    run(op, copies, dense)
    with torch.no_grad():
        for target, result in zip(targets, dense):
            if result is not target:
                target.copy_(result)


def _copies(
    op: Op, args: tuple[Any, ...], outs: tuple[Tensor, ...]
) -> tuple[tuple[Any, ...], tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Returns dense arguments, dense outputs, and the views of ``outs`` that these are copied to."""
    args, targets = _with_last_dim(op, args, outs)
    dtype = _common_dtype(op, args)
    copies = tuple(
        _dense(a if dtype is None else a.to(dtype), (op.name, p.name)) if isinstance(a, Tensor) else a
        for p, a in zip(op.params, args)
    )
    dense = tuple(
        out if _is_dense(out) and dtype is None else torch.empty(out.shape, dtype=dtype or out.dtype, device=out.device)
        for out in targets
    )
    return copies, dense, targets


def _with_last_dim(
    op: Op, args: tuple[Any, ...], outs: tuple[Tensor, ...]
) -> tuple[tuple[Any, ...], tuple[Tensor, ...]]:
    """Returns a softmax over the last dimension, as views; other ops as they are."""
    if op.name != "softmax" or args[1] in (-1, args[0].dim() - 1):
        return args, outs
    x, dim, *others = args
    return (x.movedim(dim, -1), -1, *others), tuple(out.movedim(dim, -1) for out in outs)


def _common_dtype(op: Op, args: tuple[Any, ...]) -> torch.dtype | None:
    """Returns float32 if the tensors of a norm have several element types."""
    dtypes = {a.dtype for a in args if isinstance(a, Tensor)}
    return torch.float32 if op.name in _NORMS and len(dtypes) > 1 else None


def _dense(tensor: Tensor, name: tuple[str, str]) -> Tensor:
    """Returns a tensor that kernels address: itself, or a copy."""
    if _is_dense(tensor) or (name in _host.TRANSPOSABLE and tensor.dim() > 1 and _is_dense(tensor.mT)):
        return tensor
    return tensor.clone(memory_format=torch.contiguous_format)


def _is_dense(tensor: Tensor) -> bool:
    return tensor.is_contiguous() and tensor.data_ptr() % 16 == 0


def _check(op: Op, args: tuple[Any, ...], outs: tuple[Tensor, ...]) -> None:
    """Rejects a call that breaks a rule of the op, as the native module does for supported types."""
    tensors = [(p.name, a) for p, a in zip(op.params, args) if isinstance(a, Tensor)]
    named = [*tensors, *((o.name, out) for o, out in zip(op.outputs, outs))]
    (first, like), *_ = named
    for name, tensor in named:
        if tensor.device != like.device:
            raise input_error(
                f"{op.name}: all tensors must be on one device, but {first} is on {like.device} and {name} is on"
                f" {tensor.device}"
            )
    for output, out in zip(op.outputs, outs):
        reject_overlap(op, output.name, out, args)
    stand_ins = _stand_ins(op, [tensor for _, tensor in named])
    typed_by_call = _typed_by_call(op, args)
    layouts = {name: _layout(op, name, tensor, {} if name in typed_by_call else stand_ins) for name, tensor in named}
    values = tuple(layouts.get(p.name, value) for p, value in zip(op.params, args))
    try:
        _warpline.check_call(op.index, values, [layouts[output.name] for output in op.outputs])
    except Error as error:
        text = str(error)
        for dtype, stand_in in stand_ins.items():
            name = str(dtype).removeprefix("torch.")
            text = re.sub(rf"\b{stand_in}\b", _host.DTYPES.get(name, name), text)
        raise input_error(text, error.code) from None


def _stand_ins(op: Op, tensors: list[Tensor]) -> dict[torch.dtype, str]:
    """Returns a supported element type, as yet unused, for each unsupported floating-point type."""
    used = {t.dtype for t in tensors}
    unsupported = [torch.float64, torch.float32] if op.family.startswith("nvfp4-") else [torch.float64]
    supported = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}
    free = [name for dtype, name in supported.items() if dtype not in (*used, *unsupported)]
    return dict(zip((dtype for dtype in unsupported if dtype in used), free))


def _typed_by_call(op: Op, args: tuple[Any, ...]) -> set[str]:
    """Returns the tensors whose element type does not follow from that of the first operand."""
    values = {p.name: value for p, value in zip(op.params, args)}
    names = {name for name in values if name.startswith("scale_")}
    if values.get("out_dtype") is not None or args[0].dtype in (*_FP8, torch.uint8):
        names |= {"bias", "residual", *(o.name for o in op.outputs)}
    return names


def _layout(op: Op, name: str, tensor: Tensor, stand_ins: dict[torch.dtype, str]) -> tuple[Any, ...]:
    """Returns element type, shape and dense strides for the native module."""
    dtype = stand_ins.get(tensor.dtype) or _host.DTYPES.get(str(tensor.dtype).removeprefix("torch."))
    if dtype is None:
        raise input_error(f"{op.name}: {name} has the unsupported element type {tensor.dtype}")
    return _dense_layout(dtype, *tensor.shape)


def _dense_layout(dtype: str, *shape: int) -> tuple[Any, ...]:
    strides = [math.prod(shape[i + 1 :]) or 1 for i in range(len(shape))]
    return dtype, shape, tuple(strides)


def reject_overlap(op: Op, name: str, out: Tensor, args: tuple[Any, ...]) -> None:
    """Rejects an output that shares memory with an argument."""
    for param, value in zip(op.params, args):
        if isinstance(value, Tensor) and _overlaps(out, value):
            raise input_error(
                f"{op.name}: {name} shares memory with {param.name}; an output must not overlap another tensor"
            )


def _overlaps(a: Tensor, b: Tensor) -> bool:
    """Returns whether the address ranges of two tensors overlap."""
    if a.numel() == 0 or b.numel() == 0:
        return False
    ranges = [
        (t.data_ptr(), t.data_ptr() + t.element_size() * (1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride()))))
        for t in (a, b)
    ]
    return ranges[0][0] < ranges[1][1] and ranges[1][0] < ranges[0][1]
