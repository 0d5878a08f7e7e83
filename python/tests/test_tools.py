"""check, emit, devices, families."""

from __future__ import annotations

import json
from typing import Any

import pytest

import warpline
from warpline._declared import OPS


def refused(code: str, family: str, **flags: Any) -> str:
    """The sentence that refuses to check, which also refuses to emit."""
    with pytest.raises(warpline.InputError) as caught:
        warpline.check(family, **flags)
    with pytest.raises(warpline.InputError) as emitted:
        warpline.emit(family, **flags)
    assert caught.value.code == emitted.value.code == code
    assert str(caught.value) == str(emitted.value)
    return str(caught.value)


# check.


@pytest.mark.parametrize("family", [f["name"] for f in warpline.families()])
def test_the_default_problem_of_every_family_is_proved(family: str) -> None:
    answer = warpline.check(family)
    assert answer["family"] == family
    listed = next(f for f in warpline.families() if f["name"] == family)
    assert answer["problem"] == listed["problem"]
    assert answer["kernels"]
    for kernel in answer["kernels"]:
        assert kernel["proved"] is True
        assert len(kernel["hash"]) == 32
        assert len(kernel["grid"]) == 3


def test_flags_set_problem_and_config() -> None:
    answer = warpline.check("softmax", rows=3, cols=100, dtype="f16", form="direct", vectors=False)
    assert answer["problem"] == {"rows": 3, "cols": 100, "dtype": "f16"}
    assert (answer["config"]["form"], answer["config"]["vectors"]) == ("direct", False)


def test_flags_are_written_with_underscores() -> None:
    answer = warpline.check("softmax", rows=4, cols=64, x_stride=128)
    assert answer["problem"]["x_stride"] == 128
    said = refused("bad-problem", "softmax", **{"rows": 4, "x-stride": 128})
    assert said.startswith('softmax has no "x-stride"; it takes rows, cols, dtype, x_stride, y_stride, ')


def test_numbers_may_be_text() -> None:
    assert warpline.check("softmax", rows="4", cols="64") == warpline.check("softmax", rows=4, cols=64)


def test_a_family_may_be_meant_by_a_flag_of_another() -> None:
    flags = {"m": 16, "n": 64, "k": 64, "scale_layout": "block"}
    answer = warpline.check("dual-gemm", dtype="nvfp4", **flags)
    assert answer == warpline.check("nvfp4-dual-gemm", **flags)
    assert answer["family"] == "nvfp4-dual-gemm"
    assert warpline.emit("dual-gemm", dtype="nvfp4", **flags) == warpline.emit("nvfp4-dual-gemm", **flags)
    said = refused("bad-problem", "dual-gemm", scale_layout="block")
    assert said.startswith("--scale-layout requires --dtype nvfp4 (the family nvfp4-dual-gemm)\nhelp: ")


def test_a_family_that_is_not_there_is_refused_with_those_that_are() -> None:
    families = ", ".join(f["name"] for f in warpline.families())
    said = refused("bad-problem", "layer_norm")
    assert said == f'there is no family "layer_norm"; the families are {families}'


@pytest.mark.parametrize("flag", ["foo", "Rows", "", "help", "rows=4 --cols"])
def test_a_flag_that_is_not_there_is_refused_with_those_that_are(flag: str) -> None:
    said = refused("bad-problem", "softmax", **{flag: 1})
    assert said.startswith(f'softmax has no "{flag}"; it takes rows, cols, dtype, ')


@pytest.mark.parametrize("value", ["four", -1, 1.5, None, True, "4 --cols=8", ""], ids=repr)
def test_a_value_that_is_no_count_is_refused(value: Any) -> None:
    shown = "true" if value is True else str(value)
    said = refused("bad-problem", "softmax", rows=value)
    assert said.startswith("--rows is a whole number")
    assert said.endswith(f", not {shown}")


def test_a_value_that_is_none_of_several_is_refused_with_them() -> None:
    said = refused("bad-problem", "softmax", dtype="f64")
    assert said == "--dtype is f32, f16 or bf16, not f64"


def test_a_problem_that_makes_no_sense_is_refused() -> None:
    assert refused("bad-problem", "softmax", cols=0) == "a row has at least 1 element, not 0 (--cols 0)"
    said = "rows must not overlap: --x-stride is at least the 1024 columns, not 4"
    assert refused("bad-problem", "softmax", cols=1024, x_stride=4) == said


def test_a_config_that_is_not_legal_is_refused_as_such() -> None:
    said = refused("bad-config", "softmax", rows=4, cols=1023, vectors=True)
    assert said == (
        "rows of 1023 elements with strides 1023 and 1023 do not all start and end on 16 bytes:"
        " --vectors false"
    )
    said = refused("bad-config", "softmax", rows=4, cols=1024, form="direct", stages=3)
    assert said == "form direct has no ring, so --stages 3 has no meaning: choose --form specialized"


# emit.


@pytest.mark.parametrize("family", [f["name"] for f in warpline.families()])
def test_ptx_is_for_hopper(family: str) -> None:
    text = warpline.emit(family)
    assert ".target sm_90a\n" in text
    assert ".visible .entry" in text
    assert text == warpline.emit(family, "ptx") == warpline.emit(family, what="ptx")


def test_the_program_is_text_with_roles_and_parameters() -> None:
    text = warpline.emit("vector-add", what="ir", n=4096, form="specialized")
    assert text.startswith("kernel vector_add threads ")
    assert "\n  param " in text


def test_the_program_is_not_ptx() -> None:
    text = warpline.emit("vector-add", "ir", n=4096)
    assert text.startswith("kernel vector_add")
    assert ".target" not in text


@pytest.mark.parametrize("what", ["sass", "", "PTX"])
def test_nothing_else_is_emitted(what: str) -> None:
    with pytest.raises(warpline.InputError) as caught:
        warpline.emit("softmax", what)
    assert str(caught.value) == f'what to emit is "ptx" or "ir", not "{what}"'


# devices, families.


def test_the_simulator_is_always_there() -> None:
    cpu, *others = warpline.devices()
    assert (cpu["name"], cpu["simulator"], cpu["why_not"]) == ("cpu", True, None)
    for device in others:
        assert device["simulator"] is False
        assert device["why_not"] or device["gpu"]


def test_families_say_what_they_compute() -> None:
    families = warpline.families()
    names = [f["name"] for f in families]
    assert len(set(names)) == len(names)
    assert all(f["about"] and f["problem"] for f in families)
    assert {op.family for op in OPS} <= set(names)
    json.dumps(families)
