"""Medians, quartiles and geometric means."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Quartiles:
    """The quartiles of a sample."""

    least: float
    lower: float
    median: float
    upper: float
    most: float
    count: int

    @property
    def spread(self) -> float:
        """The interquartile range divided by the median."""
        return (self.upper - self.lower) / self.median if self.median else 0.0


def quartiles(values: Iterable[float]) -> Quartiles | None:
    """Returns the quartiles, with linear interpolation; None without values."""
    ordered = sorted(values)
    if not ordered:
        return None

    def at(share: float) -> float:
        position = share * (len(ordered) - 1)
        below = math.floor(position)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (position - below) * (ordered[above] - ordered[below])

    return Quartiles(ordered[0], at(0.25), at(0.5), at(0.75), ordered[-1], len(ordered))


def median(values: Iterable[float | None]) -> float | None:
    """Returns the median of the values that are not None; None without values."""
    found = quartiles(value for value in values if value is not None)
    return found.median if found else None


def geomean(values: Iterable[float]) -> float | None:
    """Returns the geometric mean of positive values; None without values."""
    logs = [math.log(value) for value in values]
    return math.exp(math.fsum(logs) / len(logs)) if logs else None


def relative_difference(a: float, b: float) -> float:
    """Returns the relative difference of two times."""
    return max(a, b) / min(a, b) - 1.0
