"""The native part of the package: what Python cannot do itself.

Raises the exceptions of ``warpline._errors``. JSON is text: ``warpline._declared``
and ``warpline._tools`` read it.
"""

from collections.abc import Callable, Mapping
from typing import Any, final

@final
class View:
    """A device array of another library: where it lies, and who keeps it there."""

    @staticmethod
    def of_interface(array: Any, device: int) -> View:
        """From what an array's ``__cuda_array_interface__`` says."""

    @staticmethod
    def of_dlpack(capsule: Any) -> View:
        """From the capsule that an array's ``__dlpack__`` gives."""

    @property
    def stream(self) -> int | None:
        """The stream that the array is ready on, if its library says so."""

    @property
    def writable(self) -> bool:
        """May it be written?"""

def ops() -> str:
    """Every op, as JSON: its signature and the schemas that torch registers."""

def suites() -> str:
    """Every problem that is measured, as JSON: its suite, and the call that asks it."""

def build_info() -> dict[str, Any]:
    """The version of the package, and the commit that it was built from, if that is known."""

def simulate(index: int, args: tuple[Any, ...], outs: tuple[Any, ...], simulate: bool) -> None:
    """Runs an op on the CPU simulator.

    Tensors are ``(dtype, shape, strides, bytes)``: the layout is judged as on a
    GPU, and the bytes are those of a dense copy, little-endian; those of
    outputs are written. ``simulate`` lets it work for longer than 30 s.
    """

def launch(index: int, args: tuple[Any, ...], outs: tuple[Any, ...], stream: int | None = None) -> None:
    """Puts an op into a stream: torch's current one, or the one of that handle.

    Tensors are torch's, or a ``View`` of those of another library. Waits for nothing.
    """

def tune(index: int, args: tuple[Any, ...], outs: tuple[Any, ...], stream: int | None = None) -> None:
    """Tunes the problem of a call, unless a winner is remembered, and waits for that.

    Arguments are those of ``launch``.
    """

def may_differ(allowed: bool) -> bool:
    """Allows the calls of this thread what gives other bits from run to run, or forbids it.

    Gives what was allowed before.
    """

def use_torch(
    tensor: type,
    dtypes: list[tuple[Any, str]],
    stream: Callable[[int], int],
    workspace: Callable[[int, int], Any],
) -> None:
    """Tells what is used of torch.

    Its class of tensors; its types, with the names that they have here; the handle
    of a device's current stream; and zeros to work in, as a tensor, by bytes and device.
    """

def check(family: str, flags: Mapping[str, Any]) -> str:
    """Proves every kernel of a problem; gives JSON, or raises what the checker says."""

def emit(family: str, what: str, flags: Mapping[str, Any]) -> str:
    """The kernels of a problem as text: PTX, or the program (``what="ir"``)."""

def families() -> str:
    """Every family, with its default problem, as JSON."""

def devices() -> str:
    """What can run kernels here, and why the rest cannot, as JSON."""

def driver_version() -> str | None:
    """The version of the NVIDIA driver; none where there is no driver."""

def sensors(ordinal: int) -> dict[str, float | None]:
    """Clocks and power of a GPU now: ``sm_mhz``, ``memory_mhz``, ``watts``."""
