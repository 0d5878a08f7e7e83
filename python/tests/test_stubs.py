"""Type stubs match the package; the package stub is generated from the declared ops."""

from __future__ import annotations

import ast
import inspect
import json
import os
from pathlib import Path

import pytest

import warpline
from warpline import _warpline
from warpline._declared import OPS

FOLDER = Path(__file__).resolve().parents[1] / "src" / "warpline"
UPDATE_COMMAND = "WARPLINE_WRITE=1 pytest python/tests/test_stubs.py"

HEAD = f"""\
# Generated from the ops that Rust declares. To update: {UPDATE_COMMAND}
from typing import Any, Literal, TypeVar, overload

"""

MIDDLE = """
__version__: str

# An array of any library; results are of the same library.
_A = TypeVar("_A")

"""


def imports() -> str:
    """Returns the imports of names that are defined in Python."""
    python_names = set(warpline.__all__) - {op.name for op in OPS}
    modules = {name: getattr(warpline, name).__module__.rpartition(".")[2] for name in python_names}
    modules |= warpline._NEED_TORCH
    lines = [f"from .{module} import {name} as {name}\n" for name, module in modules.items()]
    return "".join(sorted(lines))


def expected() -> str:
    """Returns the stub of the package."""
    names = "".join(f'    "{name}",\n' for name in sorted(warpline.__all__))
    ops = json.loads(_warpline.ops())
    variants = {op["optional_output"]["variant"] for op in ops if op["optional_output"]}
    stubs = [op["stub"] for op in ops if op["name"] not in variants]
    return HEAD + imports() + MIDDLE + f"__all__ = [\n{names}]\n\n" + "".join(stubs)


def test_package_stub_matches_the_declared_ops() -> None:
    file = FOLDER / "__init__.pyi"
    if os.environ.get("WARPLINE_WRITE"):
        file.write_text(expected())
    stub = file.read_text() if file.exists() else ""
    assert stub == expected(), f"{file.name} does not match the declared ops; update it: {UPDATE_COMMAND}"


def test_package_stub_has_all_public_names() -> None:
    names: set[str] = set()
    for node in ast.parse(expected()).body:
        match node:
            case ast.FunctionDef(name=name):
                names.add(name)
            case ast.ImportFrom(level=1, names=[ast.alias(asname=str(name))]):
                names.add(name)
    assert names == {*warpline.__all__, *warpline._NEED_TORCH}


def stub() -> ast.Module:
    return ast.parse((FOLDER / "_warpline.pyi").read_text())


def defined(nodes: list[ast.stmt]) -> dict[str, ast.FunctionDef | ast.ClassDef]:
    return {node.name: node for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def public(value: object) -> set[str]:
    return {name for name in dir(value) if not name.startswith("_")}


def test_native_stub_has_the_names_of_the_native_module() -> None:
    assert set(defined(stub().body)) == public(_warpline)
    view = defined(stub().body)["View"]
    assert isinstance(view, ast.ClassDef)
    assert set(defined(view.body)) == public(_warpline.View)


@pytest.mark.parametrize("name", sorted(public(_warpline) - {"View"}))
def test_native_stub_has_the_parameters_of_the_native_module(name: str) -> None:
    node = defined(stub().body)[name]
    assert isinstance(node, ast.FunctionDef)
    expected_parameters = inspect.signature(getattr(_warpline, name)).parameters.values()
    assert [arg.arg for arg in node.args.args] == [p.name for p in expected_parameters]
    defaults = [p.default for p in expected_parameters if p.default is not inspect.Parameter.empty]
    assert [ast.literal_eval(value) for value in node.args.defaults] == defaults


def test_native_stub_has_docstrings() -> None:
    names = defined(stub().body)
    view = names["View"]
    assert isinstance(view, ast.ClassDef)
    for name, node in (names | defined(view.body)).items():
        assert ast.get_docstring(node), name
