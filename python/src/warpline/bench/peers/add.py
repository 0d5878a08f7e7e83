"""Elementwise addition."""

from __future__ import annotations

import torch
from torch import Tensor

from . import Op, compiled, eager, triton


def add(a: Tensor, b: Tensor) -> Tensor:
    """a + b."""
    return torch.add(a, b)


def reference(a: Tensor, b: Tensor) -> Tensor:
    """a + b, in the precision of the inputs."""
    return a + b


OP = Op(
    reference=reference,
    split=("a", "b"),
    peers=(eager(add), compiled(add), triton("_triton_rows", "add")),
)
