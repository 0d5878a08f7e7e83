"""torch's products, as peers and as references in float64."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional

from .inputs import torch_dtype

if TYPE_CHECKING:
    from .suites import Problem, TensorSpec

#: The functions of a sum, by their names here.
ACTIVATIONS = {
    "none": lambda x: x,
    "relu": functional.relu,
    "gelu-erf": functional.gelu,
    "gelu-tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
    "sigmoid": torch.sigmoid,
}


def one(problem: Problem, spec: TensorSpec, generator: torch.Generator) -> Tensor:
    """A scale that changes nothing."""
    return torch.ones(spec.shape, device=generator.device)


def _type(name: str | None, like: torch.dtype) -> torch.dtype:
    if name is not None:
        return torch_dtype(name)
    return torch.bfloat16 if like.itemsize == 1 else like


def matmul(
    a: Tensor,
    b: Tensor,
    scale_a: Tensor | None = None,
    scale_b: Tensor | None = None,
    out_dtype: str | None = None,
    batch_invariant: bool = False,
) -> Tensor:
    """a · b, by cuBLAS; fp8 by ``_scaled_mm`` with fast accumulation."""
    if a.dtype.itemsize > 1:
        return torch.mm(a, b)
    return torch._scaled_mm(
        a, b, scale_a, scale_b, out_dtype=_type(out_dtype, a.dtype), use_fast_accum=True
    )


def linear(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    activation: str = "none",
    residual: Tensor | None = None,
    scale_x: Tensor | None = None,
    scale_weight: Tensor | None = None,
    out_dtype: str | None = None,
    batch_invariant: bool = False,
) -> Tensor:
    """A layer, as torch writes it."""
    y = ACTIVATIONS[activation](functional.linear(x, weight, bias))
    return y if residual is None else y + residual


def swiglu(
    x: Tensor,
    w_gate: Tensor,
    w_up: Tensor,
    scale_x: Tensor | None = None,
    scale_gate: Tensor | None = None,
    scale_up: Tensor | None = None,
    out_dtype: str | None = None,
    batch_invariant: bool = False,
) -> Tensor:
    """A gated layer, as models write it: two products."""
    gate = matmul(x, w_gate.mT, scale_x, scale_gate, out_dtype)
    return functional.silu(gate) * matmul(x, w_up.mT, scale_x, scale_up, out_dtype)


def swiglu_at_once(
    x: Tensor, weights: Tensor, scale_x: Tensor | None = None, scale: Tensor | None = None
) -> Tensor:
    """The same with both weights in one tensor, and one product."""
    gate, up = matmul(x, weights.mT, scale_x, scale).chunk(2, -1)
    return functional.silu(gate) * up


def _product(a: Tensor, b: Tensor, *scales: Tensor | None) -> Tensor:
    y = a @ b
    for scale in scales:
        y = y if scale is None else y * scale
    return y


def matmul_reference(
    a: Tensor,
    b: Tensor,
    scale_a: Tensor | None = None,
    scale_b: Tensor | None = None,
    out_dtype: Any = None,
    batch_invariant: bool = False,
) -> Tensor:
    """a · b, in the precision of the inputs."""
    return _product(a, b, scale_a, scale_b)


def swiglu_reference(
    x: Tensor,
    w_gate: Tensor,
    w_up: Tensor,
    scale_x: Tensor | None = None,
    scale_gate: Tensor | None = None,
    scale_up: Tensor | None = None,
    out_dtype: Any = None,
    batch_invariant: bool = False,
) -> Tensor:
    """A gated layer, in the precision of the inputs."""
    gate = _product(x, w_gate.mT, scale_x, scale_gate)
    return functional.silu(gate) * _product(x, w_up.mT, scale_x, scale_up)


def linear_reference(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    activation: str = "none",
    residual: Tensor | None = None,
    scale_x: Tensor | None = None,
    scale_weight: Tensor | None = None,
    out_dtype: Any = None,
    batch_invariant: bool = False,
) -> Tensor:
    """A layer, in the precision of the inputs."""
    y = _product(x, weight.mT, scale_x, scale_weight)
    y = ACTIVATIONS[activation](y if bias is None else y + bias)
    return y if residual is None else y + residual
