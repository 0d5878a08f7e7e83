"""The functions of the package: one for each op, made from its declaration."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import indent
from typing import Any

from ._call import call
from ._declared import OPS, Op

_SOURCE = """\
def {name}({params}, *, out=None, simulate=False, stream=None, tune=False, deterministic=None):
    return _call(_op, ({args},), out, simulate, stream, tune, deterministic)
"""


def parameters(op: Op) -> str:
    """The parameters of an op, as they are written in Python."""
    return ", ".join(p.name if p.required else f"{p.name}={p.default!r}" for p in op.params)


def function(source: str, name: str, names: dict[str, Any]) -> Callable[..., Any]:
    """The function of that name in a source, which knows these names.

    Made by ``exec`` so that it has the op's own parameters: it is called, looked
    at and traced as if it had been written by hand. The names are those of a
    function around it, as tracers look for global ones in a module.
    """
    around = f"def make({', '.join(names)}):\n{indent(source, '    ')}\n    return {name}\n"
    scope: dict[str, Any] = {"__name__": __name__}
    exec(compile(around, f"<warpline.{name}>", "exec"), scope)
    made = scope["make"](**names)
    made.__qualname__ = name
    return made


def _doc(op: Op) -> str:
    lines = [op.about + ".", "", "Args:"]
    lines += [f"    {p.name}: {p.about}" for p in op.params]
    lines += [
        "    out: Where the result is written, if it is not to be new: of its type and shape,",
        "        apart from all inputs.",
        "    simulate: Lets the CPU simulator work for longer than 30 s.",
        "    stream: The handle of the stream to run in, for arrays on a GPU that are not torch's,",
        "        which run in torch's current stream.",
        "    tune: Finds the fastest config for this problem on this GPU first, unless it is remembered:",
        "        takes seconds and memory, and cannot be captured or compiled.",
        "    deterministic: ``False`` allows what was tuned with it to give other bits from run to run,",
        "        unless ``torch.use_deterministic_algorithms`` forbids that; else bits are the same.",
        "",
        "Example:",
        *(f"    {line}" for line in op.example.splitlines()),
    ]
    return "\n".join(lines)


def _function(op: Op) -> Callable[..., Any]:
    args = ", ".join(p.name for p in op.params)
    source = _SOURCE.format(name=op.name, params=parameters(op), args=args)
    made = function(source, op.name, {"_call": call, "_op": op})
    made.__doc__ = _doc(op)
    made.__module__ = "warpline"
    return made


#: Each op's function, by name.
FUNCTIONS: dict[str, Callable[..., Any]] = {op.name: _function(op) for op in OPS}
