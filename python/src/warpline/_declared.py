"""The ops as Rust declares them: everything else here follows from that."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import Any

from . import _warpline


#: Element types of 8 bits that nothing comes out in.
FP8 = ("e4m3", "e5m2")


@dataclass(frozen=True)
class Param:
    """A parameter of an op."""

    name: str
    #: ``tensor``, ``number``, ``integer``, ``integers``, ``pairs``, ``text``, ``type`` or ``flag``.
    kind: str
    about: str
    #: Must every call give it?
    required: bool
    default: Any

    @property
    def is_tensor(self) -> bool:
        return self.kind == "tensor"


@dataclass(frozen=True)
class Output:
    """Something that comes out of an op."""

    name: str
    #: Its sides, outermost first: ``{"all": "x"}``, ``{"leading": "x"}``, ``{"at": ["x", 0]}``,
    #: ``{"last": "x"}``, ``{"shared": ["x", 0, "y"]}``: half of that side where y is not given,
    #: ``{"joined": ["x", 2]}``: that side and all behind it as one.
    sides: tuple[dict[str, Any], ...]
    #: The parameter whose element type it has.
    dtype_of: str
    #: The parameter that may name another; where there is one and a call does not give it, the
    #: type is bf16 for a float of 8 bits, and f16 for codes (u8).
    dtype_by: str | None

    @property
    def like(self) -> str | None:
        """The parameter whose shape it has, if it has one's."""
        match self.sides:
            case ({"all": name},) if name == self.dtype_of and self.dtype_by is None:
                return name
        return None

    def dtype(self, like: str, values: dict[str, Any]) -> str:
        """The name of its element type, from that of its parameter and the values of a call."""
        if self.dtype_by is None:
            return like
        given = values.get(self.dtype_by)
        if given is not None:
            return str(given)
        return {"u8": "f16", **dict.fromkeys(FP8, "bf16")}.get(like, like)

    def shape(self, shape_of: dict[str, Any]) -> tuple[Any, ...]:
        """Its shape, from those of the parameters."""
        sides: list[Any] = []
        for side in self.sides:
            match side:
                case {"all": name}:
                    sides.extend(shape_of[name])
                case {"leading": name}:
                    sides.extend(shape_of[name][:-1])
                case {"at": [name, i]}:
                    # Of a tensor with fewer sides the native part says so.
                    sides.extend(shape_of[name][i : i + 1])
                case {"last": name}:
                    sides.append(shape_of[name][-1])
                case {"shared": [name, i, other]}:
                    side = shape_of[name][i]
                    sides.append(side if shape_of.get(other) is not None else side // 2)
                case {"joined": [name, i]}:
                    sides.append(math.prod(shape_of[name][i:]))
        return tuple(sides)


@dataclass(frozen=True)
class Op:
    """An op: what it takes, and what comes out."""

    index: int
    name: str
    about: str
    example: str
    family: str
    params: tuple[Param, ...]
    outputs: tuple[Output, ...]
    schema: str
    out_schema: str
    #: The places of its parameters that are element types.
    types: tuple[int, ...] = ()
    #: The places of its parameters that are integers which the host must know.
    lists: tuple[int, ...] = ()
    #: Are those given as tensors, to be read when it runs?
    by_tensors: bool = False

    @property
    def registered(self) -> str:
        """Its name among torch's ops."""
        return f"{self.name}_tensors" if self.by_tensors else self.name

    def with_tensors(self) -> Op:
        """The same with tensors where it takes integers which the host must know."""
        own = {"schema": self.schema, "out_schema": self.out_schema}
        for key, text in own.items():
            own[key] = text.replace("SymInt[] ", "Tensor ").replace(self.name, f"{self.name}_tensors", 1)
        return replace(self, **own, by_tensors=True)

    @property
    def tensors(self) -> tuple[Param, ...]:
        """Its parameters that are tensors."""
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
    outputs = (Output(o["name"], tuple(o["sides"]), o["dtype_of"], o["dtype_by"]) for o in data["outputs"])
    return Op(
        index=index,
        name=data["name"],
        about=data["about"],
        example=data["example"],
        family=data["family"],
        params=tuple(map(_param, data["params"])),
        outputs=tuple(outputs),
        schema=data["schema"],
        out_schema=data["out_schema"],
        types=tuple(i for i, p in enumerate(data["params"]) if p["kind"] == "type"),
        lists=tuple(i for i, p in enumerate(data["params"]) if p["kind"] in ("integers", "pairs")),
    )


#: Every op, in the order that the native part knows them by.
OPS: tuple[Op, ...] = tuple(_op(i, data) for i, data in enumerate(json.loads(_warpline.ops())))
