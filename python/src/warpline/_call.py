"""A call goes where its tensors are: torch, another GPU library, the simulator."""

from __future__ import annotations

from typing import Any

from . import _device, _host
from ._declared import Op
from ._errors import refuse


class _Torch:
    """Torch, once it is imported; this package never imports it itself."""

    #: Its class of tensors.
    Tensor: Any = None
    #: Calls an op on its tensors.
    call: Any = None


torch = _Torch()


def outputs(op: Op, out: Any) -> tuple[Any, ...] | None:
    """What the caller gave for the outputs, as a tuple."""
    if out is None:
        return None
    outs = tuple(out) if len(op.outputs) > 1 and isinstance(out, (tuple, list)) else (out,)
    if len(outs) != len(op.outputs):
        names = ", ".join(o.name for o in op.outputs)
        raise refuse(f"{op.name}: out is as many tensors as come out ({names}), not {len(outs)}")
    return outs


def call(op: Op, args: tuple[Any, ...], out: Any, simulate: bool, stream: int | None) -> Any:
    """Calls an op with every argument in the order of its parameters."""
    if op.types:
        args = tuple(_host.type_name(value) if i in op.types else value for i, value in enumerate(args))
    outs = outputs(op, out)
    everything = args if outs is None else args + outs
    if torch.Tensor is not None:
        for value in everything:
            if isinstance(value, torch.Tensor):
                return torch.call(op, args, outs, simulate, stream)
    for value in everything:
        if _device.is_device_array(value):
            return _device.call(op, args, outs, stream)
    if stream is not None:
        raise refuse(f"{op.name}: only arrays on a GPU have a stream")
    return _host.call(op, args, outs, simulate)
