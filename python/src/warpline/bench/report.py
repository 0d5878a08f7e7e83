"""The results as a text report."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from . import suites
from .host import SLOW_CALL_S
from .record import (
    AGAIN,
    BARE,
    FAILED,
    SKIPPED,
    TIMED,
    WRONG,
    Implementation,
    HostCost,
    MeanRow,
    Measured,
    Run,
    peer_names,
    summarize,
)
from .statistics import geomean
from .suites import Problem

#: The table cell of an implementation that was not timed.
CELLS = {WRONG: "FAIL", FAILED: "error", SKIPPED: "n/a"}
#: The machine of reported times.
MACHINE = "one H200, not in this run"
QUICK = "QUICK RUN: too few rounds, not for publication."


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1, words: bool = False
) -> list[str]:
    """Formats a table; the first ``left`` columns, and the last if it has words, are left-aligned."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if i < left or (words and i == len(widths) - 1) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(padded).rstrip()

    return [line(head), "  ".join("-" * width for width in widths), *map(line, rows)]


def text(run: Run) -> str:
    """Formats the report of a run."""
    parts = [_heading(run)]
    if run.problems:
        parts += [_problems(run), _notes(run.problems), _reported_times(run.problems)]
        parts += [_sustained(run.problems), _means(run)]
    parts.append(_host(run.host))
    if run.stopped:
        parts.append([f"STOPPED: {run.stopped}"])
    if run.quick:
        parts.append([QUICK])
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def listing(problems: Sequence[Problem], known_ops: Sequence[str]) -> str:
    """Formats the suites and their problems."""
    lines = []
    for suite in dict.fromkeys(problem.suite for problem in problems):
        inside = [problem for problem in problems if problem.suite == suite]
        lines.append(f"{suite}: {len(inside)} problem{'s' if len(inside) != 1 else ''}")
        for problem in inside:
            alone = "" if problem.op in known_ops else "  (no peers are declared)"
            lines.append(f"  {problem.label}{alone}")
    return "\n".join([*lines, "", f"{suites.ALL}: every suite"]) + "\n"


def verdict(measured: Measured) -> str:
    """Describes Warpline's time against the fastest peer."""
    if measured.ours.state != TIMED:
        return f"warpline: {CELLS.get(measured.ours.state, 'error')}"
    best = measured.best
    if best is None or best.ratio is None:
        return "no peer"
    if best.ratio < 1:
        return f"{100 * (1 / best.ratio - 1):.1f} % SLOWER than {best.name}"
    return f"{100 * (best.ratio - 1):.1f} % faster than {best.name}"


def progress(number: int, count: int, measured: Measured, seconds: float) -> str:
    """Formats one line for a measured problem."""
    ours, share = measured.ours, measured.share(measured.ours)
    words = [f"{ours.median * 1e6:.1f} µs"] if ours.median else []
    if share is not None and not measured.compute_bound:
        words.append(f"{share:.3f} of copy")
    words.append(verdict(measured))
    if ours.why:
        words.append(ours.why)
    counter = f"[{number:>{len(str(count))}}/{count}]"
    return f"{counter} {measured.label}: {', '.join(words)} ({seconds:.1f} s)"


def _heading(run: Run) -> list[str]:
    m, reading, rules = run.machine, run.reading, run.protocol
    commit = f" ({m.commit})" if m.commit else ""
    lines = [
        f"Warpline {m.warpline or '(unknown version)'}{commit} on {m.device}, "
        f"driver {m.driver or 'unknown'}, CUDA {m.cuda or 'unknown'}",
        f"torch {m.torch}, Triton {m.triton or 'missing'}, cuDNN {m.cudnn or 'missing'}, "
        f"Python {m.python}; {run.date}",
        f"Medians of {rules.get('rounds')} rounds, {rules.get('order')}; seed {run.seed}.",
        f"Flush: {rules.get('flush')}.",
        *textwrap.wrap(f"Check: {rules.get('check')}.", 110, subsequent_indent="  "),
        f"Sensors (medians): SM {_or_not_read(reading.sm_mhz, '.0f', ' MHz')}, "
        f"memory {_or_not_read(reading.memory_mhz, '.0f', ' MHz')}, {_or_not_read(reading.watts, '.0f', ' W')}.",
    ]
    return [QUICK, *lines] if run.quick else lines


def _or_not_read(value: float | None, form: str, unit: str = "") -> str:
    return "not read" if value is None else f"{value:{form}}{unit}"


def _dash(value: float | None, form: str) -> str:
    return "-" if value is None else f"{value:{form}}"


def _ratio(implementation: Implementation | None, best: Implementation | None) -> str:
    if implementation is None:
        return "-"
    if implementation.state != TIMED:
        return CELLS[implementation.state]
    return _dash(implementation.ratio, ".3f") + ("*" if implementation is best else " ")


def _rate(measured: Measured, seconds: float | None) -> str:
    rate = measured.rate(seconds)
    if rate is None:
        return "-"
    return f"{rate / 1e12:.1f} TFLOP/s" if measured.compute_bound else f"{rate / 1e9:.0f} GB/s"


def _problems(run: Run) -> list[str]:
    peers = peer_names(run.problems)
    has_bare = any(one.of_kind(BARE) for one in run.problems)
    bare = ["of bare"] if has_bare else []
    head = ["problem", "dtype", "warpline µs", "rate", "of copy", *bare, "spread", *peers, "best peer"]
    rows = []
    for one in run.problems:
        ours, by_name = one.ours, {peer.name: peer for peer in one.peers}
        share = None if one.compute_bound else one.share(ours)
        rows.append(
            [
                f"{one.op} {one.shape}".rstrip(),
                one.dtype,
                f"{ours.median * 1e6:.1f}" if ours.median else CELLS.get(ours.state, "-"),
                _rate(one, ours.median),
                _dash(share, ".3f"),
                *(_dash(one.share(ours, BARE), ".3f") for _ in bare),
                f"{100 * one.spread:.1f} %" if one.spread is not None else "-",
                *(_ratio(by_name.get(name), one.best) for name in peers),
                verdict(one),
            ]
        )
    lines = table(head, rows, left=2, words=True)
    return [
        *lines,
        "Peer columns: time of the peer / time of Warpline, above 1 Warpline is faster; * marks the",
        "fastest peer. Of copy: throughput relative to a device copy of the same bytes in the same",
        "rounds. Spread: relative difference of two entries of Warpline.",
        *["Of bare: relative to the GEMM alone, in the same rounds."][: len(bare)],
    ]


def _notes(problems: Sequence[Measured]) -> list[str]:
    """Formats the reasons for untimed implementations and the notes, grouped by text."""
    found: dict[str, list[str]] = {}
    for one in problems:
        for note in one.notes:
            found.setdefault(note, []).append(one.label)
        for implementation in one.implementations:
            if implementation.state == TIMED or implementation.kind == AGAIN:
                continue
            cell = "skipped" if implementation.state == SKIPPED else CELLS[implementation.state]
            what = f"{implementation.name} {cell}: {implementation.why}"
            found.setdefault(what, []).append(one.label)
    lines = []
    for what, labels in found.items():
        where = ", ".join(labels[:4]) + (f" and {len(labels) - 4} more" if len(labels) > 4 else "")
        lines.append(f"  {what} [{where}]")
    return ["Not timed, notes:", *lines] if lines else []


def _reported_times(problems: Sequence[Measured]) -> list[str]:
    """Formats times reported by others."""
    rows = []
    for one in problems:
        ours = one.ours.median
        for figure in one.reported_times:
            ratio = figure.seconds / ours if ours else None
            times = [f"{figure.seconds * 1e6:.0f}", _dash(ratio, ".2f")]
            rows.append([f"{one.op} {one.shape}", figure.name, *times, figure.note])
    if not rows:
        return []
    title = f"NOT MEASURED HERE: times reported by others ({MACHINE}), and their time / Warpline's"
    return [title, *table(["problem", "implementation", "µs", "/ warpline", ""], rows, left=2, words=True)]


def _sustained(problems: Sequence[Measured]) -> list[str]:
    sustained = [one for one in problems if any(c.sustained for c in one.implementations)]
    if not sustained:
        return []
    peers = peer_names(sustained)
    rows = []
    for one in sustained:
        ours = one.ours.sustained
        by_name = {peer.name: peer.sustained for peer in one.peers}
        ratios = []
        for name in peers:
            peer = by_name.get(name)
            ratios.append(f"{peer.seconds / ours.seconds:.3f}" if peer and ours else "-")
        rows.append(
            [
                f"{one.op} {one.shape}".rstrip(),
                one.dtype,
                f"{ours.seconds * 1e6:.1f}" if ours else "-",
                _rate(one, ours.seconds if ours else None),
                _dash(ours.sm_mhz if ours else None, ".0f"),
                _dash(ours.watts if ours else None, ".0f"),
                *ratios,
            ]
        )
    head = ["problem", "dtype", "warpline µs", "rate", "SM MHz", "W", *peers]
    return ["Sustained: each back to back for more than a second", *table(head, rows, 2)]


def _means(run: Run) -> list[str]:
    summary, peers = summarize(run.problems), peer_names(run.problems)
    if not peers:
        return []

    def row(means: MeanRow) -> list[str]:
        cells = [means.name, str(means.problems), _dash(means.best, ".3f")]
        for name in peers:
            mean, count = means.peers.get(name, (None, 0))
            part = f" ({count})" if mean is not None and count < means.problems else ""
            cells.append(_dash(mean, ".3f") + part)
        return cells

    lines = [
        "Geometric mean of peer time / Warpline time, above 1 Warpline is faster; "
        "(n) if the peer ran in n problems only"
    ]
    rows = [row(means) for means in (*summary.ops, summary.overall)]
    lines += table(["op", "problems", "best peer", *peers], rows)
    lines.append("")
    lines.append(
        f"Against the best peer: {summary.wins} faster, {summary.losses} slower; "
        f"{summary.within_spread} of these within the spread."
    )
    shares: dict[str, list[float]] = {}
    for one in run.problems:
        bare, share = one.of_kind(BARE), one.share(one.ours, BARE)
        if bare is not None and share is not None:
            shares.setdefault(f"{one.op} against {bare.name}", []).append(share)
    for name, ratios in shares.items():
        lines.append(f"GEMM alone, {name}: geometric mean {geomean(ratios):.3f}.")
    if summary.spread_median is not None and summary.spread_worst is not None:
        lines.append(
            f"Spread of two entries of Warpline: median {100 * summary.spread_median:.2f} %, "
            f"worst {100 * summary.spread_worst:.2f} %."
        )
    return lines


def _host(costs: Sequence[HostCost]) -> list[str]:
    if not costs:
        return []
    rows = []
    for cost in costs:
        is_slow = cost.median_s is not None and cost.median_s > SLOW_CALL_S
        rows.append(
            [
                cost.op,
                cost.name,
                _dash(cost.least_s and cost.least_s * 1e6, ".2f"),
                _dash(cost.median_s and cost.median_s * 1e6, ".2f"),
                cost.why or (f"above {SLOW_CALL_S * 1e6:.0f} µs" if is_slow else ""),
            ]
        )
    title = "Host overhead of a call on small tensors, µs (no synchronization between calls)"
    return [title, *table(["op", "called as", "min", "median", ""], rows, left=2, words=True)]
