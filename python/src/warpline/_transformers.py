"""The entry ``warpline`` of Hugging Face's attention interface::

    import warpline
    from transformers import AutoModelForCausalLM

    AutoModelForCausalLM.from_pretrained(name, attn_implementation="warpline")
"""

from __future__ import annotations

import sys
from typing import Any

NAME = "warpline"


def register_attention() -> None:
    """Registers the attention function."""
    sys.modules["transformers.modeling_utils"].AttentionInterface.register(NAME, attention_forward)


def register_mask() -> None:
    """Registers the mask: of bools, or None if it is causal or full."""
    masking = sys.modules["transformers.masking_utils"]
    masking.AttentionMaskInterface.register(NAME, masking.sdpa_mask)


def attention_forward(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    position_bias: Any = None,
    **options: Any,
) -> tuple[Any, None]:
    """Computes the attention of a module on ``[B, H, S, D]``; returns ``[B, S, H, D]`` and no weights."""
    from . import _sdpa

    softcap, sink = options.get("softcap"), options.get("s_aux")
    if options.get("cache") is not None:
        raise ValueError("attn_implementation='warpline' has no paged cache\nhelp: use another implementation")
    if is_causal is None:
        is_causal = getattr(module, "is_causal", True)
    # A single query, of a cache of keys, sees all of them.
    # The order keeps it a bool if torch.compile traces a symbolic length.
    is_causal = query.shape[2] > 1 and attention_mask is None and bool(is_causal)
    if position_bias is not None:
        if is_causal:
            attention_mask = query.new_ones(query.shape[2], key.shape[2], dtype=bool).tril()
        attention_mask, is_causal = _sum(position_bias, attention_mask), False
    if softcap is None and sink is None:
        out = _sdpa.scaled_dot_product_attention(
            query, key, value, attention_mask, dropout, is_causal, scaling, enable_gqa=query.shape[1] != key.shape[1]
        )
        return out.transpose(1, 2).contiguous(), None
    if dropout:
        raise ValueError("attn_implementation='warpline' has no dropout with softcap or sinks\nhelp: set it to 0")
    return _sdpa.attend(query, key, value, attention_mask, is_causal, scaling, softcap, sink).contiguous(), None


def _sum(bias: Any, mask: Any) -> Any:
    """Returns a bias with a mask of bools, or one that is added."""
    if mask is None:
        return bias
    return bias.masked_fill(~mask, float("-inf")) if str(mask.dtype) == "torch.bool" else bias + mask
