"""How times are taken on a CUDA device.

Contenders run in a fresh random order every round. Before each launch a spin
keeps the device busy until the host has queued everything, then a kernel that
only reads pushes the inputs out of the level-2 cache; a flush that writes would
leave dirty lines behind, for which the timed kernel would pay.
"""

from __future__ import annotations

import gc
import math
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from . import inputs
from .machine import Reading, median_reading
from .record import Sustained

Call = Callable[[], Any]

#: Fewest rounds whose medians may be published.
LEAST_ROUNDS = 15
#: Rounds unless told otherwise.
ROUNDS = 25
#: Rounds of a quick run unless told otherwise.
QUICK_ROUNDS = 5
#: How long the device spins before each flush at first.
SPIN_S = 200e-6
#: How long it spins at most, where the host is slower than that.
MOST_SPIN_S = 5e-3
#: Untimed rounds go on for at least so long, and are at least so many.
WARM_S = 0.3
WARM_ROUNDS = 3
#: How long a contender runs alone, back to back.
SUSTAINED_S = 1.0


class DeviceLost(Exception):
    """The device answers nothing any more; nothing else can be measured."""


@dataclass
class Times:
    """What came out of the rounds."""

    #: Seconds by contender, one for each round.
    seconds: list[list[float]]
    #: Why a contender was taken out, by its place.
    failures: dict[int, str] = field(default_factory=dict)
    #: The medians of the sensors.
    reading: Reading = field(default_factory=Reading)
    #: Launches that the host may have queued too late, and that were kept.
    late: int = 0


def describe(l2_bytes: int, rounds: int, quick: bool) -> dict[str, Any]:
    """The protocol, for the record."""
    return {
        "order": "a fresh random order every round; ours is entered twice",
        "rounds": rounds,
        "warm_up": f"at least {WARM_ROUNDS} rounds and {WARM_S} s",
        "flush": f"before each launch {2 * l2_bytes >> 20} MiB are read (twice the L2), "
        "nothing is written",
        "spin": f"the device spins for {SPIN_S * 1e6:.0f} µs or more before each flush, "
        "so that the host is ahead",
        "timer": "CUDA events around each call",
        "inputs": "N(0, 1) unless the op draws them in its own way, the same for all",
        "sustained": f"alone, back to back for more than {SUSTAINED_S:g} s, nothing flushed",
        "quick": quick,
    }


class Timer:
    """A stopwatch on torch's current stream."""

    def __init__(self, l2_bytes: int, seed: int, read: Callable[[], Reading]) -> None:
        import torch

        self._torch = torch
        self._random = random.Random(seed)
        self._read = read
        self._flushed = torch.ones(2 * l2_bytes // 4, dtype=torch.float32, device=inputs.DEVICE)
        self._sink = torch.empty((), dtype=torch.float32, device=inputs.DEVICE)
        self._spin_s = SPIN_S
        self._cycles_per_s = self._calibrate()

    def rounds(
        self, calls: Sequence[Call], rounds: int, names: Sequence[str], warm_s: float = WARM_S
    ) -> Times:
        """Times every call in each of some rounds, after a warm-up.

        A call that raises is taken out. Sensors are read between rounds.
        """
        torch = self._torch
        events = [tuple(torch.cuda.Event(enable_timing=True) for _ in range(2)) for _ in calls]
        times = Times([[] for _ in calls])
        readings = []
        with _no_collection():
            began, warm = time.perf_counter(), 0
            while warm < WARM_ROUNDS or time.perf_counter() - began < warm_s:
                self._round(calls, events, names, times.failures)
                warm += 1
                if len(times.failures) == len(calls):
                    return times
            for _ in range(rounds):
                times.late += self._round(calls, events, names, times.failures)
                for i, (start, end) in enumerate(events):
                    if i not in times.failures:
                        times.seconds[i].append(start.elapsed_time(end) / 1e3)
                readings.append(self._read())
        times.reading = median_reading(readings)
        return times

    def sustain(self, call: Call, seconds: float) -> Sustained:
        """Runs a call that takes about so long alone for more than a second."""
        torch = self._torch
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        calls = max(10, math.ceil(1.2 * SUSTAINED_S / seconds))
        while True:
            with _no_collection():
                for _ in range(3):
                    call()
                torch.cuda.synchronize()
                self._sleep()
                start.record()
                for _ in range(calls):
                    call()
                end.record()
                # The device is still at work on what is queued.
                reading = self._read()
                torch.cuda.synchronize()
            stretch = start.elapsed_time(end) / 1e3
            if stretch > SUSTAINED_S:
                return Sustained(stretch / calls, calls, reading.sm_mhz, reading.watts)
            calls = math.ceil(1.3 * calls * SUSTAINED_S / max(stretch, 1e-3))

    def shuffled(self, count: int) -> list[int]:
        """0 … count − 1 in a random order."""
        order = list(range(count))
        self._random.shuffle(order)
        return order

    def _round(
        self,
        calls: Sequence[Call],
        events: Sequence[tuple[Any, ...]],
        names: Sequence[str],
        failures: dict[int, str],
    ) -> int:
        """Queues every call once in a fresh order and waits; gives how many were late."""
        late, ran = 0, []
        for i in self.shuffled(len(calls)):
            if i in failures:
                continue
            try:
                late += not self._queue(calls[i], *events[i])
                ran.append(names[i])
            except Exception as why:
                failures[i] = reason(why)
                alive(names[i])
        alive(", ".join(ran))
        return late

    def _queue(self, call: Call, start: Any, end: Any) -> bool:
        """Queues one timed call; says whether the host was surely ahead."""
        for _ in range(4):
            self._sleep()
            began = time.perf_counter()
            self._torch.amax(self._flushed, 0, out=self._sink)
            start.record()
            call()
            end.record()
            if time.perf_counter() - began < self._spin_s:
                return True
            self._spin_s = min(2 * self._spin_s, MOST_SPIN_S)
        return False

    def _sleep(self) -> None:
        self._torch.cuda._sleep(int(self._spin_s * self._cycles_per_s))

    def _calibrate(self) -> float:
        """Clock cycles per second, as the spin counts them."""
        torch, cycles = self._torch, 2_000_000
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        # The first spin wakes the clocks.
        torch.cuda._sleep(20 * cycles)
        start.record()
        torch.cuda._sleep(cycles)
        end.record()
        torch.cuda.synchronize()
        return cycles / (start.elapsed_time(end) / 1e3)


def quickest(candidates: Sequence[tuple[str, Call]]) -> tuple[str, Call]:
    """The quickest of some ways to do the same, back to back; those that raise are left out."""
    import torch

    best: tuple[float, str, Call] | None = None
    failure: Exception | None = None
    for name, call in candidates:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        try:
            for _ in range(3):
                call()
            torch.cuda.synchronize()
            # About two milliseconds, in which the host gets ahead.
            torch.cuda._sleep(4_000_000)
            start.record()
            for _ in range(20):
                call()
            end.record()
            torch.cuda.synchronize()
        except Exception as why:
            failure = why
            continue
        seconds = start.elapsed_time(end)
        if best is None or seconds < best[0]:
            best = (seconds, name, call)
    if best is None:
        raise failure or ValueError("there is no candidate")
    return best[1:]


def alive(what: str) -> None:
    """Waits for the device; an error there is the end of the run."""
    import torch

    try:
        torch.cuda.synchronize()
    except Exception as why:
        raise DeviceLost(f"The device was lost in {what}: {reason(why)}") from None


def fresh() -> None:
    """Frees what the last problem held: memory, and what torch.compile made for its shapes."""
    import torch

    if "torch._dynamo" in sys.modules:
        torch._dynamo.reset()
    gc.collect()
    torch.cuda.empty_cache()


def reason(why: BaseException) -> str:
    """What an exception says, in one line."""
    lines = [line.strip() for line in str(why).splitlines() if line.strip()]
    text = f"{type(why).__name__}: {lines[0]}" if lines else type(why).__name__
    return text if len(text) <= 200 else text[:199] + "…"


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keeps Python from collecting garbage meanwhile."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
