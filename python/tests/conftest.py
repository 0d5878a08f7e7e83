"""Shared by the tests: inputs, float64 references, and a tolerance."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

# A test measures a kernel, or fails: torch's own ops do not run instead.
os.environ["WARPLINE_STRICT"] = "1"

#: Element types that every op supports.
DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}

#: The tensors of each op; the output has the shape of the first.
TENSORS = {"add": "ab", "softmax": "x", "layer_norm": "xwb", "rms_norm": "xw"}


class Reference(NamedTuple):
    """The expected values of an op, and the magnitudes that scale its rounding error."""

    value: np.ndarray
    scale: np.ndarray


def random(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    """Returns normally distributed values from a fixed seed."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def inputs(op: str, shape: tuple[int, ...], dtype: Any = np.float32) -> tuple[np.ndarray, ...]:
    """Returns the tensors of an op for a shape."""
    shapes = {"w": shape[-1:]} | ({"b": shape[-1:]} if op == "layer_norm" else {})
    return tuple(random(shapes.get(name, shape), dtype, seed) for seed, name in enumerate(TENSORS[op]))


def reference(op: str, *tensors: np.ndarray, **options: float) -> Reference:
    """Computes an op in float64."""
    tensors_f64 = [np.asarray(t).astype(np.float64) for t in tensors]
    references = {"add": _add, "softmax": _softmax, "layer_norm": _layer_norm, "rms_norm": _rms_norm}
    return references[op](*tensors_f64, **options)


def _add(a: np.ndarray, b: np.ndarray) -> Reference:
    return Reference(a + b, np.abs(a + b))


def _softmax(x: np.ndarray) -> Reference:
    exp = np.exp(x - x.max(axis=-1, keepdims=True))
    total = exp.sum(axis=-1, keepdims=True)
    return Reference(exp / total, np.broadcast_to(1 / total, x.shape))


def _layer_norm(x: np.ndarray, weight: Any = 1.0, bias: Any = 0.0, eps: float = 1e-5) -> Reference:
    mean = x.mean(axis=-1, keepdims=True)
    normal = (x - mean) / np.sqrt(((x - mean) ** 2).mean(axis=-1, keepdims=True) + eps)
    return Reference(normal * weight + bias, np.abs(weight) * (np.abs(normal) + 1) + np.abs(bias))


def _rms_norm(x: np.ndarray, weight: Any = 1.0, eps: float = 1e-6) -> Reference:
    value = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps) * weight
    return Reference(value, np.abs(value))


def ulp(values: np.ndarray, dtype: Any) -> np.ndarray:
    """Returns the ulp of an element type at these values."""
    info = ml_dtypes.finfo(dtype)
    exponent = np.where(values == 0, info.minexp, np.frexp(values)[1] - 1)
    return np.ldexp(1.0, np.maximum(exponent, info.minexp) - info.nmant)


def outside(got: np.ndarray, want: Reference) -> np.ndarray:
    """Returns a mask of the results outside the tolerance; a NaN is outside."""
    return ~(np.abs(got.astype(np.float64) - want.value) <= bound(got.dtype, want))


def bound(dtype: Any, want: Reference) -> np.ndarray:
    """Returns the tolerance: one ulp of the type plus 1e-6 of the scale."""
    return ulp(want.value, dtype) + 1e-6 * want.scale


def assert_close(got: np.ndarray, want: Reference) -> None:
    """Asserts that results are within tolerance, and that four times the tolerance would fail."""
    assert got.shape == want.value.shape
    wrong = outside(got, want)
    ratio = np.abs(got.astype(np.float64) - want.value) / bound(got.dtype, want)
    assert not wrong.any(), f"{wrong.sum()} of {wrong.size} outside tolerance, by up to {ratio.max():.2f} x"
    worse = (want.value + 4 * bound(got.dtype, want)).astype(got.dtype)
    assert outside(worse, want).all(), "four times the tolerance passes"
