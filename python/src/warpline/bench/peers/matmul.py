"""Matrix multiplication."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..inputs import torch_dtype
from ._gemm import gemm_op, scaled_matmul


def _out_dtype(name: str | None, like: torch.dtype) -> torch.dtype:
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
    """a · b by cuBLAS; for fp8 ``_scaled_mm`` with fast accumulation."""
    if a.dtype.itemsize > 1:
        return torch.mm(a, b)
    return torch._scaled_mm(
        a, b, scale_a, scale_b, out_dtype=_out_dtype(out_dtype, a.dtype), use_fast_accum=True
    )


def reference(
    a: Tensor,
    b: Tensor,
    scale_a: Tensor | None = None,
    scale_b: Tensor | None = None,
    out_dtype: Any = None,
    batch_invariant: bool = False,
) -> Tensor:
    """a · b, in the precision of the inputs."""
    return scaled_matmul(a, b, scale_a, scale_b)


OP = gemm_op(matmul, reference, ("a",))
