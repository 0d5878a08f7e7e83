"""Quantization to NVFP4 and back: e2m1 codes, one e4m3 scale per 16 codes, one scale per tensor."""

from __future__ import annotations

import ctypes
import math
import sys
from typing import Any, Generic, NamedTuple, TypeVar

from ._errors import input_error
from ._host import type_name

_A = TypeVar("_A")

#: Elements of a row that share a scale.
BLOCK = 16


class Nvfp4(NamedTuple, Generic[_A]):
    """A tensor [rows, K] in NVFP4: a value is code · scale · tensor_scale."""

    #: uint8 [rows, K/2]: two e2m1 codes per byte, even k in the low four bits.
    codes: _A
    #: e4m3, one per 16 codes: in the block layout, or [rows, K/16].
    scales: _A
    #: float32 [1].
    tensor_scale: _A


def nvfp4_quantize(x: _A, tensor_scale: Any = None, scale_layout: str = "block") -> Nvfp4[_A]:
    """Quantizes a tensor [rows, K] to NVFP4: codes, scales, and the tensor scale.

    ``tensor_scale`` is a number (default 1), or ``"amax"`` for amax(x) / (448 · 6). The scale of a
    block of 16 is amax(block) / (6 · tensor_scale); a code is value / (scale · tensor_scale). Scales
    and codes are each rounded once, from float64, to nearest even, and saturate. torch tensors stay
    on their device. ``scale_layout`` is "block", which the kernels load fastest, or "plain"; see
    ``nvfp4_arrange_scales``.

    >>> import numpy as np, warpline
    >>> x = np.array([[0, -3, 8, 12] * 4], np.float32)
    >>> q = warpline.nvfp4_quantize(x, scale_layout="plain")
    >>> [f"{byte:02x}" for byte in q.codes[0, :2]], q.scales.astype(np.float32)
    (['b0', '76'], array([[2.]], dtype=float32))
    >>> np.array_equal(warpline.nvfp4_dequantize(*q), x)
    True
    """
    _require_layout("scale_layout", scale_layout)
    x = _array("x", x, ("f32", "f16", "bf16", "float64"), "[rows, K]")
    (rows, k), xp = x.shape, _library(x)
    _require_whole_blocks(k)
    values = _cast(x, xp.float32)
    finite = xp.isfinite(values)
    if not finite.all():
        row, column = divmod(int((finite.reshape(-1) * 1).argmin()), k)
        value = float(x[row, column])
        raise input_error(f"nvfp4: values must be finite in float32, not {value} at row {row}, column {column}")
    values = values.reshape(rows, k // BLOCK, BLOCK)
    amax = xp.amax(abs(values), -1)
    use_amax = isinstance(tensor_scale, str) and tensor_scale == "amax"
    tensor_scale = _amax_scale(amax) if use_amax else _tensor_scale(tensor_scale, x)
    scale_f64 = _cast(tensor_scale, xp.float64)
    scales = _nearest(_cast(amax, xp.float64) / (6 * scale_f64), 3, -6, 448.0)
    step = (_e4m3(scales) * scale_f64)[..., None]
    # A step of zero gives signed zeros.
    ratio = values / xp.where(step == 0, math.inf, step)
    signs = _cast(xp.signbit(ratio), xp.uint8) << 3
    codes = (signs | _nearest(abs(ratio), 1, 0, 6.0)).reshape(rows, k)
    scales = _to_block(scales) if scale_layout == "block" else scales
    return Nvfp4(codes[:, ::2] | codes[:, 1::2] << 4, scales.view(_fp8(xp)), tensor_scale)


def nvfp4_dequantize(
    codes: _A, scales: _A, tensor_scale: Any = None, scale_layout: str = "auto"
) -> _A:
    """Dequantizes an NVFP4 tensor to float32 [rows, K]: the inverse of ``nvfp4_quantize``.

    The product of code and scales is exact, then rounded to float32. A NaN scale makes its values
    NaN. ``scales`` may also be uint8 with the bits of e4m3. ``scale_layout`` is "block", "plain" or,
    by the shape of the scales, "auto".

    >>> import numpy as np, warpline
    >>> codes, scales = np.full((1, 8), 0xF2, np.uint8), np.array([[0x38]], np.uint8)
    >>> warpline.nvfp4_dequantize(codes, scales, 0.5)[0, :4]
    array([ 0.5, -3. ,  0.5, -3. ], dtype=float32)
    """
    if scale_layout != "auto":
        _require_layout("scale_layout", scale_layout)
    packed = _array("codes", codes, ("u8",), "[rows, K/2]")
    rows, k, xp = packed.shape[0], 2 * packed.shape[1], _library(packed)
    _require_whole_blocks(k)
    scale_layout = layout_of(scales, rows, k, scale_layout)
    bits = _bits(scales, rows, k, scale_layout)
    codes_device, scales_device = (f"{_library(a).__name__} on {getattr(a, 'device', 'cpu')}" for a in (packed, bits))
    _require(
        codes_device == scales_device,
        f"scales must be on the device of codes, {codes_device}, not {scales_device}",
    )
    bits = _to_plain(bits, rows, k) if scale_layout == "block" else bits
    step = _e4m3(bits) * _cast(_tensor_scale(tensor_scale, packed), xp.float64)
    nibbles = xp.stack((packed & 15, packed >> 4), -1).reshape(rows, k // BLOCK, BLOCK)
    # e2m1 bits placed as e4m3 are 1/64 of the value: the e4m3 bias is larger by 6.
    values = 64 * _e4m3((nibbles & 8) << 4 | (nibbles & 7) << 2) * step[..., None]
    return _cast(values, xp.float32).reshape(rows, k)


def nvfp4_arrange_scales(scales: _A, rows: int, k: int, to: str = "block") -> _A:
    """Converts the scales of an NVFP4 tensor [rows, K] to the layout ``to``: "block" or "plain".

    The plain layout is [rows, K/16]. The block layout is that of cuBLAS: tiles of 128 rows by 4
    scales, padded with zeros, [ceil(rows/128), ceil(K/64), 512]. A tile holds four scales of each of
    the rows 0, 32, 64 and 96 first, then of the rows 1, 33 and so on.

    >>> import numpy as np, warpline
    >>> block = warpline.nvfp4_arrange_scales(np.array([[1, 2, 3, 4, 5]], np.uint8), 1, 80)
    >>> block.shape, block[0, :, :4].tolist()
    ((1, 2, 512), [[1, 2, 3, 4], [5, 0, 0, 0]])
    >>> warpline.nvfp4_arrange_scales(block, 1, 80, "plain")
    array([[1, 2, 3, 4, 5]], dtype=uint8)
    """
    _require_layout("to", to)
    _require(hasattr(rows, "__index__") and rows >= 0, f"rows must be a non-negative integer, not {rows!r}")
    _require_whole_blocks(k)
    bits = _bits(scales, rows, k, "plain" if to == "block" else "block")
    arranged = _to_block(bits) if to == "block" else _to_plain(bits, rows, k)
    return arranged.view(scales.dtype)


def _require(condition: bool, message: str, code: str = "bad-problem") -> None:
    """Raises InputError if a condition is false."""
    if not condition:
        raise input_error(f"nvfp4: {message}", code)


def _require_layout(name: str, layout: str) -> None:
    _require(layout in ("plain", "block"), f"{name} must be plain or block, not {layout!r}")


def _require_whole_blocks(k: int) -> None:
    is_valid = hasattr(k, "__index__") and k > 0 and k % BLOCK == 0
    _require(is_valid, f"K must be a positive multiple of {BLOCK}, not {k!r}")


def _array(name: str, value: Any, types: tuple[str, ...], shape: str | None = None) -> Any:
    """Returns a NumPy array, or a torch tensor detached from its graph: codes have no gradient."""
    xp = _library(value)
    if xp.__name__ == "torch":
        value = value.detach()
    else:
        is_array = isinstance(value, xp.ndarray) and not isinstance(value, xp.ma.MaskedArray)
        kind = type(value).__name__
        _require(is_array, f"{name} must be a NumPy array or a torch tensor, not of type {kind}", "bad-type")
        value = xp.asarray(value)
    if shape:
        _require(value.ndim == 2, f"{name} must have 2 dimensions, {shape}, not {list(value.shape)}")
    dtype = type_name(value.dtype)
    _require(dtype in types, f"{name} must have the element type {' or '.join(types)}, not {dtype}")
    return value


def _bits(scales: Any, rows: int, k: int, layout: str) -> Any:
    """Returns the bits of scales in the given layout."""
    scales = _array("scales", scales, ("e4m3", "u8"))
    shape, expected = list(scales.shape), list(scale_shape(rows, k, layout))
    _require(shape == expected, f"{layout} scales of [{rows}, {k}] must have shape {expected}, not {shape}")
    return scales.view(_library(scales).uint8)


def _tensor_scale(scale: Any, like: Any) -> Any:
    """Returns the tensor scale as an array on the device of ``like``."""
    number = 1.0 if scale is None else scale
    try:
        number = ctypes.c_float(number.reshape(()) if hasattr(number, "reshape") else number).value
    except (ArithmeticError, RuntimeError, TypeError, ValueError):
        number = math.nan
    rule = "tensor_scale must be one number, finite and positive in float32"
    _require(math.isfinite(number) and number > 0, f"{rule}, not {scale!r:.80}")
    return _full([1], number, _library(like).float32, like)


def _amax_scale(amax: Any) -> Any:
    """Returns amax / (448 · 6), but at least the smallest normal float32; 1 if amax is 0."""
    xp = _library(amax)
    one = _full([1], 1.0, xp.float32, amax)
    if not amax.shape[0]:
        return one
    tensor_amax = xp.amax(amax).reshape(1)
    # Divide by a tensor: for a Python number torch multiplies by its reciprocal on a GPU, which rounds twice.
    return xp.where(tensor_amax == 0, one, (tensor_amax / (2688 * one)).clip(2.0**-126))


def _nearest(x: Any, mantissa: int, min_exponent: int, max_value: float) -> Any:
    """Rounds float64 magnitudes to codes of a floating-point type: to nearest even, saturating.

    The type has ``mantissa`` mantissa bits, the smallest normal number 2**min_exponent and the
    largest number ``max_value``.
    """
    xp = _library(x)
    x = x.clip(None, max_value)
    # Subnormals have the spacing of the smallest normal binade.
    exponent = ((x.view(xp.int64) >> 52) - 1023).clip(min_exponent)
    steps = xp.round(x * ((1023 + mantissa - exponent) << 52).view(xp.float64))
    # Codes are ordered like their values: each binade has 2**mantissa of them.
    return _cast(((exponent - min_exponent) << mantissa) + steps, xp.uint8)


def _e4m3(bits: Any) -> Any:
    """Returns the float64 values of e4m3 bits."""
    xp = _library(bits)
    return _cast(bits.view(_fp8(xp)), xp.float64)


def _fp8(xp: Any) -> Any:
    """Returns the element type e4m3 of torch, or of ml_dtypes for NumPy."""
    if xp.__name__ == "torch":
        return xp.float8_e4m3fn
    import ml_dtypes

    return ml_dtypes.float8_e4m3fn


def scale_shape(rows: int, k: int, layout: str) -> tuple[int, ...]:
    """Returns the shape of the scales of a tensor [rows, K]."""
    blocks = k // BLOCK
    return (rows, blocks) if layout == "plain" else (*_tile_counts(rows, blocks), 512)


def layout_of(scales: Any, rows: int, k: int, layout: str = "auto") -> str:
    """Returns the layout of the scales of a tensor [rows, K]: by their shape if ``layout`` is "auto"."""
    if layout != "auto":
        return layout
    is_plain = getattr(scales, "ndim", None) == 2
    return "plain" if is_plain else "block"


def _tile_counts(rows: int, blocks: int) -> tuple[int, int]:
    """Returns the number of tiles of 128 rows by 4 scales in both dimensions."""
    return -(-rows // 128), -(-blocks // 4)


def _to_block(bits: Any) -> Any:
    """Converts plain scales to the block layout."""
    (rows, blocks), (tile_rows, tile_columns) = bits.shape, _tile_counts(*bits.shape)
    padded = _full([128 * tile_rows, 4 * tile_columns], 0, bits.dtype, bits)
    padded[:rows, :blocks] = bits
    return padded.reshape(tile_rows, 4, 32, tile_columns, 4).swapaxes(1, 3).reshape(tile_rows, tile_columns, 512)


def _to_plain(bits: Any, rows: int, k: int) -> Any:
    """Converts scales in the block layout to plain ones."""
    tile_rows, tile_columns, _ = bits.shape
    padded = bits.reshape(tile_rows, tile_columns, 32, 4, 4).swapaxes(1, 3).reshape(128 * tile_rows, 4 * tile_columns)
    plain = _full([rows, k // BLOCK], 0, bits.dtype, bits)
    plain[:] = padded[:rows, : k // BLOCK]
    return plain


def _library(x: Any) -> Any:
    """Returns the module of an array: torch for its tensors, else NumPy."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        return torch
    import numpy

    return numpy


def _full(shape: list[int], value: float, dtype: Any, like: Any) -> Any:
    """Allocates a filled array on the device of ``like``."""
    if hasattr(like, "new_full"):
        return like.new_full(shape, value, dtype=dtype)
    return _library(like).full(shape, value, dtype)


def _cast(x: Any, dtype: Any) -> Any:
    """Converts to another type, contiguous."""
    if hasattr(x, "to"):
        return x.to(dtype).contiguous()
    # Overflow gives infinity without a warning, as in torch.
    with _library(x).errstate(over="ignore"):
        return x.astype(dtype, "C", copy=False)
