"""Gated GEMM on NumPy arrays: types, weight layouts, bad input."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import warpline


def silu(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


def draw(m: int, n: int, k: int, dtype: Any = np.float16) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns x and both weights."""
    random = np.random.default_rng(1)
    x, gate, up = (random.normal(size=(rows, k)).astype(dtype) for rows in (m, n, n))
    return x, gate, up


def gemms(x: np.ndarray, *weights: np.ndarray) -> list[np.ndarray]:
    return [x.astype(np.float64) @ w.astype(np.float64).T for w in weights]


def near(got: np.ndarray, want: np.ndarray) -> bool:
    return bool(np.allclose(got.astype(np.float64), want, rtol=2e-2, atol=2e-2))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_output_type_is_the_input_type_and_bf16_for_fp8(dtype: Any) -> None:
    x, gate, up = draw(5, 24, 32, dtype)
    a, b = gemms(x, gate, up)
    y = warpline.swiglu(x, gate, up)
    assert y.dtype == (ml_dtypes.bfloat16 if np.dtype(dtype).itemsize == 1 else dtype)
    assert near(y, silu(a) * b)
    wide = warpline.swiglu(x, gate, up, out_dtype=np.float32)
    assert wide.dtype == np.float32 and near(wide, silu(a) * b)


@pytest.mark.parametrize("weights", ["concatenated", "interleaved"])
def test_packed_weights_give_the_same_bits_as_two_tensors(weights: str) -> None:
    x, gate, up = draw(70, 40, 72)
    packed = warpline.pack_weights(gate, up, weights)
    assert packed.shape == (80, 72)
    back = warpline.unpack_weights(packed, weights)
    assert all(np.array_equal(w, b) for w, b in zip((gate, up), back, strict=True))
    y = warpline.dual_gemm(x, packed, weights=weights)
    assert y.shape == (70, 40)
    assert np.array_equal(y, warpline.dual_gemm(x, gate, up))


@pytest.mark.parametrize(
    ("gate", "function"),
    [("none", lambda x: x), ("relu", lambda x: np.maximum(x, 0)), ("sigmoid", lambda x: 1 / (1 + np.exp(-x)))],
)
def test_each_gate_applies_its_function(gate: str, function: Any) -> None:
    x, w_gate, w_up = draw(3, 16, 16)
    a, b = gemms(x, w_gate, w_up)
    assert near(warpline.dual_gemm(x, w_gate, w_up, gate=gate), function(a) * b)


def test_each_weight_has_its_scale() -> None:
    x, gate, up = draw(4, 16, 32, ml_dtypes.float8_e4m3fn)
    a, b = gemms(x, gate, up)
    scales = [np.array([s], np.float32) for s in (0.5, 0.25, 2.0)]
    assert near(warpline.swiglu(x, gate, up, *scales), silu(a / 8) * b)


def test_leading_dimensions_and_strided_rows_are_supported() -> None:
    x, gate, up = draw(6, 16, 24)
    a, b = gemms(x, gate, up)
    padded = np.zeros((16, 40), np.float16)
    padded[:, :24] = up
    y = warpline.swiglu(x.reshape(2, 3, 24), gate, padded[:, :24])
    assert y.shape == (2, 3, 16) and near(y.reshape(6, 16), silu(a) * b)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, g, u: warpline.swiglu(x, g, u[:8]), r"w_up is f16 \[8, 24\]; it must match w_gate, f16 \[16, 24\]"),
        (lambda x, g, u: warpline.swiglu(x[:, :16], g, u), "K differs: x has 16, w_gate has 24"),
        (lambda x, g, u: warpline.dual_gemm(x, g[:15]), "the packed weights have 15 rows"),
        (lambda x, g, u: warpline.dual_gemm(x, g, weights="separate"), 'weights is "separate"; without w_up'),
        (lambda x, g, u: warpline.dual_gemm(x, g, u, gate="swish"), 'gate is "swish"; it must be none, relu'),
        (lambda x, g, u: warpline.pack_weights(g, u[:8]), "w_up must match w_gate"),
        (lambda x, g, u: warpline.pack_weights(g[:4], u[:4], "interleaved"), "N to be a multiple of 8, not 4"),
        (lambda x, g, u: warpline.pack_weights(g, u, "shuffled"), "not 'shuffled'"),
        (lambda x, g, u: warpline.unpack_weights(g[:3]), "packed must have an even number of rows, not 3"),
        (lambda x, g, u: warpline.unpack_weights(g[0]), "2 dimensions"),
    ],
)
def test_mismatched_arguments_are_rejected(call: Any, message: str) -> None:
    with pytest.raises(warpline.InputError, match=message):
        call(*draw(3, 16, 24))
