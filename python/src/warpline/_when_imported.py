"""Runs a callback as soon as another module is imported."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any


def call(name: str, then: Callable[[], None]) -> None:
    """Calls ``then`` now if the module is imported, else right after its import."""
    module = sys.modules.get(name)
    if module is None:
        sys.meta_path.insert(0, _Finder(name, then))
        return
    spec = getattr(module, "__spec__", None)
    if getattr(spec, "_initializing", False):
        # The import is in progress: the module imports this package, or another thread imports it.
        _when_import_ends(spec, lambda: call(name, then))
    else:
        then()


class _Finder(MetaPathFinder):
    """A finder that delegates to the other finders and hooks the loader of one module.

    It stays installed until the import succeeds: a lookup may not import, and a failed
    import may be retried.
    """

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self.name, self.then = name, then
        self.is_delegating = False

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name != self.name or self.is_delegating:
            return None
        self.is_delegating = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.is_delegating = False
        if spec is not None and spec.loader is not None:
            self._hook(spec.loader)
        return spec

    def _hook(self, loader: Any) -> None:
        """Makes a loader run the callback after the module's code."""
        run = loader.exec_module

        def exec_module(module: Any) -> None:
            run(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self.then()

        loader.exec_module = exec_module


def _when_import_ends(spec: Any, then: Callable[[], None]) -> None:
    """Calls ``then`` when an import in progress ends, successfully or not.

    The loader has already run. The remaining signal is the spec: the import system sets its
    ``_initializing`` to false.
    """
    original = type(spec)

    class ObservedSpec(original):  # type: ignore[valid-type, misc]
        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value)
            if name == "_initializing" and not value:
                self.__class__ = original
                then()

    spec.__class__ = ObservedSpec
    if not spec._initializing:
        # Another thread has ended the import since the first test.
        spec._initializing = False
