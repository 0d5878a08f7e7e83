"""Gated GEMM (SwiGLU)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from . import COMPILED, Args, Bare, Built, Peer
from ._gemm import gemm_op, scaled_matmul
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
    """A gated GEMM as models write it: two GEMMs."""
    gate = matmul(x, w_gate.mT, scale_x, scale_gate, out_dtype)
    return functional.silu(gate) * matmul(x, w_up.mT, scale_x, scale_up, out_dtype)


def swiglu_one_gemm(
    x: Tensor, weights: Tensor, scale_x: Tensor | None = None, scale: Tensor | None = None
) -> Tensor:
    """A gated GEMM with both weights in one tensor: one GEMM."""
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
    """A gated GEMM by its definition, in the precision of the inputs."""
    gate = scaled_matmul(x, w_gate.mT, scale_x, scale_gate)
    return functional.silu(gate) * scaled_matmul(x, w_up.mT, scale_x, scale_up)


def concatenated(args: Args) -> tuple[Any, Any]:
    """Returns x and one tensor with both weights."""
    return args["x"], torch.cat([args["w_gate"], args["w_up"]])


def one_gemm(args: Args) -> Built:
    """Builds both GEMMs as one torch GEMM, without the gate."""
    x, weights = concatenated(args)
    scales = args["scale_x"], args["scale_gate"]
    return Built(lambda: matmul(x, weights.mT, *scales))


def compiled_one_gemm(args: Args) -> Built:
    """Builds the gated GEMM through ``torch.compile``, with one GEMM for both weights."""
    function = torch.compile(swiglu_one_gemm, fullgraph=True, dynamic=False)
    x, weights = concatenated(args)
    scales = args["scale_x"], args["scale_gate"]
    return Built(lambda: function(x, weights, *scales), "one GEMM with both weights")


OP = gemm_op(
    swiglu,
    reference,
    ("x",),
    Bare("torch", one_gemm),
    (Peer("torch.compile, one mm", COMPILED, compiled_one_gemm),),
)
