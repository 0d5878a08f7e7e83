"""Integers of GPU tensors, copied to the host once and cached until torch writes the tensor."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import torch

from ._declared import Op, Param
from ._errors import KernelError
from ._integers import not_integers


@dataclass(frozen=True)
class _Entry:
    """The integers of a tensor at a version."""

    tensor: weakref.ref[torch.Tensor]
    version: int
    numbers: list[int]


class IntegerCache:
    """The integers of tensors, by object identity. Entries of deleted tensors are removed."""

    def __init__(self) -> None:
        self._entries: dict[int, _Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, tensor: torch.Tensor) -> list[int] | None:
        """Returns the integers of a tensor; None if it was not read, or if torch wrote it since."""
        entry = self._entries.get(id(tensor))
        if entry is None or entry.tensor() is not tensor or entry.version != tensor._version:
            return None
        return entry.numbers

    def read(self, tensor: torch.Tensor) -> list[int]:
        """Copies a tensor to the host, which synchronizes with its device, and caches it."""
        if tensor.is_inference():
            # Inference tensors have no version counter.
            return tensor.flatten().tolist()
        key, version = id(tensor), tensor._version
        numbers = tensor.flatten().tolist()

        def remove(dead: weakref.ref[torch.Tensor]) -> None:
            if (entry := self._entries.get(key)) is not None and entry.tensor is dead:
                del self._entries[key]

        self._entries[key] = _Entry(weakref.ref(tensor, remove), version, numbers)
        return numbers


_CACHE = IntegerCache()


def integers(op: Op, param: Param, tensor: torch.Tensor) -> list[int]:
    """Returns the integers of a tensor, flattened.

    A host tensor is read in every call, because NumPy may write it without changing the version.
    """
    dims = 2 if param.kind == "pairs" else 1
    is_integer = not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)
    if not is_integer or tensor.dim() != dims or (dims == 2 and tensor.shape[1] != 2):
        raise not_integers(op, param, f"{tensor.dtype} {list(tensor.shape)}")
    if not tensor.is_cuda:
        return tensor.flatten().tolist()
    cached = _CACHE.get(tensor)
    if cached is not None:
        return cached
    if torch.cuda.is_current_stream_capturing():
        raise KernelError(
            f"{op.name}: {param.name} is a GPU tensor that was not read yet, and a captured stream cannot"
            " read it: call the op once with this tensor before the capture, or pass a list",
            "read-in-capture",
        )
    return _CACHE.read(tensor)
