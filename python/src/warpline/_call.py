"""Dispatches a call by its tensors: torch, another GPU library, or the CPU executor."""

from __future__ import annotations

from typing import Any

from . import _device, _host, _integers, _warpline
from ._declared import Op
from ._errors import InputError, input_error


class _Torch:
    """The parts of torch in use; set when the user imports torch."""

    #: torch's tensor class.
    Tensor: Any = None
    #: The types that count as integers.
    integer_types: Any = int
    #: Calls an op on torch tensors.
    call: Any = None
    #: Calls an op without torch's dispatcher; returns None if the call needs it.
    direct: Any = None
    #: Whether torch.compile traces this call. Cheaper than ``is_compiling``.
    is_tracing: Any = None
    #: Whether torch.compile is tracing; a traced call cannot be tuned.
    is_compiling: Any = None
    #: Whether the user requires deterministic algorithms.
    is_deterministic: Any = None


torch = _Torch()


def tune_needs_gpu(op: Op) -> InputError:
    """Creates the exception for ``tune=True`` without a GPU."""
    return input_error(f"{op.name}: tune=True needs arrays on a GPU; CPU executor time is not GPU time")


def outputs(op: Op, out: Any) -> tuple[Any, ...] | None:
    """Returns ``out=`` as a tuple with one entry per output."""
    if out is None:
        return None
    outs = tuple(out) if len(op.outputs) > 1 and isinstance(out, (tuple, list)) else (out,)
    if len(outs) != len(op.outputs):
        names = ", ".join(o.name for o in op.outputs)
        raise input_error(f"{op.name}: out must have one tensor per output ({names}), not {len(outs)}")
    return outs


def call(
    op: Op,
    args: tuple[Any, ...],
    out: Any,
    simulate: bool,
    stream: int | None,
    tune: bool,
    deterministic: bool | None,
) -> Any:
    """Calls an op; ``args`` has one value per parameter, in order."""
    if op.types:
        args = tuple(_host.type_name(value) if i in op.types else value for i, value in enumerate(args))
    if op.lists:
        args = tuple(_as_list(op, i, value) for i, value in enumerate(args))
    outs = outputs(op, out)
    if tune or deterministic is False:
        _require_eager(op, "tune=True" if tune else "deterministic=False")
    if deterministic is False and not (torch.is_deterministic and torch.is_deterministic()):
        previous = _warpline.allow_nondeterministic(True)
        try:
            return _dispatch(op, args, outs, simulate, stream, tune)
        finally:
            _warpline.allow_nondeterministic(previous)
    return _dispatch(op, args, outs, simulate, stream, tune)


def _as_list(op: Op, i: int, value: Any) -> Any:
    """Converts an integer argument to a flat list; torch tensors stay tensors."""
    if i not in op.lists or (torch.Tensor is not None and isinstance(value, torch.Tensor)):
        return value
    return _integers.flat(op, op.params[i], value, torch.integer_types)


def _require_eager(op: Op, option: str) -> None:
    """Rejects an option that torch.compile cannot trace."""
    if torch.is_compiling is not None and torch.is_compiling():
        # A built-in exception: the tracer shows the message of no other.
        raise RuntimeError(
            f"{op.name}: torch.compile cannot trace {option}; call it once outside of"
            " torch.compile, and the compiled call uses the tuned config"
        )


def _dispatch(
    op: Op,
    args: tuple[Any, ...],
    outs: tuple[Any, ...] | None,
    simulate: bool,
    stream: int | None,
    tune: bool,
) -> Any:
    tensors = args if outs is None else args + outs
    if torch.Tensor is not None:
        for value in tensors:
            if isinstance(value, torch.Tensor):
                return torch.call(op, args, outs, simulate, stream, tune)
    for value in tensors:
        if _device.is_device_array(value):
            return _device.call(op, args, outs, stream, tune)
    if stream is not None:
        raise input_error(f"{op.name}: stream= needs arrays on a GPU")
    if tune:
        raise tune_needs_gpu(op)
    return _host.call(op, args, outs, simulate)
