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


def test_the_package_imports_neither_torch_nor_numpy() -> None:
    source = "from warpline import *\nimport warpline\n[getattr(warpline, name) for name in dir(warpline)]\n"
    done = run(source + "print([m for m in ('torch', 'numpy') if m in sys.modules], hasattr(warpline, 'nothing'))")
    assert (done.stdout.strip(), done.stderr) == ("[] False", "")


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize("first", ["warpline", "torch"])
def test_torch_has_the_ops_whichever_is_imported_first(first: str) -> None:
    second = {"warpline": "torch", "torch": "warpline"}[first]
    done = run(
        f"import {first}, importlib.util\n"
        # Many libraries look for torch before they import it.
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


class CallbackCounter:
    """Counts the callbacks for a module; each asserts that the module is complete."""

    def __init__(self, name: str) -> None:
        self.name, self.calls = name, 0
        self.before = list(sys.meta_path)

    def __call__(self) -> None:
        assert sys.modules[self.name].finished
        self.calls += 1

    def ran_once_and_left_no_hook(self) -> bool:
        """Returns whether the callback ran once and the import system has no hook left."""
        return self.calls == 1 and sys.meta_path == self.before


def test_callback_runs_at_once_for_an_imported_module(folder: Path) -> None:
    write(folder, "there.py", "finished = True")
    importlib.import_module("there")
    callback = CallbackCounter("there")
    _when_imported.call("there", callback)
    assert callback.ran_once_and_left_no_hook()


def test_callback_runs_once_after_a_later_import(folder: Path) -> None:
    write(folder, "later.py", "finished = True")
    callback = CallbackCounter("later")
    _when_imported.call("later", callback)
    importlib.import_module("json")
    assert callback.calls == 0
    module = importlib.import_module("later")
    assert callback.ran_once_and_left_no_hook()
    assert module.__spec__.origin == str(folder / "later.py")
    importlib.reload(module)
    assert callback.ran_once_and_left_no_hook()


def test_find_spec_does_not_run_the_callback(folder: Path) -> None:
    write(folder, "sought.py", "finished = True")
    callback = CallbackCounter("sought")
    _when_imported.call("sought", callback)
    for _ in range(3):
        assert importlib.util.find_spec("sought") is not None
    assert callback.calls == 0
    importlib.import_module("sought")
    assert callback.ran_once_and_left_no_hook()


def test_callback_runs_after_the_retry_of_a_failed_import(folder: Path) -> None:
    callback = CallbackCounter("flaky")
    _when_imported.call("flaky", callback)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("flaky")
    write(folder, "flaky.py", "raise ImportError('a library is missing')")
    with pytest.raises(ImportError, match="a library is missing"):
        importlib.import_module("flaky")
    assert callback.calls == 0
    write(folder, "flaky.py", "finished = True")
    importlib.import_module("flaky")
    assert callback.ran_once_and_left_no_hook()


def test_callback_runs_after_the_import_of_a_submodule(folder: Path) -> None:
    write(folder, "pack/__init__.py", "finished = True")
    write(folder, "pack/part.py", "import pack\nassert pack.finished")
    callback = CallbackCounter("pack")
    _when_imported.call("pack", callback)
    importlib.import_module("pack.part")
    assert callback.ran_once_and_left_no_hook()


def test_two_callbacks_for_one_module_run_once_each(folder: Path) -> None:
    write(folder, "both.py", "finished = True")
    first, second = CallbackCounter("both"), CallbackCounter("both")
    _when_imported.call("both", first)
    _when_imported.call("both", second)
    importlib.import_module("both")
    assert (first.calls, second.calls) == (1, 1)
    assert sys.meta_path == first.before


def register_during_import(name: str) -> CallbackCounter:
    """Registers a callback for a module during its import."""
    callback = CallbackCounter(name)
    _when_imported.call(name, callback)
    assert callback.calls == 0
    return callback


def test_callback_registered_during_import_runs_after_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper = ModuleType("helper")
    helper.register_during_import = register_during_import  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "helper", helper)
    write(folder, "inner.py", "import helper\ncallback = helper.register_during_import(__name__)\nfinished = True")
    spec = importlib.import_module("inner").__spec__
    assert sys.modules["inner"].callback.ran_once_and_left_no_hook()
    assert type(spec) is importlib.machinery.ModuleSpec


def test_callback_registered_during_a_failing_import_runs_after_the_retry(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper = ModuleType("helper")
    counters: list[CallbackCounter] = []
    helper.register = lambda: counters.append(register_during_import("broken"))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "helper", helper)
    write(folder, "broken.py", "import helper\nhelper.register()\nraise ImportError('no')")
    with pytest.raises(ImportError, match="no"):
        importlib.import_module("broken")
    write(folder, "broken.py", "finished = True")
    importlib.import_module("broken")
    assert counters[0].ran_once_and_left_no_hook()


def test_callback_runs_for_an_import_in_another_thread(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper = ModuleType("helper")
    helper.started, helper.resume = threading.Event(), threading.Event()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "helper", helper)
    write(folder, "slow.py", "import helper\nhelper.started.set()\nhelper.resume.wait(10)\nfinished = True")
    thread = threading.Thread(target=importlib.import_module, args=("slow",))
    thread.start()
    assert helper.started.wait(10)
    callback = register_during_import("slow")
    helper.resume.set()
    thread.join(10)
    assert callback.ran_once_and_left_no_hook()
