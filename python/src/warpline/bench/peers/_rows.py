"""Ops on the rows of ``x``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import Op, Problem, SkipReason, compiled, eager, triton

#: The longest row that a Triton program holds in registers.
MAX_COLUMNS = 32768


def at_most_columns(limit: int) -> SkipReason:
    """Rejects problems with more columns than ``limit`` in the first tensor."""

    def skip_reason(problem: Problem) -> str | None:
        shape = next(arg.tensor.shape for arg in problem.args if arg.tensor)
        if shape[-1] <= limit:
            return None
        return f"a Triton program holds at most {limit} elements of a row"

    return skip_reason


def row_op(function: Callable[..., Any], reference: Callable[..., Any]) -> Op:
    """Declares a torch op, its reference, and the Triton kernel of the same name."""
    return Op(
        reference=reference,
        split=("x",),
        peers=(
            eager(function),
            compiled(function),
            triton("_triton_rows", function.__name__, at_most_columns(MAX_COLUMNS)),
        ),
    )
