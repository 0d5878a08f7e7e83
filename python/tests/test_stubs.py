"""Type stubs say what is there: those of the package follow from the declared ops."""

from __future__ import annotations

import ast
import inspect
import os
from pathlib import Path

import pytest

import warpline
from warpline import _warpline
from warpline._declared import OPS, Op, Param

FOLDER = Path(warpline.__file__).parent
RENEW = "WARPLINE_WRITE=1 pytest python/tests/test_stubs.py"
WIDTH = 110

HEAD = f"""\
# Made from the ops that Rust declares. To renew it: {RENEW}
from typing import Any, TypeVar

from ._drop_in import MultiScaleDeformableAttnFunction as MultiScaleDeformableAttnFunction
from ._errors import DeviceError as DeviceError
from ._errors import Error as Error
from ._errors import InputError as InputError
from ._errors import RefusedError as RefusedError
from ._modules import MultiScaleDeformableAttention as MultiScaleDeformableAttention
from ._nvfp4 import Nvfp4 as Nvfp4
from ._nvfp4 import nvfp4_arrange_scales as nvfp4_arrange_scales
from ._nvfp4 import nvfp4_dequantize as nvfp4_dequantize
from ._nvfp4 import nvfp4_quantize as nvfp4_quantize
from ._tools import check as check
from ._tools import devices as devices
from ._tools import emit as emit
from ._tools import families as families
from ._weights import pack_weights as pack_weights
from ._weights import unpack_weights as unpack_weights

__version__: str

# An array of any library; what comes out is of the same one.
_A = TypeVar("_A")

"""

KINDS = {
    "tensor": "_A",
    "number": "float",
    "integer": "int",
    "integers": "Any",
    "pairs": "Any",
    "text": "str",
    "type": "Any",
    "flag": "bool",
}


def parameter(param: Param) -> str:
    kind = KINDS[param.kind]
    if param.required:
        return f"{param.name}: {kind}"
    if param.default is None and kind != "Any":
        kind += " | None"
    return f"{param.name}: {kind} = {param.default!r}"


def function(op: Op) -> str:
    """An op's function, on one line where it fits."""
    made = "_A" if len(op.outputs) == 1 else f"tuple[{', '.join('_A' for _ in op.outputs)}]"
    options = [f"out: {made} | None = None", "simulate: bool = False", "stream: int | None = None"]
    options += ["tune: bool = False", "deterministic: bool | None = None"]
    params = [*map(parameter, op.params), "*", *options]
    line = f"def {op.name}({', '.join(params)}) -> {made}: ..."
    if len(line) <= WIDTH:
        return line
    return f"def {op.name}(\n" + "".join(f"    {p},\n" for p in params) + f") -> {made}: ..."


def expected() -> str:
    """The stub of the package."""
    everything = "".join(f'    "{name}",\n' for name in sorted(warpline.__all__))
    return HEAD + f"__all__ = [\n{everything}]\n\n" + "\n".join(map(function, OPS)) + "\n"


def test_the_stub_of_the_package_follows_from_the_declared_ops() -> None:
    file = FOLDER / "__init__.pyi"
    if os.environ.get("WARPLINE_WRITE"):
        file.write_text(expected())
    there = file.read_text() if file.exists() else ""
    assert there == expected(), f"{file.name} is not what the ops are declared as; renew it: {RENEW}"


def test_the_stub_of_the_package_has_all_that_is_public() -> None:
    names: set[str] = set()
    for node in ast.parse(expected()).body:
        match node:
            case ast.FunctionDef(name=name):
                names.add(name)
            case ast.ImportFrom(level=1, names=[ast.alias(asname=str(name))]):
                names.add(name)
    assert names == {*warpline.__all__, *warpline._MODULES}


def stub() -> ast.Module:
    return ast.parse((FOLDER / "_warpline.pyi").read_text())


def defined(nodes: list[ast.stmt]) -> dict[str, ast.FunctionDef | ast.ClassDef]:
    return {node.name: node for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def public(value: object) -> set[str]:
    return {name for name in dir(value) if not name.startswith("_")}


def test_the_stub_of_the_native_part_has_the_names_of_the_native_part() -> None:
    assert set(defined(stub().body)) == public(_warpline)
    view = defined(stub().body)["View"]
    assert isinstance(view, ast.ClassDef)
    assert set(defined(view.body)) == public(_warpline.View)


@pytest.mark.parametrize("name", sorted(public(_warpline) - {"View"}))
def test_the_stub_of_the_native_part_has_its_parameters(name: str) -> None:
    node = defined(stub().body)[name]
    assert isinstance(node, ast.FunctionDef)
    wanted = inspect.signature(getattr(_warpline, name)).parameters.values()
    assert [arg.arg for arg in node.args.args] == [p.name for p in wanted]
    defaults = [p.default for p in wanted if p.default is not inspect.Parameter.empty]
    assert [ast.literal_eval(value) for value in node.args.defaults] == defaults


def test_everything_in_the_stub_of_the_native_part_says_what_it_is() -> None:
    names = defined(stub().body)
    view = names["View"]
    assert isinstance(view, ast.ClassDef)
    for name, node in (names | defined(view.body)).items():
        assert ast.get_docstring(node), name
