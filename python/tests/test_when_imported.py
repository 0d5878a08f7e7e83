"""The import hook runs whenever torch is imported; the package itself does not import torch."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import warpline
from warpline import _when_imported

PACKAGES = str(Path(warpline.__file__).parent.parent)


def run(source: str) -> subprocess.CompletedProcess[str]:
    """Runs a program in a new Python process."""
    source = f"import sys\nsys.path.insert(0, {PACKAGES!r})\n{source}"
    return subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=300, check=False
    )


def test_neither_torch_nor_numpy_is_imported() -> None:
    look = "from warpline import *\nimport warpline\n[getattr(warpline, name) for name in dir(warpline)]\n"
    done = run(look + "print([m for m in ('torch', 'numpy') if m in sys.modules], hasattr(warpline, 'nothing'))")
    assert (done.stdout.strip(), done.stderr) == ("[] False", "")


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize("first", ["warpline", "torch"])
def test_torch_has_the_ops_whichever_is_imported_first(first: str) -> None:
    second = {"warpline": "torch", "torch": "warpline"}[first]
    done = run(
        f"import {first}, importlib.util\n"
        # Many libraries look whether torch is there before they import it.
        "importlib.util.find_spec('torch')\n"
        f"import {second}\n"
        "print(torch.ops.warpline.softmax(torch.zeros(1, 4)).tolist())"
    )
    assert done.stdout.strip() == "[[0.25, 0.25, 0.25, 0.25]]", done.stderr


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of modules; imports from it and callbacks for it are removed after the test."""
    modules, finders = set(sys.modules), list(sys.meta_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    for name in set(sys.modules) - modules:
        del sys.modules[name]
    sys.meta_path[:] = finders


def write(folder: Path, name: str, source: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(source)
    importlib.invalidate_caches()


class Noticed:
    """Counts the callbacks for a module, and asserts at each that the module is complete."""

    def __init__(self, name: str) -> None:
        self.name, self.times = name, 0
        self.before = list(sys.meta_path)

    def __call__(self) -> None:
        assert sys.modules[self.name].finished
        self.times += 1

    def is_over(self) -> bool:
        """Returns whether it was called once and the import system has no hooks left."""
        return self.times == 1 and sys.meta_path == self.before


def test_a_module_that_is_there_is_noticed_at_once(folder: Path) -> None:
    write(folder, "there.py", "finished = True")
    importlib.import_module("there")
    noticed = Noticed("there")
    _when_imported.call("there", noticed)
    assert noticed.is_over()


def test_a_module_that_comes_later_is_noticed_once(folder: Path) -> None:
    write(folder, "later.py", "finished = True")
    noticed = Noticed("later")
    _when_imported.call("later", noticed)
    importlib.import_module("json")
    assert noticed.times == 0
    module = importlib.import_module("later")
    assert noticed.is_over()
    assert module.__spec__.origin == str(folder / "later.py")
    importlib.reload(module)
    assert noticed.is_over()


def test_a_module_that_is_only_looked_for_is_noticed_when_it_is_imported(folder: Path) -> None:
    write(folder, "sought.py", "finished = True")
    noticed = Noticed("sought")
    _when_imported.call("sought", noticed)
    for _ in range(3):
        assert importlib.util.find_spec("sought") is not None
    assert noticed.times == 0
    importlib.import_module("sought")
    assert noticed.is_over()


def test_an_import_that_fails_is_noticed_when_it_is_tried_again(folder: Path) -> None:
    noticed = Noticed("flaky")
    _when_imported.call("flaky", noticed)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("flaky")
    write(folder, "flaky.py", "raise ImportError('a library is missing')")
    with pytest.raises(ImportError, match="a library is missing"):
        importlib.import_module("flaky")
    assert noticed.times == 0
    write(folder, "flaky.py", "finished = True")
    importlib.import_module("flaky")
    assert noticed.is_over()


def test_the_import_of_a_submodule_imports_its_package_first(folder: Path) -> None:
    write(folder, "pack/__init__.py", "finished = True")
    write(folder, "pack/part.py", "import pack\nassert pack.finished")
    noticed = Noticed("pack")
    _when_imported.call("pack", noticed)
    importlib.import_module("pack.part")
    assert noticed.is_over()


def test_two_can_wait_for_one_module(folder: Path) -> None:
    write(folder, "both.py", "finished = True")
    first, second = Noticed("both"), Noticed("both")
    _when_imported.call("both", first)
    _when_imported.call("both", second)
    importlib.import_module("both")
    assert (first.times, second.times) == (1, 1)
    assert sys.meta_path == first.before


def waiting(name: str) -> Noticed:
    """The callback registration of a module that registers during its own import."""
    noticed = Noticed(name)
    _when_imported.call(name, noticed)
    assert noticed.times == 0
    return noticed


def test_callback_registered_during_import_runs_after_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper = ModuleType("helper")
    helper.waiting = waiting  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "helper", helper)
    write(folder, "inner.py", "import helper\nnoticed = helper.waiting(__name__)\nfinished = True")
    spec = importlib.import_module("inner").__spec__
    assert sys.modules["inner"].noticed.is_over()
    assert type(spec) is importlib.machinery.ModuleSpec


def test_callback_registered_during_a_failing_import_runs_after_the_retry(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper = ModuleType("helper")
    made: list[Noticed] = []
    helper.ask = lambda: made.append(waiting("broken"))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "helper", helper)
    write(folder, "broken.py", "import helper\nhelper.ask()\nraise ImportError('no')")
    with pytest.raises(ImportError, match="no"):
        importlib.import_module("broken")
    write(folder, "broken.py", "finished = True")
    importlib.import_module("broken")
    assert made[0].is_over()


def test_a_module_that_another_thread_imports_is_noticed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper = ModuleType("helper")
    helper.started, helper.go_on = threading.Event(), threading.Event()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "helper", helper)
    write(folder, "slow.py", "import helper\nhelper.started.set()\nhelper.go_on.wait(10)\nfinished = True")
    thread = threading.Thread(target=importlib.import_module, args=("slow",))
    thread.start()
    assert helper.started.wait(10)
    noticed = waiting("slow")
    helper.go_on.set()
    thread.join(10)
    assert noticed.is_over()
