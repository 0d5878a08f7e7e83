"""What is refused, in which words, and with which exception."""

from __future__ import annotations

import copy
import pickle
import time
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from conftest import random

import warpline

X = random((4, 8))
X.flags.writeable = False
W = np.ones(8, np.float32)
add, softmax, layer_norm, rms_norm = warpline.add, warpline.softmax, warpline.layer_norm, warpline.rms_norm


def refused(call: Callable[[], Any], code: str = "bad-problem") -> str:
    """The sentence that refuses a call."""
    with pytest.raises(warpline.InputError) as caught:
        call()
    error = caught.value
    assert isinstance(error, ValueError) and isinstance(error, warpline.Error)
    assert error.code == code
    return str(error)


def sentences(*cases: tuple[str, Callable[[], Any], str]) -> Any:
    """A test for each of: a name, a call, the sentence that refuses it."""
    return pytest.mark.parametrize(
        ("call", "sentence"), [case[1:] for case in cases], ids=[case[0] for case in cases]
    )


# Exceptions.

CLASSES = [warpline.Error, warpline.InputError, warpline.RefusedError, warpline.DeviceError]


@pytest.mark.parametrize("error", CLASSES)
def test_exceptions_survive_pickling_and_copying(error: type[warpline.Error]) -> None:
    made = error("x is wrong", "some-code")
    for again in (pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made)):
        assert (type(again), str(again), again.code) == (error, "x is wrong", "some-code")


def test_exceptions_are_also_those_that_python_has_for_it() -> None:
    assert issubclass(warpline.InputError, (ValueError, warpline.Error))
    assert issubclass(warpline.RefusedError, (RuntimeError, warpline.Error))
    assert issubclass(warpline.DeviceError, (RuntimeError, warpline.Error))
    assert warpline.Error("x").code == "error"


def test_an_exception_that_was_raised_can_be_pickled() -> None:
    with pytest.raises(warpline.Error) as caught:
        softmax(X, dim=0)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.code) == (str(caught.value), "bad-problem")


# Types.


@pytest.mark.parametrize(
    "value", [None, "x", [1.0, 2.0], (1.0,), 3, 1.5, np.float32(1), object(), {}], ids=repr
)
def test_what_is_no_array_is_refused_by_its_type(value: Any) -> None:
    kind = type(value).__name__
    said = f"softmax: x is an array or a tensor, not of type {kind}"
    assert refused(lambda: softmax(value), "bad-type") == said
    assert refused(lambda: add(X, value), "bad-type") == f"add: b is an array or a tensor, not of type {kind}"
    if value is not None:
        said = f"layer_norm: weight is an array or a tensor, not of type {kind}"
        assert refused(lambda: layer_norm(X, value), "bad-type") == said


@pytest.mark.parametrize(
    "dtype", ["float64", "bool", "complex64", "int8", "uint32", "object", "U3", "V4", "M8[s]"]
)
def test_elements_that_no_kernel_takes_are_refused(dtype: str) -> None:
    x = np.zeros((2, 4), dtype)
    assert refused(lambda: softmax(x)) == f"softmax: x has elements of type {x.dtype}, which no kernel takes"


@pytest.mark.parametrize(
    ("dtype", "name"),
    [("int32", "i32"), ("int64", "i64"), ("uint8", "u8"), (ml_dtypes.float8_e4m3fn, "e4m3")],
)
def test_elements_that_this_kernel_does_not_take_are_refused(dtype: Any, name: str) -> None:
    x = np.zeros((2, 4), dtype)
    assert refused(lambda: softmax(x)) == f"softmax: x is f32, f16 or bf16, not {name}"
    assert refused(lambda: add(x, x)) == f"add: a is f32, f16 or bf16, not {name}"


@pytest.mark.parametrize("dtype", [">f4", ">f2"])
def test_big_endian_elements_are_refused(dtype: str) -> None:
    said = (
        f"the elements of {{}} are big-endian ({dtype}), and a GPU's are little-endian:"
        f" convert it with astype('{dtype.replace('>', '<')}')"
    )
    x = np.zeros((4, 8), dtype)
    assert refused(lambda: softmax(x)) == "softmax: " + said.format("x")
    assert refused(lambda: softmax(X, out=x)) == "softmax: " + said.format("y")


def test_a_mask_is_not_ignored() -> None:
    x = np.ma.array(X, mask=X > 0)
    said = "softmax: x has a mask, and no kernel heeds one: fill it, or pass its data"
    assert refused(lambda: softmax(x), "bad-type") == said
    assert softmax(x.filled(0)).shape == softmax(x.data).shape


# Shapes.


@sentences(
    (
        "a point has no rows",
        lambda: softmax(np.zeros((), np.float32)),
        "softmax: x has at least one dimension, and this one has none",
    ),
    (
        "no broadcasting of a row",
        lambda: add(X, X[0]),
        "add: a and b are of one type and shape, not f32 [4, 8] and f32 [8]",
    ),
    (
        "no broadcasting of a single row",
        lambda: add(X, X[:1]),
        "add: a and b are of one type and shape, not f32 [4, 8] and f32 [1, 8]",
    ),
    (
        "no promotion of types",
        lambda: add(X, X.astype(np.float16)),
        "add: a and b are of one type and shape, not f32 [4, 8] and f16 [4, 8]",
    ),
    (
        "a weight of another length",
        lambda: layer_norm(X, W[:7]),
        "layer_norm: weight is f32 [8], as a row of x, not f32 [7]",
    ),
    (
        "a weight of another type",
        lambda: rms_norm(X, W.astype(ml_dtypes.bfloat16)),
        "rms_norm: weight is f32 [8], as a row of x, not bf16 [8]",
    ),
    (
        "a weight with rows",
        lambda: rms_norm(X, W[None]),
        "rms_norm: weight is f32 [8], as a row of x, not f32 [1, 8]",
    ),
    (
        "a bias of another length",
        lambda: layer_norm(X, W, W[:1]),
        "layer_norm: bias is f32 [8], as a row of x, not f32 [1]",
    ),
    (
        "a bias alone",
        lambda: layer_norm(X, bias=W),
        "layer_norm: a bias comes with a weight, and none was given",
    ),
)
def test_shapes_that_do_not_fit_are_refused(call: Callable[[], Any], sentence: str) -> None:
    assert refused(call) == sentence


# Layouts.


@sentences(
    (
        "rows downwards",
        lambda: softmax(X[::-1]),
        (
            "softmax: the rows of x lie apart and follow each other upwards, and rows of 8 elements"
            " -8 from each other do not: make it contiguous"
        ),
    ),
    (
        "columns downwards",
        lambda: softmax(X[:, ::-1]),
        "softmax: the last dimension of x is dense, and its stride here is -1: make it contiguous",
    ),
    (
        "every other column",
        lambda: softmax(X[:, ::2]),
        "softmax: the last dimension of x is dense, and its stride here is 2: make it contiguous",
    ),
    (
        "transposed",
        lambda: softmax(X.T),
        "softmax: the last dimension of x is dense, and its stride here is 8: make it contiguous",
    ),
    (
        "one row many times",
        lambda: softmax(np.broadcast_to(X[0], (4, 8))),
        (
            "softmax: the rows of x lie apart and follow each other upwards, and rows of 8 elements"
            " 0 from each other do not: make it contiguous"
        ),
    ),
    (
        "rows at two distances",
        lambda: softmax(random((4, 3, 8))[:, :2], out=np.empty((4, 2, 8), np.float32)),
        (
            "softmax: the rows of x, and those of y, lie at one distance, which strides [24, 8, 1] and"
            " [16, 8, 1] over shape [4, 2, 8] do not give: make them contiguous"
        ),
    ),
    (
        "a weight with gaps",
        lambda: layer_norm(X, np.ones(16, np.float32)[::2]),
        "layer_norm: the last dimension of weight is dense, and its stride here is 2: make it contiguous",
    ),
    (
        "summands in two orders",
        lambda: add(X, np.asfortranarray(X)),
        (
            "add: a, b and c lie without gaps and with the same strides, not with [8, 1], [1, 4] and [8, 1]:"
            " make them contiguous"
        ),
    ),
    (
        "summands with gaps",
        lambda: add(X[:, :4], X[:, :4]),
        (
            "add: a, b and c lie without gaps and with the same strides, not with [8, 1], [8, 1] and [4, 1]:"
            " make them contiguous"
        ),
    ),
    (
        "strides of half an element",
        lambda: softmax(np.zeros((4, 8), [("tag", "u1"), ("x", "<f4")])["x"]),
        "softmax: the strides of x are whole elements of 4 bytes, not (40, 5) bytes: make it contiguous",
    ),
)
def test_layouts_that_no_kernel_reads_are_refused(call: Callable[[], Any], sentence: str) -> None:
    assert refused(call) == sentence


# Outputs.


@sentences(
    (
        "of another shape",
        lambda: softmax(X, out=np.empty((4, 7), np.float32)),
        "softmax: y is f32 [4, 8], and what was given for it is f32 [4, 7]",
    ),
    (
        "of another type",
        lambda: softmax(X, out=np.empty((4, 8), np.float16)),
        "softmax: y is f32 [4, 8], and what was given for it is f16 [4, 8]",
    ),
    (
        "of another shape, where there is no element",
        lambda: softmax(X[:0], out=np.empty((0, 7), np.float32)),
        "softmax: y is f32 [0, 8], and what was given for it is f32 [0, 7]",
    ),
    (
        "of a type that no kernel takes",
        lambda: softmax(X, out=np.empty((4, 8))),
        "softmax: y has elements of type float64, which no kernel takes",
    ),
    (
        "transposed",
        lambda: softmax(X, out=np.empty((8, 4), np.float32).T),
        "softmax: the last dimension of y is dense, and its stride here is 4: make it contiguous",
    ),
    (
        "rows downwards",
        lambda: softmax(X, out=np.empty((4, 8), np.float32)[::-1]),
        (
            "softmax: the rows of y lie apart and follow each other upwards, and rows of 8 elements"
            " -8 from each other do not: make it contiguous"
        ),
    ),
    (
        "in the order of no input",
        lambda: add(X, X, out=np.empty((4, 8), np.float32, order="F")),
        (
            "add: a, b and c lie without gaps and with the same strides, not with [8, 1], [8, 1] and [1, 4]:"
            " make them contiguous"
        ),
    ),
)
def test_outputs_that_do_not_fit_are_refused(call: Callable[[], Any], sentence: str) -> None:
    assert refused(call) == sentence


def test_a_read_only_output_is_refused() -> None:
    out = np.zeros((4, 8), np.float32)
    out.flags.writeable = False
    said = "softmax: y cannot be written: the array is read-only"
    assert refused(lambda: softmax(X, out=out)) == said


def test_an_output_that_shares_memory_with_an_input_is_refused() -> None:
    room = np.zeros((8, 16), np.float32)
    said = "softmax: y shares memory with x, and an output must lie apart"
    assert refused(lambda: softmax(room, out=room)) == said
    assert refused(lambda: softmax(room[:5], out=room[3:])) == said
    # As on a GPU: between the rows of an input is not apart.
    assert refused(lambda: softmax(room[:, :8], out=room[:, 8:])) == said
    assert refused(lambda: softmax(room[::2], out=room[1::2])) == said
    weight = room[0, :8]
    said = "rms_norm: y shares memory with weight, and an output must lie apart"
    assert refused(lambda: rms_norm(X, weight, out=room[:4, :8])) == said
    b, out = room[:2].reshape(4, 8), room[1:3].reshape(4, 8)
    assert refused(lambda: add(X, b, out=out)).startswith("add: c shares memory with b")
    assert not room.any()


@pytest.mark.parametrize("out", ["y", [np.zeros((4, 8), np.float32)], (np.zeros((4, 8), np.float32),), 1])
def test_an_output_that_is_no_array_is_refused(out: Any) -> None:
    said = f"softmax: out is an array as the inputs are, not of type {type(out).__name__}"
    assert refused(lambda: softmax(X, out=out), "bad-type") == said


def test_an_output_is_left_alone_where_a_call_is_refused() -> None:
    out = np.full((4, 8), 7, np.float32)
    refused(lambda: softmax(X, dim=0, out=out))
    assert (out == 7).all()


# Numbers.


@pytest.mark.parametrize("dim", [0, -2, 2, 7])
def test_a_dimension_that_is_not_the_last_is_refused(dim: int) -> None:
    assert refused(lambda: softmax(X, dim)) == f"softmax: dim is the last dimension (-1 or 1), not {dim}"


@pytest.mark.parametrize("dim", ["1", None, 1.0, 1.5, [1], 1 << 70], ids=repr)
def test_a_dimension_that_is_no_integer_is_refused(dim: Any) -> None:
    assert refused(lambda: softmax(X, dim)) == f"softmax: dim is an integer, not {dim!r}"


@pytest.mark.parametrize("op", [layer_norm, rms_norm])
@pytest.mark.parametrize(
    ("eps", "shown"), [(-1, "-1.0"), (-0.5, "-0.5"), (np.nan, "NaN"), (np.inf, "inf")], ids=str
)
def test_an_eps_that_is_negative_or_not_finite_is_refused(op: Any, eps: float, shown: str) -> None:
    said = refused(lambda: op(X, eps=eps))
    assert said.endswith(f"eps is a number of f32 that is not negative, not {shown}")


@pytest.mark.parametrize("eps", ["1e-5", None, 1j, [1e-5]], ids=repr)
def test_an_eps_that_is_no_number_is_refused(eps: Any) -> None:
    assert refused(lambda: layer_norm(X, eps=eps)) == f"layer_norm: eps is a number, not {eps!r}"
    assert refused(lambda: rms_norm(X, eps=eps)) == f"rms_norm: eps is a number, not {eps!r}"


# Arguments.


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: softmax(X, axis=-1), r"^softmax\(\) got an unexpected keyword argument 'axis'"),
        (lambda: softmax(), r"^softmax\(\) missing 1 required positional argument: 'x'"),
        (lambda: add(X), r"^add\(\) missing 1 required positional argument: 'b'"),
        (lambda: softmax(X, -1, X), r"^softmax\(\) takes from 1 to 2 positional arguments but 3 were given"),
        (lambda: softmax(X, x=X), r"^softmax\(\) got multiple values for argument 'x'"),
    ],
)
def test_arguments_that_a_function_does_not_have_are_type_errors(call: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        call()


def test_simulate_is_a_truth_value() -> None:
    with pytest.raises(TypeError):
        softmax(X, simulate="yes")


@pytest.mark.parametrize("stream", [0, 1, 12345])
def test_arrays_of_numpy_have_no_stream(stream: int) -> None:
    assert refused(lambda: softmax(X, stream=stream)) == "softmax: only arrays on a GPU have a stream"


def test_what_runs_on_the_simulator_is_not_tuned() -> None:
    said = refused(lambda: softmax(X, tune=True))
    assert said == "softmax: tune=True is for arrays on a GPU: the simulator's times are no measure of one"


@pytest.mark.parametrize("deterministic", [None, True, False])
def test_the_simulator_gives_the_same_bits_whatever_is_allowed(deterministic: bool | None) -> None:
    np.testing.assert_array_equal(softmax(X, deterministic=deterministic), softmax(X))


# Work that takes long.


def test_what_would_take_the_simulator_long_is_refused_at_once() -> None:
    x = np.zeros((1 << 15, 1 << 14), np.float32)  # 2 GiB that are mapped, and never touched
    start = time.perf_counter()
    said = refused(lambda: softmax(x), "too-long")
    assert time.perf_counter() - start < 2
    assert said.startswith("the CPU is a simulator, and this problem would take it about ")
    assert said.endswith(" s; above 30 s that must be asked for with `simulate`")


def test_asking_for_long_work_changes_nothing_about_short_work() -> None:
    np.testing.assert_array_equal(softmax(X, simulate=True), softmax(X))
