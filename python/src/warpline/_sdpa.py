"""torch's attention function on Warpline's kernel; importing this file imports torch."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ._composed import torch_attention
from ._declared import OPS
from ._errors import UNSUPPORTED, Error, input_error
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
        return _with_torch(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    batch = query.shape[:-3]
    if len(batch) != 1:
        query, key, value = (x.reshape(math.prod(batch), *x.shape[-3:]) for x in (query, key, value))
        attn_mask = None if attn_mask is None else _merged(attn_mask, batch)
    try:
        out = attend(query, key, value, attn_mask, is_causal, scale).transpose(1, 2)
    except Error as error:
        if error.code != "too-long":
            raise
        _report("the CPU executor would take more than 30 s")
        out = torch_attention(query, key, value, attn_mask, 0.0, is_causal, scale=scale, enable_gqa=enable_gqa)
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
            # The kernel's diagonal ends at the last key. torch's one lies this many keys to the right.
            window, is_causal = (-1, queries - keys), False
        k, v = k[:, :queries], v[:, :queries]
    bias = None if mask is None else _bias(mask, q.dtype)
    return FUNCTIONS["attention"](q, k, v, is_causal, window, scale, softcap, sink, bias)


def _reason_for_torch(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float, is_causal: bool, enable_gqa: bool
) -> str | None:
    """Returns None if the kernel runs the call, "" if torch runs it silently, else the reason of the warning."""
    is_attention = (
        not (q.is_nested or k.is_nested or v.is_nested)
        and 2 < q.dim() == k.dim() == v.dim()
        and q.shape[:-3] == k.shape[:-3] == v.shape[:-3]
        and q.shape[-1] == k.shape[-1]
        and k.shape[-3:-1] == v.shape[-3:-1]
        and (q.shape[-3] == k.shape[-3] or (enable_gqa and k.shape[-3] > 0 and q.shape[-3] % k.shape[-3] == 0))
        and q.dtype == k.dtype == v.dtype
        and not (is_causal and mask is not None)
        and (mask is None or mask.dtype in (torch.bool, torch.float32, q.dtype))
    )
    if not is_attention:
        # Nested tensors, broadcast heads, or a call that torch rejects.
        return ""
    if dropout > 0:
        return "attention has no dropout"
    tensors = (q, k, v) if mask is None else (q, k, v, mask)
    if torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
        return "attention has no backward kernel"
    if q.device.type not in ("cuda", "cpu"):
        return f"attention has no kernel for {q.device.type}"
    if q.dtype not in (torch.float16, torch.bfloat16):
        return f"attention needs f16 or bf16, not {q.dtype}"
    for dim in (q.shape[-1], v.shape[-1]):
        if dim % 8 or not 0 < dim <= _MAX_DIM:
            return f"attention needs rows of a multiple of 8 elements up to {_MAX_DIM}, not {dim}"
    return None


def _with_torch(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    dropout: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> Tensor:
    """Calls torch's function."""
    options = {"enable_gqa": True} if enable_gqa else {}
    if enable_gqa and mask is not None and not k.is_nested and 0 < k.shape[-3] < q.shape[-3]:
        # With a mask and shared heads, torch has its slowest kernel only.
        repeats = q.shape[-3] // k.shape[-3]
        k, v, options = k.repeat_interleave(repeats, -3), v.repeat_interleave(repeats, -3), {}
    return torch_attention(q, k, v, mask, dropout, is_causal, scale=scale, **options)


def _report(reason: str) -> None:
    """Warns that torch runs the call, or raises an error in strict mode."""
    if not reason:
        return
    if is_strict():
        raise input_error(f"scaled_dot_product_attention: {reason}", UNSUPPORTED)
    if torch.compiler.is_compiling():
        return
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
    # An expanded dimension keeps its first entry.
    mask = mask[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in mask.stride())]
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(~mask, float("-inf"))
