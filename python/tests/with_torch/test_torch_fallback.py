"""Calls in every layout and floating-point type, compared with torch; the warning; bad input.

On a GPU if available, else on the CPU executor. Needs no pytest, as a GPU host may have none:
``python3 -m unittest discover FOLDER``.
"""

import os
import subprocess
import sys
import unittest
import warnings
from unittest import mock

try:
    import torch
except ImportError as missing:
    raise unittest.SkipTest("torch is not installed") from missing

import torch.nn.functional as F

import warpline

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
EPS = {torch.float64: 1e-14, torch.float32: 1e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}

strict = mock.patch.dict(os.environ, WARPLINE_STRICT="1")


def draw(*shape, dtype=torch.float32, seed=None):
    generator = torch.Generator().manual_seed(len(shape) if seed is None else seed)
    return torch.randn(shape, generator=generator).to(DEVICE, dtype)


def transposed(x):
    return x.mT.contiguous().mT if x.dim() > 1 else gaps(x)


def gaps(x):
    """Returns a copy at an odd offset, with a stride of two elements and an odd pitch."""
    wide = x.new_zeros(*x.shape[:-1], 2 * x.shape[-1] + 1)
    wide[..., 1::2] = x
    return wide[..., 1::2]


def pitched(x):
    """Returns a copy at an odd offset, with contiguous rows and an odd pitch."""
    wide = x.new_zeros(*x.shape[:-1], x.shape[-1] + 3)
    wide[..., 1 : 1 + x.shape[-1]] = x
    return wide[..., 1 : 1 + x.shape[-1]]


def misaligned(x):
    """Returns a dense copy that starts one element after an aligned address."""
    flat = x.new_empty(x.numel() + 1)[1:]
    flat.copy_(x.reshape(-1))
    return flat.view(x.shape)


LAYOUTS = (transposed, gaps, pitched, misaligned)


def attend(value, locations, weights, **options):
    return warpline.ms_deform_attn(value, [(2, 3)], [0], locations, weights, **options)


def attend_tensors(value, locations, weights, **options):
    shapes, starts = torch.tensor([[2, 3]], device=DEVICE), torch.tensor([0], device=DEVICE)
    return warpline.ms_deform_attn(value, shapes, starts, locations, weights, **options)


def sampled(value, locations, weights):
    batch, _, heads, channels = value.shape
    image = value.permute(0, 2, 3, 1).reshape(batch * heads, channels, 2, 3)
    grid = (2 * locations[:, :, :, 0] - 1).transpose(1, 2).flatten(0, 1)
    found = F.grid_sample(image, grid, align_corners=False) * weights[:, :, :, 0].transpose(1, 2).flatten(0, 1)[:, None]
    return found.sum(-1).view(batch, heads * channels, -1).transpose(1, 2)


def gated(x, gate, up):
    return F.silu(x @ gate.T) * (x @ up.T)


def attended(q, k, v, **options):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=True, **options).transpose(1, 2)


def calls(dtype):
    """Yields ops, references and arguments."""
    row = (7,)
    x, w, b = draw(4, 7, dtype=dtype), draw(7, dtype=dtype), draw(7, dtype=dtype, seed=9)
    yield warpline.add, torch.add, [x, draw(4, 7, dtype=dtype, seed=8)]
    yield warpline.softmax, lambda x: torch.softmax(x, -1), [draw(2, 4, 7, dtype=dtype)]
    yield lambda x, **o: warpline.softmax(x, 1, **o), lambda x: torch.softmax(x, 1), [draw(2, 4, 7, dtype=dtype)]
    yield warpline.layer_norm, lambda x, w, b: F.layer_norm(x, row, w, b), [x, w, b]
    yield warpline.rms_norm, lambda x, w: F.rms_norm(x, row, w, 1e-6), [x, w]
    for k, n in ((16, 8), (7, 5)):
        a, weight = draw(6, k, dtype=dtype), draw(n, k, dtype=dtype)
        yield warpline.matmul, torch.matmul, [a, weight.T.contiguous()]
        yield warpline.matmul, torch.matmul, [draw(2, 6, k, dtype=dtype), draw(2, k, n, dtype=dtype, seed=6)]
        activated = lambda x, w, b, r: F.silu(F.linear(x, w, b)) + r
        operands = [a, weight, draw(n, dtype=dtype), draw(6, n, dtype=dtype, seed=5)]
        yield lambda x, w, b, r, **o: warpline.linear(x, w, b, "silu", r, **o), activated, operands
        yield warpline.swiglu, gated, [a, weight / 4, draw(n, k, dtype=dtype, seed=4) / 4]
    for op in (attend, attend_tensors):
        locations, weights = draw(2, 3, 2, 1, 4, 2, dtype=dtype).sigmoid(), draw(2, 3, 2, 1, 4, dtype=dtype)
        yield op, sampled, [draw(2, 6, 2, 8, dtype=dtype), locations, weights]
    for dim in (64, 12):
        q, k, v = draw(2, 5, 4, dim, dtype=dtype), *(draw(2, 7, 2, dim, dtype=dtype, seed=s) for s in (4, 5))
        yield warpline.attention, attended, [q, k, v]
        yield (
            lambda q, k, v, **o: warpline.attention(q, k, v, causal=True, scale=0.2, **o),
            lambda q, k, v: attended(q, k, v, scale=0.2, attn_mask=torch.ones(5, 7, dtype=torch.bool, device=DEVICE).tril(2)),
            [q, k, v],
        )


class Test(unittest.TestCase):
    """Comparison with torch. Torch's ops may run."""

    def setUp(self):
        from warpline import _fallback

        lenient = mock.patch.dict(os.environ, WARPLINE_STRICT="0")
        lenient.start()
        self.addCleanup(lenient.stop)
        _fallback._warned.clear()
        ignored = warnings.catch_warnings()
        ignored.__enter__()
        self.addCleanup(ignored.__exit__, None, None, None)
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", warpline.FallbackWarning)

    def near(self, ours, exact, dtype):
        self.assertEqual((ours.dtype, ours.shape), (dtype, exact.shape))
        if exact.numel():
            allowed = 4 * EPS[dtype] * max(1.0, exact.abs().max().item())
            self.assertLessEqual((ours.double() - exact).abs().max().item(), allowed)

    def rejected(self, message, call, code="bad-problem"):
        with self.assertRaises(warpline.InputError) as caught:
            call()
        self.assertIn(message, str(caught.exception))
        self.assertEqual(caught.exception.code, code)


class Layouts(Test):
    """Each layout in each argument and in the output."""

    def test_arguments(self):
        # Takes about 4 s.
        for dtype in FLOATS:
            for op, reference, args in calls(dtype):
                exact = reference(*(a.double() for a in args))
                self.near(op(*args), exact, dtype)
                for layout in LAYOUTS:
                    with self.subTest(dtype=dtype, layout=layout.__name__, exact=exact.shape):
                        self.near(op(*map(layout, args)), exact, dtype)
                        for i, arg in enumerate(args):
                            self.near(op(*args[:i], layout(arg), *args[i + 1 :]), exact, dtype)

    def test_out(self):
        # Takes about 1 s.
        for dtype in FLOATS:
            for op, reference, args in calls(dtype):
                exact = reference(*(a.double() for a in args))
                for layout in LAYOUTS:
                    with self.subTest(dtype=dtype, layout=layout.__name__, exact=exact.shape):
                        out = layout(torch.full_like(exact, 7, dtype=dtype))
                        strides, before = out.stride(), out._version
                        self.assertIs(op(*args, out=out), out)
                        self.assertEqual(out.stride(), strides)
                        self.assertGreater(out._version, before)
                        self.near(out, exact, dtype)

    def test_results_have_the_strides_of_the_fake_implementation(self):
        for op, _, args in calls(torch.float16):
            for layout in LAYOUTS:
                given = tuple(map(layout, args))
                if op is attend_tensors:
                    continue
                fake = op(*(a.as_strided(a.size(), a.stride(), 0).to("meta") for a in args))
                self.assertEqual(op(*args).stride(), fake.stride())
                with torch._subclasses.FakeTensorMode() as mode:
                    fake = op(*(mode.from_tensor(a) for a in given))
                self.assertEqual(op(*given).stride(), fake.stride())

    def test_expanded(self):
        for dtype in FLOATS:
            x, a = draw(1, 7, dtype=dtype), draw(1, 16, dtype=dtype)
            rows, w = x.expand(4, 7), draw(1, dtype=dtype).expand(7)
            self.near(warpline.add(rows, rows), (rows + rows).double(), dtype)
            self.near(warpline.softmax(rows), torch.softmax(rows.double(), -1), dtype)
            self.near(warpline.softmax(rows.T), torch.softmax(rows.T.double(), -1), dtype)
            self.near(warpline.layer_norm(rows, w, w), F.layer_norm(rows.double(), (7,), w.double(), w.double()), dtype)
            self.near(warpline.rms_norm(rows, w), F.rms_norm(rows.double(), (7,), w.double(), 1e-6), dtype)
            b = draw(16, 1, dtype=dtype).expand(16, 8)
            self.near(warpline.matmul(a.expand(3, 16), b), a.expand(3, 16).double() @ b.double(), dtype)
            self.near(warpline.linear(a.expand(2, 3, 16), b.T, b[0]), F.linear(a.expand(2, 3, 16).double(), b.T.double(), b[0].double()), dtype)
            self.near(warpline.swiglu(a.expand(3, 16), b.T, b.T), gated(a.expand(3, 16).double(), b.T.double(), b.T.double()), dtype)

    def test_empty(self):
        for dtype in FLOATS:
            for shape in ((0, 7), (3, 0), (0,), (2, 0, 7)):
                x = draw(*shape, dtype=dtype)
                for y in (warpline.softmax(x), warpline.softmax(x, 0), warpline.layer_norm(x), warpline.rms_norm(x), warpline.add(x, x)):
                    self.assertEqual((y.shape, y.dtype), (x.shape, dtype))
            for m, n, k in ((0, 8, 16), (3, 0, 16), (3, 8, 0), (0, 0, 0)):
                a, w = draw(m, k, dtype=dtype), draw(n, k, dtype=dtype)
                for layout in (lambda x: x, lambda x: x.T.contiguous().T):
                    self.near(warpline.matmul(layout(a), layout(w).T), (a @ w.T).double(), dtype)
                    self.near(warpline.linear(layout(a), layout(w)), (a @ w.T).double(), dtype)
                    self.near(warpline.swiglu(layout(a), layout(w), layout(w)), gated(a.double(), w.double(), w.double()), dtype)

    def test_vectors_and_broadcast_batches(self):
        for dtype in FLOATS:
            x = draw(7, dtype=dtype)
            self.near(warpline.softmax(x), torch.softmax(x.double(), -1), dtype)
            self.near(warpline.rms_norm(x), F.rms_norm(x.double(), (7,), eps=1e-6), dtype)
            shapes = [((16,), (16, 8)), ((6, 16), (16,)), ((16,), (16,)), ((2, 6, 16), (16,)), ((16,), (2, 16, 8))]
            shapes += [((1, 6, 16), (3, 16, 8)), ((3, 6, 16), (1, 16, 8)), ((6, 16), (3, 16, 8)), ((2, 1, 6, 16), (3, 16, 8))]
            shapes += [((2, 3, 6, 16), (2, 3, 16, 8)), ((2, 3, 6, 16), (16, 8))]
            for a, b in shapes:
                with self.subTest(a=a, b=b, dtype=dtype):
                    a, b = draw(*a, dtype=dtype), draw(*b, dtype=dtype)
                    exact = a.double() @ b.double()
                    self.near(warpline.matmul(a, b), exact, dtype)
                    out = torch.empty_like(exact, dtype=dtype)
                    self.near(warpline.matmul(a, b, out=out), exact, dtype)
                    fake = torch.ops.warpline.matmul(a.to("meta"), b.to("meta"))
                    self.assertEqual((fake.shape, fake.dtype), (exact.shape, dtype))
            square = draw(2, 7, 7, dtype=dtype)
            self.near(warpline.matmul(square, square), square.double() @ square.double(), dtype)
            w = draw(8, 16, dtype=dtype)
            self.near(warpline.linear(draw(16, dtype=dtype), w), draw(16, dtype=dtype).double() @ w.double().T, dtype)

    def test_vectors_of_a_norm_in_another_type(self):
        for dtype in FLOATS:
            for other in FLOATS:
                x, w, b = draw(4, 7, dtype=dtype), draw(7, dtype=other), draw(7, dtype=other, seed=9)
                exact = F.layer_norm(x.double(), (7,), w.double(), b.double())
                self.near(warpline.layer_norm(x, w, b), exact, dtype)
                self.near(warpline.rms_norm(x, w), F.rms_norm(x.double(), (7,), w.double(), 1e-6), dtype)

    def test_packed_weights_and_codes(self):
        x = draw(3, 32, dtype=torch.bfloat16)
        gate, up = (draw(16, 32, dtype=torch.bfloat16, seed=s) / 4 for s in (1, 2))
        for weights in ("concatenated", "interleaved"):
            packed = warpline.pack_weights(gate, up, weights)
            for layout in LAYOUTS:
                y = warpline.dual_gemm(layout(x), layout(packed), weights=weights)
                self.near(y, gated(x.double(), gate.double(), up.double()), torch.bfloat16)
        a, b = (warpline.nvfp4_quantize(w, scale_layout="plain") for w in (gate, up))
        exact = gated(x.double(), *(warpline.nvfp4_dequantize(*q).double() for q in (a, b)))
        args = (x, a.codes, a.scales.view(torch.uint8), b.codes, b.scales.view(torch.uint8))
        for layout in LAYOUTS:
            given = [layout(t) for t in args]
            for i in (2, 4):
                given[i] = given[i].view(torch.float8_e4m3fn)
            self.near(warpline.nvfp4_dual_gemm(*given), exact, torch.bfloat16)
        given[0] = x.float()
        self.near(warpline.nvfp4_dual_gemm(*given), exact, torch.float32)
        exact = x.double() @ warpline.nvfp4_dequantize(*a).double().T
        for layout in LAYOUTS:
            self.near(warpline.nvfp4_linear(layout(x), a.codes, a.scales), exact, torch.bfloat16)
        self.near(warpline.nvfp4_linear(x.float(), a.codes, a.scales), exact, torch.float32)

    def test_fp8(self):
        a, b = draw(6, 16).to(torch.float8_e4m3fn), draw(16, 16).to(torch.float8_e4m3fn)
        exact = a.double() @ b.double()
        # The tensor cores keep 13 bits below the leading bit of the largest product: as f16 outputs.
        for given in (b, b.T.contiguous().T):
            self.near(warpline.matmul(a, given, out_dtype="f16"), exact, torch.float16)
        self.near(warpline.matmul(a[:, :7], b[:7], out_dtype="f16"), a[:, :7].double() @ b[:7].double(), torch.float16)

    def test_copies_need_no_permission(self):
        x = draw(4, 8)
        with strict, warnings.catch_warnings():
            warnings.simplefilter("error")
            self.near(warpline.softmax(x.T), torch.softmax(x.T.double(), -1), torch.float32)
            self.near(warpline.softmax(x, 0), torch.softmax(x.double(), 0), torch.float32)
            self.near(warpline.rms_norm(x[:, ::2]), F.rms_norm(x[:, ::2].double(), (4,), eps=1e-6), torch.float32)

    def test_compiled(self):
        # Takes about 3 s.
        torch._dynamo.reset()
        x, a, b = draw(4, 7), draw(6, 7, dtype=torch.float16), draw(3, 7, 5, dtype=torch.float16)
        for function, args in (
            (lambda x: warpline.softmax(x.T) * 2, (x,)),
            (lambda x: warpline.softmax(x, 0) * 2, (x,)),
            (lambda x: warpline.rms_norm(x.double()) * 2, (x,)),
            (lambda a, b: warpline.matmul(a, b) * 2, (a, b)),
            (lambda a, b: warpline.matmul(a, b[0, :, 0]) * 2, (a, b)),
        ):
            compiled = torch.compile(function, fullgraph=True, backend="inductor" if GPU else "aot_eager")
            torch.testing.assert_close(compiled(*args), function(*args))

    @unittest.skipUnless(GPU, "needs a GPU")
    def test_captured(self):
        x = draw(64, 1024)
        w = draw(1025)[1:]
        work = lambda: warpline.layer_norm(warpline.softmax(x.T, 0).T.contiguous(), w.bfloat16(), w)
        work()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = work()
        x.copy_(draw(64, 1024, seed=77))
        graph.replay()
        torch.testing.assert_close(y, work())


class Warnings(Test):
    """The warning, and WARPLINE_STRICT."""

    def caught(self, *functions):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            for function in functions:
                function()
        return [w for w in found if w.category is warpline.FallbackWarning]

    def test_once_per_op_and_cause(self):
        x = draw(4, 8)
        softmax = lambda: warpline.softmax(x.double())
        (warning,) = self.caught(softmax, softmax, lambda: warpline.softmax(draw(3, 5, dtype=torch.float64)))
        self.assertIn("softmax: x has the unsupported element type torch.float64", str(warning.message))
        self.assertIn("WARPLINE_STRICT=1", str(warning.message))
        self.assertEqual(len(self.caught(softmax, lambda: warpline.rms_norm(x.double()))), 1)
        self.assertEqual(self.caught(lambda: warpline.softmax(x), lambda: warpline.softmax(x.T)), [])

    def test_a_filter_may_raise_it_in_each_call(self):
        x = draw(4, 8, dtype=torch.float64)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in range(2):
                with self.assertRaises(warpline.FallbackWarning):
                    warpline.softmax(x)

    def test_it_points_at_the_caller(self):
        x = draw(4, 8, dtype=torch.float64)
        w = draw(8, dtype=torch.float64).requires_grad_()
        for function in (
            lambda: warpline.softmax(x),
            lambda: torch.ops.warpline.add(x, x),
            lambda: warpline.rms_norm(x, w),
        ):
            (warning,) = self.caught(function)
            self.assertEqual(os.path.realpath(warning.filename), os.path.realpath(__file__))

    def test_strict_raises(self):
        x = draw(4, 8, dtype=torch.float64)
        with strict:
            self.rejected("softmax: x has the unsupported element type torch.float64", lambda: warpline.softmax(x), "unsupported")
            self.rejected("ms_deform_attn: the channels of value must be a multiple of 8", self.four_channels, "unsupported")
            self.assertEqual(self.caught(lambda: warpline.softmax(x.float())), [])

    def four_channels(self):
        value, locations, weights = draw(2, 6, 2, 4), draw(2, 3, 2, 1, 4, 2).sigmoid(), draw(2, 3, 2, 1, 4)
        return attend(value, locations, weights), sampled(value.double(), locations.double(), weights.double())

    def test_extents(self):
        (warning,) = self.caught(self.four_channels)
        self.assertIn("the channels of value must be a multiple of 8", str(warning.message))
        self.near(*self.four_channels(), torch.float32)

    def test_an_unsupported_gpu(self):
        from warpline import _fallback
        from warpline._declared import OPS

        op = next(op for op in OPS if op.name == "softmax")
        x = draw(4, 8)
        y = torch.empty_like(x)
        error = warpline.DeviceError("cuda:0 has compute capability 8.0", "cuda-unsupported-device")

        def run(*_):
            raise error

        (warning,) = self.caught(lambda: _fallback.recover(op, run, (x, -1, False), (y,), error))
        self.assertIn("compute capability 8.0", str(warning.message))
        self.near(y, torch.softmax(x.double(), -1), torch.float32)
        with strict, self.assertRaises(warpline.DeviceError):
            _fallback.recover(op, run, (x, -1, False), (y,), error)
        matmul = next(op for op in OPS if op.name == "matmul")
        batch = (draw(2, 8, 8), draw(1, 8, 8), None, None, None, False)
        for code in ("cuda-device-fault", "not-proved", "jit-in-capture", "too-long"):
            other = warpline.KernelError("no", code)
            for called, args in ((op, (x, -1)), (matmul, batch)):
                with self.assertRaises(warpline.KernelError):
                    _fallback.recover(called, run, args, (y,), other)

    def test_the_variable_is_read_in_a_fresh_process(self):
        # Takes about 3 s: it imports torch twice.
        code = "import torch, warpline\nwarpline.softmax(torch.zeros(2, 4, dtype=torch.float64))"
        for value, expected in (("", "FallbackWarning"), ("1", "unsupported element type")):
            env = {**os.environ, "WARPLINE_STRICT": value}
            done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
            self.assertEqual(done.returncode, int(value or 0), done.stderr)
            self.assertIn(expected, done.stderr)


class BadInput(Test):
    """torch never sees bad input."""

    def test_messages(self):
        for dtype in FLOATS:
            x, a, w = draw(4, 8, dtype=dtype), draw(4, 16, dtype=dtype), draw(8, 16, dtype=dtype)
            name = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}.get(dtype, "float64")
            other = torch.bfloat16 if dtype != torch.bfloat16 else torch.float16
            for turn in (lambda t: t, lambda t: t.mT.contiguous().mT):
                with self.subTest(dtype=dtype):
                    self.rejected("dim must be the last dimension", lambda: warpline.softmax(turn(x), 2))
                    self.rejected("a and b must have the same type and shape", lambda: warpline.add(turn(x), x[:2]))
                    self.rejected(
                        f"y must be {name} [4, 8], not {name} [4, 7]",
                        lambda: warpline.softmax(turn(x), out=torch.empty(4, 7, dtype=dtype, device=DEVICE)),
                    )
                    self.rejected("y must be", lambda: warpline.softmax(turn(x), out=x.to(other)))
                    self.rejected(f"weight must be {name} [8]", lambda: warpline.layer_norm(turn(x), x[0, :7]))
                    self.rejected("bias requires weight", lambda: warpline.layer_norm(turn(x), bias=x[0]))
                    self.rejected("eps is -1.0", lambda: warpline.rms_norm(turn(x), eps=-1))
                    self.rejected("K differs: a has 16, b has 8", lambda: warpline.matmul(turn(a), turn(w)))
                    self.rejected("K differs", lambda: warpline.matmul(turn(a), w[:, 0]))
                    self.rejected("K differs: x has 16, weight has 8", lambda: warpline.linear(turn(a), w.T.contiguous()))
                    self.rejected("bias is", lambda: warpline.linear(turn(a), w, w[0]))
                    self.rejected("residual is", lambda: warpline.linear(turn(a), w, residual=turn(a)))
                    self.rejected("activation is", lambda: warpline.linear(turn(a), w, activation="tanh"))
                    self.rejected("w_up is", lambda: warpline.swiglu(turn(a), w, w[:4]))
                    self.rejected("only some of scale_a, scale_b", lambda: warpline.matmul(turn(a), w.T, torch.ones(1, device=DEVICE)))
                    self.rejected("", lambda: warpline.matmul(turn(a), w.T.to(other)))

    def test_integers_and_complex_numbers(self):
        for dtype in (torch.int32, torch.int64, torch.uint8):
            x = torch.ones(8, 8, dtype=dtype, device=DEVICE)
            self.rejected("must be f32, f16 or bf16", lambda: warpline.softmax(x))
            self.rejected("must be bf16, f16, e4m3, e5m2 or f32", lambda: warpline.matmul(x, x))
            self.rejected("must be f32", lambda: warpline.layer_norm(draw(8, 8), x[0]))
        for dtype in (torch.bool, torch.int8, torch.int16, torch.complex64):
            x = torch.ones(8, 8, dtype=dtype, device=DEVICE)
            for call in (lambda: warpline.softmax(x), lambda: warpline.matmul(x, x), lambda: warpline.rms_norm(draw(8, 8), x[0])):
                self.rejected("unsupported element type", call)
            self.rejected("unsupported element type", lambda: warpline.add(draw(8, 8, dtype=torch.float64), x))

    def test_batches(self):
        a, b = draw(2, 6, 16, dtype=torch.float16), draw(3, 16, 8, dtype=torch.float16)
        self.rejected("the batches [2] and [3] cannot be broadcast", lambda: warpline.matmul(a, b))
        self.rejected("K differs: a has 16, b has 6", lambda: warpline.matmul(a, a))
        self.rejected("no dimensions", lambda: warpline.matmul(a[0, 0, 0], b[0]))
        self.rejected("no dimensions", lambda: warpline.matmul(a[0], b[0, 0, 0]))
        self.rejected("c must", lambda: warpline.matmul(a, b[0, :, 0], out=a.new_empty(2, 5)))

    def test_overlap(self):
        for dtype in FLOATS:
            x = draw(8, 8, dtype=dtype)
            for given, out in ((x, x), (x.T, x), (x[:4], x[3:7]), (x.T[:4], x.T[3:7])):
                self.rejected("softmax: y shares memory with x", lambda: warpline.softmax(given, out=out))

    @unittest.skipUnless(GPU, "needs a GPU")
    def test_devices(self):
        for dtype in FLOATS:
            x = draw(4, 8, dtype=dtype)
            self.rejected("all tensors must be on one device", lambda: warpline.add(x, x.cpu()))


if __name__ == "__main__":
    unittest.main()
