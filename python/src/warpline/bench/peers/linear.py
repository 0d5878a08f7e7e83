"""Linear layers."""

from __future__ import annotations

import importlib
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from . import Args, Bare, Built
from ._gemm import gemm_op, scaled_matmul

#: Activation functions by name.
ACTIVATIONS = {
    "none": lambda x: x,
    "relu": functional.relu,
    "gelu-erf": functional.gelu,
    "gelu-tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
    "sigmoid": torch.sigmoid,
}


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
    """A linear layer in torch."""
    y = ACTIVATIONS[activation](functional.linear(x, weight, bias))
    return y if residual is None else y + residual


def reference(
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
    """A linear layer by its definition, in the precision of the inputs."""
    y = scaled_matmul(x, weight.mT, scale_x, scale_weight)
    y = ACTIVATIONS[activation](y if bias is None else y + bias)
    return y if residual is None else y + residual


def our_gemm(args: Args) -> Built:
    """Builds the GEMM of a layer alone, with Warpline's kernel."""
    function = importlib.import_module("warpline").matmul
    a, b = args["x"], args["weight"].mT
    scales = args.get("scale_x"), args.get("scale_weight"), args.get("out_dtype")
    return Built(lambda: function(a, b, *scales))


OP = gemm_op(linear, reference, ("x", "residual"), Bare("warpline", our_gemm))
