"""The device, its sensors, and the versions of what takes part."""

from __future__ import annotations

import importlib
import importlib.metadata
import platform
from dataclasses import dataclass
from types import ModuleType

from . import Refusal
from .statistics import median


def native() -> ModuleType:
    """The compiled part of Warpline."""
    try:
        return importlib.import_module("warpline._warpline")
    except ImportError as why:
        raise Refusal(f"The compiled part of Warpline cannot be loaded: {why}.") from why


@dataclass(frozen=True)
class Machine:
    """Where a run took place, and with what."""

    device: str
    ordinal: int
    sms: int | None
    memory_bytes: int | None
    l2_bytes: int
    driver: str | None
    cuda: str | None
    cudnn: str | None
    torch: str
    triton: str | None
    python: str
    warpline: str | None
    commit: str | None


@dataclass(frozen=True)
class Reading:
    """Clocks and power at a moment; what cannot be read is none."""

    sm_mhz: float | None = None
    memory_mhz: float | None = None
    watts: float | None = None


#: Used where torch does not tell the size of the level-2 cache.
L2_BYTES = 64 << 20


def require_cuda(ordinal: int) -> None:
    """Makes a CUDA device the current one, or refuses in a sentence."""
    try:
        import torch
    except (ImportError, OSError) as why:
        raise Refusal(f"This needs torch, which cannot be imported: {why}.") from why
    if not torch.cuda.is_available():
        raise Refusal("torch sees no CUDA device here; only --list works without one.")
    count = torch.cuda.device_count()
    if not 0 <= ordinal < count:
        raise Refusal(f"There is no CUDA device {ordinal}; torch sees {count}, counted from 0.")
    torch.cuda.set_device(ordinal)


def describe(ordinal: int) -> Machine:
    """The machine as torch and Warpline see it."""
    import torch

    own = native()
    info = own.build_info()
    device = torch.cuda.get_device_properties(ordinal)
    return Machine(
        device=device.name,
        ordinal=ordinal,
        sms=getattr(device, "multi_processor_count", None),
        memory_bytes=getattr(device, "total_memory", None),
        l2_bytes=getattr(device, "L2_cache_size", 0) or L2_BYTES,
        driver=own.driver_version(),
        cuda=torch.version.cuda,
        cudnn=_cudnn(),
        torch=torch.__version__,
        triton=version("triton"),
        python=platform.python_version(),
        warpline=info.get("version"),
        commit=info.get("commit"),
    )


def _cudnn() -> str | None:
    import torch

    try:
        return cudnn_version(torch.backends.cudnn.version())
    except Exception:
        # A cuDNN that cannot be loaded is as good as none.
        return None


def version(package: str) -> str | None:
    """The version of an installed package; none where it is missing."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def cudnn_version(number: int | None) -> str | None:
    """cuDNN's number as a version: 91002 is 9.10.2, 8907 is 8.9.7."""
    if number is None:
        return None
    major = 10_000 if number >= 90_000 else 1_000
    return f"{number // major}.{number % major // 100}.{number % 100}"


def read(ordinal: int) -> Reading:
    """What the sensors show now; nothing where they cannot be read."""
    try:
        found = native().sensors(ordinal)
        return Reading(found.get("sm_mhz"), found.get("memory_mhz"), found.get("watts"))
    except Exception:
        # A run without clocks is still a run; that they are missing is said.
        return Reading()


def median_reading(readings: list[Reading]) -> Reading:
    """The median of each sensor."""
    return Reading(
        median(one.sm_mhz for one in readings),
        median(one.memory_mhz for one in readings),
        median(one.watts for one in readings),
    )
