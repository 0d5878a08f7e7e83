"""Outputs against a float64 reference, at the timed shape."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import inputs
from .inputs import Args, dtype_name

if TYPE_CHECKING:
    import torch

    from .peers import Op

#: The rule, for the record.
RULE = (
    "max |out - float64| <= 2 max |torch eager - float64| + a, where a is 1 ulp at the output's "
    "magnitude for 16 bits and less, and 1e-6 of the magnitude for f32; without eager 8 a; an op "
    "with a tolerance of its own: |out - float64| <= least + share |float64| in every element"
)
#: Bytes of one chunk of an argument in float64.
CHUNK_BYTES = 1 << 30
#: The distance from 1 to the next number.
EPSILON = {"f16": 2.0**-10, "bf16": 2.0**-7, "e4m3": 2.0**-3, "e5m2": 2.0**-2}
#: Errors of wider floats, as a share of the output's magnitude.
SHARE = {"f32": 1e-6, "f64": 1e-14}


def allowance(dtype: str, magnitude: float) -> float:
    """What an output of this dtype and largest value may be off in any case."""
    if dtype in SHARE:
        return SHARE[dtype] * magnitude
    if dtype not in EPSILON or not 0 < magnitude < math.inf:
        return 0.0
    return EPSILON[dtype] * 2.0 ** math.floor(math.log2(magnitude))


def bound(dtype: str, magnitude: float, yardstick: float | None) -> float:
    """The largest error that is right; the yardstick is the error of torch's own function."""
    if yardstick is None or not math.isfinite(yardstick):
        return 8 * allowance(dtype, magnitude)
    return 2 * yardstick + allowance(dtype, magnitude)


@dataclass
class Checked:
    """What was found in the outputs of a contender."""

    #: The largest error of each output; not a number where one is.
    errors: list[float]
    #: The largest error that is right, of each output.
    bounds: list[float]
    #: What is wrong, in a sentence.
    wrong: str | None = None

    @property
    def inexact(self) -> bool:
        """Is an error larger than is right?"""
        return any(not error <= most for error, most in zip(self.errors, self.bounds, strict=True))

    @property
    def worst(self) -> tuple[float | None, float | None]:
        """Error and bound of the output that comes closest to its bound or passes it."""

        def used(pair: tuple[float, float]) -> float:
            error, most = pair
            if error <= most:
                return error / most if most else 0.0
            return math.inf

        pairs = zip(self.errors, self.bounds, strict=True)
        return max(pairs, key=used, default=(None, None))


@dataclass(frozen=True)
class Spot:
    """An element of an output: how far it is off, and may be."""

    error: float
    bound: float
    at: list[int]
    out: float
    right: float

    @property
    def used(self) -> float:
        """The share of the bound; infinite where something is no number."""
        return self.error / self.bound if math.isfinite(self.error) else math.inf

    def sentence(self) -> str:
        """What is wrong there."""
        return (
            f"element {self.at} is {self.out:.6g} where {self.right:.6g} "
            f"is expected within {self.bound:.2e}"
        )


class Reference:
    """What must come out of a problem."""

    def __init__(self, op: Op, args: Args) -> None:
        self._tolerance = op.tolerance
        self._chunks = [
            [_whole(out) for out in outputs(op.reference(**part))]
            for part in _parts(op.split, args)
        ]
        self.magnitudes = [
            max(float(chunk[i].abs().max()) for chunk in self._chunks)
            for i in range(len(self._chunks[0]))
        ]
        self._dtypes: list[torch.dtype] | None = None
        self.yardsticks: list[float] | None = None

    def yardstick(self, out: Any) -> None:
        """Takes the errors of torch's own function as the measure of others."""
        given = outputs(out)
        if self._shape_error(given) is None:
            self._dtypes = [tensor.dtype for tensor in given]
            self.yardsticks = self._errors(given)

    def check(self, out: Any, slack: float = 1.0) -> Checked:
        """Compares an output, or a tuple of them, with what must come out.

        What is off by up to ``slack`` times what is right is inexact, and not wrong.
        """
        given = outputs(out)
        wrong = self._shape_error(given)
        if wrong is not None:
            return Checked([], [], wrong)
        names = [dtype_name(tensor.dtype) for tensor in given]
        if all(name in self._tolerance for name in names):
            spots = [self._spot(i, tensor) for i, tensor in enumerate(given)]
            checked = Checked([spot.error for spot in spots], [spot.bound for spot in spots])
            outside = (spot.sentence() for spot in spots if spot.used > slack)
            checked.wrong = next(outside, None)
            return checked
        yardsticks: list[float | None] = [*(self.yardsticks or [None] * len(given))]
        checked = Checked(
            self._errors(given),
            [bound(*each) for each in zip(names, self.magnitudes, yardsticks, strict=True)],
        )
        for i, (error, most) in enumerate(zip(checked.errors, checked.bounds, strict=True)):
            # An error that is not a number is not within any bound.
            if not error <= slack * most:
                checked.wrong = self._sentence(i, given[i], slack * most)
                break
        return checked

    def _shape_error(self, given: list[torch.Tensor]) -> str | None:
        if len(given) != len(self.magnitudes):
            return f"{len(given)} outputs where {len(self.magnitudes)} are expected"
        for i, tensor in enumerate(given):
            length = sum(chunk[i].shape[0] for chunk in self._chunks)
            shape = (length, *self._chunks[0][i].shape[1:])
            if tuple(_whole(tensor).shape) != shape:
                return f"an output of {list(tensor.shape)} where {list(shape)} is expected"
            if self._dtypes and tensor.dtype != self._dtypes[i]:
                return f"an output in {tensor.dtype} where {self._dtypes[i]} is expected"
        return None

    def _pieces(self, i: int, tensor: torch.Tensor) -> Iterator[tuple[int, Any, Any]]:
        """Pieces of an output in float64, each with its start and its reference."""
        start, whole = 0, _whole(tensor)
        for chunk in self._chunks:
            rows = chunk[i].shape[0]
            yield start, whole[start : start + rows].double(), chunk[i]
            start += rows

    def _errors(self, given: list[torch.Tensor]) -> list[float]:
        errors = []
        for i, tensor in enumerate(given):
            pieces = self._pieces(i, tensor)
            found = [float((out - right).abs_().max()) for _, out, right in pieces]
            # max() may pass over what is not a number; a sum does not.
            errors.append(max(found) if math.isfinite(sum(found)) else math.nan)
        return errors

    def _spot(self, i: int, tensor: torch.Tensor) -> Spot:
        """The element that comes closest to its tolerance, or passes it by most."""
        tolerance = self._tolerance[dtype_name(tensor.dtype)]
        spots = []
        for start, out, right in self._pieces(i, tensor):
            off = (out - right).abs_()
            allowed = right.abs().mul_(tolerance.share).add_(tolerance.least)
            used = (off / allowed).nan_to_num_(nan=math.inf)
            here = _place(int(used.argmax()), used.shape)
            at = [here[0] + start, *here[1:]]
            error, bound, got, want = (float(x[here]) for x in (off, allowed, out, right))
            spots.append(Spot(error, bound, at, got, want))
        return max(spots, key=lambda spot: spot.used)

    def _sentence(self, i: int, tensor: torch.Tensor, most: float) -> str:
        """The first chunk with a wrong element, and its worst element."""
        for start, out, right in self._pieces(i, tensor):
            off = (out - right).abs_()
            place = int(off.nan_to_num_(nan=math.inf).argmax())
            if not float(off.reshape(-1)[place]) <= most:
                here = _place(place, off.shape)
                at = [here[0] + start, *here[1:]]
                return (
                    f"element {at} is {float(out[here]):.6g} where {float(right[here]):.6g} "
                    f"is expected within {most:.2e}"
                )
        return f"an error above {most:.2e}"


def _place(number: int, shape: Any) -> tuple[int, ...]:
    """The indices of an element, by its number."""
    at = []
    for side in reversed(shape):
        at.append(number % side)
        number //= side
    return tuple(reversed(at))


def outputs(out: Any) -> list[torch.Tensor]:
    """One output or many, as a list."""
    return list(out) if isinstance(out, (tuple, list)) else [out]


def poison(sizes: list[int]) -> None:
    """Fills memory of the outputs' sizes with what is no number and frees it.

    The next output is likely to lie there, and is then wrong until it is written.
    """
    import torch

    torch.cuda.empty_cache()
    blocks = [torch.full((size,), 0xFF, dtype=torch.uint8, device=inputs.DEVICE) for size in sizes]
    del blocks


def byte_sizes(out: Any) -> list[int]:
    """Bytes of each output."""
    return [tensor.numel() * tensor.element_size() for tensor in outputs(out)]


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor with at least one side."""
    return tensor.reshape(1) if tensor.dim() == 0 else tensor


def _parts(split: tuple[str, ...], args: Args) -> Iterator[Args]:
    """The arguments in float64, chunk by chunk along the first side of those to cut."""
    cut = [name for name in split if args.get(name) is not None]
    shared = {name: wide(value) for name, value in args.items() if name not in cut}
    if not cut:
        yield shared
        return
    rows = args[cut[0]].shape[0]
    wides = max(args[name].numel() for name in cut) * 8
    chunk = max(1, min(rows, rows * CHUNK_BYTES // max(wides, 1)))
    for start in range(0, rows, chunk):
        end = min(start + chunk, rows)
        yield {
            name: wide(value[start:end]) if name in cut else shared[name]
            for name, value in args.items()
        }


def wide(value: Any) -> Any:
    """A float tensor in float64; anything else as it is."""
    floating = getattr(getattr(value, "dtype", None), "is_floating_point", False)
    return value.double() if floating else value
