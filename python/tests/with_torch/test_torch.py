"""The ops on torch tensors: on a GPU if available, else on the CPU executor.

Needs no pytest, as a GPU host may have none: ``python3 -m unittest discover FOLDER``.
"""

import threading
import unittest

try:
    import torch
except ImportError as missing:
    raise unittest.SkipTest("torch is not installed") from missing

import torch.nn.functional as F
from torch._dynamo.testing import CompileCounterWithBackend

import warpline

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
OPS = torch.ops.warpline


def draw(*shape, dtype=torch.float32):
    return torch.randn(shape, device=DEVICE).to(dtype)


def close(test, ours, reference, like):
    """Asserts that the error against float64 is at most twice that of torch."""
    test.assertEqual(ours.dtype, like.dtype)
    test.assertEqual(ours.shape, like.shape)
    theirs = (like.double() - reference).abs().max().item()
    small = {torch.float32: 1e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}[ours.dtype]
    error = (ours.double() - reference).abs().max().item()
    test.assertLessEqual(error, 2 * theirs + small * max(1.0, reference.abs().max().item()))


def norm_args(cols, dtype):
    return draw(cols, dtype=dtype), draw(cols, dtype=dtype)


class Values(unittest.TestCase):
    """Results compared with torch and float64."""

    SHAPES = [(1, 1), (5, 7), (3, 64), (4, 1000), (2, 3, 1024), (3, 4096)]
    if GPU:
        # Clusters, work queues, and rows that exceed shared memory.
        SHAPES += [(300, 8192), (200, 32768), (50, 131072), (3, 131071), (2, 1 << 20)]

    def test_softmax(self):
        for shape in self.SHAPES:
            for dtype in DTYPES:
                with self.subTest(shape=shape, dtype=dtype):
                    x = draw(*shape, dtype=dtype)
                    close(self, warpline.softmax(x), torch.softmax(x.double(), -1), torch.softmax(x, -1))

    def test_layer_norm(self):
        for shape in self.SHAPES:
            for dtype in DTYPES:
                with self.subTest(shape=shape, dtype=dtype):
                    x, (w, b) = draw(*shape, dtype=dtype), norm_args(shape[-1], dtype)
                    n = shape[-1:]
                    reference = F.layer_norm(x.double(), n, w.double(), b.double())
                    close(self, warpline.layer_norm(x, w, b), reference, F.layer_norm(x, n, w, b))

    def test_norms_without_weights(self):
        x = draw(6, 520)
        close(self, warpline.layer_norm(x), F.layer_norm(x.double(), (520,)), F.layer_norm(x, (520,)))
        reference = F.rms_norm(x.double(), (520,), eps=1e-6)
        close(self, warpline.rms_norm(x), reference, F.rms_norm(x, (520,), eps=1e-6))

    def test_rms_norm(self):
        for shape in self.SHAPES:
            for dtype in DTYPES:
                with self.subTest(shape=shape, dtype=dtype):
                    x, (w, _) = draw(*shape, dtype=dtype), norm_args(shape[-1], dtype)
                    n = shape[-1:]
                    reference = F.rms_norm(x.double(), n, w.double(), 1e-6)
                    close(self, warpline.rms_norm(x, w), reference, F.rms_norm(x, n, w, 1e-6))

    def test_add_gives_the_same_bits_as_torch(self):
        for shape in [(1,), (7,), (3, 5, 1001), (1 << 16,)]:
            for dtype in DTYPES:
                with self.subTest(shape=shape, dtype=dtype):
                    a, b = draw(*shape, dtype=dtype), draw(*shape, dtype=dtype)
                    self.assertTrue(torch.equal(warpline.add(a, b), a + b))

    def test_empty_tensors_give_empty_tensors(self):
        for shape in [(0, 5), (3, 0), (0,)]:
            x = draw(*shape)
            self.assertEqual(warpline.softmax(x).shape, x.shape)
            self.assertEqual(warpline.add(x, x.clone()).shape, x.shape)


class Layouts(unittest.TestCase):
    """Views, strides, addresses."""

    def test_strided_rows(self):
        x = draw(6, 100)
        close(self, warpline.softmax(x[:, :64]), torch.softmax(x[:, :64].double(), -1), torch.softmax(x[:, :64], -1))
        y = torch.full((6, 100), 7.0, device=DEVICE)
        self.assertIs(warpline.softmax(x[:, :64], out=(view := y[:, :64])), view)
        close(self, view, torch.softmax(x[:, :64].double(), -1), torch.softmax(x[:, :64], -1))
        self.assertTrue((y[:, 64:] == 7).all(), "gaps between rows are not written")

    def test_unaligned_addresses(self):
        for dtype in DTYPES:
            flat = draw(1 + 4 * 1024, dtype=dtype)[1:]
            x = flat.view(4, 1024)
            close(self, warpline.softmax(x), torch.softmax(x.double(), -1), torch.softmax(x, -1))
            self.assertTrue(torch.equal(warpline.add(flat, flat.clone()), flat + flat))

    def test_swapped_dimensions_that_input_and_output_share(self):
        x = draw(3, 5, 64).transpose(0, 1)
        y = warpline.softmax(x)
        self.assertEqual(y.stride(), x.stride())
        close(self, y, torch.softmax(x.double(), -1), torch.softmax(x, -1))
        image = draw(2, 8, 5, 6).to(memory_format=torch.channels_last)
        self.assertTrue(torch.equal(warpline.add(image, image.clone()), image + image))

    def test_one_class_serves_many_extents(self):
        x = draw(64, 1024)
        for rows in range(1, 41):
            self.assertTrue(torch.equal(warpline.softmax(x[:rows]), warpline.softmax(x)[:rows]))


class Registered(unittest.TestCase):
    """torch.library.opcheck."""

    def cases(self):
        for dtype in (torch.float32, torch.bfloat16):
            x, (w, b) = draw(4, 1024, dtype=dtype), norm_args(1024, dtype)
            yield OPS.softmax, (x,)
            yield OPS.softmax, (x[:, :512], 1)
            yield OPS.layer_norm, (x,)
            yield OPS.layer_norm, (x, w, b, 1e-3)
            yield OPS.rms_norm, (x, w)
            yield OPS.add, (x, x.clone())
            if GPU:
                yield OPS.softmax, (draw(8, 131072, dtype=dtype),)

    def test_opcheck(self):
        for op, args in self.cases():
            with self.subTest(op=str(op), shape=args[0].shape):
                torch.library.opcheck(op.default, args)

    def test_opcheck_of_given_outputs(self):
        for op, args in self.cases():
            name = op.default.name().removeprefix("warpline::").removesuffix(".default")
            into = getattr(OPS, f"{name}_out").default
            output = into._schema.arguments[-1].name
            with self.subTest(op=name, shape=args[0].shape):
                torch.library.opcheck(into, args, {output: torch.empty_like(args[0])})

    def test_every_op_is_registered_with_torch(self):
        for name in ("add", "softmax", "layer_norm", "rms_norm"):
            self.assertTrue(hasattr(OPS, name))
            self.assertIn("!", str(getattr(OPS, f"{name}_out").default._schema))

    def test_outputs_are_allocated_from_the_declared_dimensions(self):
        from warpline import _declared, _torch

        tensors = tuple(_declared.Param(name, "tensor", "", True, None) for name in ("x", "w"))
        dims = ({"leading": "x"}, {"index": ["w", 0]})
        output = _declared.Output("y", dims, "x", None)
        op = _declared.Op(0, "linear", "", "", "", tensors, (output,), "", "")
        made = dict(_torch._functions(op, _torch._IMPLEMENTED, "fake"))["linear"]
        y = made(draw(2, 3, 4), draw(5, 4))
        self.assertEqual((y.shape, y.dtype, y.device.type), ((2, 3, 5), torch.float32, DEVICE))

    def test_writing_an_output_increments_its_version(self):
        x, y = draw(4, 64), draw(4, 64)
        before = y._version
        warpline.softmax(x, out=y)
        self.assertGreater(y._version, before)


class Compiled(unittest.TestCase):
    """torch.compile."""

    BACKEND = "inductor" if GPU else "aot_eager"

    def setUp(self):
        torch._dynamo.reset()

    def compiled(self, function, **options):
        counter = CompileCounterWithBackend(self.BACKEND)
        return torch.compile(function, fullgraph=True, backend=counter, **options), counter

    def test_tuning_is_rejected(self):
        for option in ({"tune": True}, {"deterministic": False}):
            f, _ = self.compiled(lambda x: warpline.softmax(x, **option))
            with self.assertRaises(Exception) as caught:
                f(draw(4, 64))
            self.assertIn("torch.compile cannot trace", str(caught.exception))

    def test_one_graph(self):
        def block(x, w, b):
            return warpline.add(warpline.softmax(warpline.layer_norm(x, w, b)) * 2, x)

        f, counter = self.compiled(block)
        x, (w, b) = draw(8, 1024), norm_args(1024, torch.float32)
        for _ in range(3):
            torch.testing.assert_close(f(x, w, b), block(x, w, b))
        self.assertEqual(counter.frame_count, 1)

    def test_dynamic_shapes_are_traced_once(self):
        f, counter = self.compiled(lambda x: warpline.rms_norm(x) + 1, dynamic=True)
        for rows in (3, 5, 8, 2, 17):
            for cols in (64, 1000):
                x = draw(rows, cols)
                torch.testing.assert_close(f(x), warpline.rms_norm(x) + 1)
        self.assertEqual(counter.frame_count, 1)

    def test_out_is_written(self):
        def into(x, y):
            warpline.softmax(x, out=y)
            return y + 1

        f, _ = self.compiled(into)
        x, y = draw(8, 256), torch.zeros(8, 256, device=DEVICE)
        torch.testing.assert_close(f(x, y), torch.softmax(x, -1) + 1)
        torch.testing.assert_close(y, torch.softmax(x, -1))



class Modes(unittest.TestCase):
    """Grad modes, transforms, threads, streams, devices."""

    def test_grad_modes(self):
        x = draw(4, 64).requires_grad_()
        self.assertTrue(warpline.softmax(x).requires_grad)
        self.assertFalse(warpline.softmax(x.detach()).requires_grad)
        with torch.no_grad():
            self.assertFalse(warpline.softmax(x).requires_grad)
        with torch.inference_mode():
            self.assertTrue(warpline.softmax(x).is_inference())

    def test_results_under_no_grad_are_constants_of_a_transform(self):
        def weighed(x):
            with torch.no_grad():
                weights = warpline.softmax(x)
            return (weights * x).sum()

        x = draw(4, 64)
        torch.testing.assert_close(torch.func.grad(weighed)(x), torch.softmax(x, -1))

    def test_concurrent_threads(self):
        x, found = draw(4, 777), []
        workers = [threading.Thread(target=lambda: found.append(warpline.softmax(x))) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        for y in found:
            torch.testing.assert_close(y, torch.softmax(x, -1))
        self.assertEqual(len(found), 4)

    @unittest.skipUnless(GPU, "needs a GPU")
    def test_the_current_stream_is_used(self):
        x = draw(64, 131072)
        # Compile first, so that the call below only launches.
        warpline.softmax(x)
        torch.cuda.synchronize()
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(50_000_000)
            x2 = x * 3
            y = warpline.softmax(x2)
        self.assertFalse(stream.query(), "the call does not wait")
        stream.synchronize()
        torch.testing.assert_close(y, torch.softmax(x * 3, -1))

    @unittest.skipUnless(GPU, "needs a GPU")
    def test_concurrent_streams_have_separate_workspaces(self):
        x = draw(2000, 32768, dtype=torch.bfloat16)
        expected = warpline.softmax(x)
        streams = [torch.cuda.Stream() for _ in range(2)]
        torch.cuda.synchronize()
        found = []
        for _ in range(10):
            for stream in streams:
                with torch.cuda.stream(stream):
                    found.append(warpline.softmax(x))
        torch.cuda.synchronize()
        for y in found:
            self.assertTrue(torch.equal(y, expected))

    @unittest.skipUnless(GPU and torch.cuda.device_count() > 1, "needs a second GPU")
    def test_a_second_device(self):
        x = draw(4, 64).to("cuda:1")
        y = warpline.softmax(x)
        self.assertEqual(y.device, x.device)
        torch.testing.assert_close(y, torch.softmax(x, -1))
        with self.assertRaisesRegex(warpline.InputError, "all tensors must be on one device"):
            warpline.add(x, x.to("cuda:0"))


@unittest.skipUnless(GPU, "needs a GPU")
class Direct(unittest.TestCase):
    """Eager calls that skip torch's dispatcher."""

    @staticmethod
    def dispatched(call):
        """Returns whether a call takes the dispatcher: whether the native module leaves it to torch."""
        from warpline import _call

        left = []
        native = _call.torch.direct

        def spy(index, args):
            found = native(index, args)
            left.append(found is None)
            return found

        _call.torch.direct = spy
        try:
            call()
        finally:
            _call.torch.direct = native
        return any(left) or not left

    def test_a_second_call_is_direct_at_any_address(self):
        weight = draw(256, 128, dtype=torch.bfloat16)
        for op, reference in [
            (lambda x: warpline.softmax(x), lambda x: torch.softmax(x, -1)),
            (lambda x: warpline.rms_norm(x), lambda x: F.rms_norm(x, x.shape[-1:], eps=1e-6)),
            (lambda x: warpline.linear(x, weight, activation="relu"), lambda x: F.relu(F.linear(x, weight))),
            (lambda x: warpline.linear(x, weight, out_dtype=torch.float32), lambda x: F.linear(x, weight).float()),
            (lambda x: warpline.matmul(x, weight.t()), lambda x: x @ weight.t()),
            (lambda x: warpline.swiglu(x, weight, weight), lambda x: F.silu(F.linear(x, weight)) * F.linear(x, weight)),
        ]:
            op(draw(64, 128, dtype=torch.bfloat16))
            inputs = [draw(64, 128, dtype=torch.bfloat16) for _ in range(4)]
            found = []
            for x in 2 * inputs:
                self.assertFalse(self.dispatched(lambda: found.append(op(x))))
            self.assertEqual(len({y.data_ptr() for y in found}), 8)
            for x, y in zip(2 * inputs, found):
                torch.testing.assert_close(y, reference(x).to(y.dtype), atol=0.1, rtol=2e-2)

    def test_other_streams_and_captures(self):
        x, w = draw(64, 128, dtype=torch.bfloat16), draw(256, 128, dtype=torch.bfloat16)
        for _ in range(2):
            warpline.linear(x, w)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.assertFalse(self.dispatched(lambda: warpline.linear(x, w)))
            y = warpline.linear(x, w)
        # Later calls patch the cached arguments; the graph keeps its own.
        for _ in range(3):
            warpline.linear(torch.zeros_like(x), torch.zeros_like(w))
        x.copy_(draw(64, 128, dtype=torch.bfloat16))
        graph.replay()
        torch.testing.assert_close(y, F.linear(x, w), atol=0.1, rtol=2e-2)

    def test_threads_share_the_cached_arguments(self):
        weight = draw(256, 128, dtype=torch.bfloat16)
        warpline.linear(draw(64, 128, dtype=torch.bfloat16), weight)
        wrong = []

        def work():
            with torch.cuda.stream(torch.cuda.Stream()):
                for _ in range(200):
                    x = torch.randn(64, 128, device="cuda").bfloat16()
                    y = warpline.linear(x, weight)
                    wrong.append((y.float() - F.linear(x, weight).float()).abs().max() > 0.5)
                torch.cuda.synchronize()

        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(len(wrong), 800)
        self.assertFalse(any(bool(one) for one in wrong))

    def test_what_needs_the_dispatcher_takes_it(self):
        from torch.utils._python_dispatch import TorchDispatchMode

        class Count(TorchDispatchMode):
            seen = 0

            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                self.seen += function is OPS.softmax.default
                return function(*args, **(kwargs or {}))

        x = draw(8, 64)
        warpline.softmax(x)
        self.assertFalse(self.dispatched(lambda: warpline.softmax(x)))
        with Count() as mode:
            self.assertTrue(self.dispatched(lambda: warpline.softmax(x)))
        self.assertEqual(mode.seen, 1)
        with torch.profiler.profile() as profile:
            warpline.softmax(x)
        self.assertIn("warpline::softmax", {event.name for event in profile.events()})
        y = x.clone().requires_grad_()
        self.assertTrue(self.dispatched(lambda: warpline.softmax(y)))
        self.assertTrue(warpline.softmax(y).requires_grad)
        with torch.no_grad():
            self.assertFalse(self.dispatched(lambda: warpline.softmax(y)))
        parameter = torch.nn.Parameter(x.clone())
        with torch.inference_mode():
            self.assertFalse(self.dispatched(lambda: warpline.softmax(parameter)))
            self.assertTrue(warpline.softmax(parameter).is_inference())
        traced = torch.jit.trace(lambda x: warpline.softmax(x), x, check_trace=False)
        self.assertIn("warpline::softmax", str(traced.graph))
        negated = torch.randn(8, 64, device="cuda", dtype=torch.complex64).conj().imag
        for _ in range(2):
            torch.testing.assert_close(warpline.softmax(negated), torch.softmax(negated, -1))

    def test_a_tuned_config_replaces_the_cached_call(self):
        x = draw(64, 1536)
        for _ in range(2):
            warpline.softmax(x)
        warpline.softmax(x, tune=True)
        torch.testing.assert_close(warpline.softmax(x), torch.softmax(x, -1))
        self.assertFalse(self.dispatched(lambda: warpline.softmax(x)))

    def test_f32_operands_need_tf32(self):
        a, b = draw(64, 64), draw(64, 64)
        previous = torch.get_float32_matmul_precision()
        try:
            torch.set_float32_matmul_precision("high")
            for _ in range(2):
                warpline.matmul(a, b)
            self.assertFalse(self.dispatched(lambda: warpline.matmul(a, b)))
            torch.set_float32_matmul_precision("highest")
            self.assertTrue(self.dispatched(lambda: _quiet(lambda: warpline.matmul(a, b))))
        finally:
            torch.set_float32_matmul_precision(previous)


def _quiet(call):
    """Runs a call that no kernel supports; strict mode rejects it."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call()
        except warpline.InputError:
            pass


@unittest.skipUnless(GPU, "needs a GPU")
class Graphs(unittest.TestCase):
    """CUDA graphs."""

    def test_a_capture_replays_on_new_data(self):
        for shape in [(64, 1024), (300, 32768)]:
            x, (w, b) = draw(*shape), norm_args(shape[-1], torch.float32)

            def work(x):
                return warpline.add(warpline.softmax(x), warpline.layer_norm(x, w, b))

            work(x)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                y = work(x)
            for _ in range(3):
                x.copy_(draw(*shape))
                graph.replay()
                torch.testing.assert_close(y, torch.softmax(x, -1) + F.layer_norm(x, shape[-1:], w, b))

    def test_uncompiled_kernels_are_rejected_in_a_capture(self):
        x = draw(3, 12345, dtype=torch.float16)
        graph = torch.cuda.CUDAGraph()
        with self.assertRaisesRegex(warpline.KernelError, "run the op once") as caught:
            with torch.cuda.graph(graph):
                warpline.rms_norm(x)
        self.assertEqual(caught.exception.code, "jit-in-capture")
        # The op works after the failed capture.
        torch.testing.assert_close(warpline.rms_norm(x), F.rms_norm(x, (12345,), eps=1e-6), atol=4e-3, rtol=4e-3)

    def test_tuning_is_rejected_in_a_capture_and_the_winner_is_captured(self):
        x = draw(64, 2048)
        warpline.softmax(x)
        graph = torch.cuda.CUDAGraph()
        with self.assertRaisesRegex(warpline.KernelError, "before the capture") as caught:
            with torch.cuda.graph(graph):
                warpline.softmax(x, tune=True)
        self.assertEqual(caught.exception.code, "tune-in-capture")
        for _ in range(2):
            tuned = warpline.softmax(x, tune=True)
            torch.testing.assert_close(tuned, torch.softmax(x, -1))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = warpline.softmax(x)
        graph.replay()
        torch.testing.assert_close(y, torch.softmax(x, -1))

    def test_compiled_with_graphs(self):
        torch._dynamo.reset()
        f = torch.compile(lambda x: warpline.softmax(x) * 2, mode="reduce-overhead", fullgraph=True)
        x = draw(256, 32768)
        for _ in range(4):
            torch.testing.assert_close(f(x).clone(), torch.softmax(x, -1) * 2)


class BadInput(unittest.TestCase):
    """Bad input."""

    def rejected(self, expected_message, call):
        with self.assertRaises(warpline.InputError) as caught:
            call()
        self.assertEqual(str(caught.exception), expected_message)

    @unittest.skipIf(GPU, "needs CPU tensors")
    def test_tune_is_rejected_on_the_cpu_executor(self):
        expected_message = "softmax: tune=True needs arrays on a GPU; CPU executor time is not GPU time"
        self.rejected(expected_message, lambda: warpline.softmax(draw(4, 64), tune=True))

    def test_deterministic_false_is_accepted(self):
        x = draw(4, 64)
        torch.testing.assert_close(warpline.softmax(x, deterministic=False), torch.softmax(x, -1))

    def test_messages(self):
        x = draw(4, 64)
        self.rejected("softmax: x has the unsupported element type torch.float64", lambda: warpline.softmax(x.double()))
        self.rejected("softmax: x must be f32, f16 or bf16, not i32", lambda: warpline.softmax(x.int()))
        self.rejected("softmax: dim must be the last dimension (-1 or 1), not 2", lambda: warpline.softmax(x, 2))
        self.rejected(
            "layer_norm: weight must be f32 [64] like a row of x, not f32 [63]",
            lambda: warpline.layer_norm(x, draw(63)),
        )
        self.rejected(
            "add: a and b must have the same type and shape, not f32 [4, 64] and bf16 [4, 64]",
            lambda: warpline.add(x, x.bfloat16()),
        )
        self.rejected("softmax: y shares memory with x; an output must not overlap another tensor", lambda: warpline.softmax(x, out=x))
        self.rejected(
            "softmax: y must be f32 [4, 64], not f32 [4, 32]",
            lambda: warpline.softmax(x, out=draw(4, 32)),
        )
        self.rejected("add: b must be a torch tensor like the others, not of type ndarray", lambda: warpline.add(x, x.cpu().numpy()))
        self.rejected(
            "softmax: stream= is not allowed with torch tensors, which use torch's current stream",
            lambda: warpline.softmax(x, stream=0),
        )

    @unittest.skipUnless(GPU, "needs a GPU")
    def test_two_devices_are_rejected(self):
        x = draw(4, 64)
        self.rejected(
            "add: all tensors must be on one device, but a is on cuda:0 and b is on the CPU",
            lambda: warpline.add(x, x.cpu()),
        )
        self.rejected(
            "add: all tensors must be on one device, but a is on the CPU and b is on cuda:0",
            lambda: warpline.add(x.cpu(), x),
        )
        self.rejected(
            "softmax: all tensors must be on one device, but x is on cuda:0 and y is on the CPU",
            lambda: warpline.softmax(x, out=torch.empty(4, 64)),
        )

    def test_long_simulations_are_rejected_unless_simulate(self):
        x = torch.zeros(1 << 15, 1 << 14)
        with self.assertRaises(warpline.InputError) as caught:
            warpline.softmax(x)
        self.assertEqual(caught.exception.code, "too-long")
        y = warpline.softmax(torch.zeros(2, 4), simulate=True)
        self.assertTrue((y == 0.25).all())
        self.assertTrue(warpline.softmax(torch.zeros(2, 4, requires_grad=True), simulate=True).requires_grad)


if __name__ == "__main__":
    unittest.main()
