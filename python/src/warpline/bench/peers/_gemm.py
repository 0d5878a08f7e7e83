"""GEMM ops; torch calls cuBLAS."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from . import Bare, Op, Peer, compiled, eager

if TYPE_CHECKING:
    from ..suites import Problem, TensorSpec

#: Scale tensors.
SCALES = (
    "scale_a",
    "scale_b",
    "scale_x",
    "scale_weight",
    "scale_gate",
    "scale_up",
)


def unit_scale(problem: Problem, spec: TensorSpec, generator: torch.Generator) -> Tensor:
    """Returns a scale of 1."""
    return torch.ones(spec.shape, device=generator.device)


def scaled_matmul(a: Tensor, b: Tensor, *scales: Tensor | None) -> Tensor:
    """Computes a · b times all scales, in the precision of the inputs."""
    y = a @ b
    for scale in scales:
        y = y if scale is None else y * scale
    return y


def _one_call(problem: Problem) -> str | None:
    """Skips ``torch.compile`` for the suites of many layers that are one call of cuBLAS."""
    suites = ("layers", "layers-fp8", "odd-pitch")
    return "it makes the same call of cuBLAS" if problem.suite in suites else None


def gemm_op(
    function: Callable[..., Any],
    reference: Callable[..., Any],
    split: tuple[str, ...],
    bare: Bare | None = None,
    more: tuple[Peer, ...] = (),
) -> Op:
    """Declares a torch op, its reference, and further peers."""
    return Op(
        reference=reference,
        split=split,
        peers=(eager(function), compiled(function, _one_call), *more),
        draw=dict.fromkeys(SCALES, unit_scale),
        bare=bare,
    )
