"""The command line."""

from __future__ import annotations

import argparse
import datetime
import functools
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, TextIO

from . import BenchError, host, machine, measurement, plot, protocol, record, report, suites, verify
from .peers import OPS
from .suites import Problem

#: Exit codes: all of Warpline's results pass; one fails; bad input or no GPU.
PASS, FAIL, BAD_INPUT = 0, 1, 2


class Parser(argparse.ArgumentParser):
    """A parser that raises ``BenchError``."""

    def error(self, message: str) -> NoReturn:
        """Raises the error of a bad command line."""
        raise BenchError(f"{message[:1].upper()}{message[1:]}; --help lists the options.")


def parser() -> Parser:
    """Returns the command-line parser."""
    p = Parser(
        prog="python3 -m warpline.bench",
        description="Measures Warpline's kernels against torch, torch.compile, Triton, cuBLAS and "
        "cuDNN in one process: random order in every round, cold L2, every output compared with "
        "a float64 reference first.",
        epilog="Exit codes: 0 all of Warpline's results PASS; 1 one FAILs or does not run; "
        "2 bad input or no GPU.",
    )
    p.add_argument("suites", nargs="*", metavar="SUITE", help="benchmark suite; see --list")
    p.add_argument("--list", action="store_true", help="list suites and problems; needs no GPU")
    p.add_argument(
        "--filter",
        action="append",
        default=[],
        metavar="TEXT",
        help="only problems whose label contains TEXT; repeat for several texts",
    )
    p.add_argument(
        "--rounds",
        type=int,
        metavar="N",
        help=f"timed rounds (default {protocol.ROUNDS}, at least {protocol.MIN_ROUNDS})",
    )
    p.add_argument("--quick", action="store_true", help="few rounds; results are marked as not for publication")
    p.add_argument("--seed", type=int, default=1, metavar="N", help="seed of inputs and measurement order")
    p.add_argument("--device", type=int, default=0, metavar="N", help="CUDA device index")
    sustained = p.add_mutually_exclusive_group()
    sustained.add_argument(
        "--sustained",
        action="store_const",
        const=True,
        help="also time each implementation back to back for a second (default: large GEMMs only)",
    )
    sustained.add_argument(
        "--no-sustained", dest="sustained", action="store_const", const=False, help="skip the back-to-back times"
    )
    overhead = p.add_mutually_exclusive_group()
    overhead.add_argument("--no-host", action="store_true", help="skip the host overhead of a call")
    overhead.add_argument(
        "--host-only", action="store_true", help="measure only the host overhead, of the first problem of each op"
    )
    p.add_argument("--json", type=Path, metavar="FILE", help="write all results as JSON")
    p.add_argument("--plot", type=Path, metavar="FILE.svg", help="plot all results")
    return p


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command line and returns its exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    # A benchmark of Warpline must not measure torch's own ops.
    os.environ["WARPLINE_STRICT"] = "1"
    try:
        options = parser().parse_args(argv)
        return _run(options, argv)
    except BenchError as why:
        print(f"warpline.bench: {why}", file=sys.stderr)
        return BAD_INPUT


def _run(options: argparse.Namespace, argv: list[str]) -> int:
    rounds = _rounds(options)
    declared = suites.declared(options.suites)
    if not options.list and not options.suites:
        raise BenchError(f"Missing SUITE; the suites are: {', '.join(suites.names(declared))}.")
    problems = suites.select(declared, options.suites, options.filter)
    if options.list:
        print(report.listing(problems, list(OPS)), end="")
        return PASS
    for path in (options.json, options.plot):
        _require_writable(path)
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
    return PASS if run.passed else FAIL


def _rounds(options: argparse.Namespace) -> int:
    """Returns the number of rounds; rejects too few."""
    default = protocol.QUICK_ROUNDS if options.quick else protocol.ROUNDS
    rounds = default if options.rounds is None else options.rounds
    minimum = 1 if options.quick else protocol.MIN_ROUNDS
    if rounds < minimum:
        hint = "" if options.quick else ", or --quick for results that are not for publication"
        raise BenchError(f"--rounds must be at least {minimum}, not {rounds}{hint}.")
    return rounds


def _require_writable(path: Path | None) -> None:
    """Rejects a file that cannot be written after the run."""
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        raise BenchError(f"Cannot write {path}: its folder must exist, and it must not be a folder.")


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
    settings = measurement.Settings(
        rounds=run.protocol["rounds"],
        warm_s=0.0 if run.quick else protocol.WARM_S,
        seed=run.seed,
        sustained=options.sustained,
    )
    timed = [] if options.host_only else problems
    for number, problem in enumerate(timed, 1):
        began = time.perf_counter()
        measured = measurement.measure(problem, timer, settings)
        run.problems.append(measured)
        seconds = time.perf_counter() - began
        _print(report.progress(number, len(timed), measured, seconds), sys.stderr)
        if options.json:
            # Keep finished problems if a later one fails.
            record.write(run, options.json)
    if not options.no_host:
        for problem in host.first_problem_of_each_op(problems):
            _print(f"host overhead of {problem.op}", sys.stderr)
            run.host += host.measure(problem, run.seed)
    run.complete = True


def _write(run: record.Run, options: argparse.Namespace) -> None:
    if options.json:
        record.write(run, options.json)
    if options.plot:
        options.plot.write_text(plot.svg(run), encoding="utf-8")


def _print(line: str, to: TextIO) -> None:
    print(line, file=to, flush=True)
