"""Calls on NumPy arrays, on the CPU executor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _warpline
from ._declared import Op, Output
from ._errors import UNSUPPORTED_LAYOUT, Error, input_error

if TYPE_CHECKING:
    import numpy as np

#: Element types: the name in NumPy, ml_dtypes and torch, and the name in Warpline.
DTYPES = {
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
    "uint8": "u8",
    "int32": "i32",
    "int64": "i64",
}


#: Parameters that kernels also accept as the transpose of a row-major matrix.
TRANSPOSABLE = {("matmul", "b"), ("linear", "weight")}


def type_name(value: Any) -> Any:
    """Returns Warpline's name of an element type of torch or NumPy, or of a name; None stays None."""
    if value is None:
        return None
    name = value if isinstance(value, str) else getattr(value, "__name__", str(value))
    name = name.removeprefix("torch.")
    return DTYPES.get(name, name)


def is_transposed(shape: Any, strides: Any) -> bool:
    """Returns whether the last two dimensions are the transpose of a row-major matrix."""
    return len(shape) > 1 and shape[-1] > 1 and shape[-2] > 1 and strides[-2] == 1 and strides[-1] != 1


def call(op: Op, args: tuple[Any, ...], outs: tuple[Any, ...] | None, simulate: bool) -> Any:
    """Calls an op on host arrays."""
    import numpy as np

    values: list[Any] = []
    arrays: dict[str, np.ndarray] = {}
    for param, value in zip(op.params, args):
        if param.is_tensor and not (value is None and not param.required):
            arrays[param.name] = value = _array(op, param.name, value)
        values.append(value)
    if outs is None:
        named_args = dict(zip((p.name for p in op.params), args))
        results = [_empty(op, output, arrays, named_args) for output in op.outputs]
    else:
        results = [_target(op, o, out, arrays) for o, out in zip(op.outputs, outs)]
    try:
        _simulate(op, values, results, simulate)
    except Error as error:
        if error.code != UNSUPPORTED_LAYOUT:
            raise
        _simulate_copies(op, values, results, simulate)
    return results[0] if len(results) == 1 else tuple(results)


def _simulate(op: Op, values: list[Any], results: list[np.ndarray], simulate: bool) -> None:
    """Runs an op; writes the results."""
    import numpy as np

    args = (_native(v, np.ascontiguousarray(_row_major(v))) if isinstance(v, np.ndarray) else v for v in values)
    targets = [np.empty_like(_row_major(out), order="C", subok=False) for out in results]
    _warpline.simulate(op.index, tuple(args), tuple(map(_native, results, targets)), simulate)
    for result, target in zip(results, targets):
        _row_major(result)[...] = target


def _simulate_copies(op: Op, values: list[Any], results: list[np.ndarray], simulate: bool) -> None:
    """Runs an op whose layout no kernel addresses on dense copies."""
    import numpy as np

    if op.name == "softmax":
        x, dim, *others = values
        values, results = [np.moveaxis(x, dim, -1), -1, *others], [np.moveaxis(y, dim, -1) for y in results]
    arrays = [v for v in values if isinstance(v, np.ndarray)]
    # The vectors of a norm may have another element type than its rows.
    is_mixed = op.name in ("layer_norm", "rms_norm") and len({a.dtype for a in arrays}) > 1
    dtype = np.dtype(np.float32) if is_mixed else None
    copies = [
        _dense(v, dtype or v.dtype, (op.name, p.name)) if isinstance(v, np.ndarray) else v
        for p, v in zip(op.params, values)
    ]
    targets = [np.empty(y.shape, dtype or y.dtype) for y in results]
    _simulate(op, copies, targets, simulate)
    for result, target in zip(results, targets):
        result[...] = target.astype(result.dtype)


def _dense(array: np.ndarray, dtype: np.dtype, parameter: tuple[str, str]) -> np.ndarray:
    """Returns an array that kernels address: itself, or a copy."""
    import numpy as np

    if parameter in TRANSPOSABLE and _row_major(array).flags.c_contiguous:
        return array
    return np.ascontiguousarray(array, dtype)


def _array(op: Op, name: str, value: Any) -> np.ndarray:
    """Returns a NumPy array that the native module can read."""
    import numpy as np

    if not isinstance(value, np.ndarray):
        if not hasattr(value, "__dlpack__"):
            kind = type(value).__name__
            raise input_error(f"{op.name}: {name} must be an array or a tensor, not of type {kind}", "bad-type")
        value = _from_dlpack(op, name, value)
    elif type(value) is not np.ndarray and isinstance(value, np.ma.MaskedArray):
        raise input_error(
            f"{op.name}: {name} is a masked array, which no kernel supports: fill it, or pass its data", "bad-type"
        )
    dtype = value.dtype
    if not dtype.isnative:
        raise input_error(
            f"{op.name}: {name} is big-endian ({dtype.str}), but GPUs are little-endian:"
            f" convert it with astype('{dtype.newbyteorder('=').str}')"
        )
    if dtype.name not in DTYPES:
        raise input_error(f"{op.name}: {name} has the unsupported element type {dtype}")
    if any(stride % dtype.itemsize for stride in value.strides):
        # A field of a record has no strides in elements.
        return np.ascontiguousarray(value)
    return value


def _from_dlpack(op: Op, name: str, value: Any) -> np.ndarray:
    """Returns an array of another library as a NumPy array, without a copy."""
    import numpy as np

    try:
        return np.from_dlpack(value)
    except Exception as error:
        # NumPy or the library rejects an element type, a device, or the protocol version.
        kind = type(value).__name__
        raise input_error(
            f"{op.name}: {name}, of type {kind}, cannot be read through DLPack: {error}", "bad-type"
        ) from error


def _target(op: Op, output: Output, out: Any, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Returns the caller's output array; rejects one that is read-only or overlaps an input."""
    import numpy as np

    if not isinstance(out, np.ndarray):
        kind = type(out).__name__
        raise input_error(f"{op.name}: out must be an array like the inputs, not of type {kind}", "bad-type")
    _array(op, output.name, out)
    if not out.flags.writeable:
        raise input_error(f"{op.name}: {output.name} is a read-only array")
    for name, array in arrays.items():
        # Compares address ranges, as on a GPU; interleaved rows count as overlap.
        if np.may_share_memory(out, array):
            raise input_error(
                f"{op.name}: {output.name} shares memory with {name}; an output must not overlap another tensor"
            )
    return out


def _row_major(array: np.ndarray) -> np.ndarray:
    """Returns the array, or its transpose if the array is a transposed row-major one."""
    strides = [stride // array.itemsize for stride in array.strides]
    return array.swapaxes(-1, -2) if is_transposed(array.shape, strides) else array


def _dtype(op: Op, name: str) -> np.dtype:
    """Returns NumPy's element type for Warpline's name."""
    import numpy as np

    theirs = next((theirs for theirs, ours in DTYPES.items() if ours == name), None)
    if theirs is None:
        raise input_error(f"{op.name}: unknown element type {name!r}")
    try:
        return np.dtype(theirs)
    except TypeError:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, theirs))


def _empty(op: Op, output: Output, arrays: dict[str, np.ndarray], values: dict[str, Any]) -> np.ndarray:
    import numpy as np

    if output.like is not None:
        like = arrays[output.like]
        repeats = any(n > 1 and stride == 0 for n, stride in zip(like.shape, like.strides))
        # Keeps the memory order of the dimensions, as torch.empty_like does.
        return np.empty_like(like, order="C" if repeats else "K", subok=False)
    shape = output.shape({name: array.shape for name, array in arrays.items()})
    like = DTYPES[arrays[output.dtype_of].dtype.name]
    return np.empty(shape, _dtype(op, output.dtype(like, values)))


def _native(array: np.ndarray, dense: np.ndarray) -> tuple[Any, ...]:
    """Returns the native module's array: element type, shape, strides, and the bytes of a dense copy."""
    import numpy as np

    # NumPy's strides are 0 in an empty array, which the kernels' layout checks reject.
    strides = tuple(stride // array.itemsize if array.size else 1 for stride in array.strides)
    return DTYPES[array.dtype.name], array.shape, strides, dense.reshape(-1).view(np.uint8)
