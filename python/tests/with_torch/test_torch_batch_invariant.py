"""``batch_invariant=True``: the bits of a row do not depend on the other rows or on their number.

On a GPU every size from 1 to 512 runs, on the CPU executor a few sizes of small problems. Either takes
about 15 s.
"""

import unittest
import unittest.mock

try:
    import torch
except ImportError as missing:
    raise unittest.SkipTest("torch is not installed") from missing

import warpline

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
#: The sizes of the batch.
SIZES = range(1, 513) if GPU else (1, 3, 17, 70)
MAX = max(SIZES)
#: N and K of the GEMMs. On a GPU the heuristic divides this K without the option, for a small batch.
N, K = (1024, 4096) if GPU else (136, 192)


def draw(*shape, dtype=torch.bfloat16):
    return torch.randn(shape, device=DEVICE, generator=GENERATOR).to(dtype)


GENERATOR = torch.Generator(DEVICE).manual_seed(7)


class BatchInvariant(unittest.TestCase):
    """Each test compares the rows of every batch with the same rows of the largest one."""

    def check(self, call, *batched, sizes=SIZES):
        """Calls with the first rows of ``batched``, and with single rows from the middle."""
        full = call(*batched)
        wrong = []
        for size in sizes:
            if not torch.equal(call(*(x[:size] for x in batched)), full[:size]):
                wrong.append(size)
        self.assertEqual(wrong, [], "sizes whose rows differ from the largest batch")
        for row in {MAX // 3, MAX // 2, MAX - 1}:
            alone = call(*(x[row : row + 1] for x in batched))
            self.assertTrue(torch.equal(alone, full[row : row + 1]), f"row {row} alone")

    def test_gemms_of_each_type(self):
        dtypes = [torch.bfloat16, torch.float16]
        if GPU:
            dtypes += [torch.float8_e4m3fn, torch.float32]
        previous = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high")
        try:
            for dtype in dtypes:
                with self.subTest(dtype=dtype):
                    x, w = draw(MAX, K, dtype=dtype), draw(N, K, dtype=dtype)
                    self.check(lambda x: warpline.matmul(x, w.t(), batch_invariant=True), x)
        finally:
            torch.set_float32_matmul_precision(previous)

    def test_linear_with_an_epilogue(self):
        x, w, bias, residual = draw(MAX, K), draw(N, K), draw(N), draw(MAX, N)
        self.check(
            lambda x, r: warpline.linear(x, w, bias, "gelu-tanh", r, batch_invariant=True), x, residual
        )

    def test_other_shapes(self):
        shapes = [(8192, 1024), (256, 7168), (72, 200)] if GPU else [(72, 200)]
        for n, k in shapes:
            with self.subTest(n=n, k=k):
                x, w = draw(MAX, k), draw(n, k)
                self.check(lambda x: warpline.linear(x, w, batch_invariant=True), x)

    def test_odd_pitches(self):
        x, w = draw(MAX, 333), draw(136, 333)
        sizes = SIZES[::7] if GPU else SIZES[:3]
        self.check(lambda x: warpline.linear(x, w, batch_invariant=True), x, sizes=sizes)

    def test_gated_gemms(self):
        x, gate, up = draw(MAX, K), draw(N, K), draw(N, K)
        self.check(lambda x: warpline.swiglu(x, gate, up, batch_invariant=True), x)

    def test_nvfp4(self):
        sizes = SIZES[::3] if GPU else SIZES[:2]
        n, k = (1024, 4096) if GPU else (128, 256)
        gate, up = (warpline.nvfp4_quantize(draw(n, k)) for _ in range(2))
        for x_is_coded in (False, True):
            x = draw(MAX, k, dtype=torch.float16)
            with self.subTest(x_is_coded=x_is_coded):
                if not x_is_coded:
                    self.check(
                        lambda x: warpline.nvfp4_dual_gemm(
                            x, gate.codes, gate.scales, up.codes, up.scales, batch_invariant=True
                        ),
                        x,
                        sizes=sizes,
                    )
                    continue
                coded = warpline.nvfp4_quantize(x, scale_layout="plain")

                def gated(codes, scales):
                    scales = warpline.nvfp4_arrange_scales(scales, len(codes), k)
                    return warpline.nvfp4_dual_gemm(
                        codes, gate.codes, gate.scales, up.codes, up.scales, scales, batch_invariant=True
                    )

                self.check(
                    gated,
                    coded.codes,
                    coded.scales,
                    sizes=sizes,
                )

    def test_rows(self):
        for cols in (1000, 4096, 20000) if GPU else (100,):
            x, weight = draw(MAX, cols), draw(cols)
            for name, call in [
                ("softmax", lambda x: warpline.softmax(x, batch_invariant=True)),
                ("rms_norm", lambda x: warpline.rms_norm(x, weight, batch_invariant=True)),
                ("layer_norm", lambda x: warpline.layer_norm(x, weight, weight, batch_invariant=True)),
            ]:
                with self.subTest(name=name, cols=cols):
                    self.check(call, x)

    def test_deformable_attention(self):
        levels, heads, channels, points = [(16, 12), (8, 6)], 2, 32, 4
        pixels = sum(height * width for height, width in levels)
        value = draw(1, pixels, heads, channels)
        locations = torch.rand(MAX, 1, heads, 2, points, 2, device=DEVICE, generator=GENERATOR).bfloat16()
        weights = torch.rand(MAX, 1, heads, 2, points, device=DEVICE, generator=GENERATOR).bfloat16()

        def call(locations, weights):
            # The first dimension has the queries.
            given = [x.transpose(0, 1).contiguous() for x in (locations, weights)]
            y = warpline.ms_deform_attn(value, levels, [0, 192], *given, batch_invariant=True)
            return y.transpose(0, 1)

        self.check(call, locations, weights)

    def test_torch_never_runs_the_call_instead(self):
        x = draw(4, 8, dtype=torch.float64)
        with self.assertRaisesRegex(warpline.InputError, "leave batch_invariant out"):
            with unittest.mock.patch.dict("os.environ", {"WARPLINE_STRICT": "0"}):
                warpline.softmax(x, batch_invariant=True)

    def test_a_layout_that_is_copied(self):
        x = draw(100, MAX)
        full = warpline.softmax(x, 0, batch_invariant=True)
        for size in (1, MAX // 2):
            part = warpline.softmax(x[:, :size], 0, batch_invariant=True)
            self.assertTrue(torch.equal(part, full[:, :size]), size)

    @unittest.skipUnless(GPU, "needs a GPU")
    def test_the_option_matters(self):
        # Without the option some size divides K, so that the tests above can fail.
        x, w = draw(MAX, 16384), draw(256, 16384)
        full = warpline.linear(x, w)
        sizes = (1, 16, 32, 64, 96, 128, 256)
        self.assertTrue(any(not torch.equal(warpline.linear(x[:m], w), full[:m]) for m in sizes))

    @unittest.skipUnless(GPU, "needs a GPU")
    def test_a_tuned_config_does_not_change_the_bits(self):
        x, w = draw(MAX, 8192), draw(256, 8192)
        full = warpline.linear(x, w, batch_invariant=True)
        warpline.linear(x[:16], w, batch_invariant=True, tune=True)
        for m in (9, 16):
            self.assertTrue(torch.equal(warpline.linear(x[:m], w, batch_invariant=True), full[:m]))


if __name__ == "__main__":
    unittest.main()
