"""Calls something once another module has been imported."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any


def call(name: str, then: Callable[[], None]) -> None:
    """Calls ``then`` now if the module is there, or right after its import."""
    module = sys.modules.get(name)
    if module is None:
        sys.meta_path.insert(0, _Finder(name, then))
    elif getattr(getattr(module, "__spec__", None), "_initializing", False):
        # It is importing us: its own loader is under way, and ends after us.
        _after(module.__spec__.loader, then)
    else:
        then()


class _Finder(MetaPathFinder):
    """Finds a module as all others would, and has its loader call back."""

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self.name, self.then = name, then

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name != self.name or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            sys.meta_path.insert(0, self)
        else:
            _after(spec.loader, self.then)
        return spec


def _after(loader: Any, then: Callable[[], None]) -> None:
    """Has a loader call ``then`` when the module's code has run."""
    run = loader.exec_module

    def exec_module(module: Any) -> None:
        run(module)
        then()

    loader.exec_module = exec_module
