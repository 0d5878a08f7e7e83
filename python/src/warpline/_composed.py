"""The ops composed of torch's own ops: for gradients, and for calls that no kernel supports.

Each function takes the parameters of the op of the same name. It computes in the element type of
the output, as torch's ops do; in float32 if an operand has fewer bits than the output, or is scaled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ._errors import input_error
from ._nvfp4 import layout_of, nvfp4_dequantize, scale_shape
from ._weights import unpack_weights

#: torch's own function, also if a program replaces it by ``warpline.scaled_dot_product_attention``.
torch_attention = F.scaled_dot_product_attention

#: The activation functions, by keyword.
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "none": lambda x: x,
    "relu": F.relu,
    "gelu-erf": F.gelu,
    "gelu-tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
}


def call(name: str, dtypes: tuple[torch.dtype, ...], args: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """Computes an op with torch's ops; ``dtypes`` are the element types of the outputs.

    Autocast does not apply, because it does not apply to the kernels.
    """
    device = next(a for a in args if isinstance(a, Tensor)).device
    with torch.autocast(device.type, enabled=False):
        found = OPS[name](dtypes[0], *args)
    results = found if isinstance(found, tuple) else (found,)
    return tuple(result.to(dtype) for result, dtype in zip(results, dtypes))


def _add(dtype: torch.dtype, a: Tensor, b: Tensor) -> Tensor:
    return a + b


def _softmax(dtype: torch.dtype, x: Tensor, dim: int, *_: Any) -> Tensor:
    return torch.softmax(x, dim)


def _layer_norm(dtype: torch.dtype, x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, *_: Any) -> Tensor:
    x, weight, bias = _promoted(x, weight, bias)
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


def _rms_norm(dtype: torch.dtype, x: Tensor, weight: Tensor | None, eps: float, *_: Any) -> Tensor:
    x, weight = _promoted(x, weight)
    return F.rms_norm(x, x.shape[-1:], weight, eps)


def _matmul(
    dtype: torch.dtype, a: Tensor, b: Tensor, scale_a: Tensor | None, scale_b: Tensor | None, *_: Any
) -> Tensor:
    to = _operand_type(dtype, a, scale_a)
    return _scaled(torch.matmul(a.to(to), b.to(to)), scale_a, scale_b)


def _linear(
    dtype: torch.dtype,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    activation: str,
    residual: Tensor | None,
    scale_x: Tensor | None,
    scale_weight: Tensor | None,
    *_: Any,
) -> Tensor:
    to = _operand_type(dtype, x, scale_x)
    y = _scaled(F.linear(x.to(to), weight.to(to)), scale_x, scale_weight)
    y = ACTIVATIONS[activation](y if bias is None else y + bias.to(to))
    return y if residual is None else y + residual.to(to)


def _swiglu(dtype: torch.dtype, x: Tensor, w_gate: Tensor, w_up: Tensor, *trailing: Any) -> Tensor:
    return _dual_gemm(dtype, x, w_gate, w_up, "silu", "concatenated", *trailing)


def _dual_gemm(
    dtype: torch.dtype,
    x: Tensor,
    w_gate: Tensor,
    w_up: Tensor | None,
    gate: str,
    weights: str,
    scale_x: Tensor | None,
    scale_gate: Tensor | None,
    scale_up: Tensor | None,
    *_: Any,
) -> Tensor:
    to = _operand_type(dtype, x, scale_x)
    if w_up is None:
        w_gate, w_up = unpack_weights(w_gate, weights)
    gated = _scaled(F.linear(x.to(to), w_gate.to(to)), scale_x, scale_gate)
    return ACTIVATIONS[gate](gated) * _scaled(F.linear(x.to(to), w_up.to(to)), scale_x, scale_up)


def _nvfp4_dual_gemm(
    dtype: torch.dtype,
    x: Tensor,
    w_gate: Tensor,
    gate_scales: Tensor,
    w_up: Tensor | None,
    up_scales: Tensor | None,
    x_scales: Tensor | None,
    scale_x: Tensor | None,
    scale_gate: Tensor | None,
    scale_up: Tensor | None,
    gate: str,
    scale_layout: str,
    *_: Any,
) -> Tensor:
    def values(codes: Tensor, scales: Tensor) -> Tensor:
        return _nvfp4_values(codes, scales, scale_layout)

    if x_scales is not None:
        leading = x.shape[:-1]
        x = values(x.reshape(-1, x.shape[-1]), x_scales)
        x = x.reshape(*leading, x.shape[-1])
    weight = values(w_gate, gate_scales)
    parts = (weight, values(w_up, up_scales)) if w_up is not None else weight.chunk(2)
    x = x.to(torch.promote_types(x.dtype, torch.float32))
    gated, up = (F.linear(x, part.to(x.dtype)) for part in parts)
    return ACTIVATIONS[gate](_scaled(gated, scale_x, scale_gate)) * _scaled(up, scale_x, scale_up)


def _nvfp4_values(codes: Tensor, scales: Tensor, scale_layout: str) -> Tensor:
    """Returns the values of codes; block scales may have any shape."""
    rows, k = codes.shape[0], 2 * codes.shape[1]
    layout = layout_of(scales, rows, k, scale_layout)
    return nvfp4_dequantize(codes, scales.reshape(scale_shape(rows, k, layout)), None, layout)


def _nvfp4_linear(
    dtype: torch.dtype,
    x: Tensor,
    weight: Tensor,
    weight_scales: Tensor,
    scale_weight: Tensor | None,
    bias: Tensor | None,
    scale_layout: str,
    *_: Any,
) -> Tensor:
    x = x.to(torch.promote_types(x.dtype, torch.float32))
    values = _nvfp4_values(weight, weight_scales, scale_layout)
    y = _scaled(F.linear(x, values.to(x.dtype)), scale_weight)
    return y if bias is None else y + bias


def _ms_deform_attn(
    dtype: torch.dtype,
    value: Tensor,
    spatial_shapes: Any,
    level_start_index: Any,
    sampling_locations: Tensor,
    attention_weights: Tensor,
    *_: Any,
) -> Tensor:
    """Gathers the four pixels around each point.

    Shapes and start indices are integers or a tensor, which is not read on the host.
    """
    if not isinstance(spatial_shapes, Tensor):
        spatial_shapes = [spatial_shapes[i : i + 2] for i in range(0, len(spatial_shapes), 2)]
    batch, pixels, heads, channels = value.shape
    queries, levels, points = sampling_locations.shape[1], *sampling_locations.shape[3:5]
    to = torch.promote_types(torch.promote_types(value.dtype, sampling_locations.dtype), torch.float32)
    value = value.to(to).transpose(1, 2)
    locations, weights = sampling_locations.to(to), attention_weights.to(to)
    sides = [(spatial_shapes[i][0], spatial_shapes[i][1]) for i in range(levels)]
    # Levels have a border of one pixel if value has more pixels than they do.
    border = pixels != sum(height * width for height, width in sides)
    border = border.to(torch.int64) if isinstance(border, Tensor) else int(border)
    total = value.new_zeros(batch, heads, queries, channels)
    for i, (height, width) in enumerate(sides):
        # [B, heads, Q, P]
        x = (locations[:, :, :, i, :, 0] * width - 0.5).transpose(1, 2)
        y = (locations[:, :, :, i, :, 1] * height - 0.5).transpose(1, 2)
        weight = weights[:, :, :, i].transpose(1, 2)
        left, top = x.detach().floor(), y.detach().floor()
        for column, row in ((0, 0), (1, 0), (0, 1), (1, 1)):
            share = (1 - (x - left - column).abs()) * (1 - (y - top - row).abs()) * weight
            at_x, at_y = left + column, top + row
            inside = (at_x >= 0) & (at_x < width) & (at_y >= 0) & (at_y < height)
            at_x, at_y = (torch.where(inside, at, 0).to(torch.int64) for at in (at_x, at_y))
            pixel = level_start_index[i] + (at_y + border) * (width + 2 * border) + at_x + border
            index = torch.where(inside, pixel, 0).reshape(batch, heads, queries * points, 1)
            found = value.gather(2, index.expand(-1, -1, -1, channels))
            found = found.reshape(batch, heads, queries, points, channels)
            total = total + (found * torch.where(inside, share, 0)[..., None]).sum(3)
    return total.transpose(1, 2).reshape(batch, queries, heads * channels)


def _attention(
    dtype: torch.dtype,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    causal: bool,
    window: Sequence[int] | None,
    scale: float | None,
    softcap: float | None,
    sink: Tensor | None,
    bias: Tensor | None,
    *sequences: Any,
) -> Tensor:
    if torch.is_grad_enabled() or softcap or sink is not None or any(x is not None for x in sequences[:4]):
        # torch's function has no second derivative.
        return _attention_return_lse(dtype, q, k, v, causal, window, scale, softcap, sink, bias, *sequences)[0]
    repeats = q.shape[2] // max(k.shape[2], 1)
    k, v = (x if repeats == 1 else x.repeat_interleave(repeats, dim=2) for x in (k, v))
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    if causal and window is None and bias is None and q.shape[2] == k.shape[2]:
        return torch_attention(q, k, v, is_causal=True, scale=scale).transpose(1, 2)
    visible = _visible(_extents(q, 2), _extents(k, 2), causal, window)
    mask = visible
    if bias is not None:
        bias = bias.to(q.dtype)
        mask = bias if visible is None else bias.masked_fill(~visible, float("-inf"))
    out = torch_attention(q, k, v, mask, scale=scale)
    if visible is not None:
        out = out.masked_fill(~visible.any(-1, keepdim=True), 0)
    return out.transpose(1, 2)


class _Rows:
    """The batch or sequence of each query or key, its position there, and the length."""

    def __init__(self, batch: Tensor | None, position: Tensor, length: Any) -> None:
        self.batch, self.position, self.length = batch, position, length


def _extents(x: Tensor, dim: int, length: Any = None) -> _Rows:
    """Returns the rows of a dimension that no batches share; ``length`` of them count."""
    position = torch.arange(x.shape[dim], device=x.device)
    return _Rows(None, position, x.shape[dim] if length is None else length)


def _packed(x: Tensor, ends: Tensor) -> _Rows:
    """Returns the rows of packed sequences."""
    row = torch.arange(x.shape[0], device=x.device)
    batch = torch.bucketize(row, ends[1:], right=True)
    known = batch.clamp(max=ends.shape[0] - 2)
    # A row before or behind all sequences has a batch of its own.
    batch = torch.where(row < ends[0], -1, batch)
    return _Rows(batch, row - ends[known], ends.diff()[known])


def _flat(x: Tensor, length: Tensor | None) -> _Rows:
    """Returns the rows of all batches one after the other."""
    count, rows = x.shape[:2]
    batch = torch.arange(count, device=x.device).repeat_interleave(rows)
    position = torch.arange(rows, device=x.device).repeat(count)
    return _Rows(batch, position, rows if length is None else length[batch])


def _visible(q: _Rows, k: _Rows, causal: bool, window: Sequence[int] | None) -> Tensor | None:
    """Returns which keys each query sees; None for all."""
    left, right = window or (-1, -1)
    right = 0 if causal else right
    is_dense = q.batch is None and not isinstance(k.length, Tensor)
    if is_dense and left < 0 and right < 0:
        return None

    def of_query(x: Any) -> Any:
        return x[..., None] if isinstance(x, Tensor) else x

    # The distance of a key from the diagonal.
    distance = k.position - of_query(q.position) - (k.length - of_query(q.length))
    visible = torch.ones_like(distance, dtype=torch.bool)
    visible &= k.position < k.length
    if q.batch is not None:
        visible &= of_query(q.batch) == k.batch
    if right >= 0:
        visible &= distance <= right
    if left >= 0:
        visible &= distance >= -left
    return visible


def _layout(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cu_seqlens_q: Tensor | None,
    cu_seqlens_k: Tensor | None,
    key_lens: Tensor | None,
    block_table: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, _Rows, _Rows]:
    """Returns Q, K and V as [B, S, H, D], and their rows; packed sequences become one batch."""
    if block_table is not None:
        key_lens = cu_seqlens_k.diff() if key_lens is None else key_lens
        k, v = (x[block_table.clamp(min=0)].flatten(1, 2) for x in (k, v))
    if cu_seqlens_q is None and (cu_seqlens_k is None or block_table is not None):
        length = None if key_lens is None else key_lens[:, None, None, None]
        return q, k, v, _extents(q, 1), _extents(k, 1, length)
    q_rows = _flat(q, None) if cu_seqlens_q is None else _packed(q, cu_seqlens_q)
    is_packed = cu_seqlens_k is not None and block_table is None
    k_rows = _packed(k, cu_seqlens_k) if is_packed else _flat(k, key_lens)
    flat = (x.reshape(1, -1, *x.shape[-2:]) for x in (q, k, v))
    return *flat, q_rows, k_rows


def _attention_return_lse(
    dtype: torch.dtype,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    causal: bool,
    window: Sequence[int] | None,
    scale: float | None,
    softcap: float | None,
    sink: Tensor | None,
    bias: Tensor | None,
    cu_seqlens_q: Tensor | None = None,
    cu_seqlens_k: Tensor | None = None,
    key_lens: Tensor | None = None,
    block_table: Tensor | None = None,
    *_: Any,
) -> tuple[Tensor, Tensor]:
    """A row without a visible key is 0."""
    to, shape = torch.promote_types(q.dtype, torch.float32), q.shape
    q, k, v, q_rows, k_rows = _layout(q, k, v, cu_seqlens_q, cu_seqlens_k, key_lens, block_table)
    repeats = q.shape[2] // max(k.shape[2], 1)
    q, k, v = (x.to(to).transpose(1, 2) for x in (q, k, v))
    k, v = (x.repeat_interleave(repeats, dim=1) for x in (k, v))
    scores = q @ k.mT * (max(q.shape[3], 1) ** -0.5 if scale is None else scale)
    if softcap:
        scores = torch.tanh(scores / softcap) * softcap
    if bias is not None:
        scores = scores + bias.to(to)
    visible = _visible(q_rows, k_rows, causal, window)
    if visible is not None:
        scores = scores.masked_fill(~visible, float("-inf"))
        if isinstance(k_rows.length, Tensor):
            # Values that no query sees may be anything, as behind the end of a cache.
            v = v.masked_fill(~visible.any(-2, keepdim=True).mT, 0)
    if sink is not None:
        sinks = sink.to(to).reshape(-1, 1, 1).expand(*scores.shape[:-1], 1)
        scores = torch.cat([scores, sinks], -1)
    # Rows without a visible score keep finite gradients.
    has_keys = (scores != float("-inf")).any(-1, keepdim=True)
    p = torch.softmax(scores.masked_fill(~has_keys, 0), -1).masked_fill(~has_keys, 0)
    lse = torch.logsumexp(scores.masked_fill(~has_keys, 0), -1).masked_fill(~has_keys[..., 0], float("-inf"))
    out = (p[..., : k.shape[2]] @ v).transpose(1, 2).reshape(*shape[:-1], v.shape[-1])
    if cu_seqlens_q is not None:
        return out, lse[0]
    return out, lse.transpose(0, 1).reshape(lse.shape[1], *shape[:2]).transpose(0, 1)


def _operand_type(dtype: torch.dtype, operand: Tensor, scale: Tensor | None) -> torch.dtype:
    """Returns the element type to compute a GEMM in."""
    if operand.dtype == dtype and scale is None:
        return dtype
    return torch.promote_types(dtype, torch.float32)


def _scaled(x: Tensor, *scales: Tensor | None) -> Tensor:
    for scale in scales:
        x = x if scale is None else x * scale.reshape(())
    return x


def _promoted(x: Tensor, *vectors: Tensor | None) -> tuple[Any, ...]:
    """Returns the tensors in one element type: float32 or wider if they differ."""
    others = [v.dtype for v in vectors if v is not None and v.dtype != x.dtype]
    if not others:
        return x, *vectors
    to = torch.promote_types(x.dtype, torch.float32)
    for dtype in others:
        to = torch.promote_types(to, dtype)
    return tuple(None if v is None else v.to(to) for v in (x, *vectors))


#: The functions, by name of the op.
OPS: dict[str, Callable[..., Tensor]] = {
    "add": _add,
    "softmax": _softmax,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "matmul": _matmul,
    "linear": _linear,
    "swiglu": _swiglu,
    "dual_gemm": _dual_gemm,
    "nvfp4_dual_gemm": _nvfp4_dual_gemm,
    "nvfp4_linear": _nvfp4_linear,
    "ms_deform_attn": _ms_deform_attn,
    "attention": _attention,
    "attention_return_lse": _attention_return_lse,
}
