"""GEMM on NumPy arrays: types, layouts, epilogues, bad input."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import warpline

OPERAND_TYPES = [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]


def operands(dtype: Any, m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns A and a weight; an e4m3 A has an e5m2 weight."""
    random = np.random.default_rng(0)
    other = ml_dtypes.float8_e4m3fn if dtype is ml_dtypes.float8_e5m2 else dtype
    return random.normal(size=(m, k)).astype(dtype), random.normal(size=(n, k)).astype(other)


def near(got: np.ndarray, want: np.ndarray) -> bool:
    """Returns whether results are within the rounding of the output and of fp8 accumulation."""
    return bool(np.allclose(got.astype(np.float64), want, rtol=1e-2, atol=1e-2))


@pytest.mark.parametrize("dtype", OPERAND_TYPES)
def test_output_type_is_the_operand_type_and_bf16_for_fp8(dtype: Any) -> None:
    a, weight = operands(dtype, 5, 24, 32)
    want = a.astype(np.float64) @ weight.astype(np.float64).T
    c = warpline.matmul(a, weight.T)
    assert c.dtype == (ml_dtypes.bfloat16 if np.dtype(dtype).itemsize == 1 else dtype)
    assert near(c, want)
    wide = warpline.matmul(a, weight.T, out_dtype=np.float32)
    assert wide.dtype == np.float32 and near(wide, want)
    assert near(warpline.linear(a, weight, out_dtype="f32"), want)


def test_b_may_be_row_or_column_major_and_batched() -> None:
    a, weight = operands(np.float16, 6, 16, 24)
    want = a.astype(np.float64) @ weight.astype(np.float64).T
    assert near(warpline.matmul(a, np.ascontiguousarray(weight.T)), want)
    batched = warpline.matmul(np.stack([a, 2 * a]), np.stack([weight.T, weight.T]))
    assert batched.shape == (2, 6, 16) and near(batched[1], 2 * want)
    broadcast = warpline.matmul(np.stack([a, 2 * a]), weight.T)
    assert broadcast.shape == (2, 6, 16) and near(broadcast[1], 2 * want)


@pytest.mark.parametrize("activation", ["none", "relu", "gelu-erf", "gelu-tanh", "silu", "sigmoid"])
def test_linear_adds_bias_before_and_residual_after_the_activation(activation: str) -> None:
    functions = {
        "none": lambda x: x,
        "relu": lambda x: np.maximum(x, 0),
        "gelu-erf": lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
        "gelu-tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        "silu": lambda x: x / (1 + np.exp(-x)),
        "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    }
    x, weight = operands(np.float16, 7, 16, 16)
    bias, residual = np.linspace(-2, 2, 16).astype(np.float16), np.ones((7, 16), np.float16)
    want = functions[activation](x.astype(np.float64) @ weight.astype(np.float64).T + bias) + 1
    assert near(warpline.linear(x, weight, bias, activation, residual), want)


def test_scales_multiply_and_must_be_given_in_pairs() -> None:
    a, weight = operands(ml_dtypes.float8_e4m3fn, 4, 16, 16)
    scales = [np.array([x], np.float32) for x in (0.5, 4.0)]
    want = 2 * a.astype(np.float64) @ weight.astype(np.float64).T
    assert near(warpline.matmul(a, weight.T, *scales), want)
    with pytest.raises(warpline.InputError, match="only some of scale_a, scale_b are set"):
        warpline.matmul(a, weight.T, scales[0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda a, w: warpline.matmul(a, w), "K differs: a has 16, b has 8"),
        (lambda a, w: warpline.matmul(np.stack([a, a]), np.stack([w.T, w.T, w.T])), "the batches .* cannot be broadcast"),
        (lambda a, w: warpline.matmul(a, w.T.astype(np.float32)), "b is f32; with a of f16 it must be f16"),
        (lambda a, w: warpline.matmul(a.astype(np.int32), w.T), "a is i32; it must be bf16, f16, e4m3, e5m2 or f32"),
        (lambda a, w: warpline.matmul(a, w.T, out_dtype="i32"), "the output is i32; it must be bf16, f16 or f32"),
        (lambda a, w: warpline.matmul(a, w.T, out_dtype="half"), "unknown element type 'half'"),
        (lambda a, w: warpline.linear(a, w, activation="tanh"), 'activation is "tanh"; it must be none, relu'),
        (lambda a, w: warpline.linear(a, w, bias=np.zeros(4, np.float16)), r"bias is f16 \[4\] with strides \[1\]; it must be f16 \[8\]"),
        (lambda a, w: warpline.linear(a, w, residual=np.zeros((3, 8), np.float16)), r"residual is f16 \[3, 8\]; it must match y, f16 \[2, 8\]"),
        (lambda a, w: warpline.matmul(a[:, ::2], w.T), "K differs: a has 8, b has 16"),
    ],
)
def test_unsupported_gemms_are_rejected_with_a_message(call: Any, message: str) -> None:
    a, weight = operands(np.float16, 2, 8, 16)
    with pytest.raises(warpline.InputError, match=message):
        call(a, weight)


def test_k_of_zero_gives_the_epilogue_of_a_zero_accumulator() -> None:
    x, weight = np.zeros((3, 0), np.float16), np.zeros((8, 0), np.float16)
    bias = np.arange(8, dtype=np.float16)
    assert (warpline.linear(x, weight, bias) == bias).all()
