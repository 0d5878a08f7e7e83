"""Packs the gate and up projection of a gated GEMM into one tensor, and back."""

from __future__ import annotations

from typing import Any, TypeVar

from ._errors import InputError

_A = TypeVar("_A")

#: Consecutive rows of one weight in the interleaved layout.
GROUP = 8


def pack_weights(w_gate: _A, w_up: _A, weights: str = "concatenated") -> _A:
    """Packs both weights of ``dual_gemm`` into one tensor [2N, K]: concatenated or interleaved.

    >>> import numpy as np, warpline
    >>> gate, up = np.zeros((8, 2)), np.ones((8, 2))
    >>> warpline.pack_weights(gate, up)[[0, 7, 8, 15], 0]
    array([0., 0., 1., 1.])
    """
    gate, up = _matrix("w_gate", w_gate), _matrix("w_up", w_up)
    if gate.shape != up.shape or gate.dtype != up.dtype:
        raise InputError(
            f"pack_weights: w_up must match w_gate, {gate.dtype} {list(gate.shape)}, "
            f"not {up.dtype} {list(up.shape)}"
        )
    (n, k), group = gate.shape, _group("pack_weights", weights, gate.shape[0])
    parts = [w.reshape(n // group if group else 0, 1, group, k) for w in (gate, up)]
    return _concatenate(parts).reshape(2 * n, k)


def unpack_weights(packed: _A, weights: str = "concatenated") -> tuple[_A, _A]:
    """Splits one tensor [2N, K] into gate and up: the inverse of ``pack_weights``.

    >>> import numpy as np, warpline
    >>> gate, up = warpline.unpack_weights(np.arange(32).reshape(32, 1), "interleaved")
    >>> up[:, 0]
    array([ 8,  9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31])
    """
    matrix = _matrix("packed", packed)
    rows, k = matrix.shape
    if rows % 2:
        raise InputError(f"unpack_weights: packed must have an even number of rows, not {rows}")
    group = _group("unpack_weights", weights, rows // 2)
    parts = matrix.reshape(rows // 2 // group if group else 0, 2, group, k)
    gate, up = (parts[:, i].reshape(rows // 2, k) for i in (0, 1))
    return gate, up


def _matrix(name: str, value: Any) -> Any:
    if len(getattr(value, "shape", ())) != 2:
        raise InputError(f"{name} must be an array with 2 dimensions, [N, K], not {value!r:.80}")
    return value


def _group(function: str, weights: str, n: int) -> int:
    """Returns the number of consecutive rows of one weight."""
    if weights == "concatenated":
        return n
    if weights != "interleaved":
        raise InputError(f"{function}: weights must be concatenated or interleaved, not {weights!r}")
    if n % GROUP:
        raise InputError(
            f"{function}: interleaved weights need N to be a multiple of {GROUP}, not {n}"
        )
    return GROUP


def _concatenate(parts: list[Any]) -> Any:
    """Concatenates along the second dimension with the library of the arrays."""
    if type(parts[0]).__module__.partition(".")[0] == "torch":
        import torch

        return torch.cat(parts, 1)
    import numpy

    return numpy.concatenate(parts, 1)
