"""LayerNorm."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from ._rows import row_op


def layer_norm(
    x: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    batch_invariant: bool = False,
) -> Tensor:
    """LayerNorm along the last dimension."""
    return functional.layer_norm(x, x.shape[-1:], weight, bias, eps)


def reference(
    x: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    batch_invariant: bool = False,
) -> Tensor:
    """LayerNorm by its definition, in the precision of the inputs."""
    centered = x - x.mean(-1, keepdim=True)
    variance = centered.square().mean(-1, keepdim=True)
    out = centered.mul_((variance + eps).rsqrt_())
    if weight is not None:
        out = out.mul_(weight)
    return out if bias is None else out.add_(bias)


OP = row_op(layer_norm, reference)
