"""Measures the host overhead of a call."""

from __future__ import annotations

import functools
import importlib
import random
import time
from collections.abc import Callable, Iterable
from typing import Any

from . import inputs
from .peers import EAGER, OPS, Peer
from .protocol import DeviceLost, reason, synchronize
from .record import HostCost
from .statistics import quartiles
from .suites import Problem

#: Calls per round, without synchronization.
CALLS = 200
#: Rounds.
ROUNDS = 10
#: The table marks calls above this time.
SLOW_CALL_S = 15e-6


def first_problem_of_each_op(problems: Iterable[Problem]) -> list[Problem]:
    """Returns the first problem of each op."""
    first: dict[str, Problem] = {}
    for problem in problems:
        first.setdefault(problem.op, problem)
    return list(first.values())


def measure(problem: Problem, seed: int) -> list[HostCost]:
    """Measures the host time of small calls: torch op, Warpline's function, torch's own function."""
    import torch

    op = OPS.get(problem.op)
    reduced = op.small(problem) if op else inputs.small(problem)
    ours, registered = f"warpline.{problem.op}", f"torch.ops.warpline.{problem.op}"
    try:
        args = inputs.draw(reduced, seed, op.draw if op else None)
    except Exception as why:
        return [HostCost(problem.op, ours, why=reason(why))]
    values = tuple(args.values())

    def direct_call(find: Callable[[], Callable[..., Any]]) -> Callable[[], Callable[[], Any]]:
        def build() -> Callable[[], Any]:
            function = find()
            return lambda: function(*values)

        return build

    implementations: dict[str, Callable[[], Callable[[], Any]]] = {
        registered: direct_call(lambda: getattr(torch.ops.warpline, problem.op)),
        ours: direct_call(lambda: getattr(importlib.import_module("warpline"), problem.op)),
    }
    for peer in op.peers if op else ():
        if peer.kind == EAGER and peer.skip_reason(reduced) is None:
            implementations[peer.name] = functools.partial(_peer_call, peer, args)
    try:
        with torch.no_grad():
            return _measure(problem.op, implementations, seed)
    except DeviceLost:
        raise
    except Exception as why:
        return [HostCost(problem.op, ours, why=reason(why))]


def _peer_call(peer: Peer, args: inputs.Args) -> Callable[[], Any]:
    return peer.build(args).call


def _measure(
    op: str, implementations: dict[str, Callable[[], Callable[[], Any]]], seed: int
) -> list[HostCost]:
    costs = {name: HostCost(op, name) for name in implementations}
    calls: dict[str, Callable[[], Any]] = {}
    samples: dict[str, list[float]] = {}
    for name, build in implementations.items():
        try:
            calls[name] = build()
            _time_calls(calls[name], name)
            samples[name] = []
        except DeviceLost:
            raise
        except Exception as why:
            calls.pop(name, None)
            costs[name].why = reason(why)
            synchronize(name)
    order, chance = list(calls), random.Random(seed)
    for _ in range(ROUNDS):
        chance.shuffle(order)
        for name in order:
            samples[name].append(_time_calls(calls[name], name))
    for name, seconds in samples.items():
        found = quartiles(seconds)
        if found:
            costs[name].calls = ROUNDS * CALLS
            costs[name].least_s, costs[name].median_s = found.least, found.median
    return list(costs.values())


def _time_calls(call: Callable[[], Any], name: str) -> float:
    """Returns the average host seconds of one call; synchronizes before and after."""
    synchronize(name)
    began = time.perf_counter()
    for _ in range(CALLS):
        call()
    seconds = (time.perf_counter() - began) / CALLS
    synchronize(name)
    return seconds
