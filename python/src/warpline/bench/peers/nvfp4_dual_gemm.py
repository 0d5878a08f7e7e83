"""Gated GEMM in NVFP4: inputs, torch on operands dequantized to f16 beforehand, and a reference."""

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


def draw_codes(problem: Problem, spec: TensorSpec, generator: torch.Generator) -> Tensor:
    """Draws codes of both signs with a magnitude of at most 1.5, so that the results fit f16."""
    drawn = torch.randint(
        0, 256, spec.shape, generator=generator, device=generator.device, dtype=torch.uint8
    )
    return drawn & 0b10111011


def draw_scales(problem: Problem, spec: TensorSpec, generator: torch.Generator) -> Tensor:
    """Draws scales from 0 to 1."""
    drawn = torch.rand(spec.shape, generator=generator, device=generator.device)
    return drawn.to(torch.float8_e4m3fn)


#: The code tensors and their scales.
SCALES = {"x": "x_scales", "w_gate": "gate_scales", "w_up": "up_scales"}


def small(problem: Problem) -> Problem:
    """Returns the same problem with every dimension of the codes cut to 64, and matching scales."""
    reduced = inputs.small(problem)
    tensors = {arg.name: arg.tensor for arg in reduced.args}
    values = {arg.name: arg.value for arg in reduced.args}
    shapes = {}
    for name, block in SCALES.items():
        if (codes := tensors[name]) is not None:
            rows, half = codes.shape
            shapes[block] = scale_shape(rows, 2 * half, values["scale_layout"])

    def fit(arg: Arg) -> Arg:
        if arg.tensor is None or arg.name not in shapes:
            return arg
        return replace(arg, tensor=replace(arg.tensor, shape=shapes[arg.name]))

    return replace(reduced, args=tuple(fit(arg) for arg in reduced.args))


def _operands(args: Args) -> tuple[Tensor, Tensor, Tensor]:
    """Returns x and both weights in float32, which represents them exactly."""

    def dequantized(name: str, block: Any) -> Tensor:
        value: Tensor = args[name]
        if value.dtype != torch.uint8:
            return value.float()
        return nvfp4_dequantize(value, block.to(torch.float8_e4m3fn), None, args["scale_layout"])

    x, gate, up = (dequantized(name, args[block]) for name, block in SCALES.items())
    return x, gate, up


def reference(**args: Any) -> Tensor:
    """Computes the gated GEMM in float64."""
    x, gate, up = (operand.double() for operand in _operands(args))
    return swiglu.reference(x, gate, up)


def _built(function: Any, args: Args, as_one_gemm: bool) -> Built:
    x, gate, up = (operand.half() for operand in _operands(args))
    note = "operands dequantized to f16 beforehand"
    if not as_one_gemm:
        return Built(lambda: function(x, gate, up), note)
    weights = torch.cat([gate, up])
    return Built(lambda: function(x, weights), f"{note}, one GEMM with both weights")


def eager(args: Args) -> Built:
    """Builds torch eager: two GEMMs."""
    return _built(swiglu.swiglu, args, False)


def compiled(args: Args) -> Built:
    """Builds two GEMMs through ``torch.compile``."""
    function = torch.compile(swiglu.swiglu, fullgraph=True, dynamic=False)
    return _built(function, args, False)


def compiled_one_gemm(args: Args) -> Built:
    """Builds one GEMM for both weights through ``torch.compile``."""
    function = torch.compile(swiglu.swiglu_one_gemm, fullgraph=True, dynamic=False)
    return _built(function, args, True)


def one_gemm(args: Args) -> Built:
    """Builds both GEMMs as one torch GEMM, without the gate."""
    return _built(lambda x, weights: matmul(x, weights.mT), args, True)


OP = Op(
    reference=reference,
    split=(),
    peers=(
        Peer("torch", EAGER, eager),
        Peer("torch.compile", COMPILED, compiled),
        Peer("torch.compile, one mm", COMPILED, compiled_one_gemm),
    ),
    draw={**dict.fromkeys(SCALES, draw_codes), **dict.fromkeys(SCALES.values(), draw_scales)},
    bare=Bare("torch", one_gemm),
    small=small,
)
