"""The ops as the Rust families declare them; functions and torch ops are generated from these."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import Any

from . import _warpline


#: 8-bit element types that no output has by default.
FP8 = ("e4m3", "e5m2")


@dataclass(frozen=True)
class Param:
    """A parameter of an op."""

    name: str
    #: ``tensor``, ``number``, ``integer``, ``integers``, ``pairs``, ``pair``, ``text``, ``type`` or ``flag``.
    kind: str
    about: str
    #: Whether every call must pass it.
    required: bool
    default: Any

    @property
    def is_tensor(self) -> bool:
        return self.kind == "tensor"


@dataclass(frozen=True)
class Output:
    """An output of an op."""

    name: str
    #: Its dimensions, outermost first: ``{"all": "x"}``, ``{"leading": "x"}``, ``{"index": ["x", 0]}``,
    #: ``{"last": "x"}``, ``{"half-unless": ["x", 0, "y"]}`` (half of that dimension if y is omitted),
    #: ``{"flattened": ["x", 2]}`` (the product of that dimension and all inner ones),
    #: ``{"rows-last": "x"}`` (of [..., S, H, D], [..., H, S]),
    #: ``{"mat-mul": ["a", "b"]}`` (the dimensions of ``torch.matmul(a, b)``).
    dims: tuple[dict[str, Any], ...]
    #: The parameter with the same element type.
    dtype_of: str
    #: The parameter that may override the element type. If the call omits it, fp8 becomes bf16 and
    #: NVFP4 codes (u8) become f16.
    dtype_override: str | None
    #: The element type, if it does not follow from a parameter.
    fixed_dtype: str | None = None

    @property
    def like(self) -> str | None:
        """The parameter with the same shape and element type, if there is one."""
        match self.dims:
            case ({"all": name},) if name == self.dtype_of and self.dtype_override is None and self.fixed_dtype is None:
                return name
        return None

    def dtype(self, like: str, values: dict[str, Any]) -> str:
        """Returns the name of the element type, from that of its parameter and the values of a call."""
        if self.fixed_dtype is not None:
            return self.fixed_dtype
        if self.dtype_override is None:
            return like
        given = values.get(self.dtype_override)
        if given is not None:
            return str(given)
        return {"u8": "f16", **dict.fromkeys(FP8, "bf16")}.get(like, like)

    def shape(self, shape_of: dict[str, Any]) -> tuple[Any, ...]:
        """Returns the shape, from the shapes of the parameters."""
        dims: list[Any] = []
        for dim in self.dims:
            match dim:
                case {"all": name}:
                    dims.extend(shape_of[name])
                case {"leading": name}:
                    dims.extend(shape_of[name][:-1])
                case {"index": [name, i]}:
                    # The native module rejects a tensor with fewer dimensions.
                    dims.extend(shape_of[name][i : i + 1])
                case {"last": name}:
                    dims.extend(shape_of[name][-1:])
                case {"half-unless": [name, i, other]}:
                    size = shape_of[name][i]
                    dims.append(size if shape_of.get(other) is not None else size // 2)
                case {"flattened": [name, i]}:
                    dims.append(math.prod(shape_of[name][i:]))
                case {"rows-last": name}:
                    leading = shape_of[name][:-1]
                    dims.extend((*leading[:-2], *reversed(leading[-2:])))
                case {"mat-mul": [a, b]}:
                    dims.extend(matmul_shape(shape_of[a], shape_of[b]))
        return tuple(dims)


def matmul_shape(a: Any, b: Any) -> tuple[Any, ...]:
    """Returns the shape of ``torch.matmul``; ``a`` and ``b`` are the shapes of the operands. The native
    module rejects batches that do not broadcast."""
    if len(b) == 2:
        return (*a[:-1], b[1])
    batches = [tuple(shape[:-2]) for shape in (a, b)]
    rank = max(map(len, batches))
    padded = [(1,) * (rank - len(batch)) + batch for batch in batches]
    batch = (y if x == 1 else x for x, y in zip(*padded))
    return (*batch, *a[-2:-1], *(b[-1:] if len(b) > 1 else ()))


@dataclass(frozen=True)
class OptionalOutput:
    """An output that a flag of the function adds."""

    flag: str
    about: str
    #: The op with this output.
    variant: str


@dataclass(frozen=True)
class Op:
    """An op: its parameters and outputs."""

    index: int
    name: str
    about: str
    example: str
    family: str
    params: tuple[Param, ...]
    outputs: tuple[Output, ...]
    optional_output: OptionalOutput | None
    schema: str
    out_schema: str
    #: The indices of the parameters that are element types.
    types: tuple[int, ...] = ()
    #: The indices of the parameters that are lists of integers, needed on the host.
    lists: tuple[int, ...] = ()
    #: Whether the op takes those lists as tensors and reads them when it runs.
    takes_list_tensors: bool = False

    @property
    def torch_name(self) -> str:
        """The name of the torch op."""
        return f"{self.name}_tensors" if self.takes_list_tensors else self.name

    def with_list_tensors(self) -> Op:
        """Returns the variant that takes its lists of integers as tensors."""
        schemas = {"schema": self.schema, "out_schema": self.out_schema}
        for key, text in schemas.items():
            schemas[key] = text.replace("SymInt[] ", "Tensor ").replace(self.name, f"{self.name}_tensors", 1)
        return replace(self, **schemas, takes_list_tensors=True)

    @property
    def tensors(self) -> tuple[Param, ...]:
        """The tensor parameters."""
        return tuple(p for p in self.params if p.is_tensor)


def _param(data: dict[str, Any]) -> Param:
    return Param(
        name=data["name"],
        kind=data["kind"],
        about=data["about"],
        required=not data["optional"],
        default=data["default"],
    )


def _op(index: int, data: dict[str, Any]) -> Op:
    outputs = (Output(**{**o, "dims": tuple(o["dims"])}) for o in data["outputs"])
    optional = data["optional_output"]
    return Op(
        index=index,
        name=data["name"],
        about=data["about"],
        example=data["example"],
        family=data["family"],
        params=tuple(map(_param, data["params"])),
        outputs=tuple(outputs),
        optional_output=optional and OptionalOutput(optional["flag"], optional["about"], optional["variant"]),
        schema=data["schema"],
        out_schema=data["out_schema"],
        types=tuple(i for i, p in enumerate(data["params"]) if p["kind"] == "type"),
        lists=tuple(i for i, p in enumerate(data["params"]) if p["kind"] in ("integers", "pairs")),
    )


#: Every op, in the order of the native module.
OPS: tuple[Op, ...] = tuple(_op(i, data) for i, data in enumerate(json.loads(_warpline.ops())))
