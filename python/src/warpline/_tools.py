"""Tools for kernel authors: check, emit, devices, families."""

from __future__ import annotations

import json
from typing import Any

from . import _warpline


def check(family: str, **flags: Any) -> dict[str, Any]:
    """Proves that the kernels of a problem have no deadlock and no data race.

    ``flags`` are the options of ``warpline check``, with ``_`` for ``-``: the problem, and the
    config fields to fix. Returns problem, config and kernels. Raises ``KernelError`` with the
    checker's report if a kernel is refuted or undecided.

    Example:
        >>> report = warpline.check("softmax", rows=4, cols=1024, dtype="bf16")
        >>> report["kernels"][0]["proved"]
        True
    """
    return json.loads(_warpline.check(family, flags))


def emit(family: str, what: str = "ptx", **flags: Any) -> str:
    """Returns the kernels of a problem as text: ``"ptx"`` for sm_90a, or Warpline's ``"ir"``.

    Example:
        >>> ".target sm_90a" in warpline.emit("vector-add", n=4096, schedule="specialized")
        True
    """
    return _warpline.emit(family, what, flags)


def devices() -> list[dict[str, Any]]:
    """Lists the devices of this machine, usable or with the reason that they are not.

    Example:
        >>> warpline.devices()[0]["name"]
        'cpu'
    """
    return json.loads(_warpline.devices())


def families() -> list[dict[str, Any]]:
    """Lists the kernel families: name, computation and default problem.

    Example:
        >>> [f["name"] for f in warpline.families()][:2]
        ['dual-gemm', 'nvfp4-dual-gemm']
    """
    return json.loads(_warpline.families())
