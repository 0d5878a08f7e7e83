"""What the tests share: inputs, references in float64, and a tolerance that can fail."""

from __future__ import annotations

from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

#: Element types that every op takes.
DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}

#: The tensors that each op is called with here; the first is the one whose shape comes out.
TENSORS = {"add": "ab", "softmax": "x", "layer_norm": "xwb", "rms_norm": "xw"}


class Reference(NamedTuple):
    """What an op should give, and how large the values are that its rounding goes by."""

    value: np.ndarray
    scale: np.ndarray


def random(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    """Normal values: the same in each run."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def inputs(op: str, shape: tuple[int, ...], dtype: Any = np.float32) -> tuple[np.ndarray, ...]:
    """Tensors for an op: one of that shape, and what goes with it."""
    shapes = {"w": shape[-1:]} | ({"b": shape[-1:]} if op == "layer_norm" else {})
    return tuple(random(shapes.get(name, shape), dtype, seed) for seed, name in enumerate(TENSORS[op]))


def reference(op: str, *tensors: np.ndarray, **options: float) -> Reference:
    """What an op gives, in float64."""
    wide = [np.asarray(t).astype(np.float64) for t in tensors]
    makers = {"add": _add, "softmax": _softmax, "layer_norm": _layer_norm, "rms_norm": _rms_norm}
    return makers[op](*wide, **options)


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
    """The distance of neighbours of an element type, at these values."""
    info = ml_dtypes.finfo(dtype)
    exponent = np.where(values == 0, info.minexp, np.frexp(values)[1] - 1)
    return np.ldexp(1.0, np.maximum(exponent, info.minexp) - info.nmant)


def outside(got: np.ndarray, want: Reference) -> np.ndarray:
    """Which results are further off than one ulp of their type and 1e-6 of the scale. A NaN is."""
    return ~(np.abs(got.astype(np.float64) - want.value) <= bound(got.dtype, want))


def bound(dtype: Any, want: Reference) -> np.ndarray:
    """How far off a result may be."""
    return ulp(want.value, dtype) + 1e-6 * want.scale


def assert_close(got: np.ndarray, want: Reference) -> None:
    """Results are near the reference, and would not pass if they were off by four times as much."""
    assert got.shape == want.value.shape
    wrong = outside(got, want)
    off = np.abs(got.astype(np.float64) - want.value) / bound(got.dtype, want)
    assert not wrong.any(), f"{wrong.sum()} of {wrong.size} are off, by up to {off.max():.2f} bounds"
    worse = (want.value + 4 * bound(got.dtype, want)).astype(got.dtype)
    assert outside(worse, want).all(), "the tolerance takes what is four times off"
