"""A call goes where its tensors are: torch, another GPU library, the simulator."""

from __future__ import annotations

from typing import Any

from . import _device, _host, _integers, _warpline
from ._declared import Op
from ._errors import InputError, RefusedError, refuse


class _Torch:
    """Torch, once it is imported; this package never imports it itself."""

    #: Its class of tensors.
    Tensor: Any = None
    #: What it takes for an integer.
    whole: Any = int
    #: Calls an op on its tensors.
    call: Any = None
    #: Is a call being traced, so that it cannot be tuned?
    is_compiling: Any = None
    #: Has the user asked for the same bits in every run?
    is_deterministic: Any = None


torch = _Torch()


def not_on_a_gpu(op: Op) -> InputError:
    """The exception of a call that is to be tuned and does not run on a GPU."""
    return refuse(f"{op.name}: tune=True is for arrays on a GPU: the simulator's times are no measure of one")


def outputs(op: Op, out: Any) -> tuple[Any, ...] | None:
    """What the caller gave for the outputs, as a tuple."""
    if out is None:
        return None
    outs = tuple(out) if len(op.outputs) > 1 and isinstance(out, (tuple, list)) else (out,)
    if len(outs) != len(op.outputs):
        names = ", ".join(o.name for o in op.outputs)
        raise refuse(f"{op.name}: out is as many tensors as come out ({names}), not {len(outs)}")
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
    """Calls an op with every argument in the order of its parameters."""
    if op.types:
        args = tuple(_host.type_name(value) if i in op.types else value for i, value in enumerate(args))
    if op.lists:
        args = tuple(_listed(op, i, value) for i, value in enumerate(args))
    outs = outputs(op, out)
    if tune or deterministic is False:
        _eager(op, "tune=True" if tune else "deterministic=False")
    if deterministic is False and not (torch.is_deterministic and torch.is_deterministic()):
        before = _warpline.may_differ(True)
        try:
            return _anywhere(op, args, outs, simulate, stream, tune)
        finally:
            _warpline.may_differ(before)
    return _anywhere(op, args, outs, simulate, stream, tune)


def _listed(op: Op, i: int, value: Any) -> Any:
    """An argument, as a flat list where it is integers; torch reads its tensors itself."""
    if i not in op.lists or (torch.Tensor is not None and isinstance(value, torch.Tensor)):
        return value
    return _integers.flat(op, op.params[i], value, torch.whole)


def _eager(op: Op, option: str) -> None:
    """Refuses an option that a trace of the call could not keep."""
    if torch.is_compiling is not None and torch.is_compiling():
        # An exception of Python's own: the tracer shows the sentence of no other.
        raise RuntimeError(
            f"{op.name}: {option} cannot be traced by torch.compile: tune a call outside of it,"
            " and the compiled one takes the winner"
        )


def _anywhere(
    op: Op,
    args: tuple[Any, ...],
    outs: tuple[Any, ...] | None,
    simulate: bool,
    stream: int | None,
    tune: bool,
) -> Any:
    everything = args if outs is None else args + outs
    if torch.Tensor is not None:
        for value in everything:
            if isinstance(value, torch.Tensor):
                return torch.call(op, args, outs, simulate, stream, tune)
    for value in everything:
        if _device.is_device_array(value):
            return _device.call(op, args, outs, stream, tune)
    if stream is not None:
        raise refuse(f"{op.name}: only arrays on a GPU have a stream")
    if tune:
        raise not_on_a_gpu(op)
    return _host.call(op, args, outs, simulate)
