"""NVFP4 on torch tensors: on a GPU if available.

Needs no pytest, as a GPU host may have none: ``python3 -m unittest discover FOLDER``.
"""

import unittest

try:
    import torch
except ImportError as missing:
    raise unittest.SkipTest("torch is not installed") from missing

import warpline
from warpline import nvfp4_arrange_scales, nvfp4_dequantize, nvfp4_quantize

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
FP8 = torch.float8_e4m3fn
E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
#: The 127 finite magnitudes.
E4M3 = [(c % 8 + 8 * (c > 7)) * 2.0 ** (max(c // 8, 1) - 10) for c in range(127)]


def draw(*shape, dtype=torch.float32):
    return torch.randn(shape, device=DEVICE).to(dtype)


def nearest(x, values):
    """Returns the nearest code by exhaustive search, ties to even."""
    order = torch.tensor([*range(0, len(values), 2), *range(1, len(values), 2)], device=DEVICE)
    away = (x[..., None] - torch.tensor(values, dtype=torch.float64, device=DEVICE)[order]).abs()
    return order[away.argmin(-1)].to(torch.uint8)


def reference(x, scale):
    """Quantizes element by element: one code per byte, and plain scale bits."""
    blocks = x.float().double().reshape(x.shape[0], -1, 16)
    scales = nearest(blocks.abs().amax(-1) / (6 * scale), E4M3)
    step = torch.tensor(E4M3, dtype=torch.float64, device=DEVICE)[scales.long()][..., None] * scale
    magnitudes = torch.where(step == 0, 0, nearest(blocks.abs() / step, E2M1))
    return (magnitudes + 8 * blocks.signbit()).to(torch.uint8).reshape(x.shape), scales


def unpacked(codes):
    return torch.stack([codes & 15, codes >> 4], -1).reshape(codes.shape[0], -1)


class Bench(unittest.TestCase):
    """Host overhead problems of the suite."""

    def test_scales_of_a_small_problem_fit_its_codes(self):
        from warpline.bench import inputs, peers
        from warpline.bench.suites import Arg, Problem, TensorSpec

        rows = {"x": 256, "w_gate": 4096, "w_up": 4096}
        scales = {"x": "x_scales", "w_gate": "gate_scales", "w_up": "up_scales"}
        op = peers.OPS["nvfp4_dual_gemm"]
        for layout in "plain", "block":
            args = [Arg("scale_layout", value=layout)]
            for name, block in scales.items():
                codes = TensorSpec("u8", (rows[name], 3584))
                args += [Arg(name, codes), Arg(block, TensorSpec("e4m3", (rows[name], 448)))]
            problem = Problem("nvfp4", "nvfp4-dual-gemm", "nvfp4_dual_gemm", {}, 0, 0, tuple(args))
            if not GPU:
                shapes = {a.name: a.tensor.shape for a in op.small(problem).args if a.tensor}
                self.assertEqual(shapes["w_up"], (64, 64))
                self.assertEqual(shapes["up_scales"], (64, 8) if layout == "plain" else (1, 2, 512))
                continue
            drawn = inputs.draw(op.small(problem), 1, op.draw)
            self.assertEqual(warpline.nvfp4_dual_gemm(**drawn).shape, (64, 64))


class Nvfp4(unittest.TestCase):
    """Rounding, values, layouts, bad input."""

    def as_reference(self, x, given=None):
        q = nvfp4_quantize(x, given, "plain")
        self.assertEqual([t.dtype for t in q], [torch.uint8, FP8, torch.float32])
        self.assertTrue(all(t.device == x.device and t.is_contiguous() for t in q))
        self.assertEqual(q.tensor_scale.shape, (1,))
        codes, scales = reference(x, q.tensor_scale.double())
        self.assertTrue(torch.equal(q.scales.view(torch.uint8), scales))
        self.assertTrue(torch.equal(unpacked(q.codes), codes))
        return q

    def test_codes_and_scales_are_the_nearest(self):
        for rows, k in [(1, 16), (7, 48), (129, 80), *([(2000, 4096)] if GPU else [])]:
            for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
                for scale in (None, 0.3, 1e-3, "amax"):
                    with self.subTest(shape=(rows, k), dtype=dtype, scale=scale):
                        x = draw(rows, k, dtype=dtype)
                        x[::3] *= 1e-3
                        x[1::3] *= 1e3
                        x[:, :4] = -0.0
                        self.as_reference(x, scale)

    def test_ties_go_to_even(self):
        for values in (E2M1, E4M3):
            ties = [(low + high) / 2 for low, high in zip(values, values[1:])] + values
            ties = torch.tensor(ties, dtype=torch.float32, device=DEVICE)
            ties = torch.cat([torch.nextafter(ties, ties - 9), ties, torch.nextafter(ties, ties + 9)])
            # With a 6 in the block the scale is 1 and x determines codes; otherwise x determines scales.
            for most, x in ((6.0, ties.clip(-6, 6)), (0.0, 6 * ties)):
                rows = torch.full((len(ties), 16), most, device=DEVICE)
                rows[:, 9] = -x
                self.as_reference(rows)
                for scale in (0.3, 31, 41, 163, 1e6):
                    self.as_reference(rows * scale, scale)
                self.as_reference(rows, 1e6)

    def test_amax_scale_is_rounded_once(self):
        for most in [*draw(200).abs().tolist(), torch.finfo(torch.float32).max]:
            q = nvfp4_quantize(torch.full((2, 16), most, device=DEVICE), "amax", "plain")
            # Rounding the quotient to float64 first does not change its rounding to float32.
            self.assertEqual(q.tensor_scale.item(), torch.tensor(most / 2688).item())
            self.assertTrue((q.scales.view(torch.uint8) == 0x7E).all() and (q.codes == 0x77).all())
        least = torch.finfo(torch.float32).tiny
        for most, scale in ((0.0, 1.0), (6 * least, least)):
            q = nvfp4_quantize(torch.full((2, 16), most, device=DEVICE), "amax")
            self.assertEqual(q.tensor_scale.item(), scale)

    def test_exact_nvfp4_values_are_unchanged(self):
        for rows, k in [(1, 16), (7, 48), (129, 80), (3, 1040)]:
            codes = torch.randint(0, 256, (rows, k // 2), dtype=torch.uint8, device=DEVICE)
            codes[:, ::8] |= 0x07
            scales = torch.randint(1, 0x7F, (rows, k // 16), dtype=torch.uint8, device=DEVICE).view(FP8)
            for scale in (1.0, 0.3, 1e-30, torch.tensor([1e30], device=DEVICE)):
                for layout in ("plain", "block"):
                    arranged = nvfp4_arrange_scales(scales, rows, k) if layout == "block" else scales
                    x = nvfp4_dequantize(codes, arranged, scale, layout)
                    self.assertEqual((x.shape, x.dtype, x.device), ((rows, k), torch.float32, codes.device))
                    q = nvfp4_quantize(x, scale, layout)
                    self.assertTrue(torch.equal(q.codes, codes))
                    self.assertTrue(torch.equal(q.scales.view(torch.uint8), arranged.view(torch.uint8)))

    def test_every_code_and_scale_is_dequantized_exactly(self):
        codes = torch.arange(0x10, 0x100, 0x22, dtype=torch.uint8, device=DEVICE).repeat(256, 1)
        scales = torch.arange(256, dtype=torch.uint8, device=DEVICE).reshape(256, 1)
        e2m1 = torch.tensor([*E2M1, *(-x for x in E2M1)], dtype=torch.float64, device=DEVICE)
        e4m3 = [*E4M3, float("nan"), *(-x for x in E4M3), float("nan")]
        e4m3 = torch.tensor(e4m3, dtype=torch.float64, device=DEVICE)
        expected = (e4m3[:, None] * e2m1 * torch.tensor(0.1).double().item()).float()
        for given in (scales, scales.view(FP8)):
            values = nvfp4_dequantize(codes, given, 0.1)
            self.assertTrue(torch.equal(values.nan_to_num(1e9), expected.nan_to_num(1e9)))
            self.assertTrue(torch.equal(values.signbit()[:127], expected.signbit()[:127]))
            self.assertEqual(int(values.isnan().sum()), 32)

    def test_block_layout_matches_cublas_and_round_trips(self):
        for rows in (0, 1, 7, 127, 128, 129, 300):
            for k in (16, 48, 64, 80, 1040):
                with self.subTest(rows=rows, k=k):
                    plain = torch.arange(rows * k // 16, device=DEVICE) % 251 + 1
                    plain = plain.to(torch.uint8).reshape(rows, k // 16)
                    block = nvfp4_arrange_scales(plain.view(FP8), rows, k)
                    tile_columns = -(-k // 64)
                    self.assertEqual((block.shape, block.dtype), ((-(-rows // 128), tile_columns, 512), FP8))
                    row = torch.arange(rows, device=DEVICE)[:, None]
                    column = torch.arange(k // 16, device=DEVICE)
                    index = (row // 128 * tile_columns + column // 4) * 512
                    index = index + row % 32 * 16 + row % 128 // 32 * 4 + column % 4
                    bits = block.view(torch.uint8)
                    self.assertTrue(torch.equal(bits.reshape(-1)[index], plain))
                    self.assertEqual(int(bits.count_nonzero()), plain.numel())
                    back = nvfp4_arrange_scales(block, rows, k, "plain")
                    self.assertTrue(torch.equal(back.view(torch.uint8), plain) and back.is_contiguous())

    def test_strided_grad_and_empty_tensors_are_supported(self):
        x = draw(64, 6).T
        dense = self.as_reference(x.contiguous(), "amax")
        for tensor in (x, torch.nn.Parameter(x)):
            for a, b in zip(self.as_reference(tensor, "amax"), dense):
                self.assertTrue(torch.equal(a.view(torch.uint8), b.view(torch.uint8)))
                self.assertFalse(a.requires_grad)
        for scale in (None, "amax"):
            q = nvfp4_quantize(x[:0, :32], scale, "block")
            self.assertEqual(([*q.codes.shape], [*q.scales.shape]), ([0, 16], [0, 1, 512]))
            self.assertEqual(q.tensor_scale.item(), 1)
            self.assertEqual(nvfp4_dequantize(*q, "block").shape, (0, 32))

    def test_bad_input_is_rejected(self):
        x = draw(3, 32, dtype=torch.bfloat16)
        q = nvfp4_quantize(x, scale_layout="plain")
        wrong = x.clone()
        wrong[1, 18:] = float("nan")
        scale = "nvfp4: tensor_scale must be one number, finite and positive in float32, not "
        two = torch.ones(2)
        for call, expected_message in [
            (
                lambda: nvfp4_quantize(wrong),
                "nvfp4: values must be finite in float32, not nan at row 1, column 18",
            ),
            (
                lambda: nvfp4_quantize(x.int()),
                "nvfp4: x must have the element type f32 or f16 or bf16 or float64, not i32",
            ),
            (lambda: nvfp4_quantize(x, two), scale + repr(two)),
            (lambda: nvfp4_quantize(x, two[:1] * 0), scale + "tensor([0.])"),
            (
                lambda: nvfp4_dequantize(q.codes, q.scales.to("meta")),
                f"nvfp4: scales must be on the device of codes, torch on {x.device}, not torch on meta",
            ),
            (
                lambda: nvfp4_arrange_scales(q.scales, 4, 32),
                "nvfp4: plain scales of [4, 32] must have shape [4, 2], not [3, 2]",
            ),
        ]:
            with self.assertRaises(warpline.InputError) as caught:
                call()
            self.assertEqual(str(caught.exception), expected_message)


class DualGemm(unittest.TestCase):
    """``nvfp4_dual_gemm`` on quantized tensors."""

    def operands(self, m, n, k, layout):
        x, gate, up = (nvfp4_quantize(draw(rows, k) / 4, scale_layout="plain") for rows in (m, n, n))
        scales = [q.scales for q in (x, gate, up)]
        if layout == "block":
            scales = [nvfp4_arrange_scales(q.scales, q.codes.shape[0], k) for q in (x, gate, up)]
        exact = [nvfp4_dequantize(*q).double() for q in (x, gate, up)]
        return (x, gate, up), scales, exact

    def close(self, y, exact):
        self.assertEqual(y.shape, exact.shape)
        self.assertLess(float((y.double() - exact).abs().max()), 2e-3 * float(exact.abs().max()) + 1e-5)

    def test_values_layouts_and_types(self):
        for m, n, k in [(1, 8, 16), (40, 136, 80), (130, 128, 320)]:
            for layout in ("plain", "block"):
                with self.subTest(shape=(m, n, k), layout=layout):
                    (x, gate, up), (x_scales, gate_scales, up_scales), (a, b, c) = self.operands(m, n, k, layout)
                    exact = torch.nn.functional.silu(a @ b.T) * (a @ c.T)
                    numbers = {"scale_gate": gate.tensor_scale, "scale_up": up.tensor_scale}
                    y = warpline.nvfp4_dual_gemm(
                        *(x.codes, gate.codes, gate_scales, up.codes, up_scales, x_scales),
                        scale_x=x.tensor_scale,
                        **numbers,
                        scale_layout=layout,
                    )
                    self.assertEqual(y.dtype, torch.float16)
                    self.close(y, exact)
                    for dtype in (torch.float16, torch.bfloat16):
                        wide = a.to(dtype)
                        y = warpline.nvfp4_dual_gemm(
                            *(wide, gate.codes, gate_scales, up.codes, up_scales), **numbers, scale_layout=layout
                        )
                        self.assertEqual(y.dtype, dtype)
                        exact = torch.nn.functional.silu(wide.double() @ b.T) * (wide.double() @ c.T)
                        error = float((y.double() - exact).abs().max())
                        self.assertLess(error, 8e-3 * float(exact.abs().max()) + 1e-5)

    def test_packed_weights_and_the_fake_implementation(self):
        (x, gate, up), (x_scales, gate_scales, up_scales), _ = self.operands(20, 128, 96, "block")
        separate = (x.codes, gate.codes, gate_scales, up.codes, up_scales, x_scales)
        y = warpline.nvfp4_dual_gemm(*separate, scale_layout="block")
        codes, scales = torch.cat([gate.codes, up.codes]), torch.cat([gate_scales, up_scales])
        one = warpline.nvfp4_dual_gemm(x.codes, codes, scales, x_scales=x_scales, scale_layout="block")
        self.assertTrue(torch.equal(one, y))
        fake = torch.ops.warpline.nvfp4_dual_gemm(*(t.to("meta") for t in separate), scale_layout="block")
        self.assertEqual((fake.shape, fake.dtype), (y.shape, y.dtype))


class Linear(unittest.TestCase):
    """``nvfp4_linear`` and the modules."""

    def near(self, y, exact, tolerance=1e-2):
        self.assertEqual(y.shape, exact.shape)
        self.assertLess(float((y.double() - exact).abs().max()), tolerance * float(exact.abs().max()) + 1e-5)

    def test_values_types_and_the_fake_implementation(self):
        for m, n, k in [(1, 8, 16), (21, 136, 80), (40, 72, 512)]:
            for dtype in (torch.bfloat16, torch.float16):
                for layout in ("plain", "block"):
                    with self.subTest(shape=(m, n, k), dtype=dtype, layout=layout):
                        x, bias = draw(2, m, k, dtype=dtype), draw(n, dtype=dtype)
                        w = nvfp4_quantize(draw(n, k), "amax", layout)
                        y = warpline.nvfp4_linear(x, *w, bias)
                        self.assertEqual(y.dtype, dtype)
                        self.near(y, x.double() @ nvfp4_dequantize(*w).double().T + bias.double())
                        meta = (t.to("meta") for t in (x, *w, bias))
                        fake = torch.ops.warpline.nvfp4_linear(*meta)
                        self.assertEqual((fake.shape, fake.dtype), (y.shape, y.dtype))

    def test_linear_module_matches_the_function_and_round_trips(self):
        for bias in (True, False):
            layer = torch.nn.Linear(80, 136, bias=bias, device=DEVICE, dtype=torch.bfloat16)
            module = warpline.nn.Nvfp4Linear.from_float(layer)
            x = draw(5, 80, dtype=torch.bfloat16)
            w = nvfp4_quantize(layer.weight, "amax")
            y = warpline.nvfp4_linear(x, *w, layer.bias)
            self.assertTrue(torch.equal(module(x), y))
            again = warpline.nn.Nvfp4Linear(80, 136, bias=bias, device=DEVICE)
            self.assertEqual([*again.state_dict()], [*module.state_dict()])
            again.load_state_dict(module.state_dict())
            self.assertTrue(torch.equal(again(x), y))

    def test_plain_checkpoints_are_packed_when_they_are_loaded(self):
        weight = draw(136, 80)
        plain, block = (nvfp4_quantize(weight, "amax", layout) for layout in ("plain", "block"))
        for names in (("weight_scales", "scale_weight"), ("weight_scale", "weight_scale_2")):
            module = warpline.nn.Nvfp4Linear(80, 136, bias=False, device=DEVICE)
            tensors = dict(zip(names, (plain.scales, plain.tensor_scale.reshape(()))))
            module.load_state_dict({"weight": plain.codes, **tensors})
            self.assertTrue(torch.equal(module.weight_scales.view(torch.uint8), block.scales.view(torch.uint8)))
            self.assertEqual(module.scale_weight, plain.tensor_scale)
        module = warpline.nn.Nvfp4Linear.from_nvfp4(*plain)
        self.assertTrue(torch.equal(module.weight_scales.view(torch.uint8), block.scales.view(torch.uint8)))

    def test_to_keeps_the_types_of_the_weight(self):
        module = warpline.nn.Nvfp4Linear(32, 16, device=DEVICE).to(torch.float16)
        types = {name: tensor.dtype for name, tensor in module.state_dict().items()}
        expected = {"weight": torch.uint8, "weight_scales": FP8, "scale_weight": torch.float32, "bias": torch.float16}
        self.assertEqual(types, expected)

    def test_swiglu_module_matches_its_layers(self):
        gate, up = (torch.nn.Linear(80, 136, bias=False, device=DEVICE) for _ in range(2))
        module = warpline.nn.Nvfp4SwiGLU.from_float(gate, up)
        x = draw(5, 80, dtype=torch.bfloat16)
        a, b = (nvfp4_dequantize(*nvfp4_quantize(layer.weight, "amax")).double() for layer in (gate, up))
        y = module(x)
        self.near(y, torch.nn.functional.silu(x.double() @ a.T) * (x.double() @ b.T))
        again = warpline.nn.Nvfp4SwiGLU(80, 136, device=DEVICE)
        again.load_state_dict(module.state_dict())
        self.assertTrue(torch.equal(again(x), y))

    def test_bad_modules_are_rejected(self):
        for call, expected_message in [
            (lambda: warpline.nn.Nvfp4Linear(24, 8), "in_features is 24; it must be a positive multiple of 16"),
            (
                lambda: warpline.nn.Nvfp4SwiGLU.from_float(torch.nn.Linear(16, 8), torch.nn.Linear(16, 8)),
                "gate and up must have no bias",
            ),
        ]:
            with self.assertRaisesRegex(warpline.InputError, expected_message):
                call()


if __name__ == "__main__":
    unittest.main()
