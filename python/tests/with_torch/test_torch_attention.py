"""Attention on torch tensors: torch's own function, Hugging Face models, gradients. On a GPU if available,
else on the CPU executor.

Needs no pytest, as a GPU host may have none: ``python3 -m unittest discover FOLDER``.
"""

import importlib.util
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

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
EPS = {torch.float16: 2e-3, torch.bfloat16: 16e-3}


def draw(*shape, dtype=torch.float16, seed=0):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(shape, generator=generator).to(DEVICE, dtype)


def rows(queries=20, keys=33, heads=4, kv_heads=4, dim=64, dtype=torch.float16):
    """Returns Q, K and V as [B, H, S, D]."""
    shapes = (2, heads, queries, dim), (2, kv_heads, keys, dim), (2, kv_heads, keys, dim)
    return [draw(*shape, dtype=dtype, seed=i) for i, shape in enumerate(shapes)]


class Test(unittest.TestCase):
    def setUp(self):
        from warpline import _fallback

        _fallback._warned.clear()
        lenient = mock.patch.dict(os.environ, WARPLINE_STRICT="0")
        lenient.start()
        self.addCleanup(lenient.stop)

    def close(self, found, expected, eps=None):
        self.assertEqual(found.shape, expected.shape)
        eps = EPS[found.dtype] if eps is None else eps
        error = (found.double() - expected.double()).abs().max().item() if found.numel() else 0
        self.assertLessEqual(error, eps * max(1, expected.abs().max().item() if found.numel() else 0))


class ScaledDotProductAttention(Test):
    """warpline.scaled_dot_product_attention against torch's function in float64."""

    def check(self, q, k, v, *args, **options):
        exact = [x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in args]
        expected = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), *exact, **options)
        with warnings.catch_warnings():
            # The kernel computes it.
            warnings.simplefilter("error", warpline.FallbackWarning)
            found = warpline.scaled_dot_product_attention(q, k, v, *args, **options)
        self.assertEqual(found.dtype, q.dtype)
        self.close(found, expected)

    def test_values(self):
        for dtype in EPS:
            self.check(*rows(dtype=dtype))
            self.check(*rows(dtype=dtype), scale=0.3)
        self.check(*rows(heads=4, kv_heads=2), enable_gqa=True)

    def test_causal_masks_start_at_the_first_key(self):
        for lens in ((20, 20), (20, 33), (33, 20), (1, 7), (7, 1)):
            self.check(*rows(*lens), is_causal=True)

    def test_batch_dimensions(self):
        q, k, v = rows()
        self.check(q[0], k[0], v[0], is_causal=True)
        self.check(*(x.reshape(1, 2, *x.shape[1:]) for x in (q, k, v)))
        visible = draw(2, 1, 20, 33) > 0
        self.check(*(x.reshape(1, 2, *x.shape[1:]) for x in (q, k, v)), visible[None])
        self.check(q[0], k[0], v[0], visible[0])

    def test_masks(self):
        q, k, v = rows()
        visible = draw(2, 1, 20, 33) > 0
        visible[..., 0] = True
        for mask in (visible, visible.expand(2, 4, 20, 33), visible[0, 0], visible[:, :, :1]):
            self.check(q, k, v, mask)
        self.check(q, k, v, draw(2, 4, 20, 33))
        self.check(q, k, v, draw(1, 33))

    def test_rows_without_a_visible_key_are_zero(self):
        q, k, v = rows()
        visible = torch.ones(20, 33, dtype=torch.bool, device=DEVICE)
        visible[3] = False
        self.assertFalse(warpline.scaled_dot_product_attention(q, k, v, visible)[:, :, 3].any())

    def test_torch_computes_the_rest_with_one_warning(self):
        q, k, v = rows()
        leaf = q.clone().requires_grad_()
        calls = {
            "no backward kernel": lambda: warpline.scaled_dot_product_attention(leaf, k, v).sum().backward(),
            "no dropout": lambda: warpline.scaled_dot_product_attention(q, k, v, dropout_p=0.1),
            "needs f16 or bf16": lambda: warpline.scaled_dot_product_attention(q.float(), k.float(), v.float()),
            "multiple of 8": lambda: warpline.scaled_dot_product_attention(q[..., :12], k[..., :12], v),
        }
        for reason, call in calls.items():
            with self.subTest(reason), self.assertWarnsRegex(warpline.FallbackWarning, reason):
                call()
            with warnings.catch_warnings():
                warnings.simplefilter("error", warpline.FallbackWarning)
                call()
        self.assertGreater(leaf.grad.abs().sum().item(), 0)

    def test_torch_may_be_patched(self):
        q, k, v = rows()
        with mock.patch.object(F, "scaled_dot_product_attention", warpline.scaled_dot_product_attention):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", warpline.FallbackWarning)
                for x in (q.float(), q[..., :12].contiguous(), q):
                    found = F.scaled_dot_product_attention(x, x, x, is_causal=True)
                    self.assertEqual(found.shape, x.shape)
                # No kernel has this scale.
                F.scaled_dot_product_attention(q, k, v, scale=-1.0)

    def test_masks_of_float32_run_the_kernel(self):
        q, k, v = rows()
        self.check(q, k, v, draw(20, 33, dtype=torch.float32).exp2())

    def test_nested_tensors_run_in_torch(self):
        nested = torch.nested.nested_tensor([draw(4, 7, 64), draw(4, 9, 64)])
        found = warpline.scaled_dot_product_attention(nested, nested, nested)
        self.assertTrue(found.is_nested)

    def test_shared_heads_with_a_mask_in_torch(self):
        q, k, v = (x.float() for x in rows(kv_heads=2))
        visible = torch.ones(20, 33, dtype=torch.bool, device=DEVICE).tril(5)
        with self.assertWarns(warpline.FallbackWarning):
            found = warpline.scaled_dot_product_attention(q, k, v, visible, enable_gqa=True)
        k, v = (x.repeat_interleave(2, 1) for x in (k, v))
        self.close(found, F.scaled_dot_product_attention(q, k, v, visible), 1e-5)

    def test_bad_calls_raise_as_in_torch(self):
        q, k, v = rows()
        for function in (warpline.scaled_dot_product_attention, F.scaled_dot_product_attention):
            with self.assertRaises(RuntimeError):
                function(q, k.bfloat16(), v)

    def test_compiled(self):
        q, k, v = rows()
        call = lambda q, k, v: warpline.scaled_dot_product_attention(q, k, v, is_causal=True) * 2
        compiled = torch.compile(call, backend="aot_eager", fullgraph=True)
        self.assertTrue(torch.equal(compiled(q, k, v), call(q, k, v)))


class Options(Test):
    """Window, softcap, sink, bias and logarithms."""

    #: Calls of warpline.attention by name.
    CALLS = {
        "window": lambda q, k, v, **o: warpline.attention(q, k, v, window=(9, 3), **o),
        "softcap": lambda q, k, v, **o: warpline.attention(q, k, v, causal=True, softcap=2.0, **o),
        "sink": lambda q, k, v, **o: warpline.attention(q, k, v, sink=draw(4, dtype=torch.float32), **o),
        "bias": lambda q, k, v, **o: warpline.attention(q, k, v, bias=draw(4, 20, 33).to(q.dtype), **o),
    }

    def test_values_are_those_of_torch(self):
        q, k, v = (x.transpose(1, 2) for x in rows())
        for name, call in self.CALLS.items():
            with self.subTest(name), warnings.catch_warnings():
                warnings.simplefilter("ignore", warpline.FallbackWarning)
                found, expected = (call(*x, return_lse=True) for x in ((q, k, v), (q.double(), k.double(), v.double())))
                self.close(found[0], expected[0])
                self.close(found[1], expected[1], 1e-4)

    def test_gradients(self):
        inputs = [x.transpose(1, 2).contiguous().requires_grad_() for x in rows()]
        exact = [x.detach().double().requires_grad_() for x in inputs]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", warpline.FallbackWarning)
            for name, call in self.CALLS.items():
                with self.subTest(name):
                    sums = [sum(y.double().square().sum() for y in call(*x, return_lse=True)) for x in (inputs, exact)]
                    for x, y in zip(torch.autograd.grad(sums[0], inputs), torch.autograd.grad(sums[1], exact)):
                        self.close(x, y, 2e-2)

    def test_logarithms_in_a_compiled_graph(self):
        call = lambda q, k, v: warpline.attention(q, k, v, window=(3, 0), return_lse=True)
        q, k, v = (x.transpose(1, 2) for x in rows())
        compiled = torch.compile(call, backend="aot_eager", fullgraph=True)
        for found, expected in zip(compiled(q, k, v), call(q, k, v)):
            self.assertTrue(torch.equal(found, expected))

    def test_given_outputs(self):
        q, k, v = (x.transpose(1, 2) for x in rows())
        expected = warpline.attention(q, k, v, return_lse=True)
        padded = torch.full((2, 4, 24), 7.0, device=DEVICE)
        for lse in (torch.empty(2, 4, 20, device=DEVICE), torch.empty(2, 20, 4, device=DEVICE).mT, padded[..., :20]):
            outs = torch.empty_like(q), lse
            warpline.attention(q, k, v, return_lse=True, out=outs)
            for x, y in zip(outs, expected):
                self.assertTrue(torch.equal(x, y))
        self.assertTrue((padded[..., 20:] == 7).all())

    def test_biases_in_every_layout(self):
        q, k, v = (x.transpose(1, 2) for x in rows(keys=34))
        wide = draw(2, 4, 20, 40)
        for bias in (wide[..., :34], wide[..., 1:35], wide[..., 2:36], wide[..., :1, :34].expand(2, 4, 20, 34), wide[:1, :, :, :34]):
            expected = warpline.attention(q, k, v, bias=bias.contiguous())
            self.assertTrue(torch.equal(warpline.attention(q, k, v, bias=bias), expected))


def integers(*values):
    return torch.tensor(values, dtype=torch.int32, device=DEVICE)


class Sequences(Test):
    """Packed sequences, lengths of keys, pages: against torch's ops in float64."""

    def calls(self):
        """Returns tensors and options by name."""
        cu_q, cu_k = integers(0, 40, 40, 41, 90), integers(0, 50, 70, 70, 120)
        packed = draw(90, 4, 64), draw(120, 2, 64, seed=1), draw(120, 2, 64, seed=2)
        lens, table = integers(33, 0, 48), integers(2, 0, 1, 1, 3, 2, 0, 2, 1).view(3, 3)
        cache = draw(3, 5, 4, 64), draw(3, 48, 2, 64, seed=1), draw(3, 48, 2, 64, seed=2)
        pages = draw(4, 16, 2, 64, seed=1), draw(4, 16, 2, 64, seed=2)
        long = draw(2, 1, 8, 64), draw(2, 4000, 2, 64, seed=1), draw(2, 4000, 2, 64, seed=2)
        yield "packed", packed, dict(cu_seqlens_q=cu_q, cu_seqlens_k=cu_k)
        yield "lengths", cache, dict(key_lens=lens)
        yield "pages", (cache[0], *pages), dict(key_lens=lens, block_table=table)
        yield "packed queries, pages", (draw(21, 4, 64), *pages), dict(
            cu_seqlens_q=integers(0, 7, 20, 21), cu_seqlens_k=integers(0, 33, 33, 81), block_table=table
        )
        yield "long", long, dict(key_lens=integers(4000, 1234))

    def test_values_are_those_of_torch(self):
        for name, tensors, lens in self.calls():
            for options in ({}, {"causal": True}, {"window": (9, 3), "softcap": 2.0}):
                with self.subTest(name, **options), warnings.catch_warnings():
                    warnings.simplefilter("error", warpline.FallbackWarning)
                    found = warpline.attention(*tensors, **options, **lens, return_lse=True, simulate=True)
                    warnings.simplefilter("ignore", warpline.FallbackWarning)
                    exact = [x.double() for x in tensors]
                    expected = warpline.attention(*exact, **options, **lens, return_lse=True)
                    self.close(found[0], expected[0])
                    self.close(found[1].nan_to_num(neginf=-9), expected[1].nan_to_num(neginf=-9), 1e-4)

    def test_gradients(self):
        name, tensors, lens = next(iter(self.calls()))
        inputs = [x.requires_grad_() for x in tensors]
        exact = [x.detach().double().requires_grad_() for x in inputs]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", warpline.FallbackWarning)
            sums = [warpline.attention(*x, causal=True, **lens).double().square().sum() for x in (inputs, exact)]
            for x, y in zip(torch.autograd.grad(sums[0], inputs), torch.autograd.grad(sums[1], exact)):
                self.close(x, y, 2e-2)

    def test_compiled(self):
        for name, tensors, lens in self.calls():
            with self.subTest(name):
                call = lambda *x: warpline.attention(*x, causal=True, **lens) * 2
                compiled = torch.compile(call, backend="aot_eager", fullgraph=True)
                self.assertTrue(torch.equal(compiled(*tensors), call(*tensors)))

    def test_pages_that_no_kernel_loads_run_in_torch(self):
        q, pages = draw(2, 3, 4, 64), [draw(4, 12, 2, 64, seed=i) for i in (1, 2)]
        lens, table = integers(20, 5), integers(2, 0, 1, 3).view(2, 2)
        with self.assertWarnsRegex(warpline.FallbackWarning, "multiple of 8 keys"):
            found = warpline.attention(q, *pages, key_lens=lens, block_table=table)
        dense = [x[table].flatten(1, 2) for x in pages]
        self.close(found, warpline.attention(q, *dense, key_lens=lens))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", warpline.FallbackWarning)
            self.assertFalse(warpline.attention(q, *pages, key_lens=lens * 0, block_table=table[:, :0]).any())


@unittest.skipUnless(importlib.util.find_spec("transformers"), "transformers is not installed")
class HuggingFace(Test):
    """Models with random weights."""

    SIZES = dict(
        vocab_size=100,
        hidden_size=128,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
    )

    def check(self, model, **inputs):
        """Compares the logits and the generated tokens with those of the eager implementation."""
        model = model.to(DEVICE, torch.float16).eval()
        tokens = torch.randint(0, 100, (2, 20), generator=torch.Generator().manual_seed(0)).to(DEVICE)
        padding = torch.ones_like(tokens)
        padding[0, :5] = 0
        found = []
        for implementation in ("eager", "warpline"):
            model.set_attn_implementation(implementation)
            with torch.no_grad():
                padded = model(input_ids=tokens, attention_mask=padding).logits[:, 5:]
                new = model.generate(tokens, max_new_tokens=3, do_sample=False, pad_token_id=0)
                found.append((model(input_ids=tokens).logits, padded, new))
        for ours, theirs in zip(found[1][:2], found[0][:2]):
            self.close(ours, theirs, 5e-3)
        self.assertTrue(torch.equal(found[1][2], found[0][2]))

    def test_llama(self):
        from transformers import LlamaConfig, LlamaForCausalLM

        torch.manual_seed(0)
        self.check(LlamaForCausalLM(LlamaConfig(**self.SIZES)))

    def test_softcap_and_windows(self):
        from transformers import Gemma2Config, Gemma2ForCausalLM

        torch.manual_seed(0)
        self.check(Gemma2ForCausalLM(Gemma2Config(**self.SIZES, sliding_window=8)))

    def test_sinks(self):
        try:
            from transformers import GptOssConfig, GptOssForCausalLM
        except ImportError:
            self.skipTest("this transformers has no GPT-OSS")
        torch.manual_seed(0)
        sizes = dict(num_local_experts=2, num_experts_per_tok=1, sliding_window=8)
        self.check(GptOssForCausalLM(GptOssConfig(**self.SIZES, **sizes)))

    def test_encoder(self):
        from transformers import ViTConfig, ViTModel

        torch.manual_seed(0)
        sizes = dict(hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128)
        model = ViTModel(ViTConfig(**sizes, image_size=64)).to(DEVICE, torch.float16).eval()
        image, found = draw(2, 3, 64, 64), []
        for implementation in ("eager", "warpline"):
            model.set_attn_implementation(implementation)
            with torch.no_grad():
                found.append(model(image).last_hidden_state)
        self.close(found[1], found[0], 5e-3)


if __name__ == "__main__":
    unittest.main()
