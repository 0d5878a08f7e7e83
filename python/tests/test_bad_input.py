"""Bad input: messages and exceptions."""

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


def rejected(call: Callable[[], Any], code: str = "bad-problem") -> str:
    """Returns the message of a rejected call."""
    with pytest.raises(warpline.InputError) as caught:
        call()
    error = caught.value
    assert isinstance(error, ValueError) and isinstance(error, warpline.Error)
    assert error.code == code
    return str(error)


def messages(*cases: tuple[str, Callable[[], Any], str]) -> Any:
    """Parametrizes a test over name, call and expected message."""
    return pytest.mark.parametrize(
        ("call", "expected_message"), [case[1:] for case in cases], ids=[case[0] for case in cases]
    )


# Exceptions.

CLASSES = [warpline.Error, warpline.InputError, warpline.KernelError, warpline.DeviceError]


@pytest.mark.parametrize("error", CLASSES)
def test_exceptions_survive_pickling_and_copying(error: type[warpline.Error]) -> None:
    made = error("x is wrong", "some-code")
    for restored in (pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made)):
        assert (type(restored), str(restored), restored.code) == (error, "x is wrong", "some-code")


def test_exceptions_derive_from_builtin_ones() -> None:
    assert issubclass(warpline.InputError, (ValueError, warpline.Error))
    assert issubclass(warpline.KernelError, (RuntimeError, warpline.Error))
    assert issubclass(warpline.DeviceError, (RuntimeError, warpline.Error))
    assert warpline.Error("x").code == "error"


def test_an_exception_that_was_raised_can_be_pickled() -> None:
    with pytest.raises(warpline.Error) as caught:
        softmax(X, dim=2)
    restored = pickle.loads(pickle.dumps(caught.value))
    assert (str(restored), restored.code) == (str(caught.value), "bad-problem")


# Types.


@pytest.mark.parametrize(
    "value", [None, "x", [1.0, 2.0], (1.0,), 3, 1.5, np.float32(1), object(), {}], ids=repr
)
def test_non_arrays_are_rejected_by_type(value: Any) -> None:
    kind = type(value).__name__
    message = f"softmax: x must be an array or a tensor, not of type {kind}"
    assert rejected(lambda: softmax(value), "bad-type") == message
    assert rejected(lambda: add(X, value), "bad-type") == f"add: b must be an array or a tensor, not of type {kind}"
    if value is not None:
        message = f"layer_norm: weight must be an array or a tensor, not of type {kind}"
        assert rejected(lambda: layer_norm(X, value), "bad-type") == message


@pytest.mark.parametrize(
    "dtype", ["float64", "bool", "complex64", "int8", "uint32", "object", "U3", "V4", "M8[s]"]
)
def test_unsupported_element_types_are_rejected(dtype: str) -> None:
    x = np.zeros((2, 4), dtype)
    assert rejected(lambda: softmax(x)) == f"softmax: x has the unsupported element type {x.dtype}"


@pytest.mark.parametrize(
    ("dtype", "name"),
    [("int32", "i32"), ("int64", "i64"), ("uint8", "u8"), (ml_dtypes.float8_e4m3fn, "e4m3")],
)
def test_element_types_of_other_ops_are_rejected(dtype: Any, name: str) -> None:
    x = np.zeros((2, 4), dtype)
    assert rejected(lambda: softmax(x)) == f"softmax: x must be f32, f16 or bf16, not {name}"
    assert rejected(lambda: add(x, x)) == f"add: a must be f32, f16 or bf16, not {name}"


@pytest.mark.parametrize("dtype", [">f4", ">f2"])
def test_big_endian_elements_are_rejected(dtype: str) -> None:
    message = (
        f"{{}} is big-endian ({dtype}), but GPUs are little-endian:"
        f" convert it with astype('{dtype.replace('>', '<')}')"
    )
    x = np.zeros((4, 8), dtype)
    assert rejected(lambda: softmax(x)) == "softmax: " + message.format("x")
    assert rejected(lambda: softmax(X, out=x)) == "softmax: " + message.format("y")


def test_masked_arrays_are_rejected() -> None:
    x = np.ma.array(X, mask=X > 0)
    message = "softmax: x is a masked array, which no kernel supports: fill it, or pass its data"
    assert rejected(lambda: softmax(x), "bad-type") == message
    assert softmax(x.filled(0)).shape == softmax(x.data).shape


# Shapes.


@messages(
    (
        "a scalar has no rows",
        lambda: softmax(np.zeros((), np.float32)),
        "softmax: x has no dimensions, but needs at least 1",
    ),
    (
        "no broadcasting of a row",
        lambda: add(X, X[0]),
        "add: a and b must have the same type and shape, not f32 [4, 8] and f32 [8]",
    ),
    (
        "no broadcasting of a single row",
        lambda: add(X, X[:1]),
        "add: a and b must have the same type and shape, not f32 [4, 8] and f32 [1, 8]",
    ),
    (
        "no promotion of types",
        lambda: add(X, X.astype(np.float16)),
        "add: a and b must have the same type and shape, not f32 [4, 8] and f16 [4, 8]",
    ),
    (
        "a weight of another length",
        lambda: layer_norm(X, W[:7]),
        "layer_norm: weight must be f32 [8] like a row of x, not f32 [7]",
    ),
    (
        "a weight with rows",
        lambda: rms_norm(X, W[None]),
        "rms_norm: weight must be f32 [8] like a row of x, not f32 [1, 8]",
    ),
    (
        "a bias of another length",
        lambda: layer_norm(X, W, W[:1]),
        "layer_norm: bias must be f32 [8] like a row of x, not f32 [1]",
    ),
    (
        "a bias alone",
        lambda: layer_norm(X, bias=W),
        "layer_norm: bias requires weight, which is missing",
    ),
)
def test_mismatched_shapes_are_rejected(call: Callable[[], Any], expected_message: str) -> None:
    assert rejected(call) == expected_message


# Outputs.


@messages(
    (
        "of another shape",
        lambda: softmax(X, out=np.empty((4, 7), np.float32)),
        "softmax: y must be f32 [4, 8], not f32 [4, 7]",
    ),
    (
        "of another type",
        lambda: softmax(X, out=np.empty((4, 8), np.float16)),
        "softmax: y must be f32 [4, 8], not f16 [4, 8]",
    ),
    (
        "of another shape, without elements",
        lambda: softmax(X[:0], out=np.empty((0, 7), np.float32)),
        "softmax: y must be f32 [0, 8], not f32 [0, 7]",
    ),
    (
        "of an unsupported type",
        lambda: softmax(X, out=np.empty((4, 8))),
        "softmax: y has the unsupported element type float64",
    ),
)
def test_mismatched_outputs_are_rejected(call: Callable[[], Any], expected_message: str) -> None:
    assert rejected(call) == expected_message


def test_a_read_only_output_is_rejected() -> None:
    out = np.zeros((4, 8), np.float32)
    out.flags.writeable = False
    message = "softmax: y is a read-only array"
    assert rejected(lambda: softmax(X, out=out)) == message


def test_an_output_that_shares_memory_with_an_input_is_rejected() -> None:
    buffer = np.zeros((8, 16), np.float32)
    message = "softmax: y shares memory with x; an output must not overlap another tensor"
    assert rejected(lambda: softmax(buffer, out=buffer)) == message
    assert rejected(lambda: softmax(buffer[:5], out=buffer[3:])) == message
    # As on a GPU, an output between the rows of an input overlaps it.
    assert rejected(lambda: softmax(buffer[:, :8], out=buffer[:, 8:])) == message
    assert rejected(lambda: softmax(buffer[::2], out=buffer[1::2])) == message
    weight = buffer[0, :8]
    message = "rms_norm: y shares memory with weight; an output must not overlap another tensor"
    assert rejected(lambda: rms_norm(X, weight, out=buffer[:4, :8])) == message
    b, out = buffer[:2].reshape(4, 8), buffer[1:3].reshape(4, 8)
    assert rejected(lambda: add(X, b, out=out)).startswith("add: c shares memory with b")
    assert not buffer.any()


@pytest.mark.parametrize("out", ["y", [np.zeros((4, 8), np.float32)], (np.zeros((4, 8), np.float32),), 1])
def test_an_output_that_is_not_an_array_is_rejected(out: Any) -> None:
    message = f"softmax: out must be an array like the inputs, not of type {type(out).__name__}"
    assert rejected(lambda: softmax(X, out=out), "bad-type") == message


def test_a_rejected_call_does_not_write_the_output() -> None:
    out = np.full((4, 8), 7, np.float32)
    rejected(lambda: softmax(X, dim=2, out=out))
    assert (out == 7).all()


# Numbers.


@pytest.mark.parametrize("dim", [-3, 2, 7])
def test_a_dimension_that_does_not_exist_is_rejected(dim: int) -> None:
    assert rejected(lambda: softmax(X, dim)) == f"softmax: dim must be the last dimension (-1 or 1), not {dim}"


@pytest.mark.parametrize("dim", ["1", None, 1.0, 1.5, [1], 1 << 70], ids=repr)
def test_a_dimension_that_is_not_an_integer_is_rejected(dim: Any) -> None:
    assert rejected(lambda: softmax(X, dim)) == f"softmax: dim must be an integer, not {dim!r}"


@pytest.mark.parametrize("op", [layer_norm, rms_norm])
@pytest.mark.parametrize(
    ("eps", "shown"), [(-1, "-1.0"), (-0.5, "-0.5"), (np.nan, "NaN"), (np.inf, "inf")], ids=str
)
def test_an_eps_that_is_negative_or_not_finite_is_rejected(op: Any, eps: float, shown: str) -> None:
    message = rejected(lambda: op(X, eps=eps))
    assert message.endswith(f"eps is {shown}, but must be finite in f32 and at least 0")


@pytest.mark.parametrize("eps", ["1e-5", None, 1j, [1e-5]], ids=repr)
def test_an_eps_that_is_not_a_number_is_rejected(eps: Any) -> None:
    assert rejected(lambda: layer_norm(X, eps=eps)) == f"layer_norm: eps must be a number, not {eps!r}"
    assert rejected(lambda: rms_norm(X, eps=eps)) == f"rms_norm: eps must be a number, not {eps!r}"


# Arguments.


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: softmax(X, axis=-1), r"^softmax\(\) got an unexpected keyword argument 'axis'"),
        (lambda: softmax(), r"^softmax\(\) missing 1 required positional argument: 'x'"),
        (lambda: add(X), r"^add\(\) missing 1 required positional argument: 'b'"),
        (lambda: softmax(X, -1, False, X), r"^softmax\(\) takes from 1 to 3 positional arguments but 4 were given"),
        (lambda: softmax(X, x=X), r"^softmax\(\) got multiple values for argument 'x'"),
    ],
)
def test_wrong_arguments_raise_type_errors(call: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


def test_simulate_must_be_a_bool() -> None:
    with pytest.raises(TypeError):
        softmax(X, simulate="yes")


@pytest.mark.parametrize("stream", [0, 1, 12345])
def test_stream_is_rejected_for_numpy_arrays(stream: int) -> None:
    assert rejected(lambda: softmax(X, stream=stream)) == "softmax: stream= needs arrays on a GPU"


def test_tune_is_rejected_on_the_cpu_executor() -> None:
    message = rejected(lambda: softmax(X, tune=True))
    assert message == "softmax: tune=True needs arrays on a GPU; CPU executor time is not GPU time"


@pytest.mark.parametrize("deterministic", [None, True, False])
def test_the_cpu_executor_is_deterministic(deterministic: bool | None) -> None:
    np.testing.assert_array_equal(softmax(X, deterministic=deterministic), softmax(X))


# Long runs.


def test_long_simulations_are_rejected_immediately() -> None:
    x = np.zeros((1 << 15, 1 << 14), np.float32)  # 2 GiB, mapped but never touched
    start = time.perf_counter()
    message = rejected(lambda: softmax(x), "too-long")
    assert time.perf_counter() - start < 2
    assert message.startswith("running this problem on the CPU executor takes about ")
    assert message.endswith(" s; the limit is 30 s\nhelp: set `simulate` to run it anyway")


def test_simulate_does_not_change_results() -> None:
    np.testing.assert_array_equal(softmax(X, simulate=True), softmax(X))
