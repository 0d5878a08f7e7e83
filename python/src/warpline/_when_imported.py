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
        return
    spec = getattr(module, "__spec__", None)
    if getattr(spec, "_initializing", False):
        # Its code runs now: it imports us, or another thread imports it.
        _when_ended(spec, lambda: call(name, then))
    else:
        then()


class _Finder(MetaPathFinder):
    """Finds a module as all others would, and has its loader call back.

    It stays until the module is there: others look for a module without
    importing it, and an import can fail and be tried again.
    """

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self.name, self.then = name, then
        self.asks_others = False

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name != self.name or self.asks_others:
            return None
        self.asks_others = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.asks_others = False
        if spec is not None and spec.loader is not None:
            self._after(spec.loader)
        return spec

    def _after(self, loader: Any) -> None:
        """Has a loader call back when the module's code has run."""
        run = loader.exec_module

        def exec_module(module: Any) -> None:
            run(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self.then()

        loader.exec_module = exec_module


def _when_ended(spec: Any, then: Callable[[], None]) -> None:
    """Calls ``then`` when an import that is under way has ended, well or not.

    Its loader has been called already. What is left to see is that the import
    system then sets ``_initializing`` of the spec to false.
    """
    was = type(spec)

    class UnderWay(was):  # type: ignore[valid-type, misc]
        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value)
            if name == "_initializing" and not value:
                self.__class__ = was
                then()

    spec.__class__ = UnderWay
    if not spec._initializing:
        # It ended in between, in another thread.
        spec._initializing = False
