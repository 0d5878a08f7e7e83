"""Tensors to NVFP4 and back: e2m1 codes, an e4m3 scale for every 16 of them, a scale of all."""

from __future__ import annotations

import ctypes
import math
import sys
from typing import Any, Generic, NamedTuple, TypeVar

from ._errors import refuse
from ._host import type_name

_A = TypeVar("_A")

#: How many numbers of a row share a scale.
BLOCK = 16


class Nvfp4(NamedTuple, Generic[_A]):
    """A tensor [rows, K] in NVFP4: a value is code · scale · tensor_scale."""

    #: uint8 [rows, K/2]: two e2m1 codes in a byte, that of even k in the low four bits.
    codes: _A
    #: e4m3, one for every 16 codes: [rows, K/16], or in blocks.
    scales: _A
    #: float32 [1].
    tensor_scale: _A


def nvfp4_quantize(x: _A, tensor_scale: Any = None, scale_layout: str = "plain") -> Nvfp4[_A]:
    """A tensor [rows, K] in NVFP4: codes, scales, and the scale of the tensor.

    That scale is one number, 1 if none is given, or ``"chosen"``: greatest magnitude over 448 · 6.
    The scale of a block is its greatest magnitude over 6 and over the scale of the tensor; a code is
    the value over both. Each is rounded once, from float64, to nearest, ties to even, and saturates.
    Torch's tensors stay on their device. ``scale_layout``: see ``nvfp4_arrange_scales``.

    >>> import numpy as np, warpline
    >>> x = np.array([[0, -3, 8, 12] * 4], np.float32)
    >>> q = warpline.nvfp4_quantize(x)
    >>> [f"{byte:02x}" for byte in q.codes[0, :2]], q.scales.astype(np.float32)
    (['b0', '76'], array([[2.]], dtype=float32))
    >>> np.array_equal(warpline.nvfp4_dequantize(*q), x)
    True
    """
    _layout("scale_layout", scale_layout)
    x = _array("x", x, ("f32", "f16", "bf16", "float64"), "[rows, K]")
    (rows, k), xp = x.shape, _library(x)
    _whole_blocks(k)
    values = _cast(x, xp.float32)
    finite = xp.isfinite(values)
    if not finite.all():
        row, column = divmod(int((finite.reshape(-1) * 1).argmin()), k)
        value = float(x[row, column])
        raise refuse(f"nvfp4: values are finite in float32, not {value} in row {row}, column {column}")
    values = values.reshape(rows, k // BLOCK, BLOCK)
    greatest = xp.amax(abs(values), -1)
    chosen = isinstance(tensor_scale, str) and tensor_scale == "chosen"
    tensor_scale = _chosen(greatest) if chosen else _given(tensor_scale, x)
    of_all = _cast(tensor_scale, xp.float64)
    scales = _nearest(_cast(greatest, xp.float64) / (6 * of_all), 3, -6, 448.0)
    step = (_e4m3(scales) * of_all)[..., None]
    # A step of zero leaves zeros, with the signs of the values.
    ratio = values / xp.where(step == 0, math.inf, step)
    signs = _cast(xp.signbit(ratio), xp.uint8) << 3
    codes = (signs | _nearest(abs(ratio), 1, 0, 6.0)).reshape(rows, k)
    scales = _tiles(scales) if scale_layout == "block" else scales
    return Nvfp4(codes[:, ::2] | codes[:, 1::2] << 4, scales.view(_fp8(xp)), tensor_scale)


def nvfp4_dequantize(codes: _A, scales: _A, tensor_scale: Any = None, scale_layout: str = "plain") -> _A:
    """The values of an NVFP4 tensor, float32 [rows, K]: the reverse of ``nvfp4_quantize``.

    Products are exact, then rounded to float32. A scale that is NaN makes its values NaN. Scales may
    be the bits of e4m3 as uint8, too.

    >>> import numpy as np, warpline
    >>> codes, scales = np.full((1, 8), 0xF2, np.uint8), np.array([[0x38]], np.uint8)
    >>> warpline.nvfp4_dequantize(codes, scales, 0.5)[0, :4]
    array([ 0.5, -3. ,  0.5, -3. ], dtype=float32)
    """
    _layout("scale_layout", scale_layout)
    packed = _array("codes", codes, ("u8",), "[rows, K/2]")
    rows, k, xp = packed.shape[0], 2 * packed.shape[1], _library(packed)
    _whole_blocks(k)
    bits = _bits(scales, rows, k, scale_layout)
    there, here = (f"{_library(a).__name__} on {getattr(a, 'device', 'cpu')}" for a in (packed, bits))
    _require(there == here, f"scales are where codes are, {there}, not {here}")
    bits = _plain(bits, rows, k) if scale_layout == "block" else bits
    step = _e4m3(bits) * _cast(_given(tensor_scale, packed), xp.float64)
    each = xp.stack((packed & 15, packed >> 4), -1).reshape(rows, k // BLOCK, BLOCK)
    # In the place of e4m3's bits those of e2m1 stand for a 64th, as e4m3's bias is 6 more.
    values = 64 * _e4m3((each & 8) << 4 | (each & 7) << 2) * step[..., None]
    return _cast(values, xp.float32).reshape(rows, k)


def nvfp4_arrange_scales(scales: _A, rows: int, k: int, to: str = "block") -> _A:
    """The scales of an NVFP4 tensor [rows, K] in the other layout: ``to`` block or plain.

    Plain scales are [rows, K/16]. Those in blocks lie as cuBLAS takes them, in tiles of 128 rows by 4
    scales, padded with zeros: [rows/128, K/64, 512], both rounded up. A tile holds rows 0, 32, 64 and
    96 first, four scales of each, then rows 1, 33 and so on.

    >>> import numpy as np, warpline
    >>> block = warpline.nvfp4_arrange_scales(np.array([[1, 2, 3, 4, 5]], np.uint8), 1, 80)
    >>> block.shape, block[0, :, :4].tolist()
    ((1, 2, 512), [[1, 2, 3, 4], [5, 0, 0, 0]])
    >>> warpline.nvfp4_arrange_scales(block, 1, 80, "plain")
    array([[1, 2, 3, 4, 5]], dtype=uint8)
    """
    _layout("to", to)
    _require(hasattr(rows, "__index__") and rows >= 0, f"rows is an integer of 0 or more, not {rows!r}")
    _whole_blocks(k)
    bits = _bits(scales, rows, k, "plain" if to == "block" else "block")
    moved = _tiles(bits) if to == "block" else _plain(bits, rows, k)
    return moved.view(scales.dtype)


def _require(holds: bool, sentence: str, code: str = "bad-problem") -> None:
    """Refuses with a sentence what breaks a rule."""
    if not holds:
        raise refuse(f"nvfp4: {sentence}", code)


def _layout(name: str, layout: str) -> None:
    _require(layout in ("plain", "block"), f"{name} is plain or block, not {layout!r}")


def _whole_blocks(k: int) -> None:
    holds = hasattr(k, "__index__") and k > 0 and k % BLOCK == 0
    _require(holds, f"K is a positive multiple of {BLOCK}, not {k!r}")


def _array(name: str, value: Any, types: tuple[str, ...], shape: str | None = None) -> Any:
    """An array of NumPy or torch, without its gradient, as there is none of codes."""
    xp = _library(value)
    if xp.__name__ == "torch":
        value = value.detach()
    else:
        holds = isinstance(value, xp.ndarray) and not isinstance(value, xp.ma.MaskedArray)
        kind = type(value).__name__
        _require(holds, f"{name} is a NumPy array or a torch tensor, not of type {kind}", "bad-type")
        value = xp.asarray(value)
    if shape:
        _require(value.ndim == 2, f"{name} has 2 dimensions, {shape}, not {list(value.shape)}")
    dtype = type_name(value.dtype)
    _require(dtype in types, f"{name} has elements of type {' or '.join(types)}, not {dtype}")
    return value


def _bits(scales: Any, rows: int, k: int, layout: str) -> Any:
    """The bits of scales that lie in a layout."""
    scales = _array("scales", scales, ("e4m3", "u8"))
    there, shape = list(scales.shape), list(scale_shape(rows, k, layout))
    _require(there == shape, f"{layout} scales of [{rows}, {k}] are {shape}, not {there}")
    return scales.view(_library(scales).uint8)


def _given(scale: Any, like: Any) -> Any:
    """The scale of a tensor, beside its values."""
    number = 1.0 if scale is None else scale
    try:
        number = ctypes.c_float(number.reshape(()) if hasattr(number, "reshape") else number).value
    except (ArithmeticError, RuntimeError, TypeError, ValueError):
        number = math.nan
    rule = "the scale of a tensor is one number, finite and positive in float32"
    _require(math.isfinite(number) and number > 0, f"{rule}, not {scale!r:.80}")
    return _full([1], number, _library(like).float32, like)


def _chosen(greatest: Any) -> Any:
    """The scale that makes the greatest magnitude 448 · 6, no less than the least normal number."""
    xp = _library(greatest)
    one = _full([1], 1.0, xp.float32, greatest)
    if not greatest.shape[0]:
        return one
    most = xp.amax(greatest).reshape(1)
    # By a tensor: on a GPU torch multiplies by the reciprocal of a number instead, which rounds twice.
    return xp.where(most == 0, one, (most / (2688 * one)).clip(2.0**-126))


def _nearest(x: Any, mantissa: int, least: int, most: float) -> Any:
    """The nearest codes of magnitudes in float64, ties to even, saturating.

    The type has so many bits of mantissa, and 2 to the power of ``least`` is its least normal number.
    """
    xp = _library(x)
    x = x.clip(None, most)
    # Below the least normal number all distances are as they are there.
    exponent = ((x.view(xp.int64) >> 52) - 1023).clip(least)
    steps = xp.round(x * ((1023 + mantissa - exponent) << 52).view(xp.float64))
    # Codes ascend with their values: each binade has as many as a mantissa.
    return _cast(((exponent - least) << mantissa) + steps, xp.uint8)


def _e4m3(bits: Any) -> Any:
    """What bits of e4m3 stand for, in float64."""
    xp = _library(bits)
    return _cast(bits.view(_fp8(xp)), xp.float64)


def _fp8(xp: Any) -> Any:
    """The element type e4m3 of a library, or of ml_dtypes for NumPy, which has none."""
    if xp.__name__ == "torch":
        return xp.float8_e4m3fn
    import ml_dtypes

    return ml_dtypes.float8_e4m3fn


def scale_shape(rows: int, k: int, layout: str) -> tuple[int, ...]:
    """The shape of the scales of a tensor [rows, K]."""
    blocks = k // BLOCK
    return (rows, blocks) if layout == "plain" else (*_tiled(rows, blocks), 512)


def _tiled(rows: int, blocks: int) -> tuple[int, int]:
    """How many tiles of 128 rows by 4 scales there are down and along."""
    return -(-rows // 128), -(-blocks // 4)


def _tiles(bits: Any) -> Any:
    """Plain scales in tiles."""
    (rows, blocks), (down, along) = bits.shape, _tiled(*bits.shape)
    padded = _full([128 * down, 4 * along], 0, bits.dtype, bits)
    padded[:rows, :blocks] = bits
    return padded.reshape(down, 4, 32, along, 4).swapaxes(1, 3).reshape(down, along, 512)


def _plain(bits: Any, rows: int, k: int) -> Any:
    """Scales in tiles as plain ones."""
    down, along, _ = bits.shape
    padded = bits.reshape(down, along, 32, 4, 4).swapaxes(1, 3).reshape(128 * down, 4 * along)
    plain = _full([rows, k // BLOCK], 0, bits.dtype, bits)
    plain[:] = padded[:rows, : k // BLOCK]
    return plain


def _library(x: Any) -> Any:
    """Torch for its tensors, else NumPy."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        return torch
    import numpy

    return numpy


def _full(shape: list[int], value: float, dtype: Any, like: Any) -> Any:
    """A new array on the device of another."""
    if hasattr(like, "new_full"):
        return like.new_full(shape, value, dtype=dtype)
    return _library(like).full(shape, value, dtype)


def _cast(x: Any, dtype: Any) -> Any:
    """An array of another type, row after row."""
    if hasattr(x, "to"):
        return x.to(dtype).contiguous()
    # What is too large becomes infinite, of which torch does not warn either.
    with _library(x).errstate(over="ignore"):
        return x.astype(dtype, "C", copy=False)
