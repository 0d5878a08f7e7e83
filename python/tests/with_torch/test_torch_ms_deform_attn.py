"""Deformable attention on torch tensors: on a GPU if available, else on the CPU executor.

Needs no pytest, as a GPU host may have none: ``python3 -m unittest discover FOLDER``.
"""

import gc
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
DTYPES = (torch.float16, torch.bfloat16, torch.float32)
OPS = torch.ops.warpline
LEVELS = [(6, 5), (3, 2)]
STARTS = [0, 30]
TOLERANCES = {torch.float32: (2e-5, 18), torch.float16: (2e-3, 10), torch.bfloat16: (4e-3, 7)}


def draw(dtype=torch.float16, batch=2, queries=7, heads=2, channels=16, points=4, levels=LEVELS):
    """Returns values, locations and weights."""
    pixels = sum(h * w for h, w in levels)
    shape = (batch, queries, heads, len(levels), points)
    value = torch.randn(batch, pixels, heads, channels)
    weights = torch.randn(batch, queries, heads, len(levels) * points).softmax(-1).view(shape)
    return tuple(x.to(DEVICE, dtype) for x in (value, torch.rand(*shape, 2) * 1.4 - 0.2, weights))


def sampled(value, locations, weights, levels=LEVELS):
    """Computes the expected result with grid_sample in float64."""
    value, locations, weights = value.double(), locations.double(), weights.double()
    batch, _, heads, channels = value.shape
    queries, points = locations.shape[1], locations.shape[4]
    found, start = [], 0
    for i, (h, w) in enumerate(levels):
        level = value[:, start : start + h * w].permute(0, 2, 3, 1).reshape(batch * heads, channels, h, w)
        grid = (2 * locations[:, :, :, i] - 1).transpose(1, 2).reshape(batch * heads, queries, points, 2)
        found.append(F.grid_sample(level, grid, align_corners=False))
        start += h * w
    counts = weights.transpose(1, 2).reshape(batch * heads, 1, queries, len(levels), points)
    out = (torch.stack(found, 3) * counts).sum((3, 4))
    return out.reshape(batch, heads * channels, queries).transpose(1, 2)


def tensors(levels=LEVELS, starts=STARTS):
    """Returns shapes and start indices as tensors."""
    return torch.tensor(levels, device=DEVICE), torch.tensor(starts, device=DEVICE)


def attend(value, locations, weights, shapes=LEVELS, starts=STARTS, **options):
    return warpline.ms_deform_attn(value, shapes, starts, locations, weights, **options)


class Test(unittest.TestCase):
    """Shared helpers."""

    def near(self, ours, exact):
        absolute, bits = TOLERANCES[ours.dtype]
        self.assertEqual(ours.shape, exact.shape)
        excess = (ours.double() - exact).abs() - absolute - exact.abs() * 0.5**bits
        self.assertLessEqual(excess.max().item(), 0)
        self.assertGreater(exact.abs().max().item(), 0.05)

    def rejected(self, expected_message, call, error=warpline.InputError):
        with self.assertRaises(error) as caught:
            call()
        self.assertIn(expected_message, str(caught.exception))


class Values(Test):
    """Results."""

    def test_types_and_levels(self):
        for dtype in DTYPES:
            given = draw(dtype)
            y = attend(*given)
            self.assertEqual((y.dtype, y.device.type), (dtype, DEVICE))
            self.near(y, sampled(*given))
            self.assertTrue(torch.equal(attend(*given, *tensors()), y))
            self.assertTrue(torch.equal(attend(*given, LEVELS, tensors()[1]), y))
            self.assertTrue(torch.equal(attend(*given, tensors()[0].cpu().int(), STARTS), y))

    @unittest.skipUnless(GPU, "needs a GPU")
    def test_large(self):
        levels = [(100, 167), (50, 84), (25, 42), (13, 21)]
        starts = [0, 16700, 20900, 21950]
        for dtype in DTYPES:
            given = draw(dtype, queries=900, heads=8, channels=32, levels=levels)
            self.near(attend(*given, levels, starts), sampled(*given, levels))

    def test_out_is_written_and_returned(self):
        given = draw()
        for levels in ((LEVELS, STARTS), tensors()):
            y = torch.empty(2, 7, 32, device=DEVICE, dtype=torch.float16)
            before = y._version
            self.assertIs(attend(*given, *levels, out=y), y)
            self.assertGreater(y._version, before)
            self.near(y, sampled(*given))


class Registered(Test):
    """torch.library.opcheck."""

    def cases(self):
        value, locations, weights = draw()
        flat = [side for level in LEVELS for side in level]
        yield "ms_deform_attn", (value, flat, STARTS, locations, weights)
        yield "ms_deform_attn_tensors", (value, *tensors(), locations, weights)

    def test_opcheck(self):
        for name, args in self.cases():
            with self.subTest(op=name):
                torch.library.opcheck(getattr(OPS, name).default, args)
                y = torch.empty(2, 7, 32, device=DEVICE, dtype=torch.float16)
                torch.library.opcheck(getattr(OPS, f"{name}_out").default, args, {"y": y})

    def test_compiler_keeps_ops_that_read_the_gpu_out_of_graphs(self):
        if not hasattr(torch.Tag, "cudagraph_unsafe"):
            self.skipTest("this torch has no such tag")
        self.assertIn(torch.Tag.cudagraph_unsafe, OPS.ms_deform_attn_tensors.default.tags)
        self.assertNotIn(torch.Tag.cudagraph_unsafe, OPS.ms_deform_attn.default.tags)

    def test_output_shape_does_not_depend_on_integer_values(self):
        for name, args in self.cases():
            meta = [x.to("meta") if isinstance(x, torch.Tensor) else x for x in args]
            y = getattr(OPS, name)(*meta)
            self.assertEqual((y.shape, y.dtype), ((2, 7, 32), torch.float16))


class Compiled(Test):
    """torch.compile."""

    def setUp(self):
        torch._dynamo.reset()

    def compiled(self, function, **options):
        counter = CompileCounterWithBackend("inductor" if GPU else "aot_eager")
        return torch.compile(function, fullgraph=True, backend=counter, **options), counter

    def test_lists_and_tensors_give_one_graph(self):
        given = draw()
        expected = attend(*given) * 2
        f, counter = self.compiled(lambda v, l, w: attend(v, l, w) * 2)
        g, _ = self.compiled(lambda v, l, w, s, i: attend(v, l, w, s, i) * 2)
        for _ in range(2):
            torch.testing.assert_close(f(*given), expected)
            torch.testing.assert_close(g(*given, *tensors()), expected)
        self.assertEqual(counter.frame_count, 1)
        # The compiled call reads the tensors when it runs, not when it is traced.
        moved = [(3, 2), (6, 5)]
        torch.testing.assert_close(g(*given, *tensors(moved, [0, 6])), attend(*given, moved, [0, 6]) * 2)

    def test_levels_computed_from_dynamic_shapes(self):
        def level(image, locations, weights):
            b, h, w, c = image.shape
            return attend(image.reshape(b, h * w, 1, c), locations, weights, [(h, w)], [0]) + 1

        f, counter = self.compiled(level, dynamic=True)
        for h, w in ((6, 5), (3, 8), (4, 9)):
            value, locations, weights = draw(levels=[(h, w)], heads=1)
            image = value.reshape(2, h, w, 16)
            torch.testing.assert_close(f(image, locations, weights), level(image, locations, weights))
        self.assertEqual(counter.frame_count, 1)


class Levels(Test):
    """The cache of integer tensors: read once, never stale."""

    def test_writes_by_torch_invalidate_the_cache(self):
        given = draw()
        for levels in (tensors(), [x.cpu() for x in tensors()]):
            shapes, starts = levels
            before = attend(*given, shapes, starts)
            shapes.copy_(shapes.flip(0))
            self.rejected("levels of 3x2,6x5 start at [0, 6]", lambda: attend(*given, shapes, starts))
            starts[1] = 6
            after = attend(*given, shapes, starts)
            self.assertFalse(torch.equal(before, after))
            self.assertTrue(torch.equal(after, attend(*given, [(3, 2), (6, 5)], [0, 6])))

    def test_host_tensors_are_read_in_every_call(self):
        given, shapes = draw(), torch.tensor(LEVELS)
        attend(*given, shapes, STARTS)
        shapes.numpy()[0, 0] = 7
        self.rejected("levels of 7x5,3x2", lambda: attend(*given, shapes, STARTS))

    def test_integers_are_cached_until_the_tensor_is_written_or_deleted(self):
        from warpline._integer_cache import IntegerCache

        cache, tensor = IntegerCache(), torch.tensor([1, 2], device=DEVICE)
        self.assertIsNone(cache.get(tensor))
        self.assertEqual(cache.read(tensor), [1, 2])
        self.assertIs(cache.get(tensor), cache.get(tensor))
        self.assertEqual(cache.get(tensor), [1, 2])
        self.assertIsNone(cache.get(tensor.clone()))
        tensor.view(2, 1)[0, 0] = 5
        self.assertIsNone(cache.get(tensor))
        self.assertEqual((cache.read(tensor), cache.get(tensor), len(cache)), ([5, 2], [5, 2], 1))
        del tensor
        gc.collect()
        self.assertEqual(len(cache), 0)

    def test_inference_tensors_are_not_cached(self):
        from warpline._integer_cache import IntegerCache

        cache = IntegerCache()
        with torch.inference_mode():
            tensor = torch.tensor([1, 2], device=DEVICE)
            self.assertEqual((cache.read(tensor), len(cache)), ([1, 2], 0))
            self.near(attend(*(given := draw()), *tensors()), sampled(*given))

    @unittest.skipUnless(GPU, "needs a GPU")
    def test_cached_levels_do_not_synchronize(self):
        given, levels = draw(), tensors()
        expected = attend(*given, *levels)
        torch.cuda.synchronize()
        torch.cuda._sleep(50_000_000)
        y = attend(*given, *levels)
        self.assertFalse(torch.cuda.current_stream().query(), "the call does not wait")
        self.assertTrue(torch.equal(y, expected))

    @unittest.skipUnless(GPU, "needs a GPU")
    def test_a_capture_uses_cached_integers(self):
        given, levels = draw(), tensors()
        self.near(attend(*given, *levels), sampled(*given))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = attend(*given, *levels)
        given[0].copy_(draw()[0])
        graph.replay()
        self.near(y, sampled(*given))
        unread = tensors()
        with self.assertRaisesRegex(warpline.KernelError, "was not read yet") as caught:
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                attend(*given, *unread)
        self.assertEqual(caught.exception.code, "read-in-capture")


class DropIn(Test):
    """Drop-in replacements."""

    def test_drop_in_for_hugging_face(self):
        # As in transformers.models.deformable_detr.modeling_deformable_detr.
        module = warpline.MultiScaleDeformableAttention()
        self.assertIsInstance(module, torch.nn.Module)
        self.assertEqual((list(module.parameters()), module.state_dict()), ([], {}))
        value, locations, weights = draw()
        shapes, starts = tensors()
        y = module(value, shapes, LEVELS, starts, locations, weights, 64)
        self.near(y, sampled(value, locations, weights))
        self.assertTrue(torch.equal(y, module(
            value=value, value_spatial_shapes=shapes, value_spatial_shapes_list=LEVELS, level_start_index=starts,
            sampling_locations=locations, attention_weights=weights, im2col_step=64,
        )))
        torch._dynamo.reset()
        f = torch.compile(module, fullgraph=True, backend="aot_eager")
        self.assertTrue(torch.equal(f(value, shapes, LEVELS, starts, locations, weights, 64), y))

    def test_drop_in_for_mmcv(self):
        value, locations, weights = draw()
        y = warpline.MultiScaleDeformableAttnFunction.apply(value, *tensors(), locations, weights, 64)
        self.near(y, sampled(value, locations, weights))

    def test_drop_in_makes_tensors_contiguous_and_converts_weights(self):
        value, locations, weights = draw()
        turned = value.transpose(1, 2).contiguous().transpose(1, 2)
        self.assertTrue(torch.equal(attend(turned, locations, weights), attend(value, locations, weights)))
        apply = warpline.MultiScaleDeformableAttnFunction.apply
        y = apply(turned, LEVELS, STARTS, locations.float(), weights, 64)
        self.assertTrue(torch.equal(y, attend(value, locations.float(), weights.float())))


class BadInput(Test):
    """Bad input."""

    def test_messages(self):
        value, locations, weights = given = draw()
        shapes, starts = tensors()
        message = "ms_deform_attn: spatial_shapes must be pairs of integers, not torch."
        self.rejected(message + "float32 [2, 2]", lambda: attend(*given, shapes.float(), starts))
        self.rejected(message + "bool [2, 2]", lambda: attend(*given, shapes > 0, starts))
        self.rejected(message + "int64 [4]", lambda: attend(*given, shapes.flatten(), starts))
        self.rejected(message + "int64 [2, 3]", lambda: attend(*given, F.pad(shapes, (0, 1)), starts))
        self.rejected("level_start_index must be integers, not torch.int64 []", lambda: attend(*given, shapes, starts[0]))
        self.rejected("spatial_shapes must be pairs of integers, not [(6, 5.5)]", lambda: attend(*given, [(6, 5.5)], [0]))
        self.rejected("level_start_index is [0, 31]", lambda: attend(*given, LEVELS, [0, 31]))
        self.rejected("value must be f32, f16 or bf16, not i32", lambda: attend(value.int(), locations, weights))
        self.rejected("value must have 4 dimensions", lambda: attend(value[0], locations, weights))
        self.rejected("sampling_locations must have 6 dimensions", lambda: attend(value, locations[0, 0, 0, 0, 0], weights))
        self.rejected("attention_weights must be f16", lambda: attend(value, locations, weights.float()))
        self.rejected("im2col_step must be at least 1, not 0", lambda: attend(*given, im2col_step=0))
        self.rejected(
            "sampling_locations must be a torch tensor like the others, not of type list",
            lambda: attend(value, [0.5], weights),
        )


if __name__ == "__main__":
    unittest.main()
