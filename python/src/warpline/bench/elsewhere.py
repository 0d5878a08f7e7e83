"""Times that others had for problems of ours, and that were not measured in this run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .record import Elsewhere
from .suites import Problem

#: The machine of all of them.
MACHINE = "one H200, not in this run"


@dataclass(frozen=True)
class Figure:
    """A time of something that does not run here, for the problems that have these fields."""

    op: str
    fields: dict[str, Any]
    name: str
    micros: float
    note: str = ""

    def fits(self, problem: Problem) -> bool:
        """Is it of that problem?"""
        same = all(problem.problem.get(name) == value for name, value in self.fields.items())
        return problem.op == self.op and same


def _deformable() -> Iterator[Figure]:
    """Deformable attention: the batch of small maps, and the encoder of Deformable-DETR."""
    small, encoder = {"batch": 48, "num_query": 20522}, {"batch": 2, "num_query": 22223}
    whose = {
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
        for (name, (note, only)), micros in zip(whose.items(), row, strict=True):
            if micros is not None:
                yield Figure("ms_deform_attn", {**fields, **only}, name, micros, note)


#: Every figure.
FIGURES: tuple[Figure, ...] = tuple(_deformable())


def of(problem: Problem) -> list[Elsewhere]:
    """The figures of a problem."""
    return [Elsewhere(f.name, f.micros * 1e-6, f.note) for f in FIGURES if f.fits(problem)]
