"""Medians, quartiles and geometric means."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Quartiles:
    """What is kept of many values."""

    least: float
    lower: float
    median: float
    upper: float
    most: float
    count: int

    @property
    def spread(self) -> float:
        """The middle half, as a share of the median."""
        return (self.upper - self.lower) / self.median if self.median else 0.0


def quartiles(values: Iterable[float]) -> Quartiles | None:
    """The quartiles of some values, between neighbours in proportion; none of no values."""
    ordered = sorted(values)
    if not ordered:
        return None

    def at(share: float) -> float:
        place = share * (len(ordered) - 1)
        below = math.floor(place)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (place - below) * (ordered[above] - ordered[below])

    return Quartiles(ordered[0], at(0.25), at(0.5), at(0.75), ordered[-1], len(ordered))


def median(values: Iterable[float | None]) -> float | None:
    """The median of the values that are there; none of none."""
    found = quartiles(value for value in values if value is not None)
    return found.median if found else None


def geomean(values: Iterable[float]) -> float | None:
    """The geometric mean of positive values; none of no values."""
    logs = [math.log(value) for value in values]
    return math.exp(math.fsum(logs) / len(logs)) if logs else None


def apart(a: float, b: float) -> float:
    """How far two times lie apart, as a share of the lesser."""
    return max(a, b) / min(a, b) - 1.0
