"""Integers that a call must know on the host: from lists, pairs and arrays."""

from __future__ import annotations

from operator import index
from typing import Any

from ._declared import Op, Param
from ._errors import InputError, refuse

#: What a parameter of such a kind is, in words.
WORDS = {"integers": "integers", "pairs": "pairs of integers"}


def flat(op: Op, param: Param, value: Any, whole: Any = int) -> list[Any]:
    """Integers, or pairs of them one after the other, of a list or an array of the host.

    ``whole`` is what counts as an integer as it is.
    """
    given = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(given, (list, tuple)):
        raise wrong(op, param, _short(value))
    numbers = list(given)
    if param.kind == "pairs":
        if numbers and all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in numbers):
            numbers = [n for pair in numbers for n in pair]
        if len(numbers) % 2:
            raise wrong(op, param, _short(given))
    if all(isinstance(n, whole) for n in numbers):
        return numbers
    if not all(hasattr(n, "__index__") for n in numbers):
        raise wrong(op, param, _short(given))
    return [index(n) for n in numbers]


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) < 80 else f"of type {type(value).__name__}"


def wrong(op: Op, param: Param, shown: str) -> InputError:
    """The exception of what are no integers."""
    return refuse(f"{op.name}: {param.name} is {WORDS[param.kind]}, not {shown}", "bad-type")
