"""Ops that multiply matrices: torch's own are cuBLAS's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from . import Bare, Op, Peer, compiled, eager

if TYPE_CHECKING:
    from ..suites import Problem, TensorSpec

#: Tensors that hold a scale.
SCALES = (
    "scale_a",
    "scale_b",
    "scale_x",
    "scale_weight",
    "scale_gate",
    "scale_up",
)


def one(problem: Problem, spec: TensorSpec, generator: torch.Generator) -> Tensor:
    """A scale that changes nothing."""
    return torch.ones(spec.shape, device=generator.device)


def product(a: Tensor, b: Tensor, *scales: Tensor | None) -> Tensor:
    """a · b times all scales, in the precision of the inputs."""
    y = a @ b
    for scale in scales:
        y = y if scale is None else y * scale
    return y


def product_op(
    function: Callable[..., Any],
    reference: Callable[..., Any],
    split: tuple[str, ...],
    bare: Bare | None = None,
    more: tuple[Peer, ...] = (),
) -> Op:
    """An op of torch, its definition, and further peers."""
    return Op(
        reference=reference,
        split=split,
        peers=(eager(function), compiled(function), *more),
        draw=dict.fromkeys(SCALES, one),
        bare=bare,
    )
