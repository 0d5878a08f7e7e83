"""Compares outputs with a float64 reference at the timed shape."""

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
    "magnitude for 16 bits and less, and 1e-6 of the magnitude for f32; without torch eager 8 a; an "
    "op with its own tolerance: |out - float64| <= atol + rtol |float64| in every element"
)
#: Bytes of one chunk of an argument in float64.
CHUNK_BYTES = 1 << 30
#: The distance from 1 to the next larger number.
EPSILON = {"f16": 2.0**-10, "bf16": 2.0**-7, "e4m3": 2.0**-3, "e5m2": 2.0**-2}
#: Allowed errors of wider types, relative to the output's magnitude.
RELATIVE = {"f32": 1e-6, "f64": 1e-14}


def allowance(dtype: str, magnitude: float) -> float:
    """Returns the allowed rounding error of an output of this element type and magnitude."""
    if dtype in RELATIVE:
        return RELATIVE[dtype] * magnitude
    if dtype not in EPSILON or not 0 < magnitude < math.inf:
        return 0.0
    return EPSILON[dtype] * 2.0 ** math.floor(math.log2(magnitude))


def bound(dtype: str, magnitude: float, eager_error: float | None) -> float:
    """Returns the tolerance; ``eager_error`` is the error of torch's own function."""
    if eager_error is None or not math.isfinite(eager_error):
        return 8 * allowance(dtype, magnitude)
    return 2 * eager_error + allowance(dtype, magnitude)


@dataclass
class Checked:
    """The comparison of an implementation's outputs with the reference."""

    #: The largest error of each output; NaN if an element is NaN.
    errors: list[float]
    #: The tolerance of each output.
    bounds: list[float]
    #: The failure; None if every output passes.
    wrong: str | None = None

    @property
    def inexact(self) -> bool:
        """Whether an error exceeds the tolerance."""
        return any(not error <= bound for error, bound in zip(self.errors, self.bounds, strict=True))

    @property
    def worst(self) -> tuple[float | None, float | None]:
        """Error and tolerance of the output with the largest ratio of both."""

        def ratio(pair: tuple[float, float]) -> float:
            error, bound = pair
            if error <= bound:
                return error / bound if bound else 0.0
            return math.inf

        pairs = zip(self.errors, self.bounds, strict=True)
        return max(pairs, key=ratio, default=(None, None))


@dataclass(frozen=True)
class ElementError:
    """The error and the tolerance of one element."""

    error: float
    bound: float
    index: list[int]
    out: float
    expected: float

    @property
    def ratio(self) -> float:
        """Error divided by tolerance; infinite for NaN."""
        return self.error / self.bound if math.isfinite(self.error) else math.inf

    def describe(self) -> str:
        """Describes the error."""
        return (
            f"element {self.index}: got {self.out:.6g}, expected {self.expected:.6g}, "
            f"tolerance {self.bound:.2e}"
        )


class Reference:
    """The float64 reference of a problem."""

    def __init__(self, op: Op, args: Args) -> None:
        self._tolerance = op.tolerance
        self._chunks = [
            [_at_least_1d(out) for out in outputs(op.reference(**chunk))]
            for chunk in _float64_chunks(_split_names(op, args), args)
        ]
        self.magnitudes = [
            max(float(chunk[i].abs().max()) for chunk in self._chunks)
            for i in range(len(self._chunks[0]))
        ]
        self._dtypes: list[torch.dtype] | None = None
        self.eager_errors: list[float] | None = None

    def set_eager_errors(self, out: Any) -> None:
        """Sets the tolerance from the errors of torch's own function."""
        given = outputs(out)
        if self._shape_error(given) is None:
            self._dtypes = [tensor.dtype for tensor in given]
            self.eager_errors = self._errors(given)

    def check(self, out: Any, slack: float = 1.0) -> Checked:
        """Compares an output, or a tuple of outputs, with the reference.

        An error of up to ``slack`` times the tolerance is inexact, but passes.
        """
        given = outputs(out)
        wrong = self._shape_error(given)
        if wrong is not None:
            return Checked([], [], wrong)
        names = [dtype_name(tensor.dtype) for tensor in given]
        if all(name in self._tolerance for name in names):
            elements = [self._worst_element(i, tensor) for i, tensor in enumerate(given)]
            checked = Checked([element.error for element in elements], [element.bound for element in elements])
            outside = (element.describe() for element in elements if element.ratio > slack)
            checked.wrong = next(outside, None)
            return checked
        eager_errors: list[float | None] = [*(self.eager_errors or [None] * len(given))]
        checked = Checked(
            self._errors(given),
            [bound(*each) for each in zip(names, self.magnitudes, eager_errors, strict=True)],
        )
        for i, (error, limit) in enumerate(zip(checked.errors, checked.bounds, strict=True)):
            # A NaN error is never within tolerance.
            if not error <= slack * limit:
                checked.wrong = self._describe_worst(i, given[i], slack * limit)
                break
        return checked

    def _shape_error(self, given: list[torch.Tensor]) -> str | None:
        if len(given) != len(self.magnitudes):
            return f"{len(given)} outputs, expected {len(self.magnitudes)}"
        for i, tensor in enumerate(given):
            length = sum(chunk[i].shape[0] for chunk in self._chunks)
            shape = (length, *self._chunks[0][i].shape[1:])
            if tuple(_at_least_1d(tensor).shape) != shape:
                return f"output of shape {list(tensor.shape)}, expected {list(shape)}"
            if self._dtypes and tensor.dtype != self._dtypes[i]:
                return f"output of type {tensor.dtype}, expected {self._dtypes[i]}"
        return None

    def _pieces(self, i: int, tensor: torch.Tensor) -> Iterator[tuple[int, Any, Any]]:
        """Yields chunks of an output in float64: start row, output, reference."""
        start, tensor = 0, _at_least_1d(tensor)
        for chunk in self._chunks:
            rows = chunk[i].shape[0]
            yield start, tensor[start : start + rows].double(), chunk[i]
            start += rows

    def _errors(self, given: list[torch.Tensor]) -> list[float]:
        errors = []
        for i, tensor in enumerate(given):
            pieces = self._pieces(i, tensor)
            found = [float((out - expected).abs_().max()) for _, out, expected in pieces]
            # max() may skip a NaN; a sum does not.
            errors.append(max(found) if math.isfinite(sum(found)) else math.nan)
        return errors

    def _worst_element(self, i: int, tensor: torch.Tensor) -> ElementError:
        """Returns the element with the largest ratio of error to tolerance."""
        tolerance = self._tolerance[dtype_name(tensor.dtype)]
        elements = []
        for start, out, expected in self._pieces(i, tensor):
            errors = (out - expected).abs_()
            bounds = expected.abs().mul_(tolerance.rtol).add_(tolerance.atol)
            ratios = (errors / bounds).nan_to_num_(nan=math.inf)
            at = _unravel(int(ratios.argmax()), ratios.shape)
            index = [at[0] + start, *at[1:]]
            error, bound, got, want = (float(x[at]) for x in (errors, bounds, out, expected))
            elements.append(ElementError(error, bound, index, got, want))
        return max(elements, key=lambda element: element.ratio)

    def _describe_worst(self, i: int, tensor: torch.Tensor, bound: float) -> str:
        """Describes the worst element of the first chunk that fails."""
        for start, out, expected in self._pieces(i, tensor):
            errors = (out - expected).abs_()
            flat = int(errors.nan_to_num_(nan=math.inf).argmax())
            if not float(errors.reshape(-1)[flat]) <= bound:
                at = _unravel(flat, errors.shape)
                index = [at[0] + start, *at[1:]]
                return (
                    f"element {index}: got {float(out[at]):.6g}, expected {float(expected[at]):.6g}, "
                    f"tolerance {bound:.2e}"
                )
        return f"error above the tolerance {bound:.2e}"


def _unravel(flat: int, shape: Any) -> tuple[int, ...]:
    """Converts a flat index to indices."""
    indices = []
    for size in reversed(shape):
        indices.append(flat % size)
        flat //= size
    return tuple(reversed(indices))


def outputs(out: Any) -> list[torch.Tensor]:
    """Returns one or more outputs as a list."""
    return list(out) if isinstance(out, (tuple, list)) else [out]


def poison(sizes: list[int]) -> None:
    """Fills memory of the outputs' sizes with NaN and frees it.

    The allocator is likely to reuse it for the next output, so unwritten elements are NaN.
    """
    import torch

    torch.cuda.empty_cache()
    blocks = [torch.full((size,), 0xFF, dtype=torch.uint8, device=inputs.DEVICE) for size in sizes]
    del blocks


def byte_sizes(out: Any) -> list[int]:
    """Returns the size of each output in bytes."""
    return [tensor.numel() * tensor.element_size() for tensor in outputs(out)]


def _at_least_1d(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a tensor with at least one dimension."""
    return tensor.reshape(1) if tensor.dim() == 0 else tensor


def _split_names(op: Op, args: Args) -> list[str]:
    """Returns the names of the arguments that are split."""
    if any(args.get(name) is not None for name in op.whole):
        return []
    return [name for name in op.split if args.get(name) is not None]


def _float64_chunks(split_names: list[str], args: Args) -> Iterator[Args]:
    """Yields the arguments in float64, in chunks along the first dimension of the split ones."""
    shared = {name: to_float64(value) for name, value in args.items() if name not in split_names}
    if not split_names:
        yield shared
        return
    rows = args[split_names[0]].shape[0]
    float64_bytes = max(args[name].numel() for name in split_names) * 8
    chunk = max(1, min(rows, rows * CHUNK_BYTES // max(float64_bytes, 1)))
    for start in range(0, rows, chunk):
        end = min(start + chunk, rows)
        yield {
            name: to_float64(value[start:end]) if name in split_names else shared[name]
            for name, value in args.items()
        }


def to_float64(value: Any) -> Any:
    """Converts a float tensor to float64; returns anything else unchanged."""
    floating = getattr(getattr(value, "dtype", None), "is_floating_point", False)
    return value.double() if floating else value
