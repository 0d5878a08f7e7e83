"""Integer arguments that are needed on the host: lists, pairs and arrays."""

from __future__ import annotations

from operator import index
from typing import Any

from ._declared import Op, Param
from ._errors import InputError, input_error

#: The name of each parameter kind in messages.
KIND_NAMES = {"integers": "integers", "pairs": "pairs of integers"}


def flat(op: Op, param: Param, value: Any, integer_types: Any = int) -> list[Any]:
    """Returns the integers, or the flattened pairs, of a list or a host array.

    Values of the type ``integer_types`` are integers already.
    """
    given = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(given, (list, tuple)):
        raise not_integers(op, param, _short(value))
    numbers = list(given)
    if param.kind == "pairs":
        if numbers and all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in numbers):
            numbers = [n for pair in numbers for n in pair]
        if len(numbers) % 2:
            raise not_integers(op, param, _short(given))
    if all(isinstance(n, integer_types) for n in numbers):
        return numbers
    if not all(hasattr(n, "__index__") for n in numbers):
        raise not_integers(op, param, _short(given))
    return [index(n) for n in numbers]


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) < 80 else f"of type {type(value).__name__}"


def not_integers(op: Op, param: Param, shown: str) -> InputError:
    """Creates the exception for values that are not integers."""
    return input_error(f"{op.name}: {param.name} must be {KIND_NAMES[param.kind]}, not {shown}", "bad-type")
