"""NumPy arrays in layouts that no kernel addresses: the calls run on dense copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from conftest import random

import warpline


def _gaps(x: np.ndarray) -> np.ndarray:
    """Returns a copy at an odd offset, with a stride of two elements and an odd pitch."""
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1] + 1), x.dtype)
    wide[..., 1::2] = x
    return wide[..., 1::2]


def _field(x: np.ndarray) -> np.ndarray:
    """Returns a field of records, whose strides are no multiples of its elements."""
    records = np.zeros(x.shape, [("tag", "u1"), ("x", x.dtype)])
    records["x"] = x
    return records["x"]


#: Copies of an array in other layouts.
LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "transposed": np.asfortranarray,
    "gaps": _gaps,
    "negative rows": lambda x: x[::-1].copy()[::-1],
    "negative columns": lambda x: x[..., ::-1].copy()[..., ::-1],
    "record": _field,
}


def _ms_deform_attn(value: Any, locations: Any, weights: Any, **options: Any) -> np.ndarray:
    return warpline.ms_deform_attn(value, [(2, 3)], [0], locations, weights, **options)


def _codes(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, shape, np.uint8)


#: Each op and its arguments.
CALLS: dict[str, tuple[Callable[..., np.ndarray], list[np.ndarray]]] = {
    "add": (warpline.add, [random((4, 6), seed=seed) for seed in (1, 2)]),
    "softmax": (warpline.softmax, [random((4, 6))]),
    "layer_norm": (warpline.layer_norm, [random((4, 6)), random((6,), seed=1), random((6,), seed=2)]),
    "rms_norm": (warpline.rms_norm, [random((4, 6), np.float16), random((6,), np.float16, 1)]),
    "matmul": (warpline.matmul, [random((5, 16), np.float16), random((16, 8), np.float16, 1)]),
    "matmul in fp8": (
        warpline.matmul,
        [random((5, 16), ml_dtypes.float8_e4m3fn), random((16, 16), ml_dtypes.float8_e4m3fn, 1)],
    ),
    "linear": (warpline.linear, [random(shape, np.float16, 1) for shape in ((5, 16), (8, 16), (8,))]),
    "swiglu": (warpline.swiglu, [random(shape, np.float16, 2) for shape in ((5, 16), (8, 16), (8, 16))]),
    "dual_gemm": (warpline.dual_gemm, [random(shape, np.float16, 3) for shape in ((5, 16), (16, 16))]),
    "nvfp4_dual_gemm": (
        warpline.nvfp4_dual_gemm,
        [random((3, 32), np.float16), _codes((16, 16)), random((16, 2), seed=1).astype(ml_dtypes.float8_e4m3fn)],
    ),
    "ms_deform_attn": (
        _ms_deform_attn,
        [
            random((1, 6, 2, 8)),
            np.random.default_rng(1).random((1, 3, 2, 1, 4, 2), np.float32),
            random((1, 3, 2, 1, 4), seed=2),
        ],
    ),
    "attention": (warpline.attention, [random((1, 5, 2, 64), np.float16, seed) for seed in (1, 2, 3)]),
}

every_op = pytest.mark.parametrize("op", CALLS)
every_layout = pytest.mark.parametrize("layout", LAYOUTS)


def same(got: np.ndarray, expected: np.ndarray) -> None:
    """Asserts equal results; the memory order of B may change the rounding of a GEMM."""
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    tolerance = 2 * float(ml_dtypes.finfo(got.dtype).eps)
    np.testing.assert_allclose(
        got.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=tolerance
    )


@every_op
@every_layout
def test_each_argument_may_have_any_layout(op: str, layout: str) -> None:
    function, args = CALLS[op]
    expected = function(*args)
    for i, arg in enumerate(args):
        given = LAYOUTS[layout](arg)
        assert np.array_equal(given, arg)
        same(function(*args[:i], given, *args[i + 1 :]), expected)
    same(function(*map(LAYOUTS[layout], args)), expected)


@every_op
@every_layout
def test_out_may_have_any_layout(op: str, layout: str) -> None:
    function, args = CALLS[op]
    expected = function(*args)
    out = LAYOUTS[layout](np.full_like(expected, 7))
    assert function(*args, out=out) is out
    same(out, expected)


@pytest.mark.parametrize("op", [warpline.softmax, warpline.layer_norm, warpline.rms_norm])
def test_a_row_may_be_broadcast(op: Any) -> None:
    x = random((3, 6))
    same(op(np.broadcast_to(x[0], (4, 6))), np.broadcast_to(op(x)[0], (4, 6)))


@pytest.mark.parametrize("dim", [0, 1, -2, -3])
def test_softmax_over_any_dimension(dim: int) -> None:
    x = random((3, 4, 5))
    expected = np.moveaxis(warpline.softmax(np.ascontiguousarray(np.moveaxis(x, dim, -1))), -1, dim)
    same(warpline.softmax(x, dim), expected)
    out = np.empty_like(x)
    warpline.softmax(x, dim, out=out)
    same(out, expected)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_the_vectors_of_a_norm_may_have_another_type(dtype: Any) -> None:
    x, weight, bias = random((4, 6), dtype), random((6,), seed=1), random((6,), seed=2)
    same(warpline.layer_norm(x, weight, bias), warpline.layer_norm(x.astype(np.float32), weight, bias).astype(dtype))
    same(warpline.rms_norm(x, weight), warpline.rms_norm(x.astype(np.float32), weight).astype(dtype))
    same(warpline.rms_norm(x.astype(np.float32), weight.astype(dtype)), warpline.rms_norm(x.astype(np.float32), weight.astype(dtype).astype(np.float32)))


def test_copies_do_not_hide_bad_input() -> None:
    x = np.asfortranarray(random((4, 6)))
    with pytest.raises(warpline.InputError, match=r"weight must be f32 \[6\] like a row of x, not f32 \[5\]"):
        warpline.layer_norm(x, random((5,)))
    with pytest.raises(warpline.InputError, match="y shares memory with x"):
        warpline.softmax(x, out=x)
    with pytest.raises(warpline.InputError, match="bias requires weight"):
        warpline.layer_norm(x, bias=random((6,)))
