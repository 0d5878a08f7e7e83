"""Gated layers in NVFP4: inputs, torch's on operands that were made f16 before, and a reference."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..._nvfp4 import nvfp4_dequantize, scale_shape
from .. import inputs
from . import COMPILED, EAGER, Args, Bare, Built, Op, Peer, swiglu
from .matmul import matmul

if TYPE_CHECKING:
    from ..suites import Arg, Problem, TensorSpec


def codes(problem: Problem, spec: TensorSpec, generator: torch.Generator) -> Tensor:
    """Codes of magnitudes up to 1.5, with both signs, so that sums stay inside of f16."""
    drawn = torch.randint(
        0, 256, spec.shape, generator=generator, device=generator.device, dtype=torch.uint8
    )
    return drawn & 0b10111011


def scales(problem: Problem, spec: TensorSpec, generator: torch.Generator) -> Tensor:
    """Scales from 0 to 1."""
    drawn = torch.rand(spec.shape, generator=generator, device=generator.device)
    return drawn.to(torch.float8_e4m3fn)


#: The tensors of codes, and the scales of each.
SCALES = {"x": "x_scales", "w_gate": "gate_scales", "w_up": "up_scales"}


def small(problem: Problem) -> Problem:
    """The same problem with no side of codes longer than 64, and scales to fit."""
    little = inputs.small(problem)
    tensors = {arg.name: arg.tensor for arg in little.args}
    values = {arg.name: arg.value for arg in little.args}
    shapes = {}
    for name, block in SCALES.items():
        if (codes := tensors[name]) is not None:
            rows, half = codes.shape
            shapes[block] = scale_shape(rows, 2 * half, values["scale_layout"])

    def fit(arg: Arg) -> Arg:
        if arg.tensor is None or arg.name not in shapes:
            return arg
        return replace(arg, tensor=replace(arg.tensor, shape=shapes[arg.name]))

    return replace(little, args=tuple(fit(arg) for arg in little.args))


def _operands(args: Args) -> tuple[Tensor, Tensor, Tensor]:
    """x and both weights as numbers of 32 bits, which hold them exactly."""

    def number(name: str, block: Any) -> Tensor:
        value: Tensor = args[name]
        if value.dtype != torch.uint8:
            return value.float()
        return nvfp4_dequantize(value, block.to(torch.float8_e4m3fn), None, args["scale_layout"])

    x, gate, up = (number(name, args[block]) for name, block in SCALES.items())
    return x, gate, up


def reference(**args: Any) -> Tensor:
    """The layer in float64."""
    x, gate, up = (operand.double() for operand in _operands(args))
    return swiglu.reference(x, gate, up)


def _built(function: Any, args: Args, at_once: bool) -> Built:
    x, gate, up = (operand.half() for operand in _operands(args))
    note = "operands made f16 before"
    if not at_once:
        return Built(lambda: function(x, gate, up), note)
    weights = torch.cat([gate, up])
    return Built(lambda: function(x, weights), f"{note}, one product with both weights")


def eager(args: Args) -> Built:
    """torch: two products."""
    return _built(swiglu.swiglu, args, False)


def compiled(args: Args) -> Built:
    """The same through ``torch.compile``."""
    function = torch.compile(swiglu.swiglu, fullgraph=True, dynamic=False)
    return _built(function, args, False)


def compiled_at_once(args: Args) -> Built:
    """One product for both weights, through ``torch.compile``."""
    function = torch.compile(swiglu.swiglu_at_once, fullgraph=True, dynamic=False)
    return _built(function, args, True)


def one_product(args: Args) -> Built:
    """Both products as one of torch's, and nothing else."""
    return _built(lambda x, weights: matmul(x, weights.mT), args, True)


OP = Op(
    reference=reference,
    split=(),
    peers=(
        Peer("torch", EAGER, eager),
        Peer("torch.compile", COMPILED, compiled),
        Peer("torch.compile, one mm", COMPILED, compiled_at_once),
    ),
    draw={**dict.fromkeys(SCALES, codes), **dict.fromkeys(SCALES.values(), scales)},
    bare=Bare("torch", one_product),
    small=small,
)
