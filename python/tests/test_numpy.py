"""Every op on NumPy arrays: values and supported layouts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from conftest import DTYPES, TENSORS, assert_close, inputs, outside, random, reference

import warpline

OPS = list(TENSORS)
ROWS = [op for op in OPS if op != "add"]
COLUMNS = (1, 2, 7, 33, 1000, 1025)
SHAPES = [
    *((rows, cols) for cols in COLUMNS for rows in (1, 5)),
    (33,),
    (2, 3, 7),
    (2, 1, 3, 33),
]


def call(op: str, *tensors: Any, **options: Any) -> np.ndarray:
    return getattr(warpline, op)(*tensors, **options)


every_op = pytest.mark.parametrize("op", OPS)
every_row_op = pytest.mark.parametrize("op", ROWS)
every_dtype = pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)


# Values.


@every_op
@every_dtype
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_results_match_the_reference(op: str, dtype: Any, shape: tuple[int, ...]) -> None:
    tensors = inputs(op, shape, dtype)
    got = call(op, *tensors)
    assert (type(got), got.dtype) == (np.ndarray, dtype)
    assert_close(got, reference(op, *tensors))


def test_assert_close_detects_four_times_the_tolerance() -> None:
    x = random((4, 33))
    want = reference("softmax", x)
    got = warpline.softmax(x)
    got[2, 5] += 4 * np.spacing(got[2, 5]) + 4e-6
    assert outside(got, want).sum() == 1
    with pytest.raises(AssertionError, match="1 of 132 outside tolerance"):
        assert_close(got, want)


def test_weight_and_bias_are_optional() -> None:
    x, weight, bias = inputs("layer_norm", (5, 33))
    assert_close(warpline.layer_norm(x), reference("layer_norm", x))
    assert_close(warpline.layer_norm(x, weight), reference("layer_norm", x, weight))
    assert_close(warpline.layer_norm(x, bias=bias, weight=weight), reference("layer_norm", x, weight, bias))
    assert_close(warpline.rms_norm(x), reference("rms_norm", x))


@pytest.mark.parametrize("op", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize("eps", [0, 1, 0.5, 1e-3, np.float32(0.25)])
def test_eps_may_be_any_non_negative_number(op: str, eps: Any) -> None:
    x = random((3, 33))
    assert_close(call(op, x, eps=eps), reference(op, x, eps=float(eps)))


@pytest.mark.parametrize("dim", [-1, 2, np.int64(2)])
def test_dim_may_be_minus_one_or_the_last_index(dim: int) -> None:
    x = random((2, 3, 7))
    assert_close(warpline.softmax(x, dim), reference("softmax", x))


def test_layer_norm_is_accurate_for_a_large_mean() -> None:
    x = random((5, 1000)) + np.float32(10_000)
    assert_close(warpline.layer_norm(x), reference("layer_norm", x))


@every_row_op
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf], ids=str)
def test_a_non_finite_value_affects_only_its_row(op: str, value: float) -> None:
    x = random((3, 33))
    x[1, 4] = value
    got = call(op, x)
    assert_close(got[::2], reference(op, x[::2]))
    if (op, value) == ("softmax", -np.inf):
        assert_close(got, reference(op, x))
    elif op == "rms_norm" and np.isinf(value):
        # The mean of squares is infinite, so finite elements become zero.
        assert np.isnan(got[1, 4])
        assert not np.delete(got[1], 4).any()
    else:
        assert np.isnan(got[1]).all()


def test_softmax_of_a_row_of_minus_infinity_is_nan_as_in_torch() -> None:
    x = random((2, 8))
    x[0] = -np.inf
    got = warpline.softmax(x)
    assert np.isnan(got[0]).all()
    assert_close(got[1:], reference("softmax", x[1:]))


def test_softmax_of_large_values_neither_overflows_nor_divides_by_zero() -> None:
    x = np.array([[1e5, -1e5, 0], [3e38, 3e38, 3e38], [-3e38, 0, -3e38]], np.float32)
    assert_close(warpline.softmax(x), reference("softmax", x))


@every_dtype
def test_add_of_the_smallest_subnormals_is_exact(dtype: Any) -> None:
    smallest = np.full((2, 9), np.finfo(np.float32).smallest_subnormal, np.float32)
    if dtype is not np.float32:
        smallest = np.ones((2, 9), np.uint16).view(dtype)
    twice = warpline.add(smallest, smallest)
    assert (twice.astype(np.float64) == 2 * smallest.astype(np.float64)).all()
    assert twice.any()


def test_add_keeps_infinities_and_nan() -> None:
    a = np.array([np.inf, -np.inf, np.inf, np.nan, 3e38, -0.0], np.float32)
    b = np.array([1, 1, -np.inf, 1, 3e38, -0.0], np.float32)
    with np.errstate(all="ignore"):
        want = a + b
    got = warpline.add(a, b)
    np.testing.assert_array_equal(got, want)
    assert np.signbit(got[-1])


@every_row_op
def test_rows_of_denormals_give_finite_results(op: str) -> None:
    x = np.full((2, 9), 1e-40, np.float32)
    assert_close(call(op, x), reference(op, x))


@every_op
def test_repeated_calls_give_the_same_bits(op: str) -> None:
    tensors = inputs(op, (5, 1025))
    first = call(op, *tensors)
    for _ in range(3):
        np.testing.assert_array_equal(call(op, *tensors).view(np.uint32), first.view(np.uint32))


def test_concurrent_calls_give_the_same_results() -> None:
    calls = [(op, inputs(op, (5, cols))) for op in OPS for cols in (33, 500)]
    sequential = [call(op, *tensors) for op, tensors in calls]
    with ThreadPoolExecutor(2) as threads:
        concurrent = list(threads.map(lambda c: call(c[0], *c[1]), calls * 4))
    for i, got in enumerate(concurrent):
        np.testing.assert_array_equal(got, sequential[i % len(sequential)])


# Empty arrays.


@every_op
@every_dtype
@pytest.mark.parametrize("shape", [(0, 8), (3, 0), (0,), (0, 0), (2, 0, 3)], ids=str)
def test_empty_inputs_give_empty_outputs(op: str, dtype: Any, shape: tuple[int, ...]) -> None:
    tensors = inputs(op, shape, dtype)
    got = call(op, *tensors)
    assert (got.shape, got.dtype) == (shape, dtype)
    out = np.empty(shape, dtype)
    assert call(op, *tensors, out=out) is out


def test_strides_of_empty_arrays_do_not_matter() -> None:
    x = np.zeros((4, 16), np.float32)
    for view in (x[:0, ::2], x[::-1, :0], x.T[:0], x[4:, 8:]):
        assert warpline.softmax(view).shape == view.shape


def test_add_of_scalars_gives_a_scalar() -> None:
    got = warpline.add(np.array(1.5, np.float32), np.array(2, np.float32))
    assert (got.shape, got) == ((), 3.5)


# Layouts of inputs.


@every_op
def test_inputs_may_be_read_only(op: str) -> None:
    tensors = inputs(op, (5, 33))
    for tensor in tensors:
        tensor.flags.writeable = False
    got = call(op, *tensors)
    assert_close(got, reference(op, *tensors))
    assert got.flags.writeable


@every_op
def test_inputs_are_not_modified(op: str) -> None:
    tensors = inputs(op, (5, 33))
    originals = [t.copy() for t in tensors]
    call(op, *tensors)
    for tensor, original in zip(tensors, originals):
        np.testing.assert_array_equal(tensor, original)


@every_row_op
@pytest.mark.parametrize("cut", [np.s_[:, :8], np.s_[:, 5:13], np.s_[::2], np.s_[1::3, 1:]], ids=str)
def test_rows_may_be_strided(op: str, cut: Any) -> None:
    x = random((7, 33))[cut]
    got = call(op, x)
    assert_close(got, reference(op, x))
    assert got.flags.c_contiguous


def test_leading_dimensions_may_be_strided_and_transposed() -> None:
    x = random((3, 4, 16))
    for view in (x[:, :, :7], x[:, ::2], x.transpose(1, 0, 2), x.transpose(1, 0, 2)[:, :, :7], x[:, None]):
        assert_close(warpline.softmax(view), reference("softmax", view))


def test_one_column_may_have_any_stride() -> None:
    x = random((5, 4))[:, 1:2]
    assert_close(warpline.softmax(x), reference("softmax", x))


@every_op
@pytest.mark.parametrize("offset", [1, 2, 4, 8])
def test_arrays_may_be_unaligned(op: str, offset: int) -> None:
    unaligned = []
    for tensor in inputs(op, (5, 36)):
        buffer = np.zeros(tensor.nbytes + offset, np.uint8)
        view = buffer[offset:].view(np.float32).reshape(tensor.shape)
        view[...] = tensor
        unaligned.append(view)
    assert_close(call(op, *unaligned), reference(op, *unaligned))


def test_add_accepts_any_common_memory_order() -> None:
    a, b = (np.asfortranarray(t) for t in inputs("add", (5, 7)))
    got = warpline.add(a, b)
    assert_close(got, reference("add", a, b))
    assert got.strides == a.strides
    out = np.empty((5, 7), np.float32, order="F")
    assert warpline.add(a, b, out=out) is out
    np.testing.assert_array_equal(out, got)


def test_array_subclasses_give_plain_arrays() -> None:
    class Subclass(np.ndarray):
        pass

    x = random((5, 7))
    assert type(warpline.softmax(x.view(Subclass))) is np.ndarray


def test_memory_mapped_arrays_are_accepted(tmp_path: Any) -> None:
    x = random((5, 7))
    x.tofile(tmp_path / "x")
    mapped = np.memmap(tmp_path / "x", np.float32, "r", shape=(5, 7))
    assert_close(warpline.softmax(mapped), reference("softmax", x))


# Outputs.


@every_op
def test_out_is_written_and_returned(op: str) -> None:
    tensors = inputs(op, (5, 33))
    out = np.full((5, 33), 7, np.float32)
    assert call(op, *tensors, out=out) is out
    np.testing.assert_array_equal(out, call(op, *tensors))


@every_row_op
def test_rows_of_out_may_be_strided_and_gaps_are_not_written(op: str) -> None:
    tensors = inputs(op, (5, 33))
    buffer = np.full((10, 40), 7, np.float32)
    out = buffer[::2, 3:36]
    assert call(op, *tensors, out=out) is out
    np.testing.assert_array_equal(out, call(op, *tensors))
    out[...] = 7
    assert (buffer == 7).all()


def test_out_may_start_right_after_an_input() -> None:
    buffer = random((6, 8))
    out = warpline.softmax(buffer[:3], out=buffer[3:])
    np.testing.assert_array_equal(out, warpline.softmax(buffer[:3]))


# Arrays of other libraries, through DLPack.


class Foreign:
    """An array with only DLPack's protocol."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


@every_op
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_arrays_of_other_libraries_are_read_through_dlpack(op: str, dtype: Any) -> None:
    tensors = inputs(op, (5, 33), dtype)
    got = call(op, *map(Foreign, tensors))
    np.testing.assert_array_equal(got, call(op, *tensors))


def test_dlpack_keeps_layouts() -> None:
    x = random((5, 33))
    np.testing.assert_array_equal(warpline.softmax(Foreign(x[:, :8])), warpline.softmax(x[:, :8]))
    np.testing.assert_array_equal(warpline.softmax(Foreign(x.T)), warpline.softmax(x.T.copy()))


def test_overlap_of_out_with_a_dlpack_input_is_detected() -> None:
    x = random((5, 33))
    with pytest.raises(warpline.InputError, match="y shares memory with x"):
        warpline.softmax(Foreign(x), out=x)
    out = np.empty_like(x)
    assert warpline.softmax(Foreign(x), out=out) is out


def test_dlpack_failures_are_rejected() -> None:
    x = random((5, 33), DTYPES["bf16"])
    message = "^softmax: x, of type Foreign, cannot be read through DLPack: "
    with pytest.raises(warpline.InputError, match=message) as caught:
        warpline.softmax(Foreign(x))
    assert caught.value.code == "bad-type"
