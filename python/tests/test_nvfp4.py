"""NVFP4 on NumPy arrays: rounding, values, scale layouts, bad input."""

from __future__ import annotations

import math
import pickle
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from conftest import random

import warpline
from warpline import nvfp4_arrange_scales, nvfp4_dequantize, nvfp4_quantize

E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
#: The 127 finite magnitudes.
E4M3 = [math.ldexp(c % 8 + 8 * (c > 7), max(c // 8, 1) - 10) for c in range(127)]
FP8 = ml_dtypes.float8_e4m3fn
SMALLEST_NORMAL = float(np.finfo(np.float32).tiny)
SIZES = [(rows, k) for rows in (0, 1, 7, 127, 128, 129, 300) for k in (16, 48, 64, 80, 1040)]


def nearest(x: float, values: list[float]) -> int:
    """Returns the nearest code by exhaustive search in exact arithmetic, ties to even."""
    exact = Fraction(x)
    return min(range(len(values)), key=lambda code: (abs(Fraction(values[code]) - exact), code % 2))


def quantize_plain(x: np.ndarray, scale: Any = None) -> warpline.Nvfp4[np.ndarray]:
    return nvfp4_quantize(x, scale, "plain")


def reference(x: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Quantizes element by element: packed codes and plain scale bits."""
    codes: list[int] = []
    scales: list[int] = []
    for block in x.astype(np.float32).reshape(-1, 16).tolist():
        scales.append(nearest(max(map(abs, block)) / (6.0 * scale), E4M3))
        step = E4M3[scales[-1]] * scale
        magnitudes = (nearest(abs(value) / step, E2M1) if step else 0 for value in block)
        codes += [m + 8 * (math.copysign(1.0, v) < 0) for m, v in zip(magnitudes, block, strict=True)]
    pairs = np.array(codes, np.uint8).reshape(len(x), -1, 2)
    return pairs[..., 0] + 16 * pairs[..., 1], np.array(scales, np.uint8).reshape(len(x), -1)


def assert_as_reference(x: np.ndarray, scale: Any = None) -> None:
    q = quantize_plain(x, scale)
    codes, scales = reference(x, float(q.tensor_scale[0]))
    assert (q.codes.dtype, q.scales.dtype, q.tensor_scale.dtype) == (np.uint8, FP8, np.float32)
    assert q.tensor_scale.shape == (1,)
    assert np.array_equal(q.scales.view(np.uint8), scales)
    assert np.array_equal(q.codes, codes)


def unpacked(codes: np.ndarray) -> np.ndarray:
    return np.stack([codes & 15, codes >> 4], -1).reshape(len(codes), -1)


def drawn(rows: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns random codes with a 6 or -6 in each block, and random nonzero scales."""
    draw = np.random.default_rng(rows)
    codes = draw.integers(0, 256, (rows, k // 16, 8), np.uint8)
    codes[..., 3] |= 0x70
    return codes.reshape(rows, k // 2), draw.integers(1, 0x7F, (rows, k // 16), np.uint8)


# To NVFP4.


@pytest.mark.parametrize("scale", [None, 0.3, 1e-3, "amax"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_codes_and_scales_are_the_nearest(dtype: Any, scale: Any) -> None:
    x = random((5, 80), np.float32)
    x[1] *= 1e-3
    x[2] *= 1e4
    x[3, ::3] = 0.0
    x[4, :32] = -0.0
    assert_as_reference(x.astype(dtype), scale)


def test_scales_are_rounded_once_and_ties_go_to_even() -> None:
    middles = [(low + high) / 2 for low, high in zip(E4M3, E4M3[1:])]
    ties = np.array([6 * x for x in [*middles, *E4M3]], np.float32)
    x = np.zeros((3 * len(ties), 16), np.float32)
    x[:, 5] = np.concatenate([ties, np.nextafter(ties, 0), np.nextafter(ties, np.float32(1e9))])
    x[:, 6] = -x[:, 5] / 3
    assert_as_reference(x)
    # These quotients are ties; a product with the reciprocal would not be one.
    for scale in (31, 41, 163):
        assert_as_reference(scale * x[: len(ties)], scale)
    bits = quantize_plain(x).scales.view(np.uint8)[:126, 0]
    assert bits.tolist() == [code + code % 2 for code in range(126)]


def test_codes_are_rounded_once_and_ties_go_to_even() -> None:
    middles = [(low + high) / 2 for low, high in zip(E2M1, E2M1[1:])]
    near = np.array([0.0, *middles, *E2M1], np.float32)
    near = np.concatenate([near, np.nextafter(near, np.float32(-9)), np.nextafter(near, np.float32(9))])
    x = np.full((2 * len(near), 16), 6.0, np.float32)
    x[:, 2] = np.concatenate([near, -near])
    x = np.minimum(x, 6)
    assert_as_reference(x)
    codes = unpacked(nvfp4_quantize(x).codes)[:, 2]
    assert codes[1:8].tolist() == [code + code % 2 for code in range(7)]
    # These ratios are not float32 numbers; a cast to float32 would make them ties.
    for scale in (0.3, 1 / 3, 0.7):
        assert_as_reference((x.astype(np.float64) * np.float32(scale)).astype(np.float32), scale)


@pytest.mark.parametrize(
    ("most", "scale", "expected"),
    [
        (6.0, None, (1.0, 0x38, [15, 13])),
        # Ties of the scale: 1 1/16 goes to 1, 1 3/16 to 1 1/4.
        (6.375, None, (1.0, 0x38, [15, 13])),
        (7.125, None, (1.0, 0x3A, [15, 13])),
        # A saturated scale, a subnormal scale, and a zero scale with zero codes.
        (1e9, None, (1.0, 0x7E, [15, 15])),
        (6 / 512, None, (1.0, 1, [15, 13])),
        (2.9 / 512, None, (1.0, 0, [8, 8])),
        (100.0, 1e6, (1e6, 0, [8, 8])),
        (0.0, "amax", (1.0, 0, [8, 8])),
        (2688 * 0.75, "amax", (0.75, 0x7E, [15, 13])),
        (6 * SMALLEST_NORMAL, "amax", (SMALLEST_NORMAL, 0x38, [15, 13])),
    ],
)
def test_scales_and_codes_of_single_blocks(most: float, scale: Any, expected: Any) -> None:
    x = np.zeros((1, 16), np.float32)
    x[0, 3:5] = -most, -most / 2
    q = quantize_plain(x, scale)
    assert (q.tensor_scale[0], q.scales.view(np.uint8)[0, 0], unpacked(q.codes)[0, 3:5].tolist()) == expected


def test_amax_scale_is_rounded_once_and_the_largest_code_is_reached() -> None:
    for most in [*np.abs(random((1, 50)))[0], np.finfo(np.float32).max]:
        q = quantize_plain(np.full((2, 16), most, np.float32), "amax")
        assert q.tensor_scale[0] == np.float32(Fraction(float(most)) / 2688)
        assert (q.scales.view(np.uint8) == 0x7E).all() and (q.codes == 0x77).all()


@pytest.mark.parametrize("scale", [1.0, 0.25, 0.3, 1e-30, 1e30])
@pytest.mark.parametrize(("rows", "k"), [(1, 16), (7, 48), (129, 80), (3, 1040)])
def test_exact_nvfp4_values_are_unchanged(rows: int, k: int, scale: float) -> None:
    codes, scales = drawn(rows, k)
    for given in (scale, np.float32(scale), np.array([scale], np.float32), np.array(scale)):
        q = quantize_plain(nvfp4_dequantize(codes, scales, given), given)
        assert np.array_equal(q.codes, codes) and np.array_equal(q.scales.view(np.uint8), scales)
        assert q.tensor_scale.tolist() == [np.float32(scale)]


def test_strided_and_empty_arrays_are_supported() -> None:
    x = random((32, 6))
    x.flags.writeable = False
    dense = nvfp4_quantize(np.ascontiguousarray(x.T))
    for strided in (nvfp4_quantize(x.T), nvfp4_quantize(np.repeat(x.T, 2, 0)[::2])):
        assert all(np.array_equal(a, b) and a.flags.c_contiguous for a, b in zip(strided, dense, strict=True))
    strided_args = (np.repeat(dense.codes, 2, 1)[:, ::2], np.asfortranarray(dense.scales))
    assert np.array_equal(nvfp4_dequantize(*strided_args), nvfp4_dequantize(*dense))
    for scale in (None, "amax"):
        for layout, shape in (("plain", (0, 2)), ("block", (0, 1, 512))):
            q = nvfp4_quantize(np.zeros((0, 32)), scale, layout)
            assert (q.codes.shape, q.scales.shape, q.tensor_scale) == ((0, 16), shape, 1)
            assert nvfp4_dequantize(*q, layout).shape == (0, 32)


def test_result_is_a_picklable_named_tuple() -> None:
    q = nvfp4_quantize(random((2, 32)))
    assert isinstance(q, warpline.Nvfp4) and q._fields == ("codes", "scales", "tensor_scale")
    again = pickle.loads(pickle.dumps(q))
    assert type(again) is warpline.Nvfp4
    assert all(np.array_equal(a, b) for a, b in zip(again, q, strict=True))


# From NVFP4.


def test_every_code_and_scale_is_dequantized_exactly() -> None:
    codes = np.tile(np.arange(0x10, 0x100, 0x22, dtype=np.uint8), (256, 1))
    scales = np.arange(256, dtype=np.uint8).reshape(256, 1)
    e2m1 = np.array([*E2M1, *(-x for x in E2M1)])
    e4m3 = np.array([*E4M3, np.nan, *(-x for x in E4M3), np.nan])
    for given in (scales, scales.view(FP8)):
        values = nvfp4_dequantize(codes, given, 0.1)
        expected = (e4m3[:, None] * e2m1 * float(np.float32(0.1))).astype(np.float32)
        assert values.dtype == np.float32 and np.array_equal(values, expected, equal_nan=True)
        assert np.array_equal(np.signbit(values)[:127], np.signbit(expected)[:127])
        assert np.isnan(values).sum() == 32


def test_float32_overflow_is_infinite_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        codes, scales = np.full((1, 8), 0xF7, np.uint8), np.full((1, 1), 0x7E, np.uint8)
        assert nvfp4_dequantize(codes, scales, 1e38)[0, :2].tolist() == [math.inf, -math.inf]
        nvfp4_dequantize(codes, scales | 1)
        nvfp4_quantize(np.full((1, 16), np.finfo(np.float32).max), SMALLEST_NORMAL / 2**23)
        with pytest.raises(warpline.InputError):
            nvfp4_quantize(np.full((1, 16), 1e300))


# Scale layouts.


@pytest.mark.parametrize(("rows", "k"), SIZES)
def test_block_layout_matches_cublas_and_round_trips(rows: int, k: int) -> None:
    plain = (np.arange(rows * k // 16) % 251 + 1).astype(np.uint8).reshape(rows, k // 16)
    block = nvfp4_arrange_scales(plain, rows, k)
    tile_columns = math.ceil(k / 64)
    assert block.shape == (math.ceil(rows / 128), tile_columns, 512) and block.dtype == np.uint8
    row, column = np.indices(plain.shape)
    tile = row // 128 * tile_columns + column // 4
    assert np.array_equal(block.ravel()[tile * 512 + row % 32 * 16 + row % 128 // 32 * 4 + column % 4], plain)
    assert np.count_nonzero(block) == plain.size
    back = nvfp4_arrange_scales(block, rows, k, "plain")
    assert np.array_equal(back, plain) and back.flags.c_contiguous
    fp8_block = nvfp4_arrange_scales(plain.view(FP8), rows, k, to="block")
    assert fp8_block.dtype == FP8 and np.array_equal(fp8_block.view(np.uint8), block)


@pytest.mark.parametrize(("rows", "k"), [(1, 16), (129, 80), (300, 48)])
def test_both_layouts_have_the_same_values(rows: int, k: int) -> None:
    x = random((rows, k))
    plain, block = quantize_plain(x, "amax"), nvfp4_quantize(x, "amax")
    assert block.scales.dtype == FP8
    assert np.array_equal(block.scales, nvfp4_arrange_scales(plain.scales, rows, k))
    assert np.array_equal(nvfp4_dequantize(*block), nvfp4_dequantize(*plain))
    assert np.array_equal(nvfp4_dequantize(*block, "block"), nvfp4_dequantize(*plain, "plain"))


# Gated GEMM.


def silu(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


@pytest.mark.parametrize("layout", ["plain", "block"])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 8, 16), (20, 128, 80), (33, 136, 320)])
def test_gated_gemm_matches_the_dequantized_operands(m: int, n: int, k: int, layout: str) -> None:
    drawn = (random((rows, k), seed=i) / 4 for i, rows in enumerate((m, n, n)))
    x, gate, up = (nvfp4_quantize(values, scale_layout=layout) for values in drawn)
    a, b, c = (nvfp4_dequantize(*q, scale_layout=layout).astype(float) for q in (x, gate, up))
    scales = {"scale_gate": gate.tensor_scale, "scale_up": up.tensor_scale}
    weights = (gate.codes, gate.scales, up.codes, up.scales)
    y = warpline.nvfp4_dual_gemm(
        x.codes, *weights, x.scales, scale_x=x.tensor_scale, scale_layout=layout, **scales
    )
    exact = silu(a @ b.T) * (a @ c.T)
    assert (y.dtype, y.shape) == (np.float16, (m, n))
    assert np.abs(y - exact).max() <= 1e-3 + 1e-3 * np.abs(exact).max()
    wide = a.astype(np.float16)
    y = warpline.nvfp4_dual_gemm(wide, *weights, scale_layout=layout, **scales)
    exact = silu(wide.astype(float) @ b.T) * (wide.astype(float) @ c.T)
    assert np.abs(y - exact).max() <= 1e-3 + 1e-3 * np.abs(exact).max()


def test_packed_weights_give_the_same_bits_as_two_tensors() -> None:
    x, gate, up = (quantize_plain(random((rows, 48), seed=i)) for i, rows in enumerate((5, 24, 24)))
    separate = warpline.nvfp4_dual_gemm(x.codes, gate.codes, gate.scales, up.codes, up.scales, x.scales)
    codes, scales = (np.concatenate([g, u]) for g, u in zip(gate[:2], up[:2], strict=True))
    assert np.array_equal(warpline.nvfp4_dual_gemm(x.codes, codes, scales, x_scales=x.scales), separate)


# Linear layer.


@pytest.mark.parametrize("layout", ["plain", "block"])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 8, 16), (21, 136, 80), (40, 72, 512)])
def test_linear_matches_the_dequantized_weight(m: int, n: int, k: int, layout: str) -> None:
    x, bias = random((m, k), np.float16), random((n,), np.float16)
    w = nvfp4_quantize(random((n, k), seed=1), "amax", layout)
    exact = x.astype(float) @ nvfp4_dequantize(*w).astype(float).T
    for options in ({}, {"scale_layout": layout}):
        y = warpline.nvfp4_linear(x, *w, bias, **options)
        assert (y.dtype, y.shape) == (np.float16, (m, n))
        assert np.abs(y - (exact + bias)).max() <= 1e-3 + 1e-3 * np.abs(exact).max()
    assert np.abs(warpline.nvfp4_linear(x, *w) - exact).max() <= 1e-3 + 1e-3 * np.abs(exact).max()


def test_linear_rows_do_not_depend_on_the_batch() -> None:
    x, w = random((140, 320), np.float16), nvfp4_quantize(random((64, 320), seed=1), "amax")
    full = warpline.nvfp4_linear(x, *w, batch_invariant=True)
    for rows in (1, 17, 70):
        assert np.array_equal(warpline.nvfp4_linear(x[:rows], *w, batch_invariant=True), full[:rows])


def test_linear_rejects_mismatched_operands() -> None:
    x, w = np.ones((2, 32), np.float16), nvfp4_quantize(np.ones((8, 32), np.float32))
    for call, message in (
        (lambda: warpline.nvfp4_linear(x[:, :16], *w), "with weight rows of 16 bytes it must be 32"),
        (lambda: warpline.nvfp4_linear(x.astype(np.float32), *w), "x is f32; it must be bf16 or f16"),
        (lambda: warpline.nvfp4_linear(x, w.codes, w.scales[0]), "scales in blocks have the shape"),
        (lambda: warpline.nvfp4_linear(x, *w, np.ones(7, np.float16)), r"bias is f16 \[7\]; it must be f16 \[8\]"),
        (lambda: warpline.nvfp4_linear(x, w.codes, w.scales, np.ones(2, np.float32)), "scale_weight is f32"),
    ):
        with pytest.raises(warpline.InputError, match=message):
            call()


W = quantize_plain(np.ones((8, 32), np.float32))


@pytest.mark.parametrize(
    ("call", "expected_message"),
    [
        (
            lambda: warpline.nvfp4_dual_gemm(W.codes[:, :12], *(W.codes[:, :12], W.scales) * 2, W.scales),
            "K is 24; nvfp4 needs a positive multiple of 16",
        ),
        (
            lambda: warpline.nvfp4_dual_gemm(W.codes, *(W.codes, W.scales[:4]) * 2, W.scales),
            r"gate_scales is e4m3 \[4, 2\]; scales in blocks have the shape \[1, 1, 512\], plain scales \[8, 2\]",
        ),
        (
            lambda: warpline.nvfp4_dual_gemm(
                W.codes, *(W.codes, W.scales) * 2, W.scales, scale_layout="block"
            ),
            r"gate_scales is e4m3 \[8, 2\]; it must be e4m3 \[1, 1, 512\] \(scale_layout block\)",
        ),
        (
            lambda: warpline.nvfp4_dual_gemm(
                W.codes, *(W.codes, W.scales) * 2, W.scales, scale_layout="tiled"
            ),
            'scale_layout is "tiled"; it must be block, plain or auto',
        ),
        (
            lambda: warpline.nvfp4_dual_gemm(W.codes, W.codes, W.scales, W.codes[:4], W.scales, W.scales),
            r"w_up is u8 \[4, 16\]; it must match w_gate, u8 \[8, 16\]",
        ),
        (
            lambda: warpline.nvfp4_dual_gemm(W.codes, W.codes[:5], W.scales, x_scales=W.scales),
            "the packed weights have 5 rows",
        ),
        (
            lambda: warpline.nvfp4_dual_gemm(W.codes, *(W.codes, W.scales) * 2),
            "x_scales is missing; this call needs it",
        ),
        (
            lambda: warpline.nvfp4_dual_gemm(
                np.ones((2, 32), np.float16), *(W.codes, W.scales) * 2, W.scales
            ),
            "x_scales is set without an x in codes",
        ),
        (
            lambda: warpline.nvfp4_dual_gemm(
                W.codes, *(W.codes, W.scales) * 2, W.scales, scale_gate=W.tensor_scale
            ),
            "pass all tensor scales or none",
        ),
        (
            lambda: warpline.nvfp4_dual_gemm(
                np.ones((2, 48), np.float16), *(W.codes, W.scales) * 2
            ),
            "with w_gate rows of 16 bytes it must be 32",
        ),
    ],
)
def test_mismatched_operands_are_rejected(call: Callable[[], Any], expected_message: str) -> None:
    with pytest.raises(warpline.InputError, match=expected_message):
        call()


# Bad input.

X = np.ones((2, 32), np.float32)
Q = quantize_plain(X)
POSITIVE = "tensor_scale must be one number, finite and positive in float32, not "


def with_value(value: float, dtype: Any = np.float32) -> np.ndarray:
    x = X.astype(dtype)
    x[1, 18:] = value
    return x


@pytest.mark.parametrize(
    ("call", "expected_message"),
    [
        (lambda: nvfp4_quantize(X[:, :24]), "K must be a positive multiple of 16, not 24"),
        (lambda: nvfp4_quantize(X[:, :0]), "K must be a positive multiple of 16, not 0"),
        (lambda: nvfp4_quantize(X[0]), "x must have 2 dimensions, [rows, K], not [32]"),
        (
            lambda: nvfp4_quantize(X.astype(np.int32)),
            "x must have the element type f32 or f16 or bf16 or float64, not i32",
        ),
        (
            lambda: nvfp4_quantize(with_value(np.nan)),
            "values must be finite in float32, not nan at row 1, column 18",
        ),
        (
            lambda: nvfp4_quantize(with_value(-np.inf, np.float16)),
            "values must be finite in float32, not -inf at row 1, column 18",
        ),
        (
            lambda: nvfp4_quantize(with_value(1e300, np.float64)),
            "values must be finite in float32, not 1e+300 at row 1, column 18",
        ),
        (lambda: nvfp4_quantize(X, 0.0), POSITIVE + "0.0"),
        (lambda: nvfp4_quantize(X, -1), POSITIVE + "-1"),
        (lambda: nvfp4_quantize(X, math.nan), POSITIVE + "nan"),
        (lambda: nvfp4_quantize(X, math.inf), POSITIVE + "inf"),
        (lambda: nvfp4_quantize(X, 1e-50), POSITIVE + "1e-50"),
        (lambda: nvfp4_quantize(X, 1e50), POSITIVE + "1e+50"),
        (lambda: nvfp4_quantize(X, 10**400), POSITIVE + "1" + 79 * "0"),
        (lambda: nvfp4_quantize(X, "best"), POSITIVE + "'best'"),
        (lambda: nvfp4_quantize(X, "2"), POSITIVE + "'2'"),
        (lambda: nvfp4_quantize(X, np.ones(2)), POSITIVE + "array([1., 1.])"),
        (lambda: nvfp4_quantize(X, scale_layout="tiled"), "scale_layout must be plain or block, not 'tiled'"),
        (lambda: nvfp4_dequantize(Q.codes[:, :12], Q.scales), "K must be a positive multiple of 16, not 24"),
        (lambda: nvfp4_dequantize(Q.codes[0], Q.scales), "codes must have 2 dimensions, [rows, K/2], not [16]"),
        (
            lambda: nvfp4_dequantize(Q.codes.view(np.int8), Q.scales),
            "codes must have the element type u8, not int8",
        ),
        (
            lambda: nvfp4_dequantize(Q.codes, Q.scales.astype(np.float32)),
            "scales must have the element type e4m3 or u8, not f32",
        ),
        (
            lambda: nvfp4_dequantize(Q.codes, Q.scales[:1]),
            "plain scales of [2, 32] must have shape [2, 2], not [1, 2]",
        ),
        (
            lambda: nvfp4_dequantize(Q.codes, Q.scales, scale_layout="block"),
            "block scales of [2, 32] must have shape [1, 1, 512], not [2, 2]",
        ),
        (lambda: nvfp4_dequantize(*Q, scale_layout="rows"), "scale_layout must be plain or block, not 'rows'"),
        (lambda: nvfp4_dequantize(Q.codes, Q.scales, "amax"), POSITIVE + "'amax'"),
        (lambda: nvfp4_arrange_scales(Q.scales, 2, 24), "K must be a positive multiple of 16, not 24"),
        (lambda: nvfp4_arrange_scales(Q.scales, 2, 32.0), "K must be a positive multiple of 16, not 32.0"),
        (lambda: nvfp4_arrange_scales(Q.scales, -1, 32), "rows must be a non-negative integer, not -1"),
        (lambda: nvfp4_arrange_scales(Q.scales, 3, 32), "plain scales of [3, 32] must have shape [3, 2], not [2, 2]"),
        (
            lambda: nvfp4_arrange_scales(Q.scales, 129, 80, "plain"),
            "block scales of [129, 80] must have shape [2, 2, 512], not [2, 2]",
        ),
        (lambda: nvfp4_arrange_scales(Q.scales, 2, 32, "cublas"), "to must be plain or block, not 'cublas'"),
    ],
)
def test_bad_input_is_rejected(call: Callable[[], Any], expected_message: str) -> None:
    with pytest.raises(warpline.InputError) as caught:
        call()
    assert (str(caught.value), caught.value.code) == (f"nvfp4: {expected_message}", "bad-problem")


@pytest.mark.parametrize(
    ("call", "expected_message"),
    [
        (lambda: nvfp4_quantize(X.tolist()), "x must be a NumPy array or a torch tensor, not of type list"),
        (
            lambda: nvfp4_quantize(np.ma.masked_less(X, 0)),
            "x must be a NumPy array or a torch tensor, not of type MaskedArray",
        ),
        (
            lambda: nvfp4_dequantize(Q.codes, None),
            "scales must be a NumPy array or a torch tensor, not of type NoneType",
        ),
    ],
)
def test_non_arrays_are_rejected(call: Callable[[], Any], expected_message: str) -> None:
    with pytest.raises(warpline.InputError) as caught:
        call()
    assert (str(caught.value), caught.value.code) == (f"nvfp4: {expected_message}", "bad-type")
