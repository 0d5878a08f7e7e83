"""The implementations that each op is compared with: one file per op, found by its name.

``peers/softmax.py`` is the file of ``softmax``. Its constant ``OP`` has the float64 reference, the
arguments that may be split into chunks, and the peers. The file is imported when the op is
measured, so it may import torch. An op without a file is measured alone, and the report states
this. Several ops share the files whose names begin with ``_``.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import inputs
from ..inputs import Args, Draw
from ..record import ReportedTime
from ..suites import Problem

#: Runs the op once on its inputs; does not synchronize.
Call = Callable[[], Any]
#: Returns the reason that a peer does not support a problem; None if it does.
SkipReason = Callable[[Problem], str | None]

#: The kinds of peers. The error of the first sets the tolerance.
EAGER, COMPILED, CUBLAS, CUDNN, TRITON = "eager", "compiled", "cublas", "cudnn", "triton"
FLASH_ATTENTION = "flash-attention"


@dataclass(frozen=True)
class Built:
    """An implementation with its inputs."""

    call: Call
    #: Its setup, for the report.
    note: str = ""


@dataclass(frozen=True)
class Peer:
    """Another implementation of an op."""

    name: str
    kind: str
    build: Callable[[Args], Built]
    skip_reason: SkipReason = lambda problem: None
    #: The factor by which a less exact peer may exceed the tolerance. The peer is timed, and its
    #: error is reported.
    slack: float = 1.0


@dataclass(frozen=True)
class Tolerance:
    """The tolerance of every element: |error| <= atol + rtol · |expected|."""

    atol: float
    rtol: float


@dataclass(frozen=True)
class Bare:
    """The GEMM of an op without its epilogue, as a limit of the op's speed."""

    #: The name of its implementation.
    name: str
    build: Callable[[Args], Built]


@dataclass(frozen=True)
class Figure:
    """A time that others report, for the problems with these fields."""

    fields: dict[str, Any]
    name: str
    micros: float
    note: str = ""

    def fits(self, problem: Problem) -> bool:
        """Returns whether a problem has these fields."""
        return all(problem.problem.get(name) == value for name, value in self.fields.items())


@dataclass(frozen=True)
class Op:
    """The reference and the peers of an op."""

    #: Takes the arguments by name, floats in float64; returns one output or a tuple.
    reference: Callable[..., Any]
    #: Arguments that are split along their first dimension, like the outputs, so that the
    #: reference fits into memory; the others are passed whole.
    split: tuple[str, ...]
    peers: tuple[Peer, ...]
    #: Tensors with their own distribution, not N(0, 1).
    draw: Mapping[str, Draw] = field(default_factory=dict)
    #: Arguments that say which rows belong together: with one of them nothing is split.
    whole: tuple[str, ...] = ()
    bare: Bare | None = None
    #: Returns the same problem with small tensors.
    small: Callable[[Problem], Problem] = inputs.small
    #: The tolerance by element type, if it does not follow from torch's own function.
    tolerance: Mapping[str, Tolerance] = field(default_factory=dict)
    #: Reported times of implementations that are not measured here.
    figures: tuple[Figure, ...] = ()

    def reported_times(self, problem: Problem) -> list[ReportedTime]:
        """Returns the reported times of a problem."""
        fitting = (figure for figure in self.figures if figure.fits(problem))
        return [ReportedTime(one.name, one.micros * 1e-6, one.note) for one in fitting]


def eager(function: Callable[..., Any]) -> Peer:
    """Creates the peer for torch's own function."""
    return Peer("torch", EAGER, lambda args: Built(lambda: function(**args)))


def compiled(function: Callable[..., Any], skip_reason: SkipReason = lambda problem: None) -> Peer:
    """Creates the peer for ``torch.compile``, compiled for one shape."""

    def build(args: Args) -> Built:
        import torch

        compiled_function = torch.compile(function, fullgraph=True, dynamic=False)
        return Built(lambda: compiled_function(**args))

    return Peer("torch.compile", COMPILED, build, skip_reason)


def triton(module: str, name: str, skip_reason: SkipReason = lambda problem: None) -> Peer:
    """Creates the peer for a Triton kernel that the function ``name`` of a module of this package
    builds. The module is imported with the first build, because Triton may be missing."""

    def triton_skip_reason(problem: Problem) -> str | None:
        if importlib.util.find_spec("triton") is None:
            return "Triton is not installed"
        return skip_reason(problem)

    def build(args: Args) -> Built:
        function = getattr(importlib.import_module(f".{module}", __name__), name)
        built: Built = function(**args)
        return built

    return Peer("Triton", TRITON, build, triton_skip_reason)


class OpFiles(Mapping[str, Op]):
    """Every op with a file here; the file is imported on first access."""

    def __init__(self) -> None:
        found = (module.name for module in pkgutil.iter_modules(__path__))
        self._names = tuple(sorted(name for name in found if not name.startswith("_")))

    def __getitem__(self, name: str) -> Op:
        if name not in self._names:
            raise KeyError(name)
        op: Op = importlib.import_module(f".{name}", __name__).OP
        return op

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


#: Every op that has peers.
OPS: Mapping[str, Op] = OpFiles()
