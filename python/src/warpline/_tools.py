"""For authors of kernels, and what is on this machine."""

from __future__ import annotations

import json
from typing import Any

from . import _warpline


def check(family: str, **flags: Any) -> dict[str, Any]:
    """Proves the kernels of a problem free of deadlock and races.

    ``flags`` are those of the command line, with ``_`` for ``-``: the problem,
    and what is to be fixed of the config. Gives problem, config and kernels;
    raises ``RefusedError`` with what the checker says where it refuses one.

    Example:
        >>> answer = warpline.check("softmax", rows=4, cols=1024, dtype="bf16")
        >>> answer["kernels"][0]["proved"]
        True
    """
    return json.loads(_warpline.check(family, flags))


def emit(family: str, what: str = "ptx", **flags: Any) -> str:
    """The kernels of a problem as text: ``"ptx"`` for sm_90a, or the program as ``"ir"``.

    Example:
        >>> ".target sm_90a" in warpline.emit("vector-add", n=4096, form="specialized")
        True
    """
    return _warpline.emit(family, what, flags)


def devices() -> list[dict[str, Any]]:
    """What can run kernels here, and why the rest cannot.

    Example:
        >>> warpline.devices()[0]["name"]
        'cpu'
    """
    return json.loads(_warpline.devices())


def families() -> list[dict[str, Any]]:
    """The kernel families, with what they compute and their default problem.

    Example:
        >>> [f["name"] for f in warpline.families()][:2]
        ['dual-gemm', 'nvfp4-dual-gemm']
    """
    return json.loads(_warpline.families())
