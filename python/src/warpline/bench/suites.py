"""The benchmark problems, as the Rust registry declares them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .._host import is_transposed
from . import BenchError
from .machine import native

#: The suite of all suites.
ALL = "all"
#: FLOP per byte from which a problem counts as compute-bound.
INTENSITY = 100.0
#: FLOP from which a GEMM counts as large.
LARGE = 1e11


@dataclass(frozen=True)
class TensorSpec:
    """A tensor argument."""

    dtype: str
    shape: tuple[int, ...]
    #: Whether the last two dimensions are the transpose of a row-major matrix.
    transposed: bool = False


@dataclass(frozen=True)
class Arg:
    """An argument of an op: a tensor or a plain value."""

    name: str
    tensor: TensorSpec | None = None
    value: Any = None


@dataclass(frozen=True)
class Problem:
    """One measured call."""

    suite: str
    family: str
    op: str
    problem: dict[str, Any]
    flops: float
    bytes: float
    args: tuple[Arg, ...]
    #: Problem fields that are the same in all problems of the op.
    common: frozenset[str] = frozenset()

    @property
    def dtype(self) -> str:
        """The element type in the label: that of the problem, else of the first tensor."""
        tensors = (arg.tensor.dtype for arg in self.args if arg.tensor)
        return str(self.problem.get("dtype") or next(tensors, "-"))

    @property
    def shape(self) -> str:
        """Its sizes and options in short: ``32768x1024``, ``4096x4096x64 causal``."""
        left_out = self.common | {"dtype"}
        fields = {k: v for k, v in self.problem.items() if k not in left_out and v is not None}
        sizes = {k: v for k, v in fields.items() if isinstance(v, int) and not isinstance(v, bool)}
        words = ["x".join(map(str, sizes.values()))] if 0 < len(sizes) <= 3 else []
        if not words:
            words = [f"{name}={size}" for name, size in sizes.items()]
        for name, value in fields.items():
            if name in sizes or value is False:
                continue
            words.append(name if value is True else f"{name}={_plain(value)}")
        return " ".join(words)

    @property
    def label(self) -> str:
        """Op, shape and element type; ``--filter`` searches it."""
        return " ".join(word for word in (self.op, self.shape, self.dtype) if word)

    @property
    def compute_bound(self) -> bool:
        """Whether it is compute-bound, not memory-bound."""
        return self.bytes > 0 and self.flops / self.bytes >= INTENSITY

    @property
    def is_large_gemm(self) -> bool:
        """Whether sustained clocks are lower than those of a single launch."""
        return self.compute_bound and self.flops >= LARGE


def _plain(value: Any) -> str:
    """Formats a value in short: a comma-separated list as its first entry and an ellipsis."""
    if not isinstance(value, str):
        return json.dumps(value, separators=(",", ":"))
    first, comma, _ = value.partition(",")
    return f"{first},…" if comma else value


def parse(text: str) -> list[Problem]:
    """Parses a JSON list of problems."""
    entries = json.loads(text)
    return [_problem(entry, _common(entry["op"], entries)) for entry in entries]


def _common(op: str, entries: list[dict[str, Any]]) -> frozenset[str]:
    """Returns the fields, except sizes, that are the same in every problem of an op."""
    problems = [entry["problem"] for entry in entries if entry["op"] == op]
    if len(problems) < 2:
        return frozenset()
    first = problems[0]
    return frozenset(
        name
        for name, value in first.items()
        if (not isinstance(value, int) or isinstance(value, bool))
        and all(problem.get(name) == value for problem in problems)
    )


def _problem(entry: dict[str, Any], common: frozenset[str]) -> Problem:
    return Problem(
        suite=entry["suite"],
        family=entry["family"],
        op=entry["op"],
        problem=dict(entry["problem"]),
        flops=float(entry["flops"]),
        bytes=float(entry["bytes"]),
        args=tuple(_arg(arg) for arg in entry["args"]),
        common=common,
    )


def _arg(entry: dict[str, Any]) -> Arg:
    spec = entry.get("tensor")
    tensor = None
    if spec:
        shape, strides = tuple(spec["shape"]), spec.get("strides")
        tensor = TensorSpec(spec["dtype"], shape, bool(strides) and is_transposed(shape, strides))
    return Arg(entry["name"], tensor, entry.get("value"))


def declared(named: Sequence[str] = ()) -> list[Problem]:
    """Returns every problem of every suite, and those of the surveys if one of them is named.

    Surveys are suites of many shapes; ``all`` does not contain them.
    """
    problems = parse(native().suites())
    if any(name in native().survey_names() for name in named):
        problems += parse(native().surveys())
    return problems


def names(problems: Iterable[Problem]) -> list[str]:
    """Returns the names of the suites in order of declaration, those of the surveys, then ``all``."""
    suites = dict.fromkeys(problem.suite for problem in problems)
    return [*dict.fromkeys([*suites, *native().survey_names()]), ALL]


def select(
    problems: Sequence[Problem], suites: Sequence[str], filters: Sequence[str] = ()
) -> list[Problem]:
    """Returns the problems of the suites whose label contains one of the filters.

    Without suites, all suites; without filters, all problems.
    """
    known = names(problems)
    for suite in suites:
        if suite not in known:
            raise BenchError(f"Unknown suite {suite!r}; the suites are: {', '.join(known)}.")
    selected = set(suites)
    if not suites or ALL in suites:
        selected |= set(known) - set(native().survey_names())
    patterns = [_folded(text) for text in filters]
    kept = [
        problem
        for problem in problems
        if problem.suite in selected
        and (not patterns or any(pattern in _folded(problem.label) for pattern in patterns))
    ]
    if not kept:
        condition = f" whose label contains {' or '.join(map(repr, filters))}" if filters else ""
        raise BenchError(f"No problem{condition} in {', '.join(suites) or ALL}; --list lists all.")
    return kept


def _folded(text: str) -> str:
    return text.lower().replace("×", "x")
