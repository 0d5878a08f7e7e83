"""GEMM on torch tensors: on a GPU if available, else on the CPU executor.

Needs no pytest, as a GPU host may have none: ``python3 -m unittest discover FOLDER``.
"""

import unittest

try:
    import torch
except ImportError as missing:
    raise unittest.SkipTest("torch is not installed") from missing

import torch.nn.functional as F

import warpline

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
HALVES = (torch.float16, torch.bfloat16)
FP8 = (torch.float8_e4m3fn, torch.float8_e5m2)
SHAPES = [(1, 8, 8), (3, 40, 0), (127, 136, 72)]
if GPU:
    SHAPES += [(16, 14336, 1000), (1000, 1000, 1000), (4097, 4104, 1032), (2039, 520, 4096)]


def draw(*shape, dtype):
    return torch.randn(shape, device=DEVICE).to(dtype)


def close(test, ours, exact, extra=0.0):
    """Asserts results within one rounding of the output plus the accumulation error."""
    rounding = {torch.float32: 2.0**-23, torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7}[ours.dtype]
    magnitude = max(1.0, exact.abs().max().item()) if exact.numel() else 1.0
    error = (ours.double() - exact).abs().max().item() if exact.numel() else 0.0
    test.assertLessEqual(error, (rounding + 2.0**-16 + extra) * magnitude)


class Gated(unittest.TestCase):
    """Gated GEMM: values, weight layouts, torch.compile, CUDA graphs."""

    def test_values_and_layouts(self):
        for m, n, k in [(1, 8, 8), (127, 136, 72), (20, 264, 128), *SHAPES[3:]]:
            for dtype in HALVES:
                with self.subTest(shape=(m, n, k), dtype=dtype):
                    # The largest products stay below the largest f16.
                    x, gate, up = (draw(r, k, dtype=dtype) / 2 for r in (m, n, n))
                    exact = F.silu(x.double() @ gate.double().T) * (x.double() @ up.double().T)
                    y = warpline.swiglu(x, gate, up)
                    self.assertEqual(y.dtype, dtype)
                    close(self, y, exact)
                    self.assertTrue(torch.equal(warpline.dual_gemm(x, gate, up), y))
                    for weights in ("concatenated", "interleaved"):
                        packed = warpline.pack_weights(gate, up, weights)
                        self.assertTrue(torch.equal(warpline.dual_gemm(x, packed, weights=weights), y))

    def test_compiled_and_captured(self):
        x, gate, up = (draw(r, 64, dtype=torch.bfloat16) for r in (32, 40, 40))
        y = warpline.swiglu(x, gate, up)
        fake = torch.ops.warpline.swiglu(*(t.to("meta") for t in (x, gate, up)))
        self.assertEqual((fake.shape, fake.dtype), (y.shape, y.dtype))
        for weights in ((warpline.pack_weights(gate, up),), (gate, up)):
            fake = torch.ops.warpline.dual_gemm(x.to("meta"), *(w.to("meta") for w in weights))
            self.assertEqual((fake.shape, fake.dtype), (y.shape, y.dtype))
        if not GPU:
            return
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            again = warpline.swiglu(x, gate, up)
        x.copy_(draw(32, 64, dtype=torch.bfloat16))
        graph.replay()
        self.assertTrue(torch.equal(again, warpline.swiglu(x, gate, up)))


class Gemms(unittest.TestCase):
    """Values, layouts, batches."""

    def test_types_and_shapes(self):
        for m, n, k in SHAPES:
            for dtype in HALVES:
                with self.subTest(shape=(m, n, k), dtype=dtype):
                    a, w = draw(m, k, dtype=dtype), draw(n, k, dtype=dtype)
                    exact = a.double() @ w.double().T
                    for out in (None, torch.float32, torch.float16, torch.bfloat16):
                        c = warpline.matmul(a, w.T, out_dtype=out)
                        self.assertEqual(c.dtype, out or dtype)
                        close(self, c, exact)
                    close(self, warpline.matmul(a, w.T.contiguous()), exact)

    def test_fp8(self):
        one = torch.ones(1, device=DEVICE)
        for dtype in FP8:
            a, w = draw(40, 256, dtype=dtype), draw(48, 256, dtype=torch.float8_e4m3fn)
            exact = a.double() @ w.double().T
            c = warpline.matmul(a, w.T)
            self.assertEqual(c.dtype, torch.bfloat16)
            close(self, c, exact, extra=2.0**-9)
            close(self, warpline.matmul(a, w.T, one / 2, one * 4, out_dtype=torch.float32), 2 * exact, extra=2.0**-9)

    def test_linear_with_activation_bias_and_residual(self):
        functions = {
            "none": lambda x: x,
            "relu": F.relu,
            "gelu-erf": F.gelu,
            "gelu-tanh": lambda x: F.gelu(x, approximate="tanh"),
            "silu": F.silu,
        }
        for m in (5, 300) if GPU else (5,):
            x, w = draw(2, m, 72, dtype=torch.bfloat16), draw(136, 72, dtype=torch.bfloat16)
            bias, residual = draw(136, dtype=torch.bfloat16), draw(2, m, 136, dtype=torch.bfloat16)
            for name, function in functions.items():
                exact = function(x.double() @ w.double().T + bias.double())
                close(self, warpline.linear(x, w, bias, name), exact)
                close(self, warpline.linear(x, w, bias, name, residual), exact + residual.double())

    def test_batches_and_strides(self):
        a, b = draw(3, 70, 136, dtype=torch.float16), draw(3, 48, 136, dtype=torch.float16)
        exact = a.double() @ b.double().mT
        close(self, warpline.matmul(a, b.mT), exact)
        close(self, warpline.matmul(a, b.mT.contiguous()), exact)
        close(self, warpline.matmul(a[:, ::2], b[:, :40].mT), exact[:, ::2, :40])
        wide = draw(70, 304, dtype=torch.float16)
        out = torch.full((70, 64), 7.0, device=DEVICE, dtype=torch.float16)
        warpline.matmul(wide[:, :136], b[0].T, out=out[:, :48])
        close(self, out[:, :48], wide[:, :136].double() @ b[0].double().T)
        self.assertTrue((out[:, 48:] == 7).all())

    def test_nan_propagates(self):
        a, w = draw(66, 72, dtype=torch.bfloat16), draw(136, 72, dtype=torch.bfloat16)
        a[3, 5], a[10, 0], a[11, 1], w[7, 3] = float("nan"), float("inf"), float("-inf"), float("inf")
        for activation in ("none", "relu", "silu", "gelu-erf", "gelu-tanh"):
            function = {"none": lambda x: x, "relu": F.relu, "silu": F.silu, "gelu-erf": F.gelu,
                        "gelu-tanh": lambda x: F.gelu(x, approximate="tanh")}[activation]
            exact = function((a.double() @ w.double().T).float())
            ours = warpline.linear(a, w, activation=activation, out_dtype=torch.float32)
            self.assertTrue(torch.equal(ours.isnan(), exact.isnan()), activation)
            self.assertTrue(torch.equal(ours.isinf(), exact.isinf()), activation)
            finite = exact.isfinite()
            close(self, ours[finite], exact[finite].double())

    def test_repeated_calls_give_the_same_bits(self):
        shapes = [(300, 136, 520)] + [(512, 4096, 4096), (16, 4096, 4096)] * GPU
        for m, n, k in shapes:
            a, w = draw(m, k, dtype=torch.bfloat16), draw(n, k, dtype=torch.bfloat16)
            first = warpline.matmul(a, w.T)
            for _ in range(5):
                self.assertTrue(torch.equal(first, warpline.matmul(a, w.T)))

    def test_batch_invariant_rows_do_not_depend_on_the_batch(self):
        n, k = (4096, 4096) if GPU else (136, 520)
        a, w = draw(300, k, dtype=torch.bfloat16), draw(n, k, dtype=torch.bfloat16)
        full_batch = warpline.matmul(a, w.T, batch_invariant=True)
        for m in (1, 16, 33, 128, 257):
            part = warpline.matmul(a[:m], w.T, batch_invariant=True)
            self.assertTrue(torch.equal(part, full_batch[:m]), m)

    @unittest.skipUnless(GPU, "needs a GPU")
    def test_a_capture_replays_on_new_data(self):
        a, w = draw(300, 520, dtype=torch.bfloat16), draw(136, 520, dtype=torch.bfloat16)
        warpline.linear(a, w, activation="silu")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = warpline.linear(a, w, activation="silu")
        a.copy_(draw(300, 520, dtype=torch.bfloat16))
        graph.replay()
        close(self, y, F.silu(a.double() @ w.double().T))

    def test_compiled(self):
        a, w = draw(40, 72, dtype=torch.bfloat16), draw(136, 72, dtype=torch.bfloat16)
        layer = torch.compile(
            lambda x: warpline.linear(x, w, activation="silu", out_dtype=torch.float32) * 2,
            fullgraph=True,
            backend="eager",
        )
        close(self, layer(a), 2 * F.silu(a.double() @ w.double().T))


if __name__ == "__main__":
    unittest.main()
