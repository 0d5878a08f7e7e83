"""Docstrings are correct: examples, parameters, names."""

from __future__ import annotations

import doctest
import inspect
import pickle
from typing import Any

import numpy as np
import pytest

import warpline
from warpline._declared import OPS

#: The ops with a function of their own. A flag of a function selects a variant, an op with one more output.
FUNCTION_OPS = [op for op in OPS if op.name not in {o.optional_output.variant for o in OPS if o.optional_output}]

NAMES = [name for name in warpline.__all__ if inspect.isfunction(getattr(warpline, name))]


def examples(doc: str | None, name: str) -> int:
    """Runs the examples of a docstring and returns their number."""
    test = doctest.DocTestParser().get_doctest(doc or "", {"np": np, "warpline": warpline}, name, None, None)
    message: list[str] = []
    runner = doctest.DocTestRunner(verbose=False)
    failed = runner.run(test, out=message.append).failed
    assert not failed, "".join(message)
    return len(test.examples)


@pytest.mark.parametrize("name", NAMES)
def test_every_function_has_a_working_example(name: str) -> None:
    assert examples(getattr(warpline, name).__doc__, name) > 0


def test_package_examples_work() -> None:
    assert examples(warpline.__doc__, "warpline") > 0


def test_a_failing_example_is_detected() -> None:
    with pytest.raises(AssertionError, match="Expected"):
        examples(">>> 1 + 1\n3\n", "wrong")


@pytest.mark.parametrize("op", FUNCTION_OPS, ids=lambda op: op.name)
def test_functions_have_the_declared_parameters(op: Any) -> None:
    declared = [
        inspect.Parameter(
            p.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=inspect.Parameter.empty if p.required else p.default,
        )
        for p in op.params
    ]
    options = {"out": None, "simulate": False, "stream": None, "tune": False, "deterministic": None}
    if op.optional_output is not None:
        options = {op.optional_output.flag: False, **options}
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


def test_all_public_names_exist() -> None:
    assert len(set(warpline.__all__)) == len(warpline.__all__)
    assert all(hasattr(warpline, name) for name in warpline.__all__)
    assert {op.name for op in FUNCTION_OPS} <= set(warpline.__all__)
    assert warpline.__version__.count(".") == 2
