"""The native module of the package.

Raises the exceptions of ``warpline._errors``. JSON is returned as text; ``warpline._declared``
and ``warpline._tools`` parse it.
"""

from collections.abc import Callable, Mapping
from typing import Any, final

@final
class View:
    """A GPU array of another library and its owner."""

    @staticmethod
    def from_cuda_array_interface(array: Any, device: int) -> View:
        """Creates a view from ``__cuda_array_interface__``."""

    @staticmethod
    def from_dlpack(capsule: Any) -> View:
        """Creates a view from the capsule of ``__dlpack__``."""

    @property
    def stream(self) -> int | None:
        """The stream that the array is ready on, if its library reports one."""

    @property
    def writable(self) -> bool:
        """Whether the array may be written."""

def ops() -> str:
    """Returns every op as JSON: signature, torch schemas, type stub."""

def suites() -> str:
    """Returns every benchmark problem as JSON: its suite and its call."""

def surveys() -> str:
    """Returns every problem of the surveys as JSON: its suite and its call."""

def survey_names() -> list[str]:
    """Returns the names of the surveys."""

def build_info() -> dict[str, Any]:
    """Returns the version of the package and the commit that it was built from, if known."""

def simulate(index: int, args: tuple[Any, ...], outs: tuple[Any, ...], simulate: bool) -> None:
    """Runs an op on the CPU executor.

    Tensors are ``(dtype, shape, strides, bytes)``. The layout is checked as on a GPU. The bytes
    are those of a dense little-endian copy; output bytes are written. ``simulate`` allows runs
    of more than 30 s.
    """

def check_call(index: int, args: tuple[Any, ...], outs: list[tuple[str, tuple[int, ...], tuple[int, ...]]]) -> None:
    """Rejects a call that breaks a rule of the op, and accepts one that no kernel supports.

    Tensors are ``(dtype, shape, strides)``.
    """

def launch(
    index: int, args: tuple[Any, ...], outs: tuple[Any, ...], stream: int | None = None, new: bool = False
) -> None:
    """Launches an op on a stream: the given one, else torch's current one.

    Tensors are torch tensors, or a ``View`` of another library's arrays. Does not synchronize.
    ``new`` states that the op allocated the outputs.
    """

def direct(index: int, args: tuple[Any, ...], dispatched: bool = False) -> Any:
    """Launches an op on torch tensors without torch's dispatcher, and returns its outputs.

    Returns None if the call must take the dispatcher: a mode, a transform, a trace, a gradient, a tensor
    that is not on a GPU, or the first call of its kind. ``dispatched`` states that the dispatcher calls.
    """

def tune(index: int, args: tuple[Any, ...], outs: tuple[Any, ...], stream: int | None = None) -> None:
    """Autotunes the problem of a call, unless a tuned config is cached; blocks until it is done.

    Takes the arguments of ``launch``.
    """

def allow_nondeterministic(allowed: bool) -> bool:
    """Allows or forbids configs whose results may differ in bits from run to run.

    Applies to the calls of this thread; returns the previous setting.
    """

def use_torch(
    tensor: type,
    dtypes: list[tuple[Any, str]],
    stream: Callable[[int], int],
    workspace: Callable[[int, int], Any],
    hooks: tuple[list[Any], list[Any], list[Any]] | None,
) -> None:
    """Sets the parts of torch in use.

    ``tensor`` is its tensor class, ``dtypes`` its element types with Warpline's names. ``stream``
    maps a device to its current stream, ``workspace`` bytes and a device to a zeroed tensor.
    ``hooks`` has the parts that ``direct`` uses.
    """

def check(family: str, flags: Mapping[str, Any]) -> str:
    """Proves every kernel of a problem; returns JSON, or raises the checker's report."""

def emit(family: str, what: str, flags: Mapping[str, Any]) -> str:
    """Returns the kernels of a problem as text: PTX, or Warpline's IR (``what="ir"``)."""

def families() -> str:
    """Returns every family with its default problem as JSON."""

def devices() -> str:
    """Returns the devices of this machine as JSON, usable or with the reason that they are not."""

def driver_version() -> str | None:
    """Returns the version of the NVIDIA driver; None without a driver."""

def sensors(ordinal: int) -> dict[str, float | None]:
    """Returns the current clocks and power of a GPU: ``sm_mhz``, ``memory_mhz``, ``watts``."""
