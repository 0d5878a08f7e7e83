"""The command line."""

from __future__ import annotations

import argparse
import datetime
import functools
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, TextIO

from . import Refusal, heat, host, machine, plot, protocol, record, report, suites, verify
from .peers import OPS
from .suites import Problem

#: The exit codes: everything right; ours wrong or failed; what was asked cannot be done.
FINE, BAD, REFUSED = 0, 1, 2


class Parser(argparse.ArgumentParser):
    """A parser whose errors are sentences like all others."""

    def error(self, message: str) -> NoReturn:
        """Refuses what was typed."""
        raise Refusal(f"{message[:1].upper()}{message[1:]}; --help shows what there is.")


def parser() -> Parser:
    """What can be typed."""
    p = Parser(
        prog="python3 -m warpline.bench",
        description="Measures Warpline's kernels against torch, torch.compile, Triton, cuBLAS and "
        "cuDNN in one process: fresh random order every round, cold L2, every output checked "
        "against float64 first.",
        epilog="Exit code 0: ours is right everywhere; 1: ours is wrong or failed; "
        "2: it cannot be done.",
    )
    p.add_argument("suites", nargs="*", metavar="SUITE", help="what is measured; see --list")
    p.add_argument("--list", action="store_true", help="list suites and problems; needs no GPU")
    p.add_argument(
        "--filter",
        action="append",
        default=[],
        metavar="TEXT",
        help="only problems whose label contains TEXT; may be repeated: any of them",
    )
    p.add_argument(
        "--rounds",
        type=int,
        metavar="N",
        help=f"timed rounds (default {protocol.ROUNDS}, at least {protocol.LEAST_ROUNDS})",
    )
    p.add_argument("--quick", action="store_true", help="few rounds; marked as not for publication")
    p.add_argument("--seed", type=int, default=1, metavar="N", help="draws inputs and orders")
    p.add_argument("--device", type=int, default=0, metavar="N", help="the CUDA device")
    alone = p.add_mutually_exclusive_group()
    alone.add_argument(
        "--sustained",
        action="store_const",
        const=True,
        help="also each contender alone for a second (else only for large products)",
    )
    alone.add_argument(
        "--no-sustained", dest="sustained", action="store_const", const=False, help="never that"
    )
    p.add_argument("--no-host", action="store_true", help="leave out the host's cost of a call")
    p.add_argument("--json", type=Path, metavar="FILE", help="write all results")
    p.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw all results")
    return p


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command line and gives its exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    try:
        options = parser().parse_args(argv)
        return _run(options, argv)
    except Refusal as why:
        print(f"warpline.bench: {why}", file=sys.stderr)
        return REFUSED


def _run(options: argparse.Namespace, argv: list[str]) -> int:
    rounds = _rounds(options)
    declared = suites.declared()
    if not options.list and not options.suites:
        raise Refusal(f"Name a suite: {', '.join(suites.names(declared))}.")
    problems = suites.select(declared, options.suites, options.filter)
    if options.list:
        print(report.listing(problems, list(OPS)), end="")
        return FINE
    for path in (options.json, options.plot):
        _writable(path)
    machine.require_cuda(options.device)
    run = _start(options, argv, rounds)
    try:
        _measure(run, problems, options)
    except protocol.DeviceLost as why:
        run.stopped = str(why)
    except KeyboardInterrupt:
        run.stopped = "interrupted"
    print(report.text(run), end="")
    _write(run, options)
    return FINE if run.passed else BAD


def _rounds(options: argparse.Namespace) -> int:
    """The rounds that were asked for, if they are enough."""
    default = protocol.QUICK_ROUNDS if options.quick else protocol.ROUNDS
    rounds = default if options.rounds is None else options.rounds
    least = 1 if options.quick else protocol.LEAST_ROUNDS
    if rounds < least:
        hint = "" if options.quick else ", or --quick for a look that is not for publication"
        raise Refusal(f"{rounds} rounds are too few: ask for at least {least}{hint}.")
    return rounds


def _writable(path: Path | None) -> None:
    """Refuses a file that could not be written in the end."""
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        raise Refusal(f"{path} cannot be written: its folder must exist and it must be a file.")


def _start(options: argparse.Namespace, argv: list[str], rounds: int) -> record.Run:
    found = machine.describe(options.device)
    rules = protocol.describe(found.l2_bytes, rounds, options.quick)
    return record.Run(
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        command=["python3", "-m", "warpline.bench", *argv],
        machine=found,
        protocol={**rules, "check": verify.RULE},
        seed=options.seed,
        quick=options.quick,
    )


def _measure(run: record.Run, problems: list[Problem], options: argparse.Namespace) -> None:
    read = functools.partial(machine.read, options.device)
    timer = protocol.Timer(run.machine.l2_bytes, run.seed, read)
    settings = heat.Settings(
        rounds=run.protocol["rounds"],
        warm_s=0.0 if run.quick else protocol.WARM_S,
        seed=run.seed,
        sustained=options.sustained,
    )
    for number, problem in enumerate(problems, 1):
        began = time.perf_counter()
        measured = heat.measure(problem, timer, settings)
        run.problems.append(measured)
        seconds = time.perf_counter() - began
        _say(report.progress(number, len(problems), measured, seconds), sys.stderr)
        if options.json:
            # What was measured is kept, whatever happens to the rest.
            record.write(run, options.json)
    if not options.no_host:
        for problem in host.first_of_each(problems):
            _say(f"host cost of {problem.op}", sys.stderr)
            run.host += host.measure(problem, run.seed)
    run.complete = True


def _write(run: record.Run, options: argparse.Namespace) -> None:
    if options.json:
        record.write(run, options.json)
    if options.plot:
        options.plot.write_text(plot.svg(run), encoding="utf-8")


def _say(line: str, to: TextIO) -> None:
    print(line, file=to, flush=True)
