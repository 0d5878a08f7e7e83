"""torch's row ops, as peers and as references in float64."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def add(a: Tensor, b: Tensor) -> Tensor:
    """a + b."""
    return torch.add(a, b)


def softmax(x: Tensor, dim: int = -1) -> Tensor:
    """Softmax along a side."""
    return torch.softmax(x, dim)


def layer_norm(
    x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """LayerNorm of the last side."""
    return functional.layer_norm(x, x.shape[-1:], weight, bias, eps)


def rms_norm(x: Tensor, weight: Tensor | None = None, eps: float = 1e-6) -> Tensor:
    """RMSNorm of the last side."""
    return functional.rms_norm(x, x.shape[-1:], weight, eps)


def add_reference(a: Tensor, b: Tensor) -> Tensor:
    """a + b, in the precision of the inputs."""
    return a + b


def softmax_reference(x: Tensor, dim: int = -1) -> Tensor:
    """Softmax by its definition, in the precision of the input."""
    powers = (x - x.amax(dim, keepdim=True)).exp_()
    return powers.div_(powers.sum(dim, keepdim=True))


def layer_norm_reference(
    x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """LayerNorm by its definition, in the precision of the inputs."""
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    out = centred.mul_((variance + eps).rsqrt_())
    if weight is not None:
        out = out.mul_(weight)
    return out if bias is None else out.add_(bias)


def rms_norm_reference(x: Tensor, weight: Tensor | None = None, eps: float = 1e-6) -> Tensor:
    """RMSNorm by its definition, in the precision of the inputs."""
    out = x * (x.square().mean(-1, keepdim=True) + eps).rsqrt_()
    return out if weight is None else out.mul_(weight)
