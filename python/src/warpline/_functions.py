"""The functions of the package: one per op, generated from its declaration."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import indent
from typing import Any

from ._call import call, torch
from ._declared import OPS, Op

_SOURCE = """\
def {name}({params}, *, {flag}out=None, simulate=False, stream=None, tune=False, deterministic=None):
{variant}{direct}    return _call(_op, ({args},), out, simulate, stream, tune, deterministic)
"""

# An eager call on torch tensors skips torch's dispatcher if it needs nothing of it.
_DIRECT = """\
    if out is None and deterministic is None and stream is None and not tune and not simulate:
        if _torch.direct is not None and not _torch.is_tracing():
            found = _torch.direct({index}, ({args},))
            if found is not None:
                return found
"""


# With the flag, the op with one more output runs.
_VARIANT = """\
    if {flag}:
        return _variant({args}, out=out, simulate=simulate, stream=stream, tune=tune, deterministic=deterministic)
"""


def parameters(op: Op) -> str:
    """Returns the parameters of an op as Python source."""
    return ", ".join(p.name if p.required else f"{p.name}={p.default!r}" for p in op.params)


def function(source: str, name: str, names: dict[str, Any]) -> Callable[..., Any]:
    """Compiles a function from source; ``names`` are the variables that it uses.

    The generated function has the op's own parameters, so that callers, ``inspect`` and
    tracers see a hand-written function. The names are closure variables, because tracers
    resolve globals in a module.
    """
    factory = f"def make({', '.join(names)}):\n{indent(source, '    ')}\n    return {name}\n"
    scope: dict[str, Any] = {"__name__": __name__}
    exec(compile(factory, f"<warpline.{name}>", "exec"), scope)
    compiled = scope["make"](**names)
    compiled.__qualname__ = name
    return compiled


def _doc(op: Op) -> str:
    lines = [op.about + ".", "", "Args:"]
    lines += [f"    {p.name}: {p.about}" for p in op.params]
    if op.optional_output is not None:
        lines.append(f"    {op.optional_output.flag}: {op.optional_output.about}")
    lines += [
        "    out: Preallocated output of the same element type and shape; must not overlap an input.",
        "    simulate: Allows the CPU executor to run for longer than 30 s.",
        "    stream: Handle of the CUDA stream, for GPU arrays of other libraries than torch;",
        "        torch tensors use torch's current stream.",
        "    tune: Autotunes this problem on this GPU first, unless a tuned config is cached:",
        "        takes seconds and GPU memory, and cannot be captured or compiled.",
        "    deterministic: ``False`` allows tuned configs whose results may differ in bits from run",
        "        to run, unless ``torch.use_deterministic_algorithms`` is set. By default results are",
        "        bitwise reproducible.",
        "",
        "Example:",
        *(f"    {line}" for line in op.example.splitlines()),
    ]
    return "\n".join(lines)


def _function(op: Op) -> Callable[..., Any]:
    args = ", ".join(p.name for p in op.params)
    names = {"_call": call, "_op": op, "_torch": torch}
    flag = variant = ""
    if op.optional_output is not None:
        flag = f"{op.optional_output.flag}=False, "
        variant = _VARIANT.format(flag=op.optional_output.flag, args=args)
        names["_variant"] = _function(_BY_NAME[op.optional_output.variant])
    direct = "" if op.lists else _DIRECT.format(index=op.index, args=args)
    source = _SOURCE.format(
        name=op.name, params=parameters(op), args=args, flag=flag, variant=variant, direct=direct
    )
    compiled = function(source, op.name, names)
    compiled.__doc__ = _doc(op)
    compiled.__module__ = "warpline"
    return compiled


_BY_NAME = {op.name: op for op in OPS}
_VARIANTS = {op.optional_output.variant for op in OPS if op.optional_output is not None}

#: Each op's function, by name. A flag of another function selects a variant.
FUNCTIONS: dict[str, Callable[..., Any]] = {op.name: _function(op) for op in OPS if op.name not in _VARIANTS}
