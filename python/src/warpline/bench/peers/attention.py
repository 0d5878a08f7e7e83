"""Attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from . import CUDNN, EAGER, FLASH_ATTENTION, TRITON, Args, Built, Op, Peer

#: Queries of a block of the reference.
BLOCK = 2048


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    causal: bool = False,
    window: Sequence[int] | None = None,
    scale: float | None = None,
    **options: Any,
) -> Tensor:
    """Attention with the kernel that torch selects."""
    if window is not None or any(options.values()):
        raise ValueError("the peers of attention have no window, softcap, sink or bias")
    # torch aligns its causal mask at the first query and key; every problem has as many queries as keys.
    heads_first = (x.transpose(1, 2) for x in (q, k, v))
    is_grouped = q.shape[2] != k.shape[2]
    out = scaled_dot_product_attention(*heads_first, is_causal=causal, scale=scale, enable_gqa=is_grouped)
    return out.transpose(1, 2)


def reference(
    q: Tensor, k: Tensor, v: Tensor, causal: bool = False, window: None = None, scale: float | None = None, **_: Any
) -> Tensor:
    """Attention by its definition, in the precision of the inputs: a head and a block of queries at a time."""
    (batch, queries, heads, dim), (keys, kv_heads) = q.shape, k.shape[1:3]
    out = q.new_empty(batch, queries, heads, v.shape[-1])
    # With a causal mask, query i sees the keys below i + ahead.
    ahead = keys - queries + 1
    for head in range(batch * heads):
        b, h = divmod(head, heads)
        pair = h * kv_heads // heads
        for start in range(0, queries, BLOCK):
            rows = slice(start, min(start + BLOCK, queries))
            scores = q[b, rows, h] @ k[b, :, pair].mT
            scores *= dim**-0.5 if scale is None else scale
            if causal:
                query = torch.arange(start, rows.stop, device=q.device)[:, None]
                is_hidden = torch.arange(keys, device=q.device) >= query + ahead
                scores.masked_fill_(is_hidden, -torch.inf)
            out[b, rows, h] = scores.softmax(-1).nan_to_num_() @ v[b, :, pair]
    return out


def backend(name: str, kind: str, which: Any) -> Peer:
    """Creates the peer for one kernel of torch's attention."""

    def build(args: Args) -> Built:
        def call() -> Tensor:
            with sdpa_kernel(which):
                return attention(**args)

        return Built(call)

    return Peer(name, kind, build)


def flex(args: Args) -> Built:
    """Builds ``flex_attention``, which torch.compile turns into a Triton kernel."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    q, k, v = (args[name].transpose(1, 2) for name in ("q", "k", "v"))
    mask = None
    if args["causal"]:
        sizes = q.shape[2], k.shape[2]
        mask = create_block_mask(lambda b, h, query, key: query >= key, None, None, *sizes)
    function = torch.compile(flex_attention, fullgraph=True, dynamic=False)
    is_grouped = q.shape[1] != k.shape[1]

    def call() -> Any:
        out = function(q, k, v, block_mask=mask, scale=args["scale"], enable_gqa=is_grouped)
        return out.transpose(1, 2)

    return Built(call)


OP = Op(
    reference,
    ("q", "k", "v"),
    (
        Peer("torch", EAGER, lambda args: Built(lambda: attention(**args))),
        backend("cuDNN", CUDNN, SDPBackend.CUDNN_ATTENTION),
        backend("FlashAttention-2", FLASH_ATTENTION, SDPBackend.FLASH_ATTENTION),
        Peer("flex_attention", TRITON, flex),
    ),
)
