"""Deformable attention on NumPy arrays: values, layouts, levels, bad input."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import warpline

LEVELS = [(5, 7), (3, 4), (1, 2)]
#: Tolerance by type: the absolute error, and n for a relative error of 2**-n.
TOLERANCES = {np.float32: (2e-5, 18), np.float16: (2e-3, 10), ml_dtypes.bfloat16: (4e-3, 7)}


class CallArgs(NamedTuple):
    """The arguments of a call."""

    value: np.ndarray
    shapes: Any
    starts: Any
    locations: np.ndarray
    weights: np.ndarray


def starts(levels: list[tuple[int, int]], border: int = 0) -> list[int]:
    """Returns the first pixel of each level."""
    pixels = [(h + 2 * border) * (w + 2 * border) for h, w in levels]
    return [sum(pixels[:i]) for i in range(len(pixels))]


def draw(
    dtype: Any = np.float16,
    point_dtype: Any = None,
    levels: list[tuple[int, int]] = LEVELS,
    batch: int = 2,
    queries: int = 9,
    heads: int = 2,
    channels: int = 16,
    points: int = 2,
) -> CallArgs:
    """Returns values, points inside and outside of the maps, and weights."""
    random = np.random.default_rng(3)
    pixels = sum(h * w for h, w in levels)
    shape = (batch, queries, heads, len(levels), points)
    weights = random.random(shape)
    return CallArgs(
        random.normal(size=(batch, pixels, heads, channels)).astype(dtype),
        levels,
        starts(levels),
        random.uniform(-0.2, 1.2, (*shape, 2)).astype(point_dtype or dtype),
        (weights / weights.sum((3, 4), keepdims=True)).astype(point_dtype or dtype),
    )


def with_border(given: CallArgs) -> CallArgs:
    """Returns the same maps with a border of one zero pixel."""
    maps = []
    for (h, w), start in zip(given.shapes, given.starts):
        level = given.value[:, start : start + h * w]
        batch, _, heads, channels = level.shape
        padded = np.pad(level.reshape(batch, h, w, heads, channels), [(0, 0), (1, 1), (1, 1), (0, 0), (0, 0)])
        maps.append(padded.reshape(batch, -1, heads, channels))
    return given._replace(value=np.concatenate(maps, 1), starts=starts(given.shapes, 1))


def reference(given: CallArgs) -> np.ndarray:
    """Computes the expected result in float64, point by point."""
    value, shapes, starts, locations, weights = given
    batch, queries, heads, levels, points, _ = locations.shape
    out = np.zeros((batch, queries, heads, value.shape[3]))
    for b, q, h, l, p in np.ndindex(*weights.shape):
        height, width = shapes[l]
        x, y = locations[b, q, h, l, p].astype(np.float64) * (width, height) - 0.5
        for row in (math.floor(y), math.floor(y) + 1):
            for col in (math.floor(x), math.floor(x) + 1):
                if 0 <= row < height and 0 <= col < width:
                    weight = (1 - abs(y - row)) * (1 - abs(x - col)) * float(weights[b, q, h, l, p])
                    out[b, q, h] += weight * value[b, starts[l] + row * width + col, h].astype(np.float64)
    return out.reshape(batch, queries, -1)


def assert_near(got: np.ndarray, want: np.ndarray) -> None:
    """Asserts results within the tolerance of their type."""
    absolute, bits = TOLERANCES[got.dtype.type]
    bound = absolute + np.abs(want) * 0.5**bits
    assert got.shape == want.shape
    error = np.abs(got.astype(np.float64) - want)
    assert (error <= bound).all(), f"error of up to {(error / bound).max():.2f} times the tolerance"
    assert np.abs(want).max() > 50 * bound.max()


@pytest.mark.parametrize(("dtype", "point_dtype"), [*((dtype, dtype) for dtype in TOLERANCES), (np.float16, np.float32)])
def test_every_type_of_values_and_points_matches_the_reference(dtype: Any, point_dtype: Any) -> None:
    given = draw(dtype, point_dtype)
    y = warpline.ms_deform_attn(*given)
    assert y.dtype == dtype
    assert_near(y, reference(given))


@pytest.mark.parametrize("sizes", [{"heads": 1, "channels": 8, "points": 3}, {"heads": 3, "channels": 40, "points": 1}])
def test_heads_channels_and_points_match_the_reference(sizes: dict[str, int]) -> None:
    given = draw(**sizes)
    assert_near(warpline.ms_deform_attn(*given), reference(given))


@pytest.mark.parametrize("levels", [LEVELS, LEVELS[:1]], ids=["many", "one"])
def test_borders_are_detected_from_start_indices_and_pixel_count(levels: list[tuple[int, int]]) -> None:
    given = draw(levels=levels)
    assert_near(warpline.ms_deform_attn(*with_border(given)), reference(given))


def test_levels_may_be_nested_or_flat_lists_tuples_and_arrays() -> None:
    given = draw()
    y = warpline.ms_deform_attn(*given)
    flat = [side for level in LEVELS for side in level]
    nested = [list(level) for level in LEVELS]
    for shapes in (tuple(LEVELS), nested, np.array(LEVELS), np.array(LEVELS, np.int32), flat):
        assert (warpline.ms_deform_attn(*given._replace(shapes=shapes)) == y).all()
    for first in (tuple(given.starts), np.array(given.starts), list(np.array(given.starts))):
        assert (warpline.ms_deform_attn(*given._replace(starts=first)) == y).all()


def test_im2col_step_does_not_change_the_result() -> None:
    given = draw()
    y = warpline.ms_deform_attn(*given)
    for step in (1, 3, 1 << 20):
        assert (warpline.ms_deform_attn(*given, im2col_step=step) == y).all()


def test_out_is_written_and_returned() -> None:
    given = draw()
    y = np.zeros((2, 9, 32), np.float16)
    assert warpline.ms_deform_attn(*given, out=y) is y
    assert_near(y, reference(given))


@pytest.mark.parametrize("empty", [{"queries": 0}, {"batch": 0}])
def test_empty_problems_give_empty_outputs(empty: dict[str, int]) -> None:
    given = draw(**empty)
    assert warpline.ms_deform_attn(*given).size == 0


def test_points_outside_of_the_maps_contribute_zero() -> None:
    given = draw()
    given.locations[...] = 7.0
    given.locations[0, 0] = np.nan
    given.weights[...] = np.inf
    assert (warpline.ms_deform_attn(*given) == 0).all()


def change(**fields: Any) -> Any:
    """Returns a function that replaces these fields of given arguments."""
    return lambda g: {"given": g._replace(**{name: make(g) for name, make in fields.items()})}


REJECTED = [
    (change(value=lambda g: g.value[0]), "value must have 4 dimensions [B, S, heads, C], not 3"),
    (change(locations=lambda g: g.locations[0]), "sampling_locations must have 6 dimensions [B, Q, heads, L, P, 2], not 5"),
    (change(locations=lambda g: g.locations[0, 0, 0, 0, 0]), "sampling_locations must have 6 dimensions"),
    (
        change(weights=lambda g: g.weights[..., 0]),
        "attention_weights must be f16 [2, 9, 2, 3, 2] like sampling_locations, not f16 [2, 9, 2, 3]",
    ),
    (
        change(weights=lambda g: g.weights.astype(np.float32)),
        "attention_weights must be f16 [2, 9, 2, 3, 2] like sampling_locations, not f32 [2, 9, 2, 3, 2]",
    ),
    (change(value=lambda g: g.value[..., :12].copy()), "the channels of value must be a multiple of 8 up to 256, not 12"),
    (
        change(value=lambda g: g.value[:1]),
        "sampling_locations must be [1, Q, 2, L, P, 2] if value is [1, 49, 2, 16], not [2, 9, 2, 3, 2, 2]",
    ),
    (
        change(value=lambda g: g.value[:, :, :1].copy()),
        "sampling_locations must be [2, Q, 1, L, P, 2] if value is [2, 49, 1, 16], not [2, 9, 2, 3, 2, 2]",
    ),
    (change(value=lambda g: g.value.astype(np.int32)), "value must be f32, f16 or bf16, not i32"),
    (change(value=lambda g: g.value.astype(np.float64)), "value has the unsupported element type float64"),
    (change(locations=lambda g: g.locations.astype(np.int64)), "sampling_locations must be f32, f16 or bf16, not i64"),
    (change(value=lambda g: g.value[:, ::2]), "value has 25 pixels"),
    (
        change(starts=lambda g: [0, 35, 46]),
        "level_start_index is [0, 35, 46] and value has 49 pixels, but levels of 5x7,3x4,1x2 start at [0, 35, 47] "
        "with 49 pixels, or with borders at [0, 63, 93] with 105 pixels",
    ),
    (change(starts=lambda g: g.starts[:2]), "level_start_index is [0, 35] and value has 49 pixels"),
    (change(value=lambda g: g.value[:, :48].copy()), "and value has 48 pixels"),
    (
        change(shapes=lambda g: g.shapes[:2]),
        "spatial_shapes must have the shape [3, 2] for the 3 levels of sampling_locations, not [2, 2]",
    ),
    (
        change(shapes=lambda g: [*g.shapes[:2], (0, 2)]),
        "level 2 of spatial_shapes is 0x2, but a level must have 1 to 4194304 pixels including its border",
    ),
    (change(shapes=lambda g: [*g.shapes[:2], (1 << 40, 1)]), "level 2 of spatial_shapes is 1099511627776x1"),
    (change(shapes=lambda g: [*g.shapes[:2], (-1, 2)]), "level 2 of spatial_shapes is -1x2"),
    (change(shapes=lambda g: np.array(g.shapes).T), "spatial_shapes must be pairs of integers, not [[5, 3, 1], [7, 4, 2]]"),
    (change(shapes=lambda g: [1, 2, 3]), "spatial_shapes must be pairs of integers, not [1, 2, 3]"),
    (change(shapes=lambda g: np.array(g.shapes, np.float32)), "spatial_shapes must be pairs of integers, not [[5.0, 7.0]"),
    (change(shapes=lambda g: None), "spatial_shapes must be pairs of integers, not None"),
    (change(shapes=lambda g: 7), "spatial_shapes must be pairs of integers, not 7"),
    (change(starts=lambda g: "012"), "level_start_index must be integers, not '012'"),
    (change(starts=lambda g: [[0], [35], [47]]), "level_start_index must be integers, not [[0], [35], [47]]"),
    (change(starts=lambda g: [0, 35, 1 << 70]), "level_start_index must be integers, not [0, 35, 1180591620717411303424]"),
    (lambda g: {"given": g, "im2col_step": 0}, "im2col_step must be at least 1, not 0"),
    (lambda g: {"given": g, "im2col_step": 1.5}, "im2col_step must be an integer, not 1.5"),
    (
        change(
            locations=lambda g: np.zeros((2, 9, 2, 3, 17, 2), np.float16),
            weights=lambda g: np.zeros((2, 9, 2, 3, 17), np.float16),
        ),
        "sampling_locations must have 1 to 16 points, not 17",
    ),
]


@pytest.mark.parametrize(("make", "message"), REJECTED, ids=[message[:60] for _, message in REJECTED])
def test_unsupported_problems_are_rejected_with_a_message(make: Any, message: str) -> None:
    options = make(draw())
    with pytest.raises(warpline.InputError) as caught:
        warpline.ms_deform_attn(*options.pop("given"), **options)
    text = str(caught.value)
    assert text.startswith("ms_deform_attn: ") and message in text
