"""torch's attention function on Warpline's kernel; importing this file imports torch."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from ._declared import OPS
from ._errors import UNSUPPORTED, input_error
from ._fallback import is_strict, warn
from ._functions import FUNCTIONS

_OP = next(op for op in OPS if op.name == "attention")

#: The largest row of the kernels.
_MAX_DIM = 256


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Replaces ``torch.nn.functional.scaled_dot_product_attention``, with the same arguments and semantics.

    Tensors are ``[..., H, S, D]``. ``is_causal`` aligns the mask at the first query and the first key.
    Dropout, gradients and element types without a kernel run torch's own function, with one warning per
    cause; ``WARPLINE_STRICT=1`` raises an error instead.
    """
    reason = _reason_for_torch(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
    if reason is not None:
        _report(reason)
        options = {"enable_gqa": True} if enable_gqa else {}
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, **options
        )
    batch = query.shape[:-3]
    if len(batch) != 1:
        query, key, value = (x.reshape(math.prod(batch), *x.shape[-3:]) for x in (query, key, value))
        attn_mask = None if attn_mask is None else _merged(attn_mask, batch)
    out = attend(query, key, value, attn_mask, is_causal, scale).transpose(1, 2)
    return out if len(batch) == 1 else out.reshape(*batch, *out.shape[1:])


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    is_causal: bool,
    scale: float | None,
    softcap: float | None = None,
    sink: Tensor | None = None,
) -> Tensor:
    """Calls the kernel on ``[B, H, S, D]``; returns ``[B, S, H, D]``. The mask is of bools or is added."""
    q, k, v = (x.transpose(1, 2) for x in (query, key, value))
    window = None
    if is_causal:
        queries, keys = q.shape[1], k.shape[1]
        if queries > keys:
            # The diagonal of the kernel ends at the last key; this one ends so many keys behind it.
            window, is_causal = (-1, queries - keys), False
        k, v = k[:, :queries], v[:, :queries]
    bias = None if mask is None else _bias(mask, q.dtype)
    return FUNCTIONS["attention"](q, k, v, is_causal, window, scale, softcap, sink, bias)


def _reason_for_torch(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float, is_causal: bool, enable_gqa: bool
) -> str | None:
    """Returns why torch's own function computes a call; an empty reason needs no warning."""
    is_attention = (
        2 < q.dim() == k.dim() == v.dim()
        and q.shape[:-3] == k.shape[:-3] == v.shape[:-3]
        and q.shape[-1] == k.shape[-1]
        and k.shape[-3:-1] == v.shape[-3:-1]
        and (q.shape[-3] == k.shape[-3] or (enable_gqa and k.shape[-3] > 0 and q.shape[-3] % k.shape[-3] == 0))
        and q.dtype == k.dtype == v.dtype
        and not (is_causal and mask is not None)
        and (mask is None or mask.dtype in (torch.bool, q.dtype))
    )
    if not is_attention:
        # Broadcast heads, nested tensors, or a call that torch rejects.
        return ""
    if dropout > 0:
        return "attention has no dropout"
    tensors = (q, k, v) if mask is None else (q, k, v, mask)
    if torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
        return "attention has no backward kernel"
    if q.dtype not in (torch.float16, torch.bfloat16):
        return f"attention needs f16 or bf16, not {q.dtype}"
    for dim in (q.shape[-1], v.shape[-1]):
        if dim % 8 or not 0 < dim <= _MAX_DIM:
            return f"attention needs rows of a multiple of 8 elements up to {_MAX_DIM}, not {dim}"
    return None


def _report(reason: str) -> None:
    """Warns that torch runs the call, or raises an error in strict mode."""
    if not reason or torch.compiler.is_compiling():
        return
    if is_strict():
        raise input_error(f"scaled_dot_product_attention: {reason}", UNSUPPORTED)
    warn(_OP, ("scaled_dot_product_attention", reason), f"scaled_dot_product_attention: {reason}")


def _merged(mask: Tensor, batch: torch.Size) -> Tensor:
    """Returns a mask with one batch dimension."""
    if mask.dim() < 4:
        return mask
    return mask.expand(*batch, *mask.shape[-3:]).reshape(math.prod(batch), *mask.shape[-3:])


def _bias(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Returns a mask as a bias."""
    if mask.dtype != torch.bool:
        return mask
    # Broadcast dimensions stay of length 1.
    mask = mask[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in mask.stride())]
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(~mask, float("-inf"))
