"""Triton row kernels: one program per row, held in registers.

Each function builds an implementation: it times several warp counts on the given
inputs and keeps the fastest.
"""

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..protocol import fastest
from . import Built


@triton.jit
def softmax_row(x, out, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    """One row of a softmax."""
    row_start = tl.program_id(0).to(tl.int64) * COLUMNS
    i = tl.arange(0, BLOCK)
    mask = i < COLUMNS
    row = tl.load(x + row_start + i, mask=mask, other=-float("inf")).to(tl.float32)
    exponentials = tl.exp(row - tl.max(row, axis=0))
    tl.store(out + row_start + i, exponentials / tl.sum(exponentials, axis=0), mask=mask)


@triton.jit
def layer_norm_row(
    x,
    weight,
    bias,
    out,
    eps,
    COLUMNS: tl.constexpr,
    BLOCK: tl.constexpr,
    WEIGHT: tl.constexpr,
    BIAS: tl.constexpr,
):
    """One row of a LayerNorm."""
    row_start = tl.program_id(0).to(tl.int64) * COLUMNS
    i = tl.arange(0, BLOCK)
    mask = i < COLUMNS
    row = tl.load(x + row_start + i, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(row, axis=0) / COLUMNS
    centered = tl.where(mask, row - mean, 0.0)
    variance = tl.sum(centered * centered, axis=0) / COLUMNS
    y = centered * (1.0 / tl.sqrt(variance + eps))
    if WEIGHT:
        y = y * tl.load(weight + i, mask=mask, other=0.0).to(tl.float32)
    if BIAS:
        y = y + tl.load(bias + i, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + row_start + i, y, mask=mask)


@triton.jit
def rms_norm_row(
    x, weight, out, eps, COLUMNS: tl.constexpr, BLOCK: tl.constexpr, WEIGHT: tl.constexpr
):
    """One row of an RMSNorm."""
    row_start = tl.program_id(0).to(tl.int64) * COLUMNS
    i = tl.arange(0, BLOCK)
    mask = i < COLUMNS
    row = tl.load(x + row_start + i, mask=mask, other=0.0).to(tl.float32)
    square = tl.sum(row * row, axis=0) / COLUMNS
    y = row * (1.0 / tl.sqrt(square + eps))
    if WEIGHT:
        y = y * tl.load(weight + i, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + row_start + i, y, mask=mask)


@triton.jit
def add_block(a, b, out, n, BLOCK: tl.constexpr):
    """One block of an addition."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(a + i, mask=mask) + tl.load(b + i, mask=mask), mask=mask)


def softmax(x: Tensor, dim: int = -1, batch_invariant: bool = False) -> Built:
    """Softmax along the last dimension."""
    if dim % x.dim() != x.dim() - 1:
        raise ValueError("the Triton kernel supports only the last dimension")

    def launch(out: Tensor, grid: tuple[int], block: int, warps: int) -> None:
        softmax_row[grid](x, out, COLUMNS=x.shape[-1], BLOCK=block, num_warps=warps)

    return _rows(x, launch)


def layer_norm(
    x: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    batch_invariant: bool = False,
) -> Built:
    """LayerNorm along the last dimension."""
    # The kernel also needs a pointer for a missing tensor; it does not read through it.
    w, b = (x if tensor is None else tensor for tensor in (weight, bias))
    flags = {"WEIGHT": weight is not None, "BIAS": bias is not None}

    def launch(out: Tensor, grid: tuple[int], block: int, warps: int) -> None:
        sizes = {"COLUMNS": x.shape[-1], "BLOCK": block}
        layer_norm_row[grid](x, w, b, out, eps, **sizes, **flags, num_warps=warps)

    return _rows(x, launch)


def rms_norm(
    x: Tensor, weight: Tensor | None = None, eps: float = 1e-6, batch_invariant: bool = False
) -> Built:
    """RMSNorm along the last dimension."""
    w = x if weight is None else weight
    flags = {"WEIGHT": weight is not None}

    def launch(out: Tensor, grid: tuple[int], block: int, warps: int) -> None:
        sizes = {"COLUMNS": x.shape[-1], "BLOCK": block}
        rms_norm_row[grid](x, w, out, eps, **sizes, **flags, num_warps=warps)

    return _rows(x, launch)


def add(a: Tensor, b: Tensor) -> Built:
    """a + b."""
    n = a.numel()

    def candidate(block: int, warps: int) -> tuple[str, Callable[[], Any]]:
        grid = (triton.cdiv(n, block),)

        def call() -> Tensor:
            out = torch.empty_like(a)
            add_block[grid](a, b, out, n, BLOCK=block, num_warps=warps)
            return out

        return f"blocks of {block}, {warps} warps", call

    sizes = [(512, 4), (1024, 4), (1024, 8), (2048, 8), (4096, 8)]
    note, call = fastest([candidate(*size) for size in sizes])
    return Built(call, note)


def _rows(x: Tensor, launch: Callable[[Tensor, tuple[int], int, int], None]) -> Built:
    """Builds the row kernel with the fastest warp count."""
    columns = x.shape[-1]
    grid, block = (x.numel() // columns,), triton.next_power_of_2(columns)

    def candidate(warps: int) -> tuple[str, Callable[[], Any]]:
        def call() -> Tensor:
            out = torch.empty_like(x)
            launch(out, grid, block, warps)
            return out

        return f"{warps} warps", call

    # 4 to 64 elements per thread.
    fitting = [warps for warps in (1, 2, 4, 8, 16, 32) if 4 <= block // (32 * warps) <= 64]
    note, call = fastest([candidate(warps) for warps in fitting or [4]])
    return Built(call, note)
