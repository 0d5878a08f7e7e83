"""Ops on the rows of ``x``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import Op, Problem, WhyNot, compiled, eager, triton

#: The longest row that a Triton program holds.
LONGEST = 32768


def longer_rows_than(most: int) -> WhyNot:
    """Rows of the first tensor must not be longer than this."""

    def why_not(problem: Problem) -> str | None:
        shape = next(arg.tensor.shape for arg in problem.args if arg.tensor)
        if shape[-1] <= most:
            return None
        return f"one program holds a row of at most {most} elements"

    return why_not


def row_op(function: Callable[..., Any], reference: Callable[..., Any]) -> Op:
    """An op of torch, its definition, and the Triton kernel of the same name."""
    return Op(
        reference=reference,
        split=("x",),
        peers=(
            eager(function),
            compiled(function),
            triton("_triton_rows", function.__name__, longer_rows_than(LONGEST)),
        ),
    )
