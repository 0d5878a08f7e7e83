"""The inputs and checks of the benchmarks of deformable attention and of sequences, on the CPU.

Needs no pytest, as a GPU host may have none: ``python3 -m unittest discover FOLDER``.
"""

import unittest
from dataclasses import replace
from unittest import mock

try:
    import torch
except ImportError as missing:
    raise unittest.SkipTest("torch is not installed") from missing

import warpline
from warpline import _warpline
from warpline.bench import measurement, inputs, peers, record, suites, verify
from warpline.bench.peers import ms_deform_attn as torch_msda

OP = peers.OPS["ms_deform_attn"]


def problem(layout, locations):
    """Returns a small version of a problem of the suite."""
    declared = (one for one in suites.parse(_warpline.suites()) if one.suite == "msda")
    fields = {"layout": layout, "locations": locations, "batch": 48}
    found = next(one for one in declared if fields.items() <= one.problem.items())
    reduced = OP.small(found)

    def reduce(arg):
        if arg.tensor is None:
            return arg
        keep = arg.tensor.shape[1] if arg.name == "value" else 5
        return replace(arg, tensor=replace(arg.tensor, shape=(2, keep, *arg.tensor.shape[2:])))

    return replace(reduced, args=tuple(map(reduce, reduced.args)))


def draw(problem, op=OP):
    with mock.patch.object(inputs, "DEVICE", "cpu"):
        return inputs.draw(problem, 1, op.draw)


def resized(problem, sizes, **fields):
    """Returns a problem with other shapes of some tensors, and with other fields."""

    def resize(arg):
        shape = sizes.get(arg.name)
        return replace(arg, tensor=replace(arg.tensor, shape=shape)) if shape else arg

    return replace(problem, problem={**problem.problem, **fields}, args=tuple(map(resize, problem.args)))


class Sequences(unittest.TestCase):
    OP = peers.OPS["attention"]

    def problems(self):
        """Returns a small packed problem and a small cache with pages, as in the suite."""
        declared = [one for one in suites.parse(_warpline.suites()) if one.suite == "attention"]
        packed = next(one for one in declared if one.problem.get("packed_queries"))
        rows = (90, 2, 16)
        packed = resized(
            packed,
            {"q": rows, "k": rows, "v": rows, "cu_seqlens_q": (4,), "cu_seqlens_k": (4,)},
            queries=90,
            keys=90,
        )
        cache = next(one for one in declared if one.problem.get("page"))
        pages = (12, 16, 2, 16)
        sizes = {"q": (3, 1, 4, 16), "k": pages, "v": pages, "key_lens": (3,), "block_table": (3, 4)}
        return packed, resized(cache, sizes, page=16, max_pages=4, keys=192)

    def test_warpline_and_peers_match_the_reference(self):
        for problem in self.problems():
            args = draw(problem, self.OP)
            reference = verify.Reference(self.OP, args)
            for call in (lambda: warpline.attention(*args.values()), self.OP.peers[0].build(args).call):
                with self.subTest(problem=problem.label):
                    checked = reference.check(call())
                    self.assertIsNone(checked.wrong)
                    self.assertFalse(checked.inexact)

    def test_sequences_differ_and_pages_are_permuted(self):
        packed, cache = (draw(problem, self.OP) for problem in self.problems())
        lengths = packed["cu_seqlens_q"].diff().tolist()
        self.assertEqual((sum(lengths), len(set(lengths))), (90, 3))
        self.assertEqual(sorted(cache["block_table"].flatten().tolist()), list(range(12)))
        self.assertEqual(cache["key_lens"].tolist(), [64] * 3)


class Deformable(unittest.TestCase):
    def test_suite_has_the_problems_of_the_reported_times(self):
        declared = [one for one in suites.parse(_warpline.suites()) if one.suite == "msda"]
        names = [arg.name for arg in declared[0].args if arg.tensor]
        self.assertEqual(set(OP.draw), set(names))
        counts = [
            (one.problem["layout"], one.problem["num_query"], len(OP.reported_times(one)))
            for one in declared
        ]
        expected = [
            *[("halo", 20522, 3)] * 2,
            *[("standard", 20522, 2)] * 2,
            ("standard", 22223, 2),
            ("standard", 22223, 0),
            ("standard", 300, 0),
            ("standard", 900, 0),
        ]
        self.assertEqual(counts, expected)

    def test_warpline_and_peers_match_the_reference(self):
        for layout in ("halo", "standard"):
            for locations in ("uniform", "grid"):
                with self.subTest(layout=layout, locations=locations):
                    args = draw(problem(layout, locations))
                    reference = verify.Reference(OP, args)
                    ours = warpline.ms_deform_attn(*args.values())
                    checked = reference.check(ours)
                    self.assertIsNone(checked.wrong)
                    self.assertFalse(checked.inexact)
                    peer = OP.peers[0]
                    self.assertIsNone(reference.check(peer.build(args).call(), peer.slack).wrong)
                    wide = {name: verify.to_float64(value) for name, value in args.items()}
                    exact = OP.reference(**wide)
                    torch.testing.assert_close(torch_msda.eager(wide).call(), exact)

    def test_errors_fail_or_are_inexact(self):
        args = draw(problem("standard", "uniform"))
        reference = verify.Reference(OP, args)
        y = warpline.ms_deform_attn(*args.values())
        y[1, 3, 5] += 0.05
        message = reference.check(y).wrong
        self.assertTrue(message.startswith("element [1, 3, 5]: got "), message)
        loose = reference.check(y, slack=100)
        self.assertIsNone(loose.wrong)
        self.assertTrue(loose.inexact)
        self.assertAlmostEqual(loose.worst[0], 0.05, delta=0.003)
        y[0, 0, 0] = float("nan")
        self.assertIn("element [0, 0, 0]: got nan", reference.check(y, slack=100).wrong)
        self.assertIn("expected", reference.check(y[:, :2]).wrong)

    def test_inexact_peers_are_timed_and_reported_but_warpline_fails(self):
        args = draw(problem("standard", "uniform"))
        expected = warpline.ms_deform_attn(*args.values())

        def entry(name, kind, error, slack):
            return measurement.Entry(record.Implementation(name, kind), lambda: peers.Built(lambda: expected + error), slack)

        entries = [
            entry("warpline", record.OURS, 0.05, 1),
            entry("torch", peers.EAGER, 0.05, 100),
            entry("other", peers.COMPILED, 3, 100),
        ]
        with mock.patch.multiple(measurement, poison=lambda sizes: None, synchronize=lambda name: None):
            (note,) = measurement._check_all(OP, args, entries)
        self.assertEqual([one.result.state for one in entries], [record.WRONG, record.TIMED, record.WRONG])
        self.assertRegex(note, r"^torch has error 5.\de-02, tolerance 2.\de-03; timed anyway$")

    def test_only_border_pixels_are_zero(self):
        value = draw(problem("halo", "uniform"))["value"]
        levels = [(4, 4)] * 4
        mask = torch_msda.inside(levels, 1)
        self.assertEqual((len(mask), int(mask.sum())), (value.shape[1], 64))
        self.assertTrue((value[:, ~mask] == 0).all())
        self.assertGreater(value[:, mask].abs().mean().item(), 0.5)

    def test_reference_points_are_pixels_or_a_regular_grid(self):
        levels = [(2, 3), (1, 1)]
        points = torch_msda.reference_points(levels, 0, 7)
        sixths = [(x, y) for y in (0.25, 0.75) for x in (1 / 6, 0.5, 5 / 6)]
        torch.testing.assert_close(points, torch.tensor([*sixths, (0.5, 0.5)]))
        with_border = torch_msda.reference_points(levels, 1, 29)
        self.assertEqual(with_border.shape, (29, 2))
        torch.testing.assert_close(with_border[6:9], torch.tensor([(1 / 6, 0.25), (0.5, 0.25), (5 / 6, 0.25)]))
        self.assertTrue(((with_border >= 0) & (with_border <= 1)).all())
        torch.testing.assert_close(torch_msda.reference_points(levels, 0, 4), torch.tensor(
            [(0.25, 0.25), (0.75, 0.25), (0.25, 0.75), (0.75, 0.75)]
        ))

    def test_weights_of_a_query_sum_to_one(self):
        weights = draw(problem("standard", "grid"))["attention_weights"].double()
        self.assertLess((weights.sum((3, 4)) - 1).abs().max().item(), 5e-3)

    def test_small_problems_are_supported(self):
        for one in suites.parse(_warpline.suites()):
            if one.suite == "msda":
                values = [arg.value if arg.tensor is None else
                          torch.empty(arg.tensor.shape, dtype=torch.float16, device="meta") for arg in OP.small(one).args]
                made = torch.ops.warpline.ms_deform_attn(*values)
                self.assertEqual(made.shape[:2], (2, 64))
                levels, starts = values[1], values[2]
                self.assertEqual(len(levels), 2 * len(starts))


if __name__ == "__main__":
    unittest.main()
