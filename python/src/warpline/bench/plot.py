"""Plots the results as SVG: one row per problem, one mark per implementation."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from .record import OURS, TIMED, Implementation, Measured, Run, peer_names

#: Lengths in pixels.
WIDTH, RIGHT, ROW, GROUP = 1080, 196, 25, 34
#: The maximum length of a row's name, in characters.
MAX_NAME = 64
FONT = "Inter, 'Segoe UI', 'Helvetica Neue', Helvetica, Arial, sans-serif"
INK, SOFT, FAINT, PAPER, BAND = "#1b2430", "#5d6978", "#dfe4ea", "#ffffff", "#f5f7fa"
OUR_COLOR, FASTER, SLOWER = "#d9480f", "#2b7a3e", "#b42318"
#: Colors that most readers with color blindness can tell apart, each with its own shape.
PEER_COLORS = ("#2563a8", "#0f8a7e", "#7c4fc4", "#8a6d1a", "#c2427a", "#4a5563", "#3aa0d8")
SHAPES = ("circle", "square", "diamond", "triangle", "down", "circle", "square")


@dataclass(frozen=True)
class Axis:
    """A horizontal scale."""

    low: float
    high: float
    step: float
    title: str
    #: Its left end, in pixels.
    left: float
    format_tick: Callable[[float], str]

    def x(self, value: float) -> float:
        """Returns the x coordinate of a value."""
        fraction = (value - self.low) / (self.high - self.low)
        return self.left + fraction * (WIDTH - self.left - RIGHT)

    def ticks(self) -> list[float]:
        """Returns the values of the ticks."""
        first = math.ceil(self.low / self.step - 1e-9)
        last = math.floor(self.high / self.step + 1e-9)
        return [i * self.step for i in range(first, last + 1)]


def svg(run: Run) -> str:
    """Renders a run as an SVG document."""
    names = peer_names(run.problems)
    styles = {name: (PEER_COLORS[i % 7], SHAPES[i % 7]) for i, name in enumerate(names)}
    suites = ", ".join(dict.fromkeys(one.suite for one in run.problems)) or "nothing"
    title = f"Warpline on {run.machine.device}: {suites}"
    body: list[str] = [_text(32, 46, title, 23, INK, weight=700)]
    body.append(_text(32, 70, _subtitle(run), 13, SOFT))
    y = 98.0
    if run.quick:
        body.append(_text(32, y, "Quick run: not for publication", 14, SLOWER, weight=700))
        y += 26
    y = _legend(body, y, run, styles)
    memory = [one for one in run.problems if not one.compute_bound]
    compute = [one for one in run.problems if one.compute_bound]
    if memory:
        y = _panel(body, y, memory, _share_axis(memory), _share, styles)
    if compute:
        y = _panel(body, y, compute, _rate_axis(compute), _tflops, styles)
    for line in _footer(run):
        body.append(_text(32, y + 6, line, 11.5, SOFT))
        y += 17
    return _document(title, y + 20, body)


def _document(title: str, height: float, body: Sequence[str]) -> str:
    size = f'width="{WIDTH}" height="{height:.0f}" viewBox="0 0 {WIDTH} {height:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="{FONT}">'
    paper = f'<rect width="{WIDTH}" height="{height:.0f}" fill="{PAPER}"/>'
    return "\n".join([head, f"<title>{escape(title)}</title>", paper, *body, "</svg>", ""])


def _subtitle(run: Run) -> str:
    m = run.machine
    versions = [f"torch {m.torch}", f"Triton {m.triton}" if m.triton else "", f"CUDA {m.cuda}"]
    rounds = f"medians of {run.protocol.get('rounds')} rounds in random order, cold L2"
    return " · ".join([*(word for word in versions if word), rounds, run.date[:10]])


def _footer(run: Run) -> list[str]:
    commit = f" ({run.machine.commit[:12]})" if run.machine.commit else ""
    r = run.reading
    sensors = [
        f"SM {r.sm_mhz:.0f} MHz" if r.sm_mhz else "",
        f"memory {r.memory_mhz:.0f} MHz" if r.memory_mhz else "",
        f"{r.watts:.0f} W" if r.watts else "",
    ]
    facts = [
        f"Warpline {run.machine.warpline or ''}{commit}",
        f"driver {run.machine.driver or 'unknown'}",
        *(word for word in sensors if word),
        f"seed {run.seed}",
    ]
    return [
        "Right: time of the fastest peer / time of Warpline. Above 1, Warpline is faster.",
        " · ".join(facts),
    ]


def _legend(body: list[str], y: float, run: Run, styles: dict[str, tuple[str, str]]) -> float:
    """Draws the legend, wrapped into lines."""
    timed = {c.name for one in run.problems for c in one.implementations if c.state == TIMED}
    ours = next((one.ours.name for one in run.problems), "warpline")
    x = 38.0
    for name in (ours, *styles):
        label = name if name in timed else f"{name} (not timed)"
        width = (44 + 8.4 * len(label)) if name == ours else 38 + 7.4 * len(label)
        if x + width > WIDTH - 32:
            x, y = 38.0, y + 24
        bold = name == ours
        body.append(_our_mark(x, y - 4.5) if bold else _mark(x, y - 4.5, *styles[name]))
        body.append(_text(x + 14, y, label, 13.5, INK, weight=700 if bold else 400))
        x += width
    return y + 26


def _share(measured: Measured, implementation: Implementation) -> float | None:
    return measured.share(implementation)


def _tflops(measured: Measured, implementation: Implementation) -> float | None:
    rate = measured.rate(implementation.median)
    return None if rate is None else rate / 1e12


def _values(problems: Sequence[Measured], value: Callable[..., float | None]) -> list[float]:
    values = [value(one, implementation) for one in problems for implementation in (one.ours, *one.peers)]
    return [value for value in values if value is not None]


def _row_name(shape: str) -> str:
    """Returns the name of a row; a long name loses words in the middle."""
    words, name = shape.split(" "), re.sub(r"(?<=\d)x(?=\d)", " × ", shape)
    if len(name) <= MAX_NAME or len(words) < 3:
        return name
    words.pop(len(words) // 2)
    while len(words) > 2 and len(" ".join(words)) + 2 > MAX_NAME:
        words.pop(len(words) // 2)
    words.insert((len(words) + 1) // 2, "…")
    return " ".join(words)


def _left_edge(problems: Sequence[Measured]) -> float:
    """Returns the x coordinate after the longest row name."""
    longest = max(len(_row_name(one.shape)) for one in problems)
    return max(236.0, 44 + 7.8 * longest + 74)


def _share_axis(problems: Sequence[Measured]) -> Axis:
    values = _values(problems, _share) or [1.0]
    low = max(0.0, math.floor((min(values) - 0.02) * 10) / 10)
    high = max(1.05, max(values) + 0.02)
    title = "Throughput relative to a device copy of the same bytes in the same rounds; right is faster"
    step = 0.1 if high - low <= 1.3 else 0.2 if high - low <= 2.6 else 0.5
    return Axis(min(low, 0.8), high, step, title, _left_edge(problems), lambda tick: f"{tick:.1f}")


def _rate_axis(problems: Sequence[Measured]) -> Axis:
    top = max(_values(problems, _tflops), default=1.0) * 1.04 or 1.0
    power = 10.0 ** math.floor(math.log10(top / 5))
    step = next(power * k for k in (1, 2, 5, 10) if power * k * 8 >= top)
    title = "TFLOP/s; right is faster"
    return Axis(0.0, top, step, title, _left_edge(problems), lambda tick: f"{tick:g}")


def _panel(
    body: list[str],
    y: float,
    problems: Sequence[Measured],
    axis: Axis,
    value: Callable[[Measured, Implementation], float | None],
    styles: dict[str, tuple[str, str]],
) -> float:
    """Draws one axis and its rows."""
    body.append(_text(axis.left, y + 4, axis.title, 12.5, SOFT))
    top = y + 36
    ops = list(dict.fromkeys(one.op for one in problems))
    bottom = top + GROUP * len(ops) + ROW * len(problems)
    # Draw bands first, then lines, then marks.
    rows: list[tuple[float, Measured]] = []
    row_y = top
    for op in ops:
        body.append(_text(32, row_y + 22, op, 14.5, INK, weight=700))
        row_y += GROUP
        for i, one in enumerate(each for each in problems if each.op == op):
            if i % 2 == 0:
                size = f'width="{WIDTH - 48}" height="{ROW}"'
                body.append(f'<rect x="24" y="{row_y:.1f}" {size} rx="4" fill="{BAND}"/>')
            rows.append((row_y + ROW / 2, one))
            row_y += ROW
    for tick in axis.ticks():
        x, label = axis.x(tick), axis.format_tick(tick)
        is_copy = label == "1.0"
        color, width = (SOFT, 1.4) if is_copy else (FAINT, 1)
        dash = ' stroke-dasharray="5 4"' if is_copy else ""
        body.append(_line(x, top - 4, x, bottom + 4, color, width, dash))
        name = "copy = 1.0" if is_copy else label
        for label_y in (top - 10, bottom + 19):
            body.append(_text(x, label_y, name, 12, INK if is_copy else SOFT, anchor="middle"))
    for middle, one in rows:
        _row(body, middle, one, axis, value, styles)
    return bottom + 48


def _row(
    body: list[str],
    y: float,
    one: Measured,
    axis: Axis,
    value: Callable[[Measured, Implementation], float | None],
    styles: dict[str, tuple[str, str]],
) -> None:
    body.append(_text(44, y + 4.5, _row_name(one.shape), 13, INK))
    body.append(_text(axis.left - 16, y + 4.5, one.dtype, 12.5, SOFT, anchor="end"))
    # Warpline first: its mark is larger, so a peer at the same position stays visible.
    marks = [(value(one, c), c) for c in (one.ours, *one.peers)]
    present = [(v, c) for v, c in marks if v is not None]
    if len(present) > 1:
        ends = [axis.x(v) for v, _ in present]
        body.append(_line(min(ends), y, max(ends), y, "#c3cbd5", 2))
    for v, implementation in present:
        x = axis.x(v)
        ours = implementation.kind == OURS
        mark = _our_mark(x, y) if ours else _mark(x, y, *styles[implementation.name])
        tip = f"{one.label}, {implementation.name}: {(implementation.median or 0) * 1e6:.1f} µs"
        body.append(f"<g><title>{escape(tip)}</title>{mark}</g>")
    x = WIDTH - RIGHT + 24
    best = one.best
    if one.ours.state != TIMED:
        body.append(_text(x, y + 4.5, f"warpline {one.ours.state}", 13, SLOWER, weight=700))
    elif best is None or best.ratio is None:
        body.append(_text(x, y + 4.5, "alone", 12.5, SOFT))
    else:
        color = FASTER if best.ratio >= 1 else SLOWER
        body.append(_text(x, y + 4.5, f"{best.ratio:.2f}×", 13.5, color, weight=700))
        body.append(_text(x + 50, y + 4.5, best.name, 12, SOFT))


def _our_mark(x: float, y: float) -> str:
    style = f'fill="{OUR_COLOR}" stroke="{PAPER}" stroke-width="1.8"'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="7.6" {style}/>'


def _mark(x: float, y: float, color: str, shape: str) -> str:
    style = f'fill="{PAPER}" stroke="{color}" stroke-width="2"'
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.6" {style}/>'
    if shape == "square":
        return f'<rect x="{x - 4.2:.1f}" y="{y - 4.2:.1f}" width="8.4" height="8.4" {style}/>'
    corners = {
        "diamond": ((0, -5.8), (5.8, 0), (0, 5.8), (-5.8, 0)),
        "triangle": ((0, -5.6), (5.4, 4.2), (-5.4, 4.2)),
        "down": ((0, 5.6), (5.4, -4.2), (-5.4, -4.2)),
    }[shape]
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{points}" {style} stroke-linejoin="round"/>'


def _line(
    x1: float, y1: float, x2: float, y2: float, color: str, width: float, more: str = ""
) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{color}" stroke-width="{width}"{more}/>'


def _text(
    x: float,
    y: float,
    text: str,
    size: float,
    color: str,
    weight: int = 400,
    anchor: str = "start",
) -> str:
    position = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{color}"'
    style = f'font-weight="{weight}" text-anchor="{anchor}"'
    return f"<text {position} {style}>{escape(text)}</text>"
