"""What each op is compared with: one file for each op, found by its name.

``peers/softmax.py`` is the file of ``softmax``; it has one constant, ``OP``, with the float64
reference, the arguments that may be cut into chunks for it, and the peers. It is imported when
the op is measured, so it may import torch. An op without a file is measured alone, and the report
says so. Files whose names begin with ``_`` hold what several ops share.
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
from ..record import Elsewhere
from ..suites import Problem

#: Does the work once, on inputs that it holds; waits for nothing.
Call = Callable[[], Any]
#: Says why something does not apply to a problem; none where it does.
WhyNot = Callable[[Problem], str | None]

#: The kinds of peers. The first gives the yardstick for errors.
EAGER, COMPILED, CUBLAS, CUDNN, TRITON = "eager", "compiled", "cublas", "cudnn", "triton"


@dataclass(frozen=True)
class Built:
    """A contender on its inputs."""

    call: Call
    #: How it was set up, for the record.
    note: str = ""


@dataclass(frozen=True)
class Peer:
    """Another way to solve the problems of an op."""

    name: str
    kind: str
    build: Callable[[Args], Built]
    why_not: WhyNot = lambda problem: None
    #: How many times what is right its errors may be, where it is less exact by nature: it is
    #: timed then, and its error told.
    slack: float = 1.0


@dataclass(frozen=True)
class Tolerance:
    """What every element of an output may be off: so much, and a share of what is expected."""

    least: float
    share: float


@dataclass(frozen=True)
class Bare:
    """The product of an op alone: what the rest costs is seen beside it."""

    #: Whose it is.
    name: str
    build: Callable[[Args], Built]


@dataclass(frozen=True)
class Figure:
    """A time of something that does not run here, for the problems that have these fields."""

    fields: dict[str, Any]
    name: str
    micros: float
    note: str = ""

    def fits(self, problem: Problem) -> bool:
        """Is it of that problem?"""
        return all(problem.problem.get(name) == value for name, value in self.fields.items())


@dataclass(frozen=True)
class Op:
    """What an op is compared with."""

    #: Takes the arguments by name, floats in float64, and gives the output or a tuple of them.
    reference: Callable[..., Any]
    #: Arguments that are cut along their first side, as the outputs are, so
    #: that the reference fits into memory; the others are passed whole.
    split: tuple[str, ...]
    peers: tuple[Peer, ...]
    #: Tensors that are not drawn from N(0, 1).
    draw: Mapping[str, Draw] = field(default_factory=dict)
    bare: Bare | None = None
    #: The same problem with small tensors, where sides are not all cut alike.
    small: Callable[[Problem], Problem] = inputs.small
    #: What is right, by element type, where torch's own function is no yardstick.
    tolerance: Mapping[str, Tolerance] = field(default_factory=dict)
    #: Times of others for problems of this op, which are not measured here.
    figures: tuple[Figure, ...] = ()

    def elsewhere(self, problem: Problem) -> list[Elsewhere]:
        """The figures of a problem."""
        fitting = (figure for figure in self.figures if figure.fits(problem))
        return [Elsewhere(one.name, one.micros * 1e-6, one.note) for one in fitting]


def eager(function: Callable[..., Any]) -> Peer:
    """torch's own function."""
    return Peer("torch", EAGER, lambda args: Built(lambda: function(**args)))


def compiled(function: Callable[..., Any]) -> Peer:
    """The same through ``torch.compile``, for this shape alone."""

    def build(args: Args) -> Built:
        import torch

        made = torch.compile(function, fullgraph=True, dynamic=False)
        return Built(lambda: made(**args))

    return Peer("torch.compile", COMPILED, build)


def triton(module: str, name: str, why_not: WhyNot = lambda problem: None) -> Peer:
    """A Triton kernel, by a function of a module of this package that takes the arguments and
    builds it. The module is imported when it is built, as Triton may be missing."""

    def missing(problem: Problem) -> str | None:
        if importlib.util.find_spec("triton") is None:
            return "Triton is not installed"
        return why_not(problem)

    def build(args: Args) -> Built:
        function = getattr(importlib.import_module(f".{module}", __name__), name)
        built: Built = function(**args)
        return built

    return Peer("Triton", TRITON, build, missing)


class Files(Mapping[str, Op]):
    """Every op that has a file here; the file is imported when the op is asked for."""

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
OPS: Mapping[str, Op] = Files()
