"""Sequences: batches of different lengths, packed or in a cache with pages."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from ..inputs import Args

if TYPE_CHECKING:
    from torch import Tensor

    from ..suites import Problem, TensorSpec

#: The lengths of packed sequences, before they are scaled to the rows that there are.
LENGTHS = (100, 4000)
#: The arguments that tell the sequences.
NAMES = ("cu_seqlens_q", "cu_seqlens_k", "key_lens", "block_table")


def has_sequences(args: Args) -> bool:
    """Returns whether a call has sequences."""
    return any(args.get(name) is not None for name in NAMES)


def are_packed(problem: Problem) -> bool:
    """Returns whether the queries of a problem are packed."""
    return bool(problem.problem.get("packed_queries"))


def draw_ends(problem: Problem, spec: TensorSpec, generator: torch.Generator) -> Tensor:
    """Draws the ends of packed sequences; those of queries and keys are the same."""
    rows = problem.problem["queries" if "queries" in problem.problem else "keys"]
    own = torch.Generator().manual_seed(rows)
    lengths = torch.randint(*LENGTHS, (spec.shape[0] - 1,), generator=own)
    ends = lengths.cumsum(0) * rows // lengths.sum()
    return torch.cat([ends.new_zeros(1), ends]).to(generator.device, torch.int32)


def full_lengths(problem: Problem, spec: TensorSpec, generator: torch.Generator) -> Tensor:
    """Returns the number of keys of each batch: as many as there can be."""
    fields = problem.problem
    keys = fields["page"] * fields["max_pages"] if fields.get("page") else fields["keys"]
    return torch.full(spec.shape, keys, dtype=torch.int32, device=generator.device)


def draw_pages(problem: Problem, spec: TensorSpec, generator: torch.Generator) -> Tensor:
    """Draws the pages of all batches: a permutation."""
    pages = torch.randperm(math.prod(spec.shape), generator=generator, device=generator.device)
    return pages.view(spec.shape).int()


DRAW = {
    "cu_seqlens_q": draw_ends,
    "cu_seqlens_k": draw_ends,
    "key_lens": full_lengths,
    "block_table": draw_pages,
}


@dataclass(frozen=True)
class Sequence:
    """A sequence: where its queries are, and its tensors [S, H, D]."""

    rows: Any
    q: Tensor
    k: Tensor
    v: Tensor


def each_sequence(args: Args) -> Iterator[Sequence]:
    """Yields the sequences of a call."""
    q, k, v = (args[name] for name in ("q", "k", "v"))
    query_ends, key_ends, lengths, table = (
        None if args.get(name) is None else args[name].tolist() for name in NAMES
    )
    for b in range(len(q) if query_ends is None else len(query_ends) - 1):
        rows = b if query_ends is None else slice(query_ends[b], query_ends[b + 1])
        keys = slice(key_ends[b], key_ends[b + 1]) if key_ends else slice(0, lengths[b] if lengths else None)
        if table is not None:
            length, page = keys.stop - keys.start, k.shape[1]
            pages = args["block_table"][b, : -(-length // page)]
            both = [x[pages].flatten(0, 1)[:length] for x in (k, v)]
        else:
            both = [x[keys] if key_ends else x[b, keys] for x in (k, v)]
        yield Sequence(rows, q[rows], *both)


def contiguous(args: Args) -> Args:
    """Returns the same call without sequences, on contiguous copies of K and V; all have the same length."""
    both = [torch.stack([getattr(one, name) for one in each_sequence(args)]) for name in ("k", "v")]
    return {**args, "k": both[0], "v": both[1], **dict.fromkeys(NAMES)}
