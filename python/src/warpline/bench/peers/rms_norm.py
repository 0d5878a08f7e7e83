"""RMSNorm."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from ._rows import row_op


def rms_norm(
    x: Tensor, weight: Tensor | None = None, eps: float = 1e-6, batch_invariant: bool = False
) -> Tensor:
    """RMSNorm along the last dimension."""
    return functional.rms_norm(x, x.shape[-1:], weight, eps)


def reference(
    x: Tensor, weight: Tensor | None = None, eps: float = 1e-6, batch_invariant: bool = False
) -> Tensor:
    """RMSNorm by its definition, in the precision of the inputs."""
    out = x * (x.square().mean(-1, keepdim=True) + eps).rsqrt_()
    return out if weight is None else out.mul_(weight)


OP = row_op(rms_norm, reference)
