"""Gated layers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from . import COMPILED, Args, Bare, Built, Peer
from ._products import product, product_op
from .matmul import matmul


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


def reference(
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
    gate = product(x, w_gate.mT, scale_x, scale_gate)
    return functional.silu(gate) * product(x, w_up.mT, scale_x, scale_up)


def concatenated(args: Args) -> tuple[Any, Any]:
    """x and both weights of a gated layer as one tensor."""
    return args["x"], torch.cat([args["w_gate"], args["w_up"]])


def one_product(args: Args) -> Built:
    """Both products of a gated layer as one of torch's, and nothing else."""
    x, weights = concatenated(args)
    scales = args["scale_x"], args["scale_gate"]
    return Built(lambda: matmul(x, weights.mT, *scales))


def compiled_at_once(args: Args) -> Built:
    """A gated layer through ``torch.compile``, with one product for both weights."""
    function = torch.compile(swiglu_at_once, fullgraph=True, dynamic=False)
    x, weights = concatenated(args)
    scales = args["scale_x"], args["scale_gate"]
    return Built(lambda: function(x, weights, *scales), "one product with both weights")


OP = product_op(
    swiglu,
    reference,
    ("x",),
    Bare("torch", one_product),
    (Peer("torch.compile, one mm", COMPILED, compiled_at_once),),
)
