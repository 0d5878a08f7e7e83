"""check, emit, devices, families."""

from __future__ import annotations

import json
from typing import Any

import pytest

import warpline
from warpline._declared import OPS


def rejected(code: str, family: str, **flags: Any) -> str:
    """Returns the message with which check and emit reject the flags."""
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
    answer = warpline.check("softmax", rows=3, cols=100, dtype="f16", schedule="direct", vectors=False)
    assert answer["problem"] == {"rows": 3, "cols": 100, "dtype": "f16"}
    assert (answer["config"]["schedule"], answer["config"]["vectors"]) == ("direct", False)


def test_flags_are_written_with_underscores() -> None:
    answer = warpline.check("softmax", rows=4, cols=64, x_stride=128)
    assert answer["problem"]["x_stride"] == 128
    message = rejected("bad-problem", "softmax", **{"rows": 4, "x-stride": 128})
    assert message.startswith('softmax has no field "x-stride"; its fields are: rows, cols, dtype, x_stride, y_stride, ')


def test_numbers_may_be_text() -> None:
    assert warpline.check("softmax", rows="4", cols="64") == warpline.check("softmax", rows=4, cols=64)


def test_dtype_nvfp4_selects_the_nvfp4_family() -> None:
    flags = {"m": 16, "n": 64, "k": 64, "scale_layout": "block"}
    answer = warpline.check("dual-gemm", dtype="nvfp4", **flags)
    assert answer == warpline.check("nvfp4-dual-gemm", **flags)
    assert answer["family"] == "nvfp4-dual-gemm"
    assert warpline.emit("dual-gemm", dtype="nvfp4", **flags) == warpline.emit("nvfp4-dual-gemm", **flags)
    message = rejected("bad-problem", "dual-gemm", scale_layout="block")
    assert message.startswith("--scale-layout requires --dtype nvfp4 (the family nvfp4-dual-gemm)\nhelp: ")


def test_unknown_families_are_rejected_with_the_known_ones() -> None:
    families = ", ".join(f["name"] for f in warpline.families())
    message = rejected("bad-problem", "layer_norm")
    assert message == f'unknown family "layer_norm"; the families are: {families}'


@pytest.mark.parametrize("flag", ["foo", "Rows", "", "help", "rows=4 --cols"])
def test_unknown_flags_are_rejected_with_the_known_ones(flag: str) -> None:
    message = rejected("bad-problem", "softmax", **{flag: 1})
    assert message.startswith(f'softmax has no field "{flag}"; its fields are: rows, cols, dtype, ')


@pytest.mark.parametrize("value", ["four", -1, 1.5, None, True, "4 --cols=8", ""], ids=repr)
def test_values_that_are_not_counts_are_rejected(value: Any) -> None:
    shown = "true" if value is True else str(value)
    message = rejected("bad-problem", "softmax", rows=value)
    assert message.startswith("--rows must be a whole number")
    assert message.endswith(f", not {shown}")


def test_unknown_keywords_are_rejected_with_the_known_ones() -> None:
    message = rejected("bad-problem", "softmax", dtype="f64")
    assert message == "--dtype must be f32, f16 or bf16, not f64"


def test_invalid_problems_are_rejected() -> None:
    assert rejected("bad-problem", "softmax", cols=0) == "--cols is 0, but a row must have at least 1 element"
    message = "--x-stride is 4, less than the 1024 columns: rows must not overlap"
    assert rejected("bad-problem", "softmax", cols=1024, x_stride=4) == message


def test_invalid_configs_are_rejected_with_their_own_code() -> None:
    message = rejected("bad-config", "softmax", rows=4, cols=1023, vectors=True)
    assert message == (
        "--vectors true needs rows that start and end on 16 bytes, but rows have 1023 elements"
        " with strides 1023 and 1023\nhelp: use --vectors false"
    )
    message = rejected("bad-config", "softmax", rows=4, cols=1024, schedule="direct", stages=3)
    assert message == "--stages 3 requires a schedule with a ring (selected: direct)\nhelp: use --schedule specialized"


# emit.


@pytest.mark.parametrize("family", [f["name"] for f in warpline.families()])
def test_ptx_is_for_sm_90a(family: str) -> None:
    text = warpline.emit(family)
    assert ".target sm_90a\n" in text
    assert ".visible .entry" in text
    assert text == warpline.emit(family, "ptx") == warpline.emit(family, what="ptx")


def test_ir_is_text_with_parameters() -> None:
    text = warpline.emit("vector-add", what="ir", n=4096, schedule="specialized")
    assert text.startswith("kernel vector_add threads ")
    assert "\n  param " in text


def test_ir_is_not_ptx() -> None:
    text = warpline.emit("vector-add", "ir", n=4096)
    assert text.startswith("kernel vector_add")
    assert ".target" not in text


@pytest.mark.parametrize("what", ["sass", "", "PTX"])
def test_other_formats_are_rejected(what: str) -> None:
    with pytest.raises(warpline.InputError) as caught:
        warpline.emit("softmax", what)
    assert str(caught.value) == f'what must be "ptx" or "ir", not "{what}"'


# devices, families.


def test_the_cpu_executor_is_always_listed() -> None:
    cpu, *others = warpline.devices()
    assert (cpu["name"], cpu["is_cpu"], cpu["unavailable"]) == ("cpu", True, None)
    for device in others:
        assert device["is_cpu"] is False
        assert device["unavailable"] or device["gpu"]


def test_families_have_a_description() -> None:
    families = warpline.families()
    names = [f["name"] for f in families]
    assert len(set(names)) == len(names)
    assert all(f["about"] and f["problem"] for f in families)
    assert {op.family for op in OPS} <= set(names)
    json.dumps(families)
