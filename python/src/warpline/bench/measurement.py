"""Builds, checks and times the implementations of one problem."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import inputs
from .peers import EAGER, OPS, Built, Op, Peer
from .protocol import DeviceLost, Timer, release_memory, reason, synchronize
from .record import AGAIN, BARE, COPY, FAILED, OURS, SKIPPED, TIMED, WRONG, Implementation, Measured
from .statistics import quartiles
from .suites import Problem
from .verify import Reference, byte_sizes, poison

#: Warpline's name in tables.
OUR_NAME = "warpline"


@dataclass
class Settings:
    """The settings of a measurement."""

    rounds: int
    warm_s: float
    seed: int
    #: Whether each implementation also runs back to back for a second; None means for large GEMMs.
    sustained: bool | None = None


@dataclass
class Entry:
    """An implementation during the measurement; ``call`` is None once it failed."""

    result: Implementation
    build: Callable[[], Built]
    #: The factor by which its errors may exceed the tolerance.
    slack: float = 1.0
    call: Callable[[], Any] | None = None


def measure(problem: Problem, timer: Timer, settings: Settings) -> Measured:
    """Measures one problem; implementations that fail are reported and skipped."""
    import torch

    measured = Measured(
        suite=problem.suite,
        family=problem.family,
        op=problem.op,
        label=problem.label,
        shape=problem.shape,
        dtype=problem.dtype,
        problem=problem.problem,
        flops=problem.flops,
        bytes=problem.bytes,
        compute_bound=problem.compute_bound,
    )
    release_memory()
    try:
        with torch.no_grad():
            _measure(problem, measured, timer, settings)
    except DeviceLost as why:
        raise DeviceLost(f"{problem.label}: {why}") from None
    except Exception as why:
        # Inputs or reference failed, so no implementation can run.
        ours = measured.of_kind(OURS)
        if ours is None:
            ours = Implementation(OUR_NAME, OURS)
            measured.implementations.append(ours)
        ours.state, ours.why = FAILED, reason(why)
    release_memory()
    measured.compare()
    return measured


def _measure(problem: Problem, measured: Measured, timer: Timer, settings: Settings) -> None:
    op = OPS.get(problem.op)
    args = inputs.draw(problem, settings.seed, op.draw if op else None)
    ours = Entry(Implementation(OUR_NAME, OURS), lambda: our_call(problem.op, args))
    entries = [ours, *_peers(op, problem, args)]
    measured.implementations = [entry.result for entry in entries]
    if op is None:
        measured.notes.append("no reference and no peers are declared: measured alone, result not checked")
        _guarded(ours, lambda: _build(ours))
    else:
        measured.reported_times = op.reported_times(problem)
        measured.notes += _check_all(op, args, entries)
    # The copy is built after the check, so that it and the reference are not in memory together.
    release_cached_memory()
    copy = Entry(Implementation("copy", COPY), lambda: _copy(int(problem.bytes) // 2))
    _guarded(copy, lambda: _build(copy))
    again = Entry(Implementation(f"{OUR_NAME}, again", AGAIN), ours.build, call=ours.call)
    again.result.state, again.result.why = ours.result.state, ours.result.why
    entries += [again, copy]
    if op is not None and (bare := op.bare) is not None:
        entry = Entry(Implementation(f"{bare.name}, bare", BARE), lambda: bare.build(args))
        _guarded(entry, lambda: _build(entry))
        entries.append(entry)
    measured.implementations = [entry.result for entry in entries]
    _time_all([entry for entry in entries if entry.call], measured, timer, settings)
    is_sustained = problem.is_large_gemm if settings.sustained is None else settings.sustained
    if is_sustained:
        _sustain(entries, timer)


def our_call(op: str, args: inputs.Args) -> Built:
    """Returns a call of Warpline's public function on the arguments."""
    function = getattr(importlib.import_module("warpline"), op)
    values = tuple(args.values())
    return Built(lambda: function(*values))


def _peers(op: Op | None, problem: Problem, args: inputs.Args) -> list[Entry]:
    def entry(peer: Peer) -> Entry:
        why = peer.skip_reason(problem)
        state = TIMED if why is None else SKIPPED
        result = Implementation(peer.name, peer.kind, state, why)
        return Entry(result, lambda: peer.build(args), peer.slack)

    return [entry(peer) for peer in (op.peers if op else ())]


def _build(entry: Entry) -> None:
    """Builds an implementation and runs it once."""
    built = entry.build()
    entry.call, entry.result.note = built.call, built.note
    built.call()
    synchronize(entry.result.name)


def _guarded(entry: Entry, work: Callable[[], None]) -> None:
    """Runs ``work`` for an implementation; on failure drops the implementation and records the reason."""
    if entry.result.state != TIMED:
        return
    try:
        work()
    except DeviceLost:
        raise
    except Exception as why:
        entry.call = None
        entry.result.state, entry.result.why = FAILED, reason(why)
        synchronize(entry.result.name)


def _check_all(op: Op, args: inputs.Args, entries: list[Entry]) -> list[str]:
    """Compares every implementation with the reference, torch eager first: its error sets the tolerance.

    Returns notes on implementations that exceed the tolerance within their slack and are still timed.
    """
    reference = Reference(op, args)
    sizes: list[int] = []
    notes: list[str] = []

    def check(entry: Entry) -> None:
        _build(entry)
        poison(sizes)
        assert entry.call is not None
        out = entry.call()
        synchronize(entry.result.name)
        sizes[:] = byte_sizes(out)
        if entry.result.kind == EAGER and reference.eager_errors is None:
            reference.set_eager_errors(out)
        checked = reference.check(out, entry.slack)
        error, bound = entry.result.error, entry.result.bound = checked.worst
        if checked.wrong is not None:
            entry.call = None
            entry.result.state, entry.result.why = WRONG, checked.wrong
        elif checked.inexact:
            name = entry.result.name
            notes.append(f"{name} has error {error:.1e}, tolerance {bound:.1e}; timed anyway")

    for entry in sorted(entries, key=lambda entry: entry.result.kind != EAGER):
        _guarded(entry, functools.partial(check, entry))
    return notes


def release_cached_memory() -> None:
    """Returns cached free memory to the device."""
    import torch

    torch.cuda.empty_cache()


def _copy(size: int) -> Built:
    """Builds a device copy that reads and writes ``size`` bytes."""
    import torch

    source = torch.ones(max(size, 1), dtype=torch.uint8, device=inputs.DEVICE)
    target = torch.empty_like(source)
    return Built(lambda: target.copy_(source))


def _time_all(entries: list[Entry], measured: Measured, timer: Timer, settings: Settings) -> None:
    if not entries:
        return
    names = [entry.result.name for entry in entries]
    calls = [entry.call for entry in entries if entry.call]
    times = timer.rounds(calls, settings.rounds, names, settings.warm_s)
    for i, entry in enumerate(entries):
        if i in times.failures:
            entry.call = None
            entry.result.state, entry.result.why = FAILED, times.failures[i]
        else:
            entry.result.seconds = quartiles(times.seconds[i])
    measured.reading = times.reading
    measured.late = times.late
    if times.late:
        measured.notes.append("the host may have been late for some launches (`late` in the JSON)")


def _sustain(entries: list[Entry], timer: Timer) -> None:
    """Runs each implementation back to back, in random order."""
    timed = [entry for entry in entries if entry.call and entry.result.kind != AGAIN]
    for i in timer.shuffled(len(timed)):
        _guarded(timed[i], functools.partial(_sustain_one, timed[i], timer))


def _sustain_one(entry: Entry, timer: Timer) -> None:
    assert entry.call is not None and entry.result.seconds is not None
    entry.result.sustained = timer.sustain(entry.call, entry.result.seconds.median)
