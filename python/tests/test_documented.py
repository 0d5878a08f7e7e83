"""What is written about the functions holds: examples, parameters, names."""

from __future__ import annotations

import doctest
import inspect
import pickle
from typing import Any

import numpy as np
import pytest

import warpline
from warpline._declared import OPS

NAMES = [name for name in warpline.__all__ if inspect.isfunction(getattr(warpline, name))]


def examples(doc: str | None, name: str) -> int:
    """Runs the examples of a docstring, and counts them."""
    test = doctest.DocTestParser().get_doctest(doc or "", {"np": np, "warpline": warpline}, name, None, None)
    said: list[str] = []
    runner = doctest.DocTestRunner(verbose=False)
    failed = runner.run(test, out=said.append).failed
    assert not failed, "".join(said)
    return len(test.examples)


@pytest.mark.parametrize("name", NAMES)
def test_every_function_has_an_example_that_holds(name: str) -> None:
    assert examples(getattr(warpline, name).__doc__, name) > 0


def test_the_examples_of_the_package_hold() -> None:
    assert examples(warpline.__doc__, "warpline") > 0


def test_an_example_that_does_not_hold_is_seen() -> None:
    with pytest.raises(AssertionError, match="Expected"):
        examples(">>> 1 + 1\n3\n", "wrong")


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_a_function_has_the_parameters_that_are_declared(op: Any) -> None:
    declared = [
        inspect.Parameter(
            p.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=inspect.Parameter.empty if p.required else p.default,
        )
        for p in op.params
    ]
    options = {"out": None, "simulate": False, "stream": None, "tune": False, "deterministic": None}
    declared += [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=v) for n, v in options.items()]
    function = getattr(warpline, op.name)
    assert inspect.signature(function) == inspect.Signature(declared)
    assert (function.__module__, function.__name__, function.__qualname__) == ("warpline", op.name, op.name)
    for parameter in (*op.params, *declared[len(op.params) :]):
        assert f"\n    {parameter.name}: " in function.__doc__


@pytest.mark.parametrize("name", NAMES)
def test_functions_can_be_pickled(name: str) -> None:
    function = getattr(warpline, name)
    assert pickle.loads(pickle.dumps(function)) is function


def test_all_that_is_public_is_there() -> None:
    assert len(set(warpline.__all__)) == len(warpline.__all__)
    assert all(hasattr(warpline, name) for name in warpline.__all__)
    assert {op.name for op in OPS} <= set(warpline.__all__)
    assert warpline.__version__.count(".") == 2
