"""The timing protocol on a CUDA device.

Implementations run in a new random order in every round. Before each launch a
spin kernel keeps the device busy until the host has queued everything. Then a
read-only kernel evicts the inputs from L2. A flush that writes would leave
dirty lines, and the time of the kernel would include their write-back.
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

#: The minimum number of rounds for publication.
MIN_ROUNDS = 15
#: The default number of rounds.
ROUNDS = 25
#: The default number of rounds with --quick.
QUICK_ROUNDS = 5
#: The initial duration of the spin before each flush.
SPIN_S = 200e-6
#: The maximum duration of the spin, for slow hosts.
MAX_SPIN_S = 5e-3
#: The minimum duration and number of warm-up rounds.
WARM_S = 0.3
WARM_ROUNDS = 3
#: The minimum duration of a back-to-back run.
SUSTAINED_S = 1.0


class DeviceLost(Exception):
    """The CUDA context is lost; no further measurement is possible."""


@dataclass
class Times:
    """The times of the rounds."""

    #: Seconds by implementation and round.
    seconds: list[list[float]]
    #: The failure of an implementation, by its index.
    failures: dict[int, str] = field(default_factory=dict)
    #: The medians of the sensors.
    reading: Reading = field(default_factory=Reading)
    #: Launches that the host may have queued too late; they are kept.
    late: int = 0


def describe(l2_bytes: int, rounds: int, quick: bool) -> dict[str, Any]:
    """Describes the protocol for the JSON record."""
    return {
        "order": "a new random order in every round; Warpline is entered twice",
        "rounds": rounds,
        "warm_up": f"at least {WARM_ROUNDS} rounds and {WARM_S} s",
        "flush": f"{2 * l2_bytes >> 20} MiB (twice the L2) are read before each launch, "
        "nothing is written",
        "spin": f"the device spins for {SPIN_S * 1e6:.0f} µs or more before each flush, "
        "so that the host queues ahead",
        "timer": "CUDA events around each call",
        "inputs": "N(0, 1) unless the op defines its own, the same for all implementations",
        "sustained": f"back to back for more than {SUSTAINED_S:g} s, without L2 flush",
        "quick": quick,
    }


class Timer:
    """Times calls on torch's current stream."""

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
        """Times every call once per round, after a warm-up.

        A call that raises is dropped. Sensors are read between rounds.
        """
        torch = self._torch
        events = [tuple(torch.cuda.Event(enable_timing=True) for _ in range(2)) for _ in calls]
        times = Times([[] for _ in calls])
        readings = []
        with _no_collection():
            began, warm_rounds = time.perf_counter(), 0
            while warm_rounds < WARM_ROUNDS or time.perf_counter() - began < warm_s:
                self._round(calls, events, names, times.failures)
                warm_rounds += 1
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
        """Runs a call of about ``seconds`` back to back for more than a second."""
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
                # The device is still running the queued calls.
                reading = self._read()
                torch.cuda.synchronize()
            elapsed_s = start.elapsed_time(end) / 1e3
            if elapsed_s > SUSTAINED_S:
                return Sustained(elapsed_s / calls, calls, reading.sm_mhz, reading.watts)
            calls = math.ceil(1.3 * calls * SUSTAINED_S / max(elapsed_s, 1e-3))

    def shuffled(self, count: int) -> list[int]:
        """Returns 0 … count − 1 in random order."""
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
        """Queues every call once in random order and synchronizes; returns the number of late launches."""
        late, ran = 0, []
        for i in self.shuffled(len(calls)):
            if i in failures:
                continue
            try:
                late += not self._queue(calls[i], *events[i])
                ran.append(names[i])
            except Exception as why:
                failures[i] = reason(why)
                synchronize(names[i])
        synchronize(", ".join(ran))
        return late

    def _queue(self, call: Call, start: Any, end: Any) -> bool:
        """Queues one timed call; returns whether the host was certainly ahead of the device."""
        for _ in range(4):
            self._sleep()
            began = time.perf_counter()
            self._torch.amax(self._flushed, 0, out=self._sink)
            start.record()
            call()
            end.record()
            if time.perf_counter() - began < self._spin_s:
                return True
            self._spin_s = min(2 * self._spin_s, MAX_SPIN_S)
        return False

    def _sleep(self) -> None:
        self._torch.cuda._sleep(int(self._spin_s * self._cycles_per_s))

    def _calibrate(self) -> float:
        """Returns the spin kernel's clock cycles per second."""
        torch, cycles = self._torch, 2_000_000
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        # The first spin raises the clocks.
        torch.cuda._sleep(20 * cycles)
        start.record()
        torch.cuda._sleep(cycles)
        end.record()
        torch.cuda.synchronize()
        return cycles / (start.elapsed_time(end) / 1e3)


def fastest(candidates: Sequence[tuple[str, Call]]) -> tuple[str, Call]:
    """Returns the fastest of several candidates, timed back to back; those that raise are skipped."""
    import torch

    best: tuple[float, str, Call] | None = None
    failure: Exception | None = None
    for name, call in candidates:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        try:
            for _ in range(3):
                call()
            torch.cuda.synchronize()
            # About two milliseconds for the host to queue ahead.
            torch.cuda._sleep(4_000_000)
            start.record()
            for _ in range(20):
                call()
            end.record()
            torch.cuda.synchronize()
        except Exception as why:
            failure = why
            continue
        elapsed_ms = start.elapsed_time(end)
        if best is None or elapsed_ms < best[0]:
            best = (elapsed_ms, name, call)
    if best is None:
        raise failure or ValueError("there are no candidates to time")
    return best[1:]


def synchronize(name: str) -> None:
    """Waits for the device; raises DeviceLost if the call ``name`` lost it."""
    import torch

    try:
        torch.cuda.synchronize()
    except Exception as why:
        raise DeviceLost(f"CUDA context lost in {name}: {reason(why)}") from None


def release_memory() -> None:
    """Frees the memory of the last problem and torch.compile's code for its shapes."""
    import torch

    if "torch._dynamo" in sys.modules:
        torch._dynamo.reset()
    gc.collect()
    torch.cuda.empty_cache()


def reason(why: BaseException) -> str:
    """Formats an exception as one line."""
    lines = [line.strip() for line in str(why).splitlines() if line.strip()]
    text = f"{type(why).__name__}: {lines[0]}" if lines else type(why).__name__
    return text if len(text) <= 200 else text[:199] + "…"


@contextmanager
def _no_collection() -> Iterator[None]:
    """Disables Python's garbage collection."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
