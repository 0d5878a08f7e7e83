"""Integers in torch's tensors, read from a GPU once and known until somebody writes them."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import torch

from ._declared import Op, Param
from ._errors import RefusedError
from ._integers import wrong


@dataclass(frozen=True)
class _Entry:
    """What a tensor held when it had that version."""

    tensor: weakref.ref[torch.Tensor]
    version: int
    numbers: list[int]


class Known:
    """What tensors hold, by the objects that they are. Those that die are forgotten."""

    def __init__(self) -> None:
        self._entries: dict[int, _Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, tensor: torch.Tensor) -> list[int] | None:
        """What a tensor holds; none where it was not read, or written since."""
        entry = self._entries.get(id(tensor))
        if entry is None or entry.tensor() is not tensor or entry.version != tensor._version:
            return None
        return entry.numbers

    def read(self, tensor: torch.Tensor) -> list[int]:
        """Reads a tensor, which waits for its device, and keeps what it holds."""
        if tensor.is_inference():
            # Nobody counts how often these are written.
            return tensor.flatten().tolist()
        key, version = id(tensor), tensor._version
        numbers = tensor.flatten().tolist()

        def forget(gone: weakref.ref[torch.Tensor]) -> None:
            if (entry := self._entries.get(key)) is not None and entry.tensor is gone:
                del self._entries[key]

        self._entries[key] = _Entry(weakref.ref(tensor, forget), version, numbers)
        return numbers


_KNOWN = Known()


def integers(op: Op, param: Param, tensor: torch.Tensor) -> list[int]:
    """The integers of a tensor, one after the other.

    One on the host is read anew in each call: NumPy may write it, and torch would not know.
    """
    dims = 2 if param.kind == "pairs" else 1
    whole = not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)
    if not whole or tensor.dim() != dims or (dims == 2 and tensor.shape[1] != 2):
        raise wrong(op, param, f"{tensor.dtype} {list(tensor.shape)}")
    if not tensor.is_cuda:
        return tensor.flatten().tolist()
    known = _KNOWN.get(tensor)
    if known is not None:
        return known
    if torch.cuda.is_current_stream_capturing():
        raise RefusedError(
            f"{op.name}: {param.name} is a tensor on the GPU that was not read yet, and nothing can be"
            " read while the stream is captured: call it with this tensor before, or pass a list",
            "read-in-capture",
        )
    return _KNOWN.read(tensor)
