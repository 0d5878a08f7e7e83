"""The results of a run, and their JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .machine import Machine, Reading
from .statistics import Quartiles, apart, geomean, median

#: The version of the JSON; it grows when a field changes its meaning or goes.
SCHEMA = 1

#: The kinds that are not peers: ours, ours once more, and the machine's limit.
OURS, AGAIN, COPY, BARE = "ours", "again", "copy", "bare"
#: What became of a contender.
TIMED, WRONG, FAILED, SKIPPED = "timed", "wrong", "failed", "skipped"


@dataclass
class Sustained:
    """One contender alone for more than a second."""

    seconds: float
    calls: int
    sm_mhz: float | None = None
    watts: float | None = None


@dataclass
class Contender:
    """One contender in one problem."""

    name: str
    kind: str
    state: str = TIMED
    #: Why it was not timed.
    why: str | None = None
    #: How it was set up.
    note: str = ""
    #: Its largest error against float64, and the largest that is right.
    error: float | None = None
    bound: float | None = None
    #: Seconds of one call.
    seconds: Quartiles | None = None
    #: Its median time by ours: above 1, ours is faster.
    ratio: float | None = None
    sustained: Sustained | None = None

    @property
    def median(self) -> float | None:
        """The median time; none where it was not timed."""
        return self.seconds.median if self.seconds and self.state == TIMED else None


@dataclass
class Elsewhere:
    """A time that was not measured in this run."""

    name: str
    seconds: float
    note: str = ""


@dataclass
class Measured:
    """One problem and its contenders."""

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
    contenders: list[Contender] = field(default_factory=list)
    reading: Reading = field(default_factory=Reading)
    #: How far the two medians of ours lie apart.
    spread: float | None = None
    #: Launches for which the host may not have been ahead.
    late: int = 0
    #: What there is to say of it.
    notes: list[str] = field(default_factory=list)
    #: What others had for it, elsewhere.
    elsewhere: list[Elsewhere] = field(default_factory=list)

    def of_kind(self, kind: str) -> Contender | None:
        """The first contender of a kind."""
        return next((one for one in self.contenders if one.kind == kind), None)

    @property
    def ours(self) -> Contender:
        """Our own."""
        return self.of_kind(OURS) or Contender("warpline", OURS, FAILED, "it was not entered")

    @property
    def peers(self) -> list[Contender]:
        """Everyone else, without the copy and what is ours."""
        yardsticks = (OURS, AGAIN, COPY, BARE)
        return [one for one in self.contenders if one.kind not in yardsticks]

    @property
    def best(self) -> Contender | None:
        """The fastest peer."""
        timed = [one for one in self.peers if one.median is not None]
        return min(timed, key=lambda one: one.median or math.inf, default=None)

    def share(self, contender: Contender, of: str = COPY) -> float | None:
        """A contender's rate as a share of the copy's, or of another yardstick's."""
        whole = self.of_kind(of)
        if whole is None or whole.median is None or contender.median is None:
            return None
        return whole.median / contender.median

    def rate(self, seconds: float | None) -> float | None:
        """Operations per second where arithmetic binds, else bytes."""
        if not seconds:
            return None
        return (self.flops if self.compute_bound else self.bytes) / seconds

    def compare(self) -> None:
        """Fills in what follows from the times."""
        ours, again = self.ours.median, self.of_kind(AGAIN)
        for one in self.contenders:
            one.ratio = one.median / ours if ours and one.median else None
        self.spread = apart(ours, again.median) if ours and again and again.median else None


@dataclass
class HostCost:
    """What the host spends on one small call."""

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
    #: Was everything measured that was asked for?
    complete: bool = False
    #: Why not.
    stopped: str | None = None

    @property
    def passed(self) -> bool:
        """Was ours right and timed everywhere?"""
        return self.stopped is None and all(one.ours.state == TIMED for one in self.problems)

    @property
    def reading(self) -> Reading:
        """The medians of the sensors over all problems."""
        readings = [one.reading for one in self.problems]
        return Reading(
            median(one.sm_mhz for one in readings),
            median(one.memory_mhz for one in readings),
            median(one.watts for one in readings),
        )


@dataclass(frozen=True)
class Line:
    """Geometric means over some problems; above 1, ours is faster."""

    name: str
    problems: int
    #: Against the fastest peer of each problem.
    best: float | None
    #: Against each peer, and over how many problems.
    peers: dict[str, tuple[float, int]]


@dataclass(frozen=True)
class Summary:
    """What a run comes to."""

    ops: list[Line]
    overall: Line
    wins: int
    losses: int
    #: Of both, those no further from 1 than ours is from itself.
    within_spread: int
    spread_median: float | None
    spread_worst: float | None


def peer_names(problems: Sequence[Measured]) -> list[str]:
    """The names of all peers, in the order of their declaration."""
    return list(dict.fromkeys(peer.name for one in problems for peer in one.peers))


def summarise(problems: Sequence[Measured]) -> Summary:
    """Geometric means by op and overall, and who won."""
    pairs = [(one.best.ratio, one.spread or 0.0) for one in problems if one.best and one.best.ratio]
    spreads = [one.spread for one in problems if one.spread is not None]
    ops = dict.fromkeys(one.op for one in problems)
    return Summary(
        ops=[_line(op, [one for one in problems if one.op == op]) for op in ops],
        overall=_line("all", problems),
        wins=sum(ratio > 1 for ratio, _ in pairs),
        losses=sum(ratio < 1 for ratio, _ in pairs),
        within_spread=sum(apart(ratio, 1.0) <= spread for ratio, spread in pairs),
        spread_median=median(spreads),
        spread_worst=max(spreads, default=None),
    )


def _line(name: str, problems: Sequence[Measured]) -> Line:
    peers = {}
    for peer in peer_names(problems):
        ratios = [c.ratio for one in problems for c in one.peers if c.name == peer and c.ratio]
        mean = geomean(ratios)
        if mean is not None:
            peers[peer] = (mean, len(ratios))
    bests = [one.best.ratio for one in problems if one.best and one.best.ratio]
    return Line(name, len(problems), geomean(bests), peers)


def to_dict(run: Run) -> dict[str, Any]:
    """A run as plain values, its version first."""
    reading, summary = asdict(run.reading), asdict(summarise(run.problems))
    body = {"schema": SCHEMA, "tool": "warpline.bench", **asdict(run)}
    return _finite({**body, "passed": run.passed, "reading": reading, "summary": summary})


def from_dict(plain: dict[str, Any]) -> Run:
    """The run that :func:`to_dict` gave."""
    if plain.get("schema") != SCHEMA:
        raise ValueError(f"this is schema {plain.get('schema')}, not {SCHEMA}")
    kept = {key: plain[key] for key in Run.__dataclass_fields__}
    kept["machine"] = Machine(**kept["machine"])
    kept["problems"] = [_measured(one) for one in kept["problems"]]
    kept["host"] = [HostCost(**one) for one in kept["host"]]
    return Run(**kept)


def _measured(plain: dict[str, Any]) -> Measured:
    kept = {
        "contenders": [_contender(one) for one in plain["contenders"]],
        "reading": Reading(**plain["reading"]),
        "elsewhere": [Elsewhere(**one) for one in plain.get("elsewhere", [])],
    }
    return Measured(**{**plain, **kept})


def _contender(plain: dict[str, Any]) -> Contender:
    seconds, sustained = plain["seconds"], plain["sustained"]
    return Contender(
        **{
            **plain,
            "seconds": Quartiles(**seconds) if seconds else None,
            "sustained": Sustained(**sustained) if sustained else None,
        }
    )


def _finite(value: Any) -> Any:
    """The same, with none for what JSON has no number for."""
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
    """Writes a run as JSON; what was there stays until the new text is whole."""
    text = json.dumps(to_dict(run), indent=1, ensure_ascii=False, allow_nan=False)
    part = path.with_name(path.name + ".part")
    part.write_text(text + "\n", encoding="utf-8")
    part.replace(path)


def load(path: Path) -> Run:
    """Reads a run that was written."""
    return from_dict(json.loads(path.read_text(encoding="utf-8")))
