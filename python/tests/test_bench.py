"""Tests of ``warpline.bench`` that need neither torch nor a GPU."""

from __future__ import annotations

import builtins
import json
import math
import sys
import types
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from warpline import _warpline
from warpline.bench import BenchError, cli, inputs, machine, peers, plot, record, report, suites
from warpline._declared import OPS
from warpline.bench import protocol, verify
from warpline.bench.peers._rows import at_most_columns
from warpline.bench import statistics as stats
from warpline.bench.record import AGAIN, BARE, COPY, FAILED, OURS, SKIPPED, WRONG, Implementation, Measured
from warpline.bench.statistics import Quartiles


def tensor(name: str, dtype: str, *shape: int) -> dict[str, Any]:
    return {"name": name, "tensor": {"dtype": dtype, "shape": list(shape)}}


def entry(suite: str, op: str, problem: dict[str, Any], *args: dict[str, Any]) -> dict[str, Any]:
    flops, size = problem.pop("flops", 1e8), problem.pop("bytes", 1e8)
    cost = {"flops": flops, "bytes": size}
    return {"suite": suite, "family": op, "op": op, "problem": problem, **cost, "args": list(args)}


def declared() -> list[dict[str, Any]]:
    """Returns problems as the registry declares them in JSON."""
    rows = [
        entry(
            "memory",
            "softmax",
            {"rows": 32768, "cols": cols, "dtype": dtype},
            tensor("x", dtype, 32768, cols),
            {"name": "dim", "value": -1},
        )
        for cols in (1024, 4096)
        for dtype in ("bf16", "f32")
    ]
    norm = entry(
        "memory",
        "rms_norm",
        {"rows": 4096, "cols": 131072, "dtype": "f32"},
        tensor("x", "f32", 4096, 131072),
        {"name": "weight", "value": None},
        {"name": "eps", "value": 1e-6},
    )
    large_gemm = entry(
        "gemm",
        "unheard_of",
        {"m": 4096, "n": 4096, "k": 4096, "dtype": "bf16", "flops": 1.4e11, "bytes": 1e8},
        tensor("a", "bf16", 4096, 4096),
    )
    return [*rows, norm, large_gemm]


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A fake native module."""
    fake = types.ModuleType("warpline._warpline")
    fake.suites = lambda: json.dumps(declared())  # type: ignore[attr-defined]
    fake.survey_names = lambda: ["many"]  # type: ignore[attr-defined]
    fake.surveys = lambda: json.dumps([{**declared()[0], "suite": "many"}])  # type: ignore[attr-defined]
    fake.sensors = lambda ordinal: {  # type: ignore[attr-defined]
        "sm_mhz": 1980.0,
        "memory_mhz": None,
        "watts": 400.0 + ordinal,
    }
    fake.build_info = lambda: {"version": "0.1.0", "commit": None}  # type: ignore[attr-defined]
    fake.driver_version = lambda: "580.0"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "warpline._warpline", fake)
    return fake


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hides torch."""
    real = builtins.__import__

    def import_without_torch(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".")[0] == "torch":
            raise ImportError("No module named 'torch'")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", import_without_torch)


def timed(name: str, kind: str, micros: float, **more: Any) -> Implementation:
    seconds = Quartiles(*(micros * 1e-6 * f for f in (0.98, 0.99, 1.0, 1.01, 1.1)), 25)
    return Implementation(name, kind, seconds=seconds, error=1e-7, bound=2e-7, **more)


def measured(op: str, shape: str, peers: list[Implementation], **more: Any) -> Measured:
    times = {"ours": 100.0, "again": 102.0, "copy": 95.0, **more.pop("times", {})}
    one = Measured(
        suite="memory",
        family=op,
        op=op,
        label=f"{op} {shape} bf16",
        shape=shape,
        dtype="bf16",
        problem={"rows": 1, "dtype": "bf16"},
        flops=more.pop("flops", 1e6),
        bytes=4e8,
        compute_bound=more.pop("compute_bound", False),
        implementations=[
            more.pop("ours", timed("warpline", OURS, times["ours"])),
            *peers,
            timed("warpline, again", AGAIN, times["again"]),
            timed("copy", COPY, times["copy"]),
        ],
        reading=machine.Reading(1980.0, 3201.0, 410.0),
        **more,
    )
    one.compare()
    return one


def recorded_run() -> record.Run:
    """Returns a run with a win, a loss, and every failure of a peer."""
    host_machine = machine.Machine(
        device="NVIDIA H200",
        ordinal=0,
        sms=132,
        memory_bytes=1 << 37,
        l2_bytes=60 << 20,
        driver="580.159",
        cuda="12.8",
        cudnn="9.10.2",
        torch="2.11.0",
        triton="3.6.0",
        python="3.12.1",
        warpline="0.1.0",
        commit="0123456789abcdef",
    )
    rules = {**protocol.describe(host_machine.l2_bytes, 25, False), "check": verify.RULE}
    win = measured(
        "softmax",
        "32768x1024",
        [timed("torch", "eager", 200), timed("torch.compile", "compiled", 110)],
    )
    loss = measured(
        "layer_norm",
        "32768x4096",
        [
            timed("torch", "eager", 80),
            Implementation("torch.compile", "compiled", FAILED, "OutOfMemoryError: 80 <GiB>"),
            Implementation("Triton", "triton", SKIPPED, "rows are too long"),
        ],
    )
    wrong = Implementation("cuBLAS", "cublas", WRONG, "element [0, 1] is nan", error=math.nan)
    sustained = record.Sustained(130e-6, 8000, 1500.0, 690.0)
    gemm = measured(
        "gemm",
        "4096x4096x4096",
        [timed("torch", "eager", 101, sustained=sustained), wrong],
        flops=1.4e11,
        compute_bound=True,
        ours=timed("warpline", OURS, 100, sustained=sustained),
    )
    host = [
        record.HostCost("softmax", "torch.ops.warpline.softmax", 2000, 9e-6, 9.5e-6),
        record.HostCost("softmax", "warpline.softmax", 2000, 18e-6, 19.5e-6),
        record.HostCost("gemm", "warpline.gemm", why="TypeError: no"),
    ]
    return record.Run(
        date="2026-11-16T10:00:00+00:00",
        command=["python3", "-m", "warpline.bench", "memory"],
        machine=host_machine,
        protocol=rules,
        seed=7,
        problems=[win, loss, gemm],
        host=host,
        complete=True,
    )


class TestStatistics:
    def test_quartiles_interpolate_between_neighbors(self) -> None:
        four = stats.quartiles([40.0, 10.0, 30.0, 20.0])
        assert four == Quartiles(10.0, 17.5, 25.0, 32.5, 40.0, 4)
        assert four.spread == 0.6
        assert stats.quartiles([7.0]) == Quartiles(7.0, 7.0, 7.0, 7.0, 7.0, 1)
        assert stats.quartiles([]) is None

    def test_one_slow_round_does_not_change_the_quartiles(self) -> None:
        slow = stats.quartiles([1.0] * 14 + [50.0])
        assert slow and (slow.median, slow.spread, slow.most) == (1.0, 0.0, 50.0)

    def test_medians_ignore_missing_values(self) -> None:
        assert stats.median([None, 3.0, 1.0]) == 2.0
        assert stats.median([None]) is None

    def test_geometric_mean_of_a_ratio_and_its_inverse_is_one(self) -> None:
        assert stats.geomean([2.0, 0.5]) == pytest.approx(1.0)
        assert stats.geomean([]) is None

    def test_relative_difference_is_relative_to_the_smaller_time(self) -> None:
        assert stats.relative_difference(2.0, 2.5) == stats.relative_difference(2.5, 2.0) == 0.25


class TestSuites:
    def test_labels_name_op_shape_and_dtype(self) -> None:
        problems = suites.parse(json.dumps(declared()))
        assert problems[0].label == "softmax 32768x1024 bf16"
        assert problems[0].args[1] == suites.Arg("dim", None, -1)
        assert problems[-2].args[1].value is None
        assert (problems[0].compute_bound, problems[-1].is_large_gemm) == (False, True)

    def test_more_than_three_sizes_and_flags_are_named(self) -> None:
        problem = {"batch": 4, "heads": 16, "seq": 1024, "dim": 128, "causal": True, "bias": False}
        text = json.dumps([entry("attention", "attention", {**problem, "order": "nhwc"})])
        assert suites.parse(text)[0].shape == "batch=4 heads=16 seq=1024 dim=128 causal order=nhwc"
        text = json.dumps([entry("msda", "msda", {"batch": 4, "shapes": "92x160,46x80"})])
        assert suites.parse(text)[0].shape == "4 shapes=92x160,…"

    def test_a_survey_is_selected_by_its_name_only(self, native: types.ModuleType) -> None:
        assert len(suites.declared(["all"])) == len(suites.declared()) == 6
        problems = suites.declared(["many"])
        assert [one.suite for one in suites.select(problems, ["many"])] == ["many"]
        assert "many" not in {one.suite for one in suites.select(problems, ["all"])}

    def test_filters_keep_labels_that_contain_any_of_them(self, native: types.ModuleType) -> None:
        problems = suites.parse(json.dumps(declared()))

        def labels(*filters: str) -> list[str]:
            return [one.label for one in suites.select(problems, ["memory"], filters)]

        assert labels("x1024 ") == ["softmax 32768x1024 bf16", "softmax 32768x1024 f32"]
        assert labels("RMS", "32768×4096 f") == [
            "softmax 32768x4096 f32",
            "rms_norm 4096x131072 f32",
        ]
        assert len(labels()) == 5
        assert len(suites.select(problems, ["all"])) == len(suites.select(problems, [])) == 6

    def test_unknown_suites_and_empty_selections_are_rejected(self, native: types.ModuleType) -> None:
        problems = suites.parse(json.dumps(declared()))
        with pytest.raises(BenchError, match="Unknown suite 'memry'; the suites are: memory, gemm, many, all"):
            suites.select(problems, ["memry"])
        with pytest.raises(BenchError, match="contains 'bf17' in memory"):
            suites.select(problems, ["memory"], ["bf17"])

    def test_small_problems_cut_every_dimension_to_64(self) -> None:
        problem = suites.parse(json.dumps(declared()))[0]
        reduced = inputs.small(problem)
        assert reduced.args[0].tensor == suites.TensorSpec("bf16", (64, 64))
        assert reduced.args[1] == problem.args[1]


@pytest.fixture
def fake_torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Replaces torch, so that the peers can be imported without it."""
    for name in ("torch", "torch.nn", "torch.nn.attention", "torch.nn.functional"):
        monkeypatch.setitem(sys.modules, name, mock.MagicMock())
    yield
    for name in peers.OPS:
        sys.modules.pop(f"warpline.bench.peers.{name}", None)
    sys.modules.pop("warpline.bench.peers._gemm", None)


class TestPeers:
    def test_every_peer_file_is_named_after_an_op(self) -> None:
        assert set(peers.OPS) <= {op.name for op in OPS}
        folder = Path(peers.__file__).parent
        files = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")}
        assert set(peers.OPS) == files

    def test_an_op_without_a_file_has_no_peers(self) -> None:
        assert "unheard_of" not in peers.OPS
        assert peers.OPS.get("unheard_of") is None

    def test_a_new_file_adds_an_op(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        text = "from . import Op\nOP = Op(reference=lambda x: 2 * x, split=('x',), peers=())\n"
        (tmp_path / "double.py").write_text(text)
        monkeypatch.setattr(peers, "__path__", [*peers.__path__, str(tmp_path)])
        found = peers.OpFiles()
        assert "double" in found and len(found) == len(peers.OPS) + 1
        assert found["double"].reference(21) == 42
        sys.modules.pop("warpline.bench.peers.double")

    def test_every_op_has_torch_eager_and_a_reference(
        self, fake_torch: None
    ) -> None:
        declared = {op.name: op for op in OPS}
        for name, op in peers.OPS.items():
            assert op.peers[0].kind == peers.EAGER, name
            assert callable(op.reference), name
            tensors = {param.name for param in declared[name].params if param.kind == "tensor"}
            assert set(op.split) <= tensors, name
            assert all(peer.slack == 1 for peer in op.peers) or op.tolerance, name

    def test_long_rows_are_skipped_by_triton(self) -> None:
        problems = suites.parse(json.dumps(declared()))
        skip_reason = at_most_columns(32768)
        assert skip_reason(problems[0]) is None
        assert skip_reason(problems[-2]) == "a Triton program holds at most 32768 elements of a row"

    def test_reported_times_belong_to_measured_problems(
        self, fake_torch: None
    ) -> None:
        problems = suites.parse(_warpline.suites())
        for name, op in peers.OPS.items():
            found = [op.reported_times(one) for one in problems if one.op == name]
            used = {figure.name for figures in found for figure in figures}
            assert used == {figure.name for figure in op.figures}, name


class TestVerify:
    def test_inexact_results_within_slack_pass(self) -> None:
        assert not verify.Checked([1.0, 0.5], [1.0, 0.6]).inexact
        assert verify.Checked([1.0, 0.7], [1.0, 0.6]).inexact
        assert verify.Checked([math.nan], [1.0]).inexact

    def test_failing_element_is_reported_with_its_index(self) -> None:
        element = verify.ElementError(0.25, 0.125, [3, 7], 1.25, 1.0)
        assert element.ratio == 2.0
        assert element.describe() == "element [3, 7]: got 1.25, expected 1, tolerance 1.25e-01"
        assert verify.ElementError(math.nan, 0.125, [0], math.nan, 1.0).ratio == math.inf

    def test_allowance_of_16_bit_types_is_one_ulp_at_the_magnitude(self) -> None:
        assert verify.allowance("bf16", 10.0) == 8 * 2.0**-7
        assert verify.allowance("f16", 0.3) == 0.25 * 2.0**-10
        assert verify.allowance("bf16", 0.0) == 0.0

    def test_allowance_of_f32_is_relative_to_the_magnitude(self) -> None:
        assert verify.allowance("f32", 20.0) == pytest.approx(2e-5)
        assert verify.bound("f32", 1.0, 3e-6) == pytest.approx(7e-6)

    def test_without_torch_eager_the_bound_is_eight_times_the_allowance(self) -> None:
        for none in (None, math.nan):
            assert verify.bound("f32", 1.0, none) == pytest.approx(8e-6)

    def test_the_worst_output_has_the_largest_ratio_to_its_bound(self) -> None:
        assert verify.Checked([1.0, 0.5], [10.0, 0.6]).worst == (0.5, 0.6)
        assert verify.Checked([], []).worst == (None, None)
        error, bound = verify.Checked([1.0, math.nan], [1.1, 5.0]).worst
        assert error is not None and math.isnan(error) and bound == 5.0


class TestRecord:
    def test_json_round_trip(self, tmp_path: Path) -> None:
        run, path = recorded_run(), tmp_path / "run.json"
        run.problems[2].implementations[2].error = None
        record.write(run, path)
        assert record.load(path) == run
        assert [file.name for file in tmp_path.iterdir()] == ["run.json"]

    def test_json_has_null_in_place_of_nan(self, tmp_path: Path) -> None:
        path = tmp_path / "run.json"
        record.write(recorded_run(), path)
        text = path.read_text(encoding="utf-8")
        assert "NaN" not in text
        plain = json.loads(text)
        assert plain["schema"] == record.SCHEMA
        assert plain["passed"] and plain["seed"] == 7 and plain["machine"]["driver"] == "580.159"
        assert plain["reading"] == {"sm_mhz": 1980.0, "memory_mhz": 3201.0, "watts": 410.0}
        ours, eager = plain["problems"][0]["implementations"][:2]
        assert ours["seconds"]["count"] == 25 and eager["ratio"] == pytest.approx(2.0)
        assert plain["summary"]["wins"] == 2 and plain["summary"]["losses"] == 1

    def test_reported_times_are_separate(self, tmp_path: Path) -> None:
        run, path = recorded_run(), tmp_path / "run.json"
        run.problems[2].implementations[2].error = None
        before = record.summarize(run.problems)
        run.problems[0].reported_times = [record.ReportedTime("another kernel", 50e-6, "less exact")]
        record.write(run, path)
        assert record.load(path) == run
        assert record.summarize(run.problems) == before
        best = run.problems[0].best
        assert best and best.name == "torch.compile"
        older = record.to_dict(run)
        for one in older["problems"]:
            del one["reported_times"]
        assert record.from_dict(older).problems[0].reported_times == []

    def test_another_schema_is_rejected(self) -> None:
        with pytest.raises(ValueError, match="schema must be 2, not 99"):
            record.from_dict({**record.to_dict(recorded_run()), "schema": 99})

    def test_only_timed_peers_can_be_the_best(self) -> None:
        win, loss, _ = recorded_run().problems
        assert win.best and win.best.name == "torch.compile"
        assert loss.best and (loss.best.name, loss.best.ratio) == ("torch", pytest.approx(0.8))
        assert win.spread == pytest.approx(0.02)
        assert win.share(win.ours) == pytest.approx(0.95)

    def test_the_summary_has_means_by_op_and_overall(self) -> None:
        summary = record.summarize(recorded_run().problems)
        assert [line.name for line in summary.ops] == ["softmax", "layer_norm", "gemm"]
        assert summary.overall.best == pytest.approx((1.1 * 0.8 * 1.01) ** (1 / 3))
        assert summary.overall.peers["torch"][1] == 3
        assert "Triton" not in summary.overall.peers
        assert (summary.wins, summary.losses, summary.within_spread) == (2, 1, 1)
        assert summary.spread_worst == pytest.approx(0.02)

    def test_a_run_fails_if_warpline_fails(self) -> None:
        run = recorded_run()
        assert run.passed
        run.problems[0].ours.state = WRONG
        assert not run.passed


class TestReport:
    def test_columns_are_aligned(self) -> None:
        lines = report.table(["a", "bb"], [["x", "1"], ["yyy", "22222"]])
        assert lines == ["a       bb", "---  -----", "x        1", "yyy  22222"]

    def test_report_shows_wins_and_failures(self) -> None:
        text = report.text(recorded_run())
        for part in (
            "NVIDIA H200",
            "driver 580.159",
            "seed 7",
            "120 MiB (twice the L2) are read",
            "1.100*",
            "10.0 % faster than torch.compile",
            "25.0 % SLOWER than torch",
            "0.950",
            "4000 GB/s",
            "1400.0 TFLOP/s",
            "torch.compile error: OutOfMemoryError: 80 <GiB> [layer_norm 32768x4096 bf16]",
            "Triton skipped: rows are too long",
            "cuBLAS FAIL: element [0, 1] is nan",
            "Sustained",
            "2 faster, 1 slower",
            "worst 2.00 %",
            "above 15 µs",
            "TypeError: no",
        ):
            assert part in text, part
        assert "QUICK" not in text

    def test_linear_is_compared_with_its_bare_gemm(self) -> None:
        run = recorded_run()
        assert "of bare" not in report.text(run)
        layer = measured("linear", "64x64x64", [timed("torch", "eager", 120)])
        layer.implementations.append(timed("warpline, bare", BARE, 97))
        layer.compare()
        run.problems.append(layer)
        text = report.text(run)
        row = next(line for line in text.splitlines() if line.startswith("linear 64x64x64"))
        assert "0.970" in row and "faster than torch" in row
        assert "GEMM alone, linear against warpline, bare: geometric mean 0.970." in text

    def test_reported_times_are_marked_as_not_measured_here(self) -> None:
        run = recorded_run()
        assert "NOT MEASURED HERE" not in report.text(run)
        run.problems[0].reported_times = [record.ReportedTime("another kernel", 50e-6, "less exact")]
        lines = report.text(run).splitlines()
        at = next(i for i, line in enumerate(lines) if line.startswith("NOT MEASURED HERE"))
        assert lines[at + 3].split("  ")[0] == "softmax 32768x1024"
        assert lines[at + 3].split()[-5:] == ["kernel", "50", "0.50", "less", "exact"]
        assert sum("another kernel" in line for line in lines) == 1

    def test_a_quick_run_is_marked(self) -> None:
        run = recorded_run()
        run.quick = True
        assert report.text(run).count("not for publication") == 2

    def test_a_wrong_result_of_warpline_is_reported_as_fail(self) -> None:
        ours = Implementation("warpline", OURS, WRONG, "element [3] is 1 where 2 is expected")
        one = measured("softmax", "8x8", [timed("torch", "eager", 90)], ours=ours)
        run = recorded_run()
        run.problems = [one]
        text = report.text(run)
        assert "warpline: FAIL" in text and "element [3] is 1" in text
        assert report.progress(3, 31, one, 1.5).startswith("[ 3/31] softmax 8x8 bf16: warpline: FAIL")

    def test_a_stopped_run_reports_the_reason(self) -> None:
        run = recorded_run()
        run.problems, run.stopped = [], "interrupted"
        assert "STOPPED: interrupted" in report.text(run)
        assert not run.passed


class TestPlot:
    def texts(self, run: record.Run) -> list[str]:
        root = ElementTree.fromstring(plot.svg(run))
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        return [text for text in root.itertext() if text.strip()]

    def test_every_problem_and_implementation_is_named(self) -> None:
        texts = self.texts(recorded_run())
        for name in ("warpline", "torch", "torch.compile", "softmax", "layer_norm", "gemm"):
            assert name in texts
        for name in ("Triton", "cuBLAS"):
            assert f"{name} (not timed)" in texts
        assert "32768 × 1024" in texts and "4096 × 4096 × 4096" in texts
        assert "copy = 1.0" in texts and any("TFLOP/s" in text for text in texts)
        assert "1.10×" in texts and "0.80×" in texts

    def test_marks_are_inside_the_plot(self) -> None:
        run = recorded_run()
        run.problems[0].implementations[1] = timed("a & b <c>", "eager", 4000)
        run.problems[0].compare()
        root = ElementTree.fromstring(plot.svg(run))
        centers = [float(e.get("cx", "")) for e in root.iter() if e.get("cx")]
        assert centers and all(0 < x < plot.WIDTH for x in centers)

    def test_a_long_name_keeps_its_ends_and_leaves_room_for_marks(self) -> None:
        run, words = recorded_run(), [f"size_{i}={1000 + i}" for i in range(12)]
        one = measured("attention", " ".join(words), [timed("torch", "eager", 4000)])
        run.problems = [one]
        name = next(text for text in self.texts(run) if text.startswith(words[0]))
        assert name.endswith(words[-1]) and " … " in name and len(name) <= plot.MAX_NAME
        root = ElementTree.fromstring(plot.svg(run))
        centers = [float(e.get("cx", "")) for e in root.iter() if e.get("cx")]
        assert centers and all(0 < x < plot.WIDTH for x in centers)

    def test_empty_and_quick_runs_are_drawn(self) -> None:
        run = recorded_run()
        run.quick = True
        assert "Quick run: not for publication" in self.texts(run)
        run.problems = []
        assert self.texts(run)


class TestCommandLine:
    def rejected(self, capsys: pytest.CaptureFixture[str], *argv: str) -> str:
        assert cli.main(list(argv)) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.startswith("warpline.bench: ") and err.count("\n") == 1
        return err

    def test_list_needs_no_gpu(
        self, native: Any, no_torch: None, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert cli.main(["--list"]) == 0
        out = capsys.readouterr().out
        assert "memory: 5 problems" in out and "  softmax 32768x1024 bf16\n" in out
        assert "unheard_of 4096x4096x4096 bf16  (no peers" in out
        assert cli.main(["--list", "memory", "--filter", "rms"]) == 0
        assert "softmax" not in capsys.readouterr().out

    def test_host_only_and_no_host_exclude_each_other(self, native: Any, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.parser().parse_args(["memory", "--host-only"]).host_only
        error = self.rejected(capsys, "memory", "--host-only", "--no-host")
        assert "not allowed with argument" in error

    def test_an_unknown_suite_is_rejected_with_the_known_ones(
        self, native: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert "the suites are: memory, gemm, many, all" in self.rejected(capsys, "nothing")
        assert "Missing SUITE; the suites are: memory, gemm, many, all" in self.rejected(capsys)
        assert "No problem" in self.rejected(capsys, "memory", "--filter", "bf17")

    def test_too_few_rounds_are_rejected(
        self, native: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        err = self.rejected(capsys, "memory", "--rounds", "14")
        assert "--rounds must be at least 15, not 14" in err and "--quick" in err
        assert "at least 1" in self.rejected(capsys, "memory", "--quick", "--rounds", "0")

    def test_bad_arguments_are_rejected(
        self, native: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert "--bogus" in self.rejected(capsys, "memory", "--bogus")
        assert "invalid int" in self.rejected(capsys, "memory", "--rounds", "many")
        assert "not allowed" in self.rejected(capsys, "memory", "--sustained", "--no-sustained")

    def test_a_file_that_cannot_be_written_is_rejected_before_the_run(
        self, native: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        missing = str(tmp_path / "no" / "run.json")
        assert "Cannot write" in self.rejected(capsys, "memory", "--json", missing)
        assert "Cannot write" in self.rejected(capsys, "memory", "--plot", str(tmp_path))

    def test_missing_torch_is_reported(
        self, native: Any, no_torch: None, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert "Cannot import torch" in self.rejected(capsys, "memory")

    def test_missing_cuda_is_reported(
        self, native: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        torch = types.ModuleType("torch")
        torch.cuda = types.SimpleNamespace(  # type: ignore[attr-defined]
            is_available=lambda: False, device_count=lambda: 1
        )
        monkeypatch.setitem(sys.modules, "torch", torch)
        assert "no CUDA device" in self.rejected(capsys, "memory")
        torch.cuda.is_available = lambda: True  # type: ignore[attr-defined]
        assert "must be a CUDA device from 0 to 0, not 3" in self.rejected(capsys, "memory", "--device", "3")

    def test_a_missing_native_module_is_reported(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setitem(sys.modules, "warpline._warpline", None)
        assert "native module" in self.rejected(capsys, "--list")


class TestMachine:
    def test_failed_sensors_give_an_empty_reading(self, native: Any) -> None:
        assert machine.read(1) == machine.Reading(1980.0, None, 401.0)
        native.sensors = lambda ordinal: 1 / 0
        assert machine.read(1) == machine.Reading()

    def test_median_reading_ignores_missing_values(self) -> None:
        readings = [machine.Reading(1.0, None, 3.0), machine.Reading(3.0, None, None)]
        assert machine.median_reading(readings) == machine.Reading(2.0, None, 3.0)

    def test_both_cudnn_version_formats_are_parsed(self) -> None:
        assert machine.cudnn_version(91002) == "9.10.2"
        assert machine.cudnn_version(8907) == "8.9.7"
        assert machine.cudnn_version(None) is None


class TestProtocol:
    def test_a_reason_is_one_short_line(self) -> None:
        assert protocol.reason(ValueError("\n  why\nmore")) == "ValueError: why"
        assert protocol.reason(ValueError()) == "ValueError"
        assert len(protocol.reason(ValueError("x" * 500))) == 200

    def test_the_protocol_is_described(self) -> None:
        rules = protocol.describe(60 << 20, 25, True)
        assert "120 MiB (twice the L2) are read" in rules["flush"] and rules["quick"] is True
