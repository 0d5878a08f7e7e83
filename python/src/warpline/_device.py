"""GPU arrays of libraries other than torch: DLPack, CUDA array interface."""

from __future__ import annotations

import sys
from typing import Any

from . import _host, _warpline
from ._declared import Op, Output
from ._errors import input_error

#: DLPack's device type of NVIDIA GPUs.
_CUDA = 2

#: The handle of the legacy default stream, which synchronizes with all blocking streams.
_DEFAULT_STREAM = 1


def is_device_array(value: Any) -> bool:
    """Returns whether the value is a GPU array."""
    if hasattr(value, "__cuda_array_interface__"):
        return True
    device = getattr(value, "__dlpack_device__", None)
    return device is not None and int(device()[0]) == _CUDA


def call(
    op: Op,
    args: tuple[Any, ...],
    outs: tuple[Any, ...] | None,
    stream: int | None,
    tune: bool,
) -> Any:
    """Calls an op on arrays of other libraries."""
    # A caller that passes a stream has ordered it after the producers of the arrays.
    stream_given = stream is not None
    if stream is None:
        stream = _stream_of([a for a in args if hasattr(a, "__cuda_array_interface__")])
    if outs is None:
        arrays = {p.name: value for p, value in zip(op.params, args) if p.is_tensor}
        named_args = dict(zip((p.name for p in op.params), args))
        outs = tuple(_empty(op, output, arrays, named_args) for output in op.outputs)
    values = tuple(
        _view(op, p.name, value, stream) if p.is_tensor and value is not None else value
        for p, value in zip(op.params, args)
    )
    views = tuple(_view(op, o.name, out, stream) for o, out in zip(op.outputs, outs))
    for output, view in zip(op.outputs, views):
        if not view.writable:
            raise input_error(f"{op.name}: {output.name} is a read-only array")
    for name, view in zip([p.name for p in op.params], values):
        ready = getattr(view, "stream", None)
        if ready is not None and ready != stream and not stream_given:
            raise input_error(
                f"{op.name}: {name} is ready on stream {ready}, but the call runs on stream {stream}:"
                " pass arrays of one stream, or order the streams and pass stream="
            )
    if tune:
        _warpline.tune(op.index, values, views, stream)
    _warpline.launch(op.index, values, views, stream)
    return outs[0] if len(outs) == 1 else outs


def _stream_of(arrays: list[Any]) -> int:
    """Returns the stream of the first array that names one, else the default stream."""
    for array in arrays:
        stream = array.__cuda_array_interface__.get("stream")
        if stream is not None:
            return int(stream)
    return _DEFAULT_STREAM


def _view(op: Op, name: str, value: Any, stream: int) -> Any:
    if not is_device_array(value):
        kind = type(value).__name__
        raise input_error(
            f"{op.name}: all tensors must be on one device, but {name}, of type {kind}, is not on a GPU"
        )
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        return _warpline.View.from_dlpack(value.__dlpack__(stream=stream))
    return _warpline.View.from_cuda_array_interface(value, _ordinal(value))


def _ordinal(value: Any) -> int:
    """Returns the device index from the array object; the CUDA array interface has none."""
    device = getattr(value, "device", 0)
    return int(getattr(device, "id", device if isinstance(device, int) else 0))


def _empty(op: Op, output: Output, arrays: dict[str, Any], values: dict[str, Any]) -> Any:
    """Allocates an output with ``empty`` of the library of the input."""
    like = arrays[output.dtype_of]
    library = sys.modules.get(type(like).__module__.partition(".")[0])
    empty = getattr(library, "empty", None)
    if empty is None or not hasattr(like, "dtype"):
        kind = type(like).__name__
        raise input_error(f"{op.name}: cannot allocate an array of type {kind}: pass out=")
    shapes = {name: tuple(array.shape) for name, array in arrays.items() if array is not None}
    like_name = str(like.dtype)
    like_dtype = _host.DTYPES.get(like_name, like_name)
    out_dtype = output.dtype(like_dtype, values)
    dtype = like.dtype if out_dtype == like_dtype else _library_dtype(op, library, out_dtype)
    return empty(output.shape(shapes), dtype=dtype)


def _library_dtype(op: Op, library: Any, name: str) -> Any:
    """Returns a library's element type for Warpline's name."""
    library_name = next((theirs for theirs, ours in _host.DTYPES.items() if ours == name), name)
    dtype = getattr(library, library_name, None)
    if dtype is None:
        raise input_error(f"{op.name}: {library.__name__} has no element type {name!r}: pass out=")
    return dtype
