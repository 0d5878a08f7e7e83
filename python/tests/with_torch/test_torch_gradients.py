"""Gradients of the ops: on a GPU if available, else on the CPU executor.

Needs no pytest, as a GPU host may have none: ``python3 -m unittest discover FOLDER``.
"""

import os
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
HALVES = (torch.float16, torch.bfloat16)
EPS = {torch.float64: 1e-12, torch.float32: 1e-6, torch.float16: 2e-3, torch.bfloat16: 16e-3}
ACTIVATIONS = {
    "none": lambda x: x,
    "relu": F.relu,
    "gelu-erf": F.gelu,
    "gelu-tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
}
LEVELS, STARTS = [3, 4, 2, 2], [0, 12]

#: Lets torch's ops run float64.
lenient = mock.patch.dict(os.environ, WARPLINE_STRICT="0")


def ignore_fallback(test):
    """Ignores the warning that torch's ops run, until the test ends."""
    filters = warnings.catch_warnings()
    filters.__enter__()
    test.addCleanup(filters.__exit__, None, None, None)
    warnings.simplefilter("ignore", warpline.FallbackWarning)


def draw(*shape, dtype=torch.float32, seed=None):
    generator = torch.Generator().manual_seed(len(shape) if seed is None else seed)
    return torch.randn(shape, generator=generator).to(DEVICE, dtype)


def sampled(value, locations, weights, levels=LEVELS, border=0):
    """Computes deformable attention with grid_sample."""
    batch, _, heads, channels = value.shape
    queries, points = locations.shape[1], locations.shape[4]
    found, start = [], 0
    for i, (h, w) in enumerate(zip(levels[::2], levels[1::2])):
        stored = value[:, start : start + (h + 2 * border) * (w + 2 * border)]
        start += stored.shape[1]
        image = stored.reshape(batch, h + 2 * border, w + 2 * border, heads, channels)
        image = image[:, border : border + h, border : border + w]
        image = image.permute(0, 3, 4, 1, 2).reshape(batch * heads, channels, h, w)
        grid = (2 * locations[:, :, :, i] - 1).transpose(1, 2).reshape(batch * heads, queries, points, 2)
        found.append(F.grid_sample(image, grid, align_corners=False))
    shares = weights.transpose(1, 2).reshape(batch * heads, 1, queries, len(found), points)
    out = (torch.stack(found, 3) * shares).sum((3, 4))
    return out.reshape(batch, heads * channels, queries).transpose(1, 2)


def attend(value, locations, weights):
    return warpline.ms_deform_attn(value, LEVELS, STARTS, locations, weights)


def attend_tensors(value, locations, weights):
    shapes, starts = torch.tensor(LEVELS, device=DEVICE).view(2, 2), torch.tensor(STARTS, device=DEVICE)
    return warpline.ms_deform_attn(value, shapes, starts, locations, weights)


def points(dtype, border=0, batch=2):
    """Returns values, locations and weights, away from the edges of pixels."""
    pixels = (3 + 2 * border) * (4 + 2 * border) + (2 + 2 * border) ** 2
    value = draw(batch, pixels, 2, 8, dtype=dtype)
    locations = (draw(batch, 3, 2, 2, 4, 2).sigmoid() * 1.2 - 0.1) * 8
    locations = ((locations.floor() + 0.3) / 8).to(dtype)
    return value, locations, draw(batch, 3, 2, 2, 4, dtype=dtype)


#: torch's gather adds gradients in any order on a GPU.
NONDETERMINISM = 1e-12 if GPU else 0.0


class Test(unittest.TestCase):
    """Compares gradients with those of a reference in float64."""

    def check(self, ours, reference, tensors, names=None, places=1.0):
        """Compares the gradients of all tensors, then of each alone."""
        for needed in [range(len(tensors)), *([i] for i in range(len(tensors)))]:
            given = [t.clone().requires_grad_(i in needed) for i, t in enumerate(tensors)]
            exact = [t.double().requires_grad_(i in needed) for i, t in enumerate(tensors)]
            y, expected = ours(*given), reference(*exact)
            self.assertEqual(y.shape, expected.shape)
            upstream = draw(*y.shape, seed=99).to(y.dtype)
            y.backward(upstream)
            expected.backward(upstream.double())
            for i, (g, e) in enumerate(zip(given, exact)):
                if i not in needed:
                    self.assertIsNone(g.grad)
                    continue
                self.assertEqual((g.grad.dtype, g.grad.shape), (g.dtype, g.shape))
                eps = max(EPS[g.dtype], EPS[y.dtype])
                allowed = 8 * places * eps * max(1.0, e.grad.abs().max().item())
                self.assertLessEqual((g.grad.double() - e.grad).abs().max().item(), allowed, i)


class Rows(Test):
    """Row-wise ops."""

    def test_softmax_and_add(self):
        for dtype in (torch.float32, *HALVES):
            x = draw(3, 17, dtype=dtype)
            self.check(warpline.softmax, lambda x: torch.softmax(x, -1), [x])
            self.check(lambda x: warpline.softmax(x, 0), lambda x: torch.softmax(x, 0), [x])
            self.check(warpline.add, torch.add, [x, draw(3, 17, dtype=dtype, seed=5)])

    def test_norms(self):
        for dtype in (torch.float32, *HALVES):
            x, w, b = draw(2, 3, 17, dtype=dtype), draw(17, dtype=dtype), draw(17, dtype=dtype, seed=7)
            shape = (17,)
            self.check(warpline.layer_norm, lambda x, w, b: F.layer_norm(x, shape, w, b), [x, w, b])
            self.check(warpline.layer_norm, lambda x: F.layer_norm(x, shape), [x])
            self.check(warpline.layer_norm, lambda x, w: F.layer_norm(x, shape, w), [x, w])
            self.check(warpline.rms_norm, lambda x, w: F.rms_norm(x, shape, w, 1e-6), [x, w])
            self.check(warpline.rms_norm, lambda x: F.rms_norm(x, shape, eps=1e-6), [x])
            self.check(lambda x: warpline.rms_norm(x, eps=0.5), lambda x: F.rms_norm(x, shape, eps=0.5), [x])

    def test_vectors_of_another_type(self):
        x, w, b = draw(4, 17, dtype=torch.bfloat16), draw(17), draw(17, seed=7)
        self.check(warpline.layer_norm, lambda x, w, b: F.layer_norm(x, (17,), w, b), [x, w, b])

    def test_layouts(self):
        x = draw(17, 3)
        self.check(lambda x: warpline.softmax(x.T), lambda x: torch.softmax(x.T, -1), [x])
        self.check(lambda x: warpline.softmax(x[:, :1].expand(17, 5)), lambda x: torch.softmax(x[:, :1].expand(17, 5), -1), [x])


class Gemms(Test):
    """GEMMs."""

    def test_matmul(self):
        for dtype in HALVES:
            a, b = draw(5, 16, dtype=dtype), draw(16, 8, dtype=dtype, seed=3)
            self.check(warpline.matmul, torch.matmul, [a, b])
            self.check(lambda a, w: warpline.matmul(a, w.T), lambda a, w: a @ w.T, [a, b.T.contiguous()])
            self.check(lambda a, b: warpline.matmul(a, b, out_dtype="f32"), torch.matmul, [a, b])
            batch = [draw(2, 5, 16, dtype=dtype), draw(2, 16, 8, dtype=dtype, seed=3)]
            self.check(warpline.matmul, torch.matmul, batch)
            self.check(warpline.matmul, torch.matmul, [batch[0], b])

    def test_scales(self):
        a, b, one = draw(5, 16, dtype=torch.float16), draw(16, 8, dtype=torch.float16), torch.ones(1, device=DEVICE)
        reference = lambda a, b, s, t: (a @ b) * s * t
        self.check(warpline.matmul, reference, [a, b, one / 2, one * 3])
        fp8 = [draw(5, 16).to(torch.float8_e4m3fn), draw(16, 16).to(torch.float8_e4m3fn).T]
        scale = one.clone().requires_grad_()
        y = warpline.matmul(*fp8, scale, one, out_dtype="f32")
        y.sum().backward()
        torch.testing.assert_close(scale.grad, (fp8[0].float() @ fp8[1].float()).sum()[None])

    def test_linear(self):
        # Takes about 1 s.
        for dtype in HALVES:
            x, w, b = draw(2, 5, 16, dtype=dtype), draw(8, 16, dtype=dtype) / 4, draw(8, dtype=dtype)
            residual = draw(2, 5, 8, dtype=dtype, seed=11)
            for name, activation in ACTIVATIONS.items():
                if name == "relu":
                    # Away from the kink, which rounding crosses.
                    x, b = x.abs(), b.abs() + 1
                    w = w.abs()
                with self.subTest(activation=name, dtype=dtype):
                    self.check(
                        lambda x, w, b, r: warpline.linear(x, w, b, name, r),
                        lambda x, w, b, r: activation(F.linear(x, w, b)) + r,
                        [x, w, b, residual],
                    )
            self.check(warpline.linear, F.linear, [x, w])

    def test_gated(self):
        # Takes about 2 s.
        for dtype in HALVES:
            x, gate, up = draw(5, 16, dtype=dtype), draw(8, 16, dtype=dtype) / 4, draw(8, 16, dtype=dtype, seed=9) / 4
            for name, activation in ACTIVATIONS.items():
                reference = lambda x, g, u: activation(x @ g.T) * (x @ u.T)
                if name == "relu":
                    reference = lambda x, g, u: F.relu(x @ g.abs().T) * (x @ u.T)
                    self.check(lambda x, g, u: warpline.dual_gemm(x, g.abs(), u, name), reference, [x.abs(), gate, up])
                    continue
                with self.subTest(gate=name, dtype=dtype):
                    self.check(lambda x, g, u: warpline.dual_gemm(x, g, u, name), reference, [x, gate, up])
            reference = lambda x, g, u: F.silu(x @ g.T) * (x @ u.T)
            self.check(warpline.swiglu, reference, [x, gate, up])
            for weights in ("concatenated", "interleaved"):
                packed = warpline.pack_weights(gate, up, weights)
                self.check(
                    lambda x, w: warpline.dual_gemm(x, w, weights=weights),
                    lambda x, w: reference(x, *warpline.unpack_weights(w, weights)),
                    [x, packed],
                )

    def test_nvfp4(self):
        x, gate, up = draw(3, 32, dtype=torch.bfloat16), *(warpline.nvfp4_quantize(draw(16, 32, seed=s) / 4, scale_layout="plain") for s in (1, 2))
        one = torch.ones(1, device=DEVICE)
        g, u = (warpline.nvfp4_dequantize(*q).double() for q in (gate, up))
        reference = lambda x, s, t: F.silu(x @ g.T * s) * (x @ u.T * t)
        weights = (gate.codes, gate.scales, up.codes, up.scales)
        self.check(
            lambda x, s, t: warpline.nvfp4_dual_gemm(x, *weights, scale_gate=s, scale_up=t),
            reference,
            [x, one * 0.5, one * 2],
        )
        packed = torch.cat([gate.codes, up.codes]), torch.cat([gate.scales, up.scales])
        self.check(lambda x: warpline.nvfp4_dual_gemm(x, *packed), lambda x: reference(x, 1, 1), [x])
        codes = warpline.nvfp4_quantize(x, scale_layout="plain")
        scale = one.clone().requires_grad_()
        y = warpline.nvfp4_dual_gemm(codes.codes, *weights, codes.scales, scale_x=scale, scale_gate=one, scale_up=one)
        y.float().sum().backward()
        self.assertGreater(scale.grad.abs().item(), 0)

    def test_nvfp4_linear(self):
        x, bias = draw(3, 32, dtype=torch.bfloat16), draw(16, dtype=torch.bfloat16, seed=3)
        weight, scale = warpline.nvfp4_quantize(draw(16, 32, seed=1)), torch.full((1,), 0.5, device=DEVICE)
        exact = warpline.nvfp4_dequantize(*weight).double()
        self.check(
            lambda x, s, b: warpline.nvfp4_linear(x, weight.codes, weight.scales, s, b),
            lambda x, s, b: x @ exact.T * s + b,
            [x, scale, bias],
        )

    def test_block_scales_have_no_gradient(self):
        x, w = draw(3, 32, dtype=torch.bfloat16), warpline.nvfp4_quantize(draw(16, 32))
        scales = w.scales.clone().requires_grad_()
        with self.assertRaisesRegex(warpline.InputError, "gate_scales requires grad, but block scales have no") as caught:
            warpline.nvfp4_dual_gemm(x, w.codes, scales)
        self.assertEqual(caught.exception.code, "no-grad")


class Attention(Test):
    """attention."""

    def test_queries_keys_and_values(self):
        for dtype in HALVES:
            q, k, v = draw(2, 5, 4, 64, dtype=dtype), *(draw(2, 7, 2, 64, dtype=dtype, seed=s) for s in (2, 3))
            self.check(warpline.attention, lambda q, k, v: attended(q, k, v), [q, k, v])
            self.check(
                lambda q, k, v: warpline.attention(q, k, v, causal=True, scale=0.2),
                lambda q, k, v: attended(q, k, v, scale=0.2, visible=torch.ones(5, 7, device=DEVICE).tril(2)),
                [q, k, v],
            )

    def test_rows_without_a_visible_key(self):
        q, k, v = (draw(1, n, 1, 64, dtype=torch.bfloat16, seed=n).requires_grad_() for n in (5, 3, 3))
        grads = torch.autograd.grad(warpline.attention(q, k, v, causal=True).float().square().sum(), (q, k, v))
        self.assertFalse(grads[0][:, :2].any())
        self.assertTrue(all(g.isfinite().all() for g in grads))


def attended(q, k, v, scale=0.125, visible=None):
    """Attention by its definition."""
    q, k, v = q.transpose(1, 2), *(x.transpose(1, 2).repeat_interleave(2, 1) for x in (k, v))
    scores = q @ k.mT * scale
    scores = scores if visible is None else scores.masked_fill(visible == 0, -torch.inf)
    return (scores.softmax(-1) @ v).transpose(1, 2)


class Deformable(Test):
    """ms_deform_attn."""

    def test_values_locations_and_weights(self):
        for dtype in (torch.float32, *HALVES):
            for ours in (attend, attend_tensors):
                with self.subTest(dtype=dtype, op=ours.__name__):
                    # The location of a point is scaled by the width of its level.
                    self.check(ours, sampled, points(dtype), places=4)

    def test_levels_with_borders(self):
        value, locations, weights = points(torch.float32, border=1)
        inside = torch.zeros(value.shape[1], device=DEVICE)
        inside[:30].view(5, 6)[1:-1, 1:-1] = 1
        inside[30:].view(4, 4)[1:-1, 1:-1] = 1
        self.check(
            lambda v, l, w: warpline.ms_deform_attn(v, LEVELS, [0, 30], l, w),
            lambda v, l, w: sampled(v, l, w, border=1),
            [value * inside[:, None, None], locations, weights],
            places=4,
        )

    def test_drop_ins(self):
        value, locations, weights = (t.requires_grad_() for t in points(torch.float32))
        shapes, starts = torch.tensor(LEVELS, device=DEVICE).view(2, 2), torch.tensor(STARTS, device=DEVICE)
        y = warpline.MultiScaleDeformableAttnFunction.apply(value, shapes, starts, locations, weights, 64)
        expected = torch.autograd.grad(attend(value, locations, weights).sum(), (value, locations, weights))
        for ours, theirs in zip(torch.autograd.grad(y.sum(), (value, locations, weights)), expected):
            torch.testing.assert_close(ours, theirs)
        module = warpline.MultiScaleDeformableAttention().train()
        y = module(value, shapes, [(3, 4), (2, 2)], starts, locations, weights.half().float(), 64)
        self.assertTrue(all(g.abs().sum() > 0 for g in torch.autograd.grad(y.sum(), (value, locations, weights))))


class Float64(unittest.TestCase):
    """torch.autograd.gradcheck, which needs float64: torch's ops run both passes."""

    def setUp(self):
        lenient.start()
        self.addCleanup(lenient.stop)
        ignore_fallback(self)

    def test_gradcheck(self):
        # Takes about 2 s.
        def leaf(*shape, seed=None):
            return draw(*shape, dtype=torch.float64, seed=seed).requires_grad_()

        x, w, b = leaf(2, 6), leaf(6), leaf(6, seed=3)
        cases = [
            (warpline.softmax, (x,)),
            (warpline.layer_norm, (x, w, b)),
            (warpline.rms_norm, (x, w)),
            (warpline.matmul, (x, leaf(6, 3))),
            (warpline.attention, (leaf(1, 3, 2, 4), leaf(1, 5, 1, 4), leaf(1, 5, 1, 4, seed=3), True)),
            (warpline.linear, (x, leaf(3, 6), leaf(3), "gelu-erf", leaf(2, 3, seed=5))),
            (warpline.swiglu, (x, leaf(3, 6), leaf(3, 6, seed=4))),
            (warpline.dual_gemm, (x, leaf(6, 6), None, "sigmoid")),
            (attend, tuple(t.requires_grad_() for t in points(torch.float64, batch=1))),
        ]
        for op, args in cases:
            with self.subTest(op=op.__name__):
                self.assertTrue(torch.autograd.gradcheck(op, args, fast_mode=True, nondet_tol=NONDETERMINISM))
                self.assertTrue(torch.autograd.gradgradcheck(op, args, fast_mode=True, nondet_tol=NONDETERMINISM))


class Modes(unittest.TestCase):
    """Graphs, grad modes, torch.compile."""

    def test_one_tensor_twice(self):
        x = draw(4, 8).requires_grad_()
        warpline.add(x, x).sum().backward()
        self.assertTrue((x.grad == 2).all())
        w = draw(8, 8, dtype=torch.float16).requires_grad_()
        y = warpline.linear(w, w, residual=w)
        (ours,) = torch.autograd.grad(y.float().sum(), w)
        (theirs,) = torch.autograd.grad((w @ w.T + w).float().sum(), w)
        torch.testing.assert_close(ours, theirs, atol=2e-2, rtol=1e-2)

    def test_second_derivatives(self):
        x = draw(4, 8).requires_grad_()
        found = []
        for softmax in (warpline.softmax, lambda x: torch.softmax(x, -1)):
            (first,) = torch.autograd.grad((softmax(x) ** 2).sum(), x, create_graph=True)
            found.append(torch.autograd.grad((first**2).sum(), x)[0])
        torch.testing.assert_close(*found)

    def test_a_tensor_that_was_written_is_detected(self):
        x = draw(4, 8).requires_grad_()
        h = x * 1
        y = warpline.softmax(h)
        h.add_(1)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            y.sum().backward()

    def test_out_rejects_gradients(self):
        x, y = draw(4, 8), torch.empty(4, 8, device=DEVICE)
        for given, out in ((x.clone().requires_grad_(), y), (x, y.clone().requires_grad_())):
            with self.assertRaisesRegex(warpline.InputError, "softmax: out= has no gradient") as caught:
                warpline.softmax(given, out=out)
            self.assertEqual(caught.exception.code, "no-grad")
        with torch.no_grad():
            warpline.softmax(x.requires_grad_(), out=y)
        torch.testing.assert_close(y, torch.softmax(x, -1))

    def test_the_forward_pass_is_the_kernel(self):
        x, w = draw(4, 16, dtype=torch.bfloat16), draw(8, 16, dtype=torch.bfloat16)
        for op, args in ((warpline.softmax, (x,)), (warpline.linear, (x, w, None, "silu"))):
            expected = op(*args)
            self.assertTrue(torch.equal(op(x.clone().requires_grad_(), *args[1:]), expected))

    def test_a_module_trains_and_evaluates(self):
        class Block(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.norm, self.bias = torch.nn.Parameter(torch.ones(16)), torch.nn.Parameter(torch.zeros(8))
                self.weight = torch.nn.Parameter(draw(8, 16).cpu() / 4)

            def forward(self, x):
                h = warpline.rms_norm(x, self.norm)
                return warpline.softmax(warpline.linear(h, self.weight, self.bias, "silu"))

        model = Block().to(DEVICE, torch.bfloat16)
        x = draw(4, 16, dtype=torch.bfloat16)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        losses = []
        for _ in range(4):
            loss = -model(x)[:, 0].float().log().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        self.assertEqual(losses, sorted(losses, reverse=True))
        self.assertTrue(model.eval()(x).requires_grad)

    def test_compiled(self):
        # Takes about 8 s.
        torch._dynamo.reset()
        x, w, b = draw(4, 16), draw(16), draw(16, seed=4)
        a, weight = draw(4, 16, dtype=torch.bfloat16), draw(8, 16, dtype=torch.bfloat16)

        def block(x, w, b):
            return (warpline.softmax(warpline.layer_norm(x, w, b)) * x).sum()

        def layer(x, weight):
            return warpline.linear(x, weight, activation="gelu-tanh").float().square().sum()

        for function, args in (
            (block, (x, w, b)),
            (layer, (a, weight)),
            (lambda *t: attend(*t).square().sum(), points(torch.float32)),
            (lambda *t: attend_tensors(*t).square().sum(), points(torch.float32)),
        ):
            given = [t.clone().requires_grad_() for t in args]
            expected = torch.autograd.grad(function(*given), given)
            compiled = torch.compile(function, fullgraph=True, backend="inductor" if GPU else "aot_eager")
            for ours, theirs in zip(torch.autograd.grad(compiled(*given), given), expected):
                torch.testing.assert_close(ours, theirs, atol=1e-2, rtol=2e-2)
            # Only one input needs a gradient.
            some = [given[0], *(t.detach() for t in given[1:])]
            (ours,) = torch.autograd.grad(compiled(*some), given[:1])
            torch.testing.assert_close(ours, expected[0], atol=1e-2, rtol=2e-2)
            with torch.no_grad():
                self.assertFalse(compiled(*given).requires_grad)

    def test_compiled_out_rejects_gradients(self):
        torch._dynamo.reset()
        f = torch.compile(lambda x, y: warpline.softmax(x, out=y), fullgraph=True, backend="aot_eager")
        with self.assertRaisesRegex(Exception, "out= has no gradient"):
            f(draw(4, 8).requires_grad_(), torch.empty(4, 8, device=DEVICE))

    def test_autocast_does_not_apply(self):
        x, w = draw(4, 16, dtype=torch.bfloat16).requires_grad_(), draw(8, 16, dtype=torch.bfloat16)
        with torch.autocast(DEVICE, torch.float16):
            warpline.linear(x, w).float().sum().backward()
        self.assertEqual(x.grad.dtype, torch.bfloat16)

    def test_modes_batched_gradients_and_export(self):
        from torch.fx.experimental.proxy_tensor import make_fx
        from torch.utils.flop_counter import FlopCounterMode

        x = draw(4, 8).requires_grad_()
        with FlopCounterMode(display=False):
            (counted,) = torch.autograd.grad(warpline.softmax(x)[:, 0].sum(), x)
        torch.testing.assert_close(counted, torch.autograd.grad(torch.softmax(x, -1)[:, 0].sum(), x)[0])
        upstream = draw(3, 4, 8)
        ours = torch.autograd.grad(warpline.softmax(x), x, upstream, is_grads_batched=True)
        torch.testing.assert_close(ours, torch.autograd.grad(torch.softmax(x, -1), x, upstream, is_grads_batched=True))
        traced = make_fx(lambda x: warpline.softmax(x) * 2)(x.detach())
        self.assertIn(torch.ops.warpline.softmax.default, [node.target for node in traced.graph.nodes])

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = torch.nn.Parameter(draw(8))

            def forward(self, x):
                return warpline.rms_norm(x, self.weight)

        exported = torch.export.export(Model(), (x.detach(),))
        self.assertIn(torch.ops.warpline.rms_norm.default, [node.target for node in exported.graph.nodes])

    def test_opcheck(self):
        x, w = draw(4, 16).requires_grad_(), draw(16).requires_grad_()
        ops = torch.ops.warpline
        torch.library.opcheck(ops.softmax.default, (x,))
        torch.library.opcheck(ops.layer_norm.default, (x, w))
        a, b = (draw(*shape, dtype=torch.float16).requires_grad_() for shape in ((4, 16), (8, 16)))
        torch.library.opcheck(ops.linear.default, (a, b))


class Transforms(unittest.TestCase):
    """torch.func: torch's ops run instead of the kernels."""

    def setUp(self):
        from warpline import _fallback

        _fallback._warned.clear()

    @mock.patch.dict(os.environ, WARPLINE_STRICT="1")
    def test_strict(self):
        x = draw(4, 8)
        with self.assertRaisesRegex(warpline.InputError, "no kernel supports torch.vmap"):
            torch.vmap(warpline.softmax)(x)
        with self.assertRaisesRegex(warpline.InputError, "no kernel supports the transforms of torch.func"):
            torch.func.grad(lambda x: warpline.softmax(x)[0, 0])(x)

    @lenient
    def test_values(self):
        x = draw(4, 8)
        softmax = lambda x: torch.softmax(x, -1)
        with self.assertWarnsRegex(warpline.FallbackWarning, "no kernel supports torch.vmap"):
            torch.testing.assert_close(torch.vmap(warpline.softmax)(x), softmax(x))
        with self.assertWarnsRegex(warpline.FallbackWarning, "the transforms of torch.func"):
            ours = torch.func.grad(lambda x: warpline.softmax(x)[0, 0])(x)
        torch.testing.assert_close(ours, torch.func.grad(lambda x: softmax(x)[0, 0])(x))
        for transform in (torch.func.jacrev, torch.func.jacfwd, torch.func.hessian):
            torch.testing.assert_close(transform(warpline.softmax)(x[0]), transform(softmax)(x[0]))
        ours = torch.func.jvp(warpline.softmax, (x,), (x,))
        torch.testing.assert_close(ours, torch.func.jvp(softmax, (x,), (x,)))
        value, locations, weights = points(torch.float32)
        ignore_fallback(self)
        for op in (attend, attend_tensors):
            ours = torch.func.grad(lambda v: op(v, locations, weights).sum())(value)
            theirs = torch.func.grad(lambda v: sampled(v, locations, weights).sum())(value)
            torch.testing.assert_close(ours, theirs)

    def test_out_is_rejected(self):
        x, y = draw(4, 8), torch.empty(4, 8, device=DEVICE)
        with lenient, self.assertRaisesRegex(warpline.InputError, "no kernel supports torch.vmap"):
            torch.vmap(lambda x, y: warpline.softmax(x, out=y))(x, y)


if __name__ == "__main__":
    unittest.main()
