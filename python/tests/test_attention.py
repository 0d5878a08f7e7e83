"""Attention on NumPy arrays: values, masks, heads, layouts, special values, bad input."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from conftest import random

import warpline

#: The relative error of the probabilities and of the output, by type.
EPS = {np.float16: 2.0**-11, ml_dtypes.bfloat16: 2.0**-8}


def draw(
    queries: int, keys: int, heads: int = 2, kv_heads: int = 2, dim: int = 64, batch: int = 2, dtype: Any = np.float16
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns Q, K and V."""
    return (
        random((batch, queries, heads, dim), dtype, 1),
        random((batch, keys, kv_heads, dim), dtype, 2),
        random((batch, keys, kv_heads, dim), dtype, 3),
    )


def reference(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    causal: bool = False,
    window: tuple[int, int] = (-1, -1),
    scale: float | None = None,
    softcap: float | None = None,
    sink: np.ndarray | None = None,
    bias: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns O in float64, the same sum with the absolute values of V, and the logarithms."""
    q, k, v = (x.astype(np.float64).swapaxes(1, 2) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // max(k.shape[1], 1), axis=1) for x in (k, v))
    scores = q @ k.swapaxes(2, 3) * (q.shape[3] ** -0.5 if scale is None else scale)
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias.astype(np.float64)
    queries, keys = scores.shape[2:]
    # The distance of a key from the diagonal of its query.
    distance = np.arange(keys) - np.arange(queries)[:, None] - (keys - queries)
    left, right = window
    right = 0 if causal else right
    visible = np.ones((queries, keys), bool)
    visible &= (distance >= -left) if left >= 0 else True
    visible &= (distance <= right) if right >= 0 else True
    scores = np.where(visible, scores, -np.inf)
    if sink is not None:
        sinks = np.broadcast_to(sink.astype(np.float64)[:, None, None], (*scores.shape[:3], 1))
        scores = np.concatenate([scores, sinks], 3)
    largest = scores.max(axis=3, keepdims=True, initial=-np.inf)
    largest = np.where(np.isneginf(largest), 0, largest)
    exp = np.exp(scores - largest)
    total = exp.sum(axis=3, keepdims=True)
    p = (exp / np.where(total == 0, 1, total))[..., :keys]
    with np.errstate(divide="ignore"):
        lse = (largest + np.log(total))[..., 0]
    return (p @ v).swapaxes(1, 2), (p @ np.abs(v)).swapaxes(1, 2), lse


def check(q: np.ndarray, k: np.ndarray, v: np.ndarray, **options: Any) -> None:
    """Asserts that a call is within the rounding of P and O, and that four times the bound would fail."""
    o, lse = warpline.attention(q, k, v, **options, return_lse=True)
    expected, scale, logarithms = reference(q, k, v, **options)
    assert (lse.dtype, lse.shape) == (np.float32, logarithms.shape)
    assert np.allclose(lse, logarithms, rtol=1e-5, atol=1e-5)
    assert (o.dtype, o.shape) == (q.dtype, expected.shape)
    bound = 2 * EPS[q.dtype.type] * scale + 1e-6
    assert (np.abs(o.astype(np.float64) - expected) <= bound).all()
    worse = (expected + 4 * bound).astype(q.dtype).astype(np.float64)
    assert (np.abs(worse - expected) > bound).all()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("dim", [64, 128])
def test_values(dim: int, dtype: Any, causal: bool) -> None:
    check(*draw(70, 140, dim=dim, dtype=dtype), causal=causal)


@pytest.mark.parametrize("dim", [8, 40, 72, 96, 192, 256])
def test_row_lengths(dim: int) -> None:
    q, k, v = draw(70, 140, dim=dim, batch=1)
    check(q, k, v, causal=True)
    check(q, k, v[..., : dim // 16 * 8 or 8])
    check(*draw(3, 5, dim=dim)[:2], draw(3, 5, dim=128)[2])


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (1, 300), (200, 1), (65, 129), (300, 100)])
def test_lengths(queries: int, keys: int) -> None:
    for causal in (False, True):
        check(*draw(queries, keys, batch=1), causal=causal)


@pytest.mark.parametrize(("heads", "kv_heads"), [(6, 2), (4, 1), (5, 5)])
def test_heads_share_keys(heads: int, kv_heads: int) -> None:
    check(*draw(33, 40, heads, kv_heads), causal=True)


def test_scale() -> None:
    q, k, v = draw(20, 30)
    check(q, k, v, scale=0.5)
    assert np.array_equal(warpline.attention(q, k, v, scale=0.125), warpline.attention(q, k, v))


@pytest.mark.parametrize("window", [(0, 0), (70, 3), (-1, 2), (40, -1), (1000, 1000), (-1, -1)])
def test_windows(window: tuple[int, int]) -> None:
    check(*draw(130, 200, heads=1, kv_heads=1, batch=1), window=window)
    check(*draw(130, 70, heads=1, kv_heads=1, batch=1), window=window, causal=True)


@pytest.mark.parametrize("softcap", [0.3, 50])
def test_softcap(softcap: float) -> None:
    q, k, v = draw(70, 140, batch=1)
    check(q * np.float16(4), k, v, softcap=softcap, causal=True)


def test_logarithms_do_not_change_the_output() -> None:
    q, k, v = draw(70, 140)
    o, _ = warpline.attention(q, k, v, causal=True, return_lse=True)
    assert np.array_equal(o, warpline.attention(q, k, v, causal=True))


def test_no_softcap() -> None:
    q, k, v = draw(20, 30)
    assert np.array_equal(warpline.attention(q, k, v, softcap=0.0), warpline.attention(q, k, v))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_sink(dtype: Any) -> None:
    sink = np.array([-1, 3], dtype)
    check(*draw(70, 140), sink=sink)
    # Some queries see the sink only.
    check(*draw(70, 30), sink=sink, causal=True)
    q, k, v = draw(20, 0)
    o, lse = warpline.attention(q, k, v, sink=sink, return_lse=True)
    assert not o.any()
    assert (lse == sink[:, None].astype(np.float32)).all()


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((2, 2, 35, 141), ml_dtypes.bfloat16),
        ((1, 2, 1, 141), np.float16),
        ((35, 1), np.float32),
        ((141,), np.float16),
        ((2, 1, 35, 1), ml_dtypes.bfloat16),
        ((), np.float32),
    ],
)
def test_bias(shape: tuple[int, ...], dtype: Any) -> None:
    q, k, v = draw(35, 141)
    check(q, k, v, bias=random(shape, dtype, 4), softcap=2, window=(50, 20), sink=np.ones(2, np.float32))


def test_views_of_a_bias() -> None:
    q, k, v = draw(70, 140)
    bias = random((2, 70, 2, 300), np.float32, 4)
    for view in (bias[:, :, :, :140], bias[:, :, :, 1:141], bias[..., 1:281:2], bias[..., 139::-1]):
        view = view.swapaxes(1, 2)
        expected = warpline.attention(q, k, v, bias=np.ascontiguousarray(view))
        assert np.array_equal(warpline.attention(q, k, v, bias=view), expected)


def test_a_bias_of_minus_infinity_masks() -> None:
    q, k, v = draw(70, 140)
    hidden = random((70, 140), np.float32, 5) > 0
    hidden[3] = True
    bias = np.where(hidden, -np.inf, 0).astype(np.float32)
    check(q, k, v, bias=bias)
    assert not warpline.attention(q, k, v, bias=bias)[:, 3].any()


@pytest.mark.parametrize("window", [(-1, 0), (90, 20)])
def test_batch_invariant_bits_do_not_depend_on_other_queries(window: tuple[int, int]) -> None:
    q, k, v = draw(200, 400, heads=1, kv_heads=1)
    whole = warpline.attention(q, k, v, window=window, batch_invariant=True)
    for queries in (1, 65, 130):
        last = warpline.attention(q[:1, -queries:], k[:1], v[:1], window=window, batch_invariant=True)
        assert np.array_equal(last, whole[:1, -queries:])


def test_rows_without_a_visible_key_are_zero() -> None:
    q, k, v = draw(50, 20)
    assert not warpline.attention(q, k, v, causal=True)[:, :30].any()
    assert not warpline.attention(q, k[:, :0], v[:, :0]).any()


def test_empty_tensors() -> None:
    q, k, v = draw(5, 7)
    assert warpline.attention(q[:0], k[:0], v[:0]).shape == (0, 5, 2, 64)
    assert warpline.attention(q[:, :0], k, v).shape == (2, 0, 2, 64)
    assert warpline.attention(q[:, :, :0], k[:, :, :0], v[:, :, :0]).shape == (2, 5, 0, 64)


def test_nan_and_infinity_stay_in_their_rows() -> None:
    q, k, v = draw(40, 50, heads=1, kv_heads=1, batch=1)
    q[0, 3, 0, 5], q[0, 7, 0, 0] = np.nan, np.inf
    o = warpline.attention(q, k, v)[0, :, 0]
    # ∞ times keys of both signs is a row of ∞ and -∞, whose softmax is NaN.
    is_nan = np.isnan(o.astype(np.float32))
    assert is_nan[[3, 7]].all() and is_nan.sum() == 2 * 64
    v[0, 49, 0, 1] = np.inf
    assert np.isinf(warpline.attention(q[:, :3], k, v)[0, :, 0, 1].astype(np.float32)).all()


def test_scores_of_minus_infinity_count_as_masked() -> None:
    q, k, v = (np.ones((1, 4, 1, 64), np.float16) for _ in range(3))
    k[0, 1:] = -np.inf
    v[0, 1:] = 7
    assert (warpline.attention(q, k, v) == 1).all()
    k[0] = -np.inf
    assert not warpline.attention(q, k, v).any()


def test_large_scores_do_not_overflow() -> None:
    q, k, v = draw(30, 40)
    check(q * np.float16(12), k * np.float16(12), v)


def test_heads_may_come_before_rows() -> None:
    q, k, v = draw(33, 40)
    moved = [np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2) for x in (q, k, v)]
    assert np.array_equal(warpline.attention(*moved), warpline.attention(q, k, v))


def test_keys_of_one_head_may_be_expanded() -> None:
    q, k, v = draw(33, 40, 4, 1)
    expanded = [np.broadcast_to(x, (2, 40, 4, 64)) for x in (k, v)]
    expected = warpline.attention(q, k, v)
    assert np.array_equal(warpline.attention(q, *expanded), expected)
    assert np.array_equal(warpline.attention(q, k.repeat(4, axis=2), expanded[1]), expected)


def check_sequences(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    sequences: list[tuple[Any, Any]],
    options: dict[str, Any],
    lens: dict[str, np.ndarray],
) -> None:
    """Compares each sequence with the reference. A sequence is the index of its rows in Q, and in K and V."""
    o, lse = warpline.attention(q, k, v, **options, **lens, return_lse=True)
    assert o.shape == (*q.shape[:-1], v.shape[-1])
    is_packed = q.ndim == 3
    for rows, keys in sequences:
        expected, scale, logarithms = reference(q[rows][None], k[keys][None], v[keys][None], **options)
        found = (lse.swapaxes(0, 1)[rows] if is_packed else lse[rows].swapaxes(0, 1)).swapaxes(0, 1)
        assert np.allclose(found, logarithms[0], rtol=1e-5, atol=1e-5)
        bound = 2 * EPS[q.dtype.type] * scale[0] + 1e-6
        assert (np.abs(o[rows].astype(np.float64) - expected[0]) <= bound).all()


def ends(*lengths: int) -> np.ndarray:
    """Returns where packed sequences end."""
    return np.cumsum([0, *lengths]).astype(np.int32)


def parts(cu: np.ndarray) -> list[slice]:
    """Returns the rows of packed sequences."""
    return [slice(a, b) for a, b in zip(cu, cu[1:])]


OPTIONS: list[dict[str, Any]] = [{}, {"causal": True}, {"window": (20, 5)}, {"causal": True, "sink": np.ones(4, np.float32)}]


@pytest.mark.parametrize("options", OPTIONS)
def test_packed_sequences(options: dict[str, Any]) -> None:
    cu_q, cu_k = ends(70, 0, 1, 129, 30), ends(100, 20, 0, 129, 7)
    q, k, v = (random((n, heads, 64), np.float16, i) for i, (n, heads) in enumerate([(230, 4), (256, 2), (256, 2)]))
    lens = {"cu_seqlens_q": cu_q, "cu_seqlens_k": cu_k}
    check_sequences(q, k, v, list(zip(parts(cu_q), parts(cu_k))), options, lens)


def test_nan_stays_in_its_sequence() -> None:
    cu = ends(70, 60, 50)
    q, k, v = (random((180, 2, 64), np.float16, i) for i in range(3))
    q[70:130], k[70:130], v[70:130] = np.nan, np.nan, np.nan
    o = warpline.attention(q, k, v, cu_seqlens_q=cu, cu_seqlens_k=cu)
    is_nan = np.isnan(o.astype(np.float32))
    assert is_nan[70:130].all() and not is_nan[:70].any() and not is_nan[130:].any()


def test_rows_may_be_outside_of_sequences() -> None:
    cu = np.array([10, 30, 45], np.int32)
    q, k, v = (random((60, 2, 64), np.float16, i) for i in range(3))
    lens = {"cu_seqlens_q": cu, "cu_seqlens_k": cu}
    check_sequences(q, k, v, [(rows, rows) for rows in parts(cu)], {"causal": True}, lens)


@pytest.mark.parametrize(("queries", "options"), [(1, OPTIONS[1]), (3, OPTIONS[3]), (40, OPTIONS[2]), (40, {})])
def test_lengths_of_keys(queries: int, options: dict[str, Any]) -> None:
    lens = np.array([0, 1, 77, 300], np.int32)
    q, k, v = draw(queries, 300, 4, 2, batch=4)
    # What is behind the last key does not matter.
    for b, n in enumerate(lens):
        k[b, n:], v[b, n:] = np.nan, np.inf
    sequences = [(b, (b, slice(n))) for b, n in enumerate(lens)]
    check_sequences(q, k, v, sequences, options, {"key_lens": lens})


@pytest.mark.parametrize(("page", "options"), list(zip([8, 24, 16, 128], OPTIONS)))
def test_pages(page: int, options: dict[str, Any]) -> None:
    lens, columns = np.array([90, 0, 33, 128], np.int32), -(-128 // page)
    table = np.random.default_rng(0).permutation(4 * columns).reshape(4, columns).astype(np.int32)
    cache = [random((4 * columns, page, 2, 64), np.float16, i) for i in (1, 2)]
    keys = [x[table].reshape(4, columns * page, 2, 64) for x in cache]
    for b, n in enumerate(lens):
        # Behind the last key there may be anything, also no page.
        rows = np.arange(n, columns * page)
        for x, value in zip(cache, (np.inf, np.nan)):
            x[table[b, rows // page], rows % page] = value
        table[b, -(-int(n) // page) :] = -1
    for queries in (2, 50):
        q = random((4, queries, 4, 64), np.float16, 0)
        o, lse = warpline.attention(q, *cache, **options, key_lens=lens, block_table=table, return_lse=True)
        expected = warpline.attention(q, *keys, **options, key_lens=lens, return_lse=True)
        assert np.array_equal(lse, expected[1]) and np.array_equal(o, expected[0])
    packed, cu_q = random((30, 4, 64), np.float16, 0), ends(10, 1, 0, 19)
    o = warpline.attention(packed, *cache, **options, cu_seqlens_q=cu_q, cu_seqlens_k=ends(*lens), block_table=table)
    for b, rows in enumerate(parts(cu_q)):
        expected, scale, _ = reference(packed[None, rows], *(x[b : b + 1, : lens[b]] for x in keys), **options)
        assert (np.abs(o[rows] - expected[0]) <= 2 * EPS[np.float16] * scale[0] + 1e-6).all()


def test_batch_invariant_bits_of_sequences() -> None:
    lens, (q, k, v) = np.array([200, 700], np.int32), draw(3, 700, 4, 2, batch=2)
    options: dict[str, Any] = {"batch_invariant": True, "causal": True}
    whole = warpline.attention(q, k, v, key_lens=lens, **options)
    for b in range(2):
        alone = warpline.attention(*(x[b : b + 1] for x in (q, k, v)), key_lens=lens[b : b + 1], **options)
        assert np.array_equal(alone, whole[b : b + 1])
    packed = q.reshape(6, 4, 64)
    assert np.array_equal(
        warpline.attention(packed[3:], k[1:], v[1:], cu_seqlens_q=ends(3), key_lens=lens[1:], **options), whole[1]
    )


def test_bad_sequences() -> None:
    q, k, v = (random((10, 2, 64), np.float16, i) for i in range(3))
    cu = ends(4, 6)
    both = {"cu_seqlens_q": cu, "cu_seqlens_k": cu}
    assert "q must have 3 dimensions [T, H, D] with cu_seqlens_q, not 4" in rejected(q[None], k, v, **both)
    assert "k must have 4 dimensions [B, S, H, D], not 3" in rejected(q, k, v, cu_seqlens_q=cu)
    assert "cu_seqlens_q must be int32, not i64" in rejected(q, k, v, cu_seqlens_q=cu.astype(np.int64), cu_seqlens_k=cu)
    assert "cu_seqlens_q must be [B + 1], not the shape [0]" in rejected(q, k, v, cu_seqlens_q=cu[:0], cu_seqlens_k=cu)
    assert "cu_seqlens_q has 2 batches, but cu_seqlens_k has 1" in rejected(q, k, v, cu_seqlens_q=cu, cu_seqlens_k=cu[:2])
    falling = np.array([0, 7, 4, 10], np.int32)
    assert "cu_seqlens_k must ascend, but element 2 is 4 after 7" in rejected(
        q, k, v, cu_seqlens_q=ends(1, 2, 3), cu_seqlens_k=falling
    )
    assert "cu_seqlens_q goes from 0 to 11, but the tensor has 10 rows" in rejected(
        q, k, v, cu_seqlens_q=ends(4, 7), cu_seqlens_k=cu
    )
    assert "bias does not go with cu_seqlens" in rejected(q, k, v, **both, bias=np.ones((10, 10), np.float16))
    assert "both tell the number of keys" in rejected(q, k, v, **both, key_lens=np.ones(2, np.int32))
    q, k, v = draw(3, 32, batch=2)
    lens, table = np.array([5, 32], np.int32), np.array([[0, 1], [1, 0]], np.int32)
    assert "batch 1 has 33 keys; there can be 0 to 32" in rejected(q, k, v, key_lens=lens + np.array([0, 1], np.int32))
    assert "q has 2 batches, but key_lens has 1" in rejected(q, k, v, key_lens=lens[:1])
    assert "block_table needs key_lens" in rejected(q, k, v, block_table=table)
    assert "block_table[1, 0] is 2, but there are 2 pages" in rejected(
        q, k, v, block_table=table + np.array([[0], [1]], np.int32), key_lens=lens
    )
    assert "block_table must be [B, N], not the shape [2]" in rejected(q, k, v, block_table=lens, key_lens=lens)
    assert "block_table must have a column" in rejected(q, k, v, block_table=table[:, :0], key_lens=lens * 0)
    assert "a page must have a multiple of 8 keys, not 12" in rejected(
        q, k[:, :12], v[:, :12], block_table=table, key_lens=lens
    )


def rejected(*args: Any, **options: Any) -> str:
    """Returns the message of a rejected call."""
    with pytest.raises(warpline.Error) as caught:
        warpline.attention(*args, **options)
    return str(caught.value)


def test_bad_input() -> None:
    q, k, v = draw(5, 7, 4, 2)
    assert "heads of q must be a multiple of those of k" in rejected(q[:, :, :3], k, v)
    assert "k must be [2, Sk, Hk, 64]" in rejected(q, k[:1], v[:1])
    assert "k must be [2, Sk, Hk, 64]" in rejected(q, k[..., :32], v)
    assert "v must be like k, [2, 7, 2, 64], up to the last dimension" in rejected(q, k, v[:, :6])
    assert "q must have 4 dimensions [B, S, H, D], not 3" in rejected(q[0], k, v)
    assert "k must be f16 like q, not bf16" in rejected(q, k.astype(ml_dtypes.bfloat16), v)
    assert "q must be f16 or bf16, not i32" in rejected(*(x.astype(np.int32) for x in (q, k, v)))
    assert "scale must be a number" in rejected(q, k, v, scale="0.5")
    huge = warpline.attention(q, k, v, window=(2**40, 2**62))
    assert np.array_equal(huge, warpline.attention(q, k, v))
    assert "o must be" in rejected(q, k, v, out=q[0].copy())
    assert "q must have 4 dimensions [B, S, H, D], not 2" in rejected(q[0, 0], k, v, return_lse=True)
    assert "window must be two integers, not 5" in rejected(q, k, v, window=5)
    assert "window must be (left, right) with whole numbers, or -1" in rejected(q, k, v, window=(-2, 0))
    assert "softcap must be positive and finite, or 0 for no limit, not -1" in rejected(q, k, v, softcap=-1)
    assert "sink must have one element for each of the 4 heads of q" in rejected(q, k, v, sink=np.ones(2, np.float32))
    assert "sink must be f32, f16 or bf16, not i32" in rejected(q, k, v, sink=np.ones(4, np.int32))
    assert "bias must broadcast to [B, H, Sq, Sk] = [2, 4, 5, 7]" in rejected(q, k, v, bias=np.ones((7, 5), np.float32))
    assert "bias must be f32, f16 or bf16, not i32" in rejected(q, k, v, bias=np.ones((5, 7), np.int32))
    assert "out must have one tensor per output (o, lse)" in rejected(q, k, v, return_lse=True, out=q.copy())
    assert "scale must be a number, not NaN" in rejected(q, k, v, scale=float("nan"))


def test_unsupported_input() -> None:
    q, k, v = draw(5, 7)
    for dim in (12, 264):
        assert f"rows of q must have a multiple of 8 elements up to 256, not {dim}" in rejected(*draw(5, 7, dim=dim))
    assert "rows of v must have a multiple of 8 elements up to 256, not 4" in rejected(q, k, v[..., :4])
    assert "q must be f16 or bf16, not f32" in rejected(*(x.astype(np.float32) for x in (q, k, v)))
    assert "softcap must be from 1e-4 to 1e4, not 100000" in rejected(q, k, v, softcap=1e5)
    assert "scale must be positive and finite, not -1" in rejected(q, k, v, scale=-1)
