"""Attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from . import CUDNN, EAGER, FLASH_ATTENTION, TRITON, Args, Built, Op, Peer, Problem, _sequences

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
    q: Tensor,
    k: Tensor,
    v: Tensor,
    causal: bool = False,
    window: None = None,
    scale: float | None = None,
    **options: Any,
) -> Tensor:
    """Attention by its definition, sequence by sequence."""
    args = {"q": q, "k": k, "v": v, **options}
    if not _sequences.has_sequences(args):
        return dense_reference(q, k, v, causal, scale)
    out = q.new_empty(*q.shape[:-1], v.shape[-1])
    for one in _sequences.each_sequence(args):
        batch = (x[None] for x in (one.q, one.k, one.v))
        out[one.rows] = dense_reference(*batch, causal, scale)[0]
    return out


def dense_reference(q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float | None) -> Tensor:
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


def eager(args: Args) -> Built:
    """Builds the call of the kernel that torch selects: for each packed sequence, or after the pages of a cache
    are gathered."""
    if args.get("cu_seqlens_q") is None and not _sequences.has_sequences(args):
        return Built(lambda: attention(**args))
    options = {name: args[name] for name in ("causal", "scale")}
    if args.get("cu_seqlens_q") is None:
        q, table = args["q"], args["block_table"]

        def gathered() -> Tensor:
            both = (args[name][table].flatten(1, 2) for name in ("k", "v"))
            return attention(q, *both, **options)

        return Built(gathered, "gathers the pages first")
    sequences = list(_sequences.each_sequence(args))

    def one_by_one() -> Tensor:
        outs = [attention(*(x[None] for x in (one.q, one.k, one.v)), **options)[0] for one in sequences]
        return torch.cat(outs)

    return Built(one_by_one, "a call for each sequence")


def backend(name: str, kind: str, which: Any) -> Peer:
    """Creates the peer for one kernel of torch's attention; it has a contiguous cache."""

    def build(args: Args) -> Built:
        is_cache = _sequences.has_sequences(args)
        dense = _sequences.contiguous(args) if is_cache else args

        def call() -> Tensor:
            with sdpa_kernel(which):
                return attention(**dense)

        return Built(call, "on a contiguous cache" if is_cache else "")

    return Peer(name, kind, build, not_packed)


def not_packed(problem: Problem) -> str | None:
    """Returns why a peer without packed sequences does not run."""
    return "has no packed sequences" if _sequences.are_packed(problem) else None


def only_packed(problem: Problem) -> str | None:
    """Returns why a peer for packed sequences does not run."""
    return None if _sequences.are_packed(problem) else "is for packed sequences"


def varlen(args: Args) -> Built:
    """Builds torch's FlashAttention-2 of packed sequences."""
    from torch.nn.attention.varlen import varlen_attn

    q, k, v, query_ends, key_ends = (args[name] for name in ("q", "k", "v", "cu_seqlens_q", "cu_seqlens_k"))
    longest = [int(ends.diff().max()) for ends in (query_ends, key_ends)]
    window = (-1, 0 if args["causal"] else -1)
    return Built(lambda: varlen_attn(q, k, v, query_ends, key_ends, *longest, window_size=window))


def nested(args: Args) -> Built:
    """Builds torch's attention of nested tensors."""
    ends = args["cu_seqlens_q"]
    lengths = ends.diff()
    limits = {"min_seqlen": int(lengths.min()), "max_seqlen": int(lengths.max())}
    q, k, v = (
        torch.nested.nested_tensor_from_jagged(args[name], ends.long(), **limits).transpose(1, 2)
        for name in ("q", "k", "v")
    )

    def call() -> Tensor:
        out = scaled_dot_product_attention(q, k, v, is_causal=args["causal"], scale=args["scale"])
        return out.transpose(1, 2).values()

    return Built(call)


def flex(args: Args) -> Built:
    """Builds ``flex_attention``, which torch.compile turns into a Triton kernel. Packed sequences are one
    batch with a mask; a cache is contiguous."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    is_packed = args.get("cu_seqlens_q") is not None
    is_cache = not is_packed and _sequences.has_sequences(args)
    dense = _sequences.contiguous(args) if is_cache else args
    tensors = (dense[name] for name in ("q", "k", "v"))
    q, k, v = ((x[None] if is_packed else x).transpose(1, 2) for x in tensors)
    causal, mask = args["causal"], None
    if is_packed:
        ends = args["cu_seqlens_q"]
        of = torch.searchsorted(ends, torch.arange(q.shape[2], device=ends.device), right=True)

        def is_visible(b: Any, h: Any, query: Any, key: Any) -> Any:
            same = of[query] == of[key]
            return same & (query >= key) if causal else same

    elif causal:

        def is_visible(b: Any, h: Any, query: Any, key: Any) -> Any:
            return query >= key

    if is_packed or causal:
        mask = create_block_mask(is_visible, None, None, q.shape[2], k.shape[2], q.device)
    function = torch.compile(flex_attention, fullgraph=True, dynamic=False)
    is_grouped = q.shape[1] != k.shape[1]

    def call() -> Any:
        out = function(q, k, v, block_mask=mask, scale=args["scale"], enable_gqa=is_grouped)
        out = out.transpose(1, 2)
        return out[0] if is_packed else out

    return Built(call, "on a contiguous cache" if is_cache else "")


OP = Op(
    reference,
    ("q", "k", "v"),
    (
        Peer("torch", EAGER, eager),
        backend("cuDNN", CUDNN, SDPBackend.CUDNN_ATTENTION),
        backend("FlashAttention-2", FLASH_ATTENTION, SDPBackend.FLASH_ATTENTION),
        Peer("varlen_attn", FLASH_ATTENTION, varlen, only_packed),
        Peer("nested tensors", EAGER, nested, only_packed),
        Peer("flex_attention", TRITON, flex),
    ),
    draw=_sequences.DRAW,
    whole=_sequences.NAMES,
)
