"""The results of a run and their JSON form."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .machine import Machine, Reading
from .statistics import Quartiles, relative_difference, geomean, median

#: The version of the JSON; it grows when a field is removed or changes its meaning.
SCHEMA = 2

#: The kinds that are not peers: Warpline, Warpline again, a device copy, a bare GEMM.
OURS, AGAIN, COPY, BARE = "ours", "again", "copy", "bare"
#: The states of an implementation.
TIMED, WRONG, FAILED, SKIPPED = "timed", "wrong", "failed", "skipped"


@dataclass
class Sustained:
    """A back-to-back run of more than a second."""

    seconds: float
    calls: int
    sm_mhz: float | None = None
    watts: float | None = None


@dataclass
class Implementation:
    """One implementation in one problem."""

    name: str
    kind: str
    state: str = TIMED
    #: The reason that it was not timed.
    why: str | None = None
    #: Its setup.
    note: str = ""
    #: Its largest error against float64, and the tolerance.
    error: float | None = None
    bound: float | None = None
    #: Seconds of one call.
    seconds: Quartiles | None = None
    #: Its median time divided by Warpline's: above 1, Warpline is faster.
    ratio: float | None = None
    sustained: Sustained | None = None

    @property
    def median(self) -> float | None:
        """The median time; None if it was not timed."""
        return self.seconds.median if self.seconds and self.state == TIMED else None


@dataclass
class ReportedTime:
    """A time reported by others, not measured in this run."""

    name: str
    seconds: float
    note: str = ""


@dataclass
class Measured:
    """One measured problem and its implementations."""

    suite: str
    family: str
    op: str
    label: str
    shape: str
    dtype: str
    problem: dict[str, Any]
    flops: float
    bytes: float
    compute_bound: bool
    implementations: list[Implementation] = field(default_factory=list)
    reading: Reading = field(default_factory=Reading)
    #: The relative difference of Warpline's two medians.
    spread: float | None = None
    #: Launches that the host may have queued too late.
    late: int = 0
    #: Remarks for the report.
    notes: list[str] = field(default_factory=list)
    #: Times reported by others.
    reported_times: list[ReportedTime] = field(default_factory=list)

    def of_kind(self, kind: str) -> Implementation | None:
        """Returns the first implementation of a kind."""
        return next((one for one in self.implementations if one.kind == kind), None)

    @property
    def ours(self) -> Implementation:
        """Warpline's entry."""
        return self.of_kind(OURS) or Implementation("warpline", OURS, FAILED, "not measured")

    @property
    def peers(self) -> list[Implementation]:
        """All implementations except Warpline, the copy and the bare GEMM."""
        baselines = (OURS, AGAIN, COPY, BARE)
        return [one for one in self.implementations if one.kind not in baselines]

    @property
    def best(self) -> Implementation | None:
        """The fastest peer."""
        timed = [one for one in self.peers if one.median is not None]
        return min(timed, key=lambda one: one.median or math.inf, default=None)

    def share(self, implementation: Implementation, of: str = COPY) -> float | None:
        """Returns an implementation's throughput relative to the copy, or to another baseline."""
        baseline = self.of_kind(of)
        if baseline is None or baseline.median is None or implementation.median is None:
            return None
        return baseline.median / implementation.median

    def rate(self, seconds: float | None) -> float | None:
        """Returns FLOP/s if compute-bound, else bytes per second."""
        if not seconds:
            return None
        return (self.flops if self.compute_bound else self.bytes) / seconds

    def compare(self) -> None:
        """Computes ratios and spread from the times."""
        ours, again = self.ours.median, self.of_kind(AGAIN)
        for one in self.implementations:
            one.ratio = one.median / ours if ours and one.median else None
        self.spread = relative_difference(ours, again.median) if ours and again and again.median else None


@dataclass
class HostCost:
    """The host overhead of one small call."""

    op: str
    name: str
    calls: int = 0
    least_s: float | None = None
    median_s: float | None = None
    why: str | None = None


@dataclass
class Run:
    """A whole run."""

    date: str
    command: list[str]
    machine: Machine
    protocol: dict[str, Any]
    seed: int
    quick: bool = False
    problems: list[Measured] = field(default_factory=list)
    host: list[HostCost] = field(default_factory=list)
    #: Whether every problem was measured.
    complete: bool = False
    #: The reason that the run stopped early.
    stopped: str | None = None

    @property
    def passed(self) -> bool:
        """Whether Warpline passed and was timed in every problem."""
        return self.stopped is None and all(one.ours.state == TIMED for one in self.problems)

    @property
    def reading(self) -> Reading:
        """The median of each sensor over all problems."""
        readings = [one.reading for one in self.problems]
        return Reading(
            median(one.sm_mhz for one in readings),
            median(one.memory_mhz for one in readings),
            median(one.watts for one in readings),
        )


@dataclass(frozen=True)
class MeanRow:
    """Geometric means over some problems; above 1, Warpline is faster."""

    name: str
    problems: int
    #: Relative to the fastest peer of each problem.
    best: float | None
    #: Relative to each peer, with the number of problems.
    peers: dict[str, tuple[float, int]]


@dataclass(frozen=True)
class Summary:
    """The summary of a run."""

    ops: list[MeanRow]
    overall: MeanRow
    wins: int
    losses: int
    #: Wins and losses within the spread of Warpline's two entries.
    within_spread: int
    spread_median: float | None
    spread_worst: float | None


def peer_names(problems: Sequence[Measured]) -> list[str]:
    """Returns the names of all peers, in order of declaration."""
    return list(dict.fromkeys(peer.name for one in problems for peer in one.peers))


def summarize(problems: Sequence[Measured]) -> Summary:
    """Computes geometric means by op and overall, wins and losses."""
    pairs = [(one.best.ratio, one.spread or 0.0) for one in problems if one.best and one.best.ratio]
    spreads = [one.spread for one in problems if one.spread is not None]
    ops = dict.fromkeys(one.op for one in problems)
    return Summary(
        ops=[_mean_row(op, [one for one in problems if one.op == op]) for op in ops],
        overall=_mean_row("all", problems),
        wins=sum(ratio > 1 for ratio, _ in pairs),
        losses=sum(ratio < 1 for ratio, _ in pairs),
        within_spread=sum(relative_difference(ratio, 1.0) <= spread for ratio, spread in pairs),
        spread_median=median(spreads),
        spread_worst=max(spreads, default=None),
    )


def _mean_row(name: str, problems: Sequence[Measured]) -> MeanRow:
    peers = {}
    for peer in peer_names(problems):
        ratios = [c.ratio for one in problems for c in one.peers if c.name == peer and c.ratio]
        mean = geomean(ratios)
        if mean is not None:
            peers[peer] = (mean, len(ratios))
    bests = [one.best.ratio for one in problems if one.best and one.best.ratio]
    return MeanRow(name, len(problems), geomean(bests), peers)


def to_dict(run: Run) -> dict[str, Any]:
    """Converts a run to plain values, the schema version first."""
    reading, summary = asdict(run.reading), asdict(summarize(run.problems))
    body = {"schema": SCHEMA, "tool": "warpline.bench", **asdict(run)}
    return _finite({**body, "passed": run.passed, "reading": reading, "summary": summary})


def from_dict(plain: dict[str, Any]) -> Run:
    """Converts the result of :func:`to_dict` back to a run."""
    if plain.get("schema") != SCHEMA:
        raise ValueError(f"schema must be {SCHEMA}, not {plain.get('schema')}")
    kept = {key: plain[key] for key in Run.__dataclass_fields__}
    kept["machine"] = Machine(**kept["machine"])
    kept["problems"] = [_measured(one) for one in kept["problems"]]
    kept["host"] = [HostCost(**one) for one in kept["host"]]
    return Run(**kept)


def _measured(plain: dict[str, Any]) -> Measured:
    kept = {
        "implementations": [_implementation(one) for one in plain["implementations"]],
        "reading": Reading(**plain["reading"]),
        "reported_times": [ReportedTime(**one) for one in plain.get("reported_times", [])],
    }
    return Measured(**{**plain, **kept})


def _implementation(plain: dict[str, Any]) -> Implementation:
    seconds, sustained = plain["seconds"], plain["sustained"]
    return Implementation(
        **{
            **plain,
            "seconds": Quartiles(**seconds) if seconds else None,
            "sustained": Sustained(**sustained) if sustained else None,
        }
    )


def _finite(value: Any) -> Any:
    """Replaces NaN and infinity, which JSON cannot represent, by None."""
    match value:
        case float() if not math.isfinite(value):
            return None
        case dict():
            return {key: _finite(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_finite(inner) for inner in value]
        case _:
            return value


def write(run: Run, path: Path) -> None:
    """Writes a run as JSON, atomically."""
    text = json.dumps(to_dict(run), indent=1, ensure_ascii=False, allow_nan=False)
    part = path.with_name(path.name + ".part")
    part.write_text(text + "\n", encoding="utf-8")
    part.replace(path)


def load(path: Path) -> Run:
    """Reads a run from JSON."""
    return from_dict(json.loads(path.read_text(encoding="utf-8")))
