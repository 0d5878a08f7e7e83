"""Deformable attention: inputs, torch's ``grid_sample`` as a peer, and a float64 reference."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional

from ..inputs import torch_dtype
from . import COMPILED, EAGER, Args, Built, Figure, Op, Peer, Tolerance

if TYPE_CHECKING:
    from ..suites import Arg, Problem, TensorSpec

#: Queries of a small problem, and height and width of its levels.
SMALL_QUERIES, SMALL_SIDE = 64, 4
#: The standard deviation of the points around their query, in pixels of the level.
POINT_SPREAD = 3.0

Levels = list[tuple[int, int]]


def pairs(flat: list[int]) -> Levels:
    """Returns height and width of every level."""
    return list(zip(flat[::2], flat[1::2], strict=True))


def starts(levels: Levels, border: int) -> list[int]:
    """Returns the first pixel of each level, and the total."""
    all_starts = [0]
    for height, width in levels:
        all_starts.append(all_starts[-1] + (height + 2 * border) * (width + 2 * border))
    return all_starts


def border_of(pixels: int, levels: Levels) -> int:
    """Returns the border width of each level in a tensor of ``pixels`` pixels: 0 or 1."""
    return 0 if starts(levels, 0)[-1] == pixels else 1


def _levels_and_border(problem: Problem) -> tuple[Levels, int]:
    """Returns the levels of a problem and their border width."""
    args = {arg.name: arg for arg in problem.args}
    levels, value = pairs(args["spatial_shapes"].value), args["value"].tensor
    assert value is not None
    return levels, border_of(value.shape[1], levels)


def inside(levels: Levels, border: int, device: Any = None) -> Tensor:
    """Returns a mask of the pixels that are not in a border."""
    ones = [torch.ones(level, dtype=torch.bool, device=device) for level in levels]
    return torch.cat([functional.pad(one, (border,) * 4).flatten() for one in ones])


def draw_value(problem: Problem, spec: TensorSpec, generator: torch.Generator) -> Tensor:
    """Draws pixel values from N(0, 1), with zeros in the borders."""
    drawn = torch.randn(spec.shape, device=generator.device, generator=generator)
    mask = inside(*_levels_and_border(problem), device=generator.device)
    return (drawn * mask[:, None, None]).to(torch_dtype(spec.dtype))


def reference_points(levels: Levels, border: int, queries: int, device: Any = None) -> Tensor:
    """Returns the reference point of each query, with x and y in 0…1. With one query per pixel the point
    is the pixel of the query; otherwise the points form a regular grid over the map."""
    if queries != starts(levels, border)[-1]:
        columns = max(1, math.ceil(math.sqrt(queries)))
        rows = max(1, math.ceil(queries / columns))
        number = torch.arange(queries, device=device)
        return torch.stack(
            [(number % columns + 0.5) / columns, (number // columns + 0.5) / rows], -1
        )
    points = []
    for height, width in levels:
        y, x = (
            (torch.arange(side + 2 * border, device=device) - border + 0.5) / side
            for side in (height, width)
        )
        points.append(torch.stack(torch.meshgrid(x, y, indexing="xy"), -1).reshape(-1, 2))
    return torch.cat(points).clamp(0, 1)


def draw_locations(problem: Problem, spec: TensorSpec, generator: torch.Generator) -> Tensor:
    """Draws locations uniformly, or around the reference point of the query."""
    device, dtype = generator.device, torch_dtype(spec.dtype)
    if problem.problem["locations"] == "uniform":
        return torch.rand(spec.shape, device=device, generator=generator).to(dtype)
    levels, border = _levels_and_border(problem)
    centers = reference_points(levels, border, spec.shape[1], device)[None, :, None, None, None]
    sides = torch.tensor([(width, height) for height, width in levels], device=device)
    drawn = torch.randn(spec.shape, device=device, generator=generator)
    return (centers + POINT_SPREAD * drawn / sides[:, None]).to(dtype)


def draw_weights(problem: Problem, spec: TensorSpec, generator: torch.Generator) -> Tensor:
    """Draws attention weights that sum to 1 for each query."""
    drawn = torch.randn(spec.shape, device=generator.device, generator=generator)
    return drawn.flatten(-2).softmax(-1).view(spec.shape).to(torch_dtype(spec.dtype))


def small(problem: Problem) -> Problem:
    """Returns the same problem with few queries and small levels."""
    levels, border = _levels_and_border(problem)
    levels = [(SMALL_SIDE, SMALL_SIDE)] * len(levels)
    *firsts, pixels = starts(levels, border)

    def reduce(arg: Arg) -> Arg:
        match arg.name:
            case "spatial_shapes":
                return replace(arg, value=[side for level in levels for side in level])
            case "level_start_index":
                return replace(arg, value=firsts)
        if arg.tensor is None:
            return arg
        batch, count, *rest = arg.tensor.shape
        count = pixels if arg.name == "value" else min(count, SMALL_QUERIES)
        return replace(arg, tensor=replace(arg.tensor, shape=(min(batch, 2), count, *rest)))

    return replace(problem, args=tuple(reduce(arg) for arg in problem.args))


def grid_sample_attention(value: Tensor, levels: Levels, locations: Tensor, weights: Tensor) -> Tensor:
    """Computes deformable attention in torch: ``grid_sample`` per level, then a weighted sum."""
    batch, _, heads, channels = value.shape
    _, queries, _, _, points, _ = locations.shape
    maps = value.split([height * width for height, width in levels], 1)
    samples = []
    for i, (height, width) in enumerate(levels):
        level = maps[i].permute(0, 2, 3, 1).reshape(batch * heads, channels, height, width)
        grid = 2 * locations[:, :, :, i].transpose(1, 2).flatten(0, 1) - 1
        samples.append(
            functional.grid_sample(
                level, grid, mode="bilinear", padding_mode="zeros", align_corners=False
            )
        )
    weights = weights.transpose(1, 2).reshape(batch * heads, 1, queries, len(levels), points)
    sums = (torch.stack(samples, 3) * weights).sum((3, 4))
    return sums.view(batch, heads * channels, queries).transpose(1, 2).contiguous()


def _built(function: Callable[..., Tensor], args: Args) -> Built:
    """Builds a call on the maps without borders."""
    levels, value = pairs(args["spatial_shapes"]), args["value"]
    border = border_of(value.shape[1], levels)
    if border:
        value = value[:, inside(levels, border, value.device)].contiguous()
    points, weights = args["sampling_locations"], args["attention_weights"]
    note = "on maps without borders" if border else ""
    return Built(lambda: function(value, levels, points, weights), note)


def eager(args: Args) -> Built:
    """Builds torch eager."""
    return _built(grid_sample_attention, args)


def compiled(args: Args) -> Built:
    """Builds ``torch.compile``."""
    return _built(torch.compile(grid_sample_attention, fullgraph=True, dynamic=False), args)


def reference(
    value: Tensor,
    spatial_shapes: list[int],
    level_start_index: list[int],
    sampling_locations: Tensor,
    attention_weights: Tensor,
    im2col_step: int = 64,
    batch_invariant: bool = False,
) -> Tensor:
    """Computes deformable attention corner by corner in the precision of the inputs. It does not use
    ``grid_sample`` and needs only the memory of a few outputs."""
    batch, pixels, heads, channels = value.shape
    levels = pairs(spatial_shapes)
    border = border_of(pixels, levels)
    _, queries, _, _, points, _ = sampling_locations.shape
    out = value.new_zeros(batch, queries, heads, channels)
    for i, ((height, width), start) in enumerate(zip(levels, level_start_index, strict=True)):
        for p in range(points):
            x = sampling_locations[:, :, :, i, p, 0] * width - 0.5
            y = sampling_locations[:, :, :, i, p, 1] * height - 0.5
            for dy in (0, 1):
                for dx in (0, 1):
                    row, col = y.floor() + dy, x.floor() + dx
                    weight = (1 - (y - row).abs()) * (1 - (x - col).abs())
                    is_inside = (row >= 0) & (row < height) & (col >= 0) & (col < width)
                    weight = torch.where(is_inside, weight * attention_weights[:, :, :, i, p], 0.0)
                    row, col = row.clamp(0, height - 1).long(), col.clamp(0, width - 1).long()
                    pixel = start + (row + border) * (width + 2 * border) + col + border
                    corner = value.gather(1, pixel[..., None].expand(-1, -1, -1, channels))
                    out.addcmul_(corner, weight[..., None])
    return out.flatten(2)


def figures() -> Iterator[Figure]:
    """Yields times reported by others: a batch of small maps, and the Deformable-DETR encoder."""
    small, encoder = {"batch": 48, "num_query": 20522}, {"batch": 2, "num_query": 22223}
    implementations = {
        "public fp16 halo kernel": ("2.4 % relative error", {"layout": "halo"}),
        "Deformable-DETR's fp32 kernel": ("values in f32", {}),
        "torch grid_sample fp16": ("", {}),
    }
    times = [
        ({**small, "locations": "uniform"}, (567.0, 3774.0, 24352.0)),
        ({**small, "locations": "grid"}, (493.0, 3396.0, 19610.0)),
        ({**encoder, "locations": "uniform"}, (None, 807.0, 4803.0)),
    ]
    for fields, row in times:
        for (name, (note, only)), micros in zip(implementations.items(), row, strict=True):
            if micros is not None:
                yield Figure({**fields, **only}, name, micros, note)


OP = Op(
    reference=reference,
    split=("value", "sampling_locations", "attention_weights"),
    # Both compute the sampling positions in 16 bits.
    peers=(
        Peer("torch", EAGER, eager, slack=100),
        Peer("torch.compile", COMPILED, compiled, slack=100),
    ),
    draw={
        "value": draw_value,
        "sampling_locations": draw_locations,
        "attention_weights": draw_weights,
    },
    small=small,
    tolerance={
        "f16": Tolerance(2e-3, 2.0**-10),
        "bf16": Tolerance(4e-3, 2.0**-7),
        "f32": Tolerance(2e-5, 2.0**-18),
    },
    figures=tuple(figures()),
)
