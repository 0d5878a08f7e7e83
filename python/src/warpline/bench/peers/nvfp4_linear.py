"""Linear layer with a weight in NVFP4: inputs, torch on the weight dequantized beforehand, a reference."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional

from ..._nvfp4 import layout_of, nvfp4_dequantize, scale_shape
from .. import inputs
from . import EAGER, Args, Built, Op, Peer
from .nvfp4_dual_gemm import draw_codes, draw_scales

if TYPE_CHECKING:
    from ..suites import Arg, Problem


def small(problem: Problem) -> Problem:
    """Returns the same problem with every dimension of x and the codes cut to 64, and matching scales."""
    reduced = inputs.small(problem)
    values = {arg.name: arg.value for arg in reduced.args}
    (codes,) = (arg.tensor for arg in reduced.args if arg.name == "weight")
    (x,) = (arg.tensor for arg in reduced.args if arg.name == "x")
    if codes is None or x is None:
        return reduced
    shapes = {
        "x": (*x.shape[:-1], 2 * codes.shape[1]),
        "weight_scales": scale_shape(codes.shape[0], 2 * codes.shape[1], values["scale_layout"]),
    }

    def fit(arg: Arg) -> Arg:
        if arg.tensor is None or arg.name not in shapes:
            return arg
        return replace(arg, tensor=replace(arg.tensor, shape=shapes[arg.name]))

    return replace(reduced, args=tuple(fit(arg) for arg in reduced.args))


def _weight(args: Args) -> Tensor:
    """Returns the weight in float32, which represents it exactly."""
    codes, scales = args["weight"], args["weight_scales"]
    layout = layout_of(scales, codes.shape[0], 2 * codes.shape[1], args["scale_layout"])
    return nvfp4_dequantize(codes, scales.to(torch.float8_e4m3fn), None, layout)


def reference(**args: Any) -> Tensor:
    """Computes the layer in float64."""
    return args["x"].double() @ _weight(args).double().mT


def eager(args: Args) -> Built:
    """Builds torch eager: cuBLAS on the dequantized weight."""
    x, weight = args["x"], _weight(args).to(args["x"].dtype)
    return Built(lambda: functional.linear(x, weight), "weight dequantized beforehand")


OP = Op(
    reference=reference,
    split=("x",),
    peers=(Peer("torch", EAGER, eager),),
    draw={"weight": draw_codes, "weight_scales": draw_scales},
    small=small,
)
