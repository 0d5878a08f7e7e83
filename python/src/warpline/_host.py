"""NumPy arrays, on the CPU simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _warpline
from ._declared import Op, Output
from ._errors import refuse

if TYPE_CHECKING:
    import numpy as np

#: NumPy's and torch's names of element types, and ours. Those that NumPy does not have are ml_dtypes'.
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


def type_name(value: Any) -> Any:
    """Our name of an element type, which may be torch's, NumPy's or a name; none stays none."""
    if value is None:
        return None
    name = value if isinstance(value, str) else getattr(value, "__name__", str(value))
    name = name.removeprefix("torch.")
    return DTYPES.get(name, name)


def turned(shape: Any, strides: Any) -> bool:
    """Does a tensor lie as the transpose of a dense one, in its last two dimensions?"""
    return len(shape) > 1 and shape[-1] > 1 and shape[-2] > 1 and strides[-2] == 1 and strides[-1] != 1


def call(op: Op, args: tuple[Any, ...], outs: tuple[Any, ...] | None, simulate: bool) -> Any:
    """Calls an op on arrays of the host."""
    import numpy as np

    values: list[Any] = []
    arrays: dict[str, np.ndarray] = {}
    for param, value in zip(op.params, args):
        if param.is_tensor and not (value is None and not param.required):
            arrays[param.name] = array = _array(op, param.name, value)
            value = _native(array, np.ascontiguousarray(_upright(array)))
        values.append(value)
    if outs is None:
        plain = dict(zip((p.name for p in op.params), args))
        results = [_empty(op, output, arrays, plain) for output in op.outputs]
    else:
        results = [_target(op, o, out, arrays) for o, out in zip(op.outputs, outs)]
    targets = [np.empty_like(_upright(out), order="C", subok=False) for out in results]
    natives = tuple(map(_native, results, targets))
    _warpline.simulate(op.index, tuple(values), natives, simulate)
    for result, target in zip(results, targets):
        _upright(result)[...] = target
    return results[0] if len(results) == 1 else tuple(results)


def _array(op: Op, name: str, value: Any) -> np.ndarray:
    """An array whose elements the native part can read."""
    import numpy as np

    if not isinstance(value, np.ndarray):
        if not hasattr(value, "__dlpack__"):
            kind = type(value).__name__
            raise refuse(f"{op.name}: {name} is an array or a tensor, not of type {kind}", "bad-type")
        value = _of_dlpack(op, name, value)
    elif type(value) is not np.ndarray and isinstance(value, np.ma.MaskedArray):
        raise refuse(
            f"{op.name}: {name} has a mask, and no kernel heeds one: fill it, or pass its data", "bad-type"
        )
    dtype = value.dtype
    if not dtype.isnative:
        raise refuse(
            f"{op.name}: the elements of {name} are big-endian ({dtype.str}), and a GPU's are"
            f" little-endian: convert it with astype('{dtype.newbyteorder('=').str}')"
        )
    if dtype.name not in DTYPES:
        raise refuse(f"{op.name}: {name} has elements of type {dtype}, which no kernel takes")
    if any(stride % dtype.itemsize for stride in value.strides):
        raise refuse(
            f"{op.name}: the strides of {name} are whole elements of {dtype.itemsize} bytes, not"
            f" {value.strides} bytes: make it contiguous"
        )
    return value


def _of_dlpack(op: Op, name: str, value: Any) -> np.ndarray:
    """An array of another library, without a copy."""
    import numpy as np

    try:
        return np.from_dlpack(value)
    except Exception as error:
        # What NumPy or the library says: a type that NumPy has not, a device, half a protocol.
        kind = type(value).__name__
        raise refuse(
            f"{op.name}: {name}, of type {kind}, cannot be had through DLPack: {error}", "bad-type"
        ) from error


def _target(op: Op, output: Output, out: Any, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """An output of the caller's, refused if it cannot be written."""
    import numpy as np

    if not isinstance(out, np.ndarray):
        kind = type(out).__name__
        raise refuse(f"{op.name}: out is an array as the inputs are, not of type {kind}", "bad-type")
    _array(op, output.name, out)
    if not out.flags.writeable:
        raise refuse(f"{op.name}: {output.name} cannot be written: the array is read-only")
    for name, array in arrays.items():
        # From lowest to highest byte, as on a GPU: also where rows of one lie between rows of the other.
        if np.may_share_memory(out, array):
            raise refuse(
                f"{op.name}: {output.name} shares memory with {name}, and an output must lie apart"
            )
    return out


def _upright(array: np.ndarray) -> np.ndarray:
    """The array, or its transpose where it lies as that."""
    strides = [stride // array.itemsize for stride in array.strides]
    return array.swapaxes(-1, -2) if turned(array.shape, strides) else array


def _dtype(op: Op, name: str) -> np.dtype:
    """NumPy's element type of our name."""
    import numpy as np

    theirs = next((theirs for theirs, ours in DTYPES.items() if ours == name), None)
    if theirs is None:
        raise refuse(f"{op.name}: there is no element type {name!r}")
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
        # In the order of its dimensions, too, as torch makes it.
        return np.empty_like(like, order="C" if repeats else "K", subok=False)
    shape = output.shape({name: array.shape for name, array in arrays.items()})
    like = DTYPES[arrays[output.dtype_of].dtype.name]
    return np.empty(shape, _dtype(op, output.dtype(like, values)))


def _native(array: np.ndarray, dense: np.ndarray) -> tuple[Any, ...]:
    """An array, and a dense copy, as the native part takes it: element type, shape, strides, bytes."""
    import numpy as np

    # NumPy's strides are 0 where there is no element, and no kernel would take them.
    strides = tuple(stride // array.itemsize if array.size else 1 for stride in array.strides)
    return DTYPES[array.dtype.name], array.shape, strides, dense.reshape(-1).view(np.uint8)
