"""The device, its sensors, and the versions of the software."""

from __future__ import annotations

import importlib
import importlib.metadata
import platform
from dataclasses import dataclass
from types import ModuleType

from . import BenchError
from .statistics import median


def native() -> ModuleType:
    """Returns the native module."""
    try:
        return importlib.import_module("warpline._warpline")
    except ImportError as why:
        raise BenchError(f"Cannot load Warpline's native module: {why}.") from why


@dataclass(frozen=True)
class Machine:
    """The machine and the software versions of a run."""

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
    """Clocks and power; None if a sensor cannot be read."""

    sm_mhz: float | None = None
    memory_mhz: float | None = None
    watts: float | None = None


#: Used if torch does not report the L2 size.
L2_BYTES = 64 << 20


def require_cuda(ordinal: int) -> None:
    """Makes a CUDA device the current one, or raises BenchError."""
    try:
        import torch
    except (ImportError, OSError) as why:
        raise BenchError(f"Cannot import torch: {why}.") from why
    if not torch.cuda.is_available():
        raise BenchError("torch finds no CUDA device; only --list works without one.")
    count = torch.cuda.device_count()
    if not 0 <= ordinal < count:
        raise BenchError(f"--device must be a CUDA device from 0 to {count - 1}, not {ordinal}.")
    torch.cuda.set_device(ordinal)


def describe(ordinal: int) -> Machine:
    """Describes the machine."""
    import torch

    module = native()
    info = module.build_info()
    device = torch.cuda.get_device_properties(ordinal)
    return Machine(
        device=device.name,
        ordinal=ordinal,
        sms=getattr(device, "multi_processor_count", None),
        memory_bytes=getattr(device, "total_memory", None),
        l2_bytes=getattr(device, "L2_cache_size", 0) or L2_BYTES,
        driver=module.driver_version(),
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
        # A cuDNN that cannot be loaded counts as missing.
        return None


def version(package: str) -> str | None:
    """Returns the version of an installed package; None if it is missing."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def cudnn_version(number: int | None) -> str | None:
    """Formats cuDNN's version number: 91002 is 9.10.2, 8907 is 8.9.7."""
    if number is None:
        return None
    major = 10_000 if number >= 90_000 else 1_000
    return f"{number // major}.{number % major // 100}.{number % 100}"


def read(ordinal: int) -> Reading:
    """Reads the sensors; a sensor that cannot be read is None."""
    try:
        found = native().sensors(ordinal)
        return Reading(found.get("sm_mhz"), found.get("memory_mhz"), found.get("watts"))
    except Exception:
        # The report says that the sensors were not read.
        return Reading()


def median_reading(readings: list[Reading]) -> Reading:
    """Returns the median of each sensor."""
    return Reading(
        median(one.sm_mhz for one in readings),
        median(one.memory_mhz for one in readings),
        median(one.watts for one in readings),
    )
