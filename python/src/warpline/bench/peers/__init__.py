"""What each op is compared with. This is the only file that knows ops by name.

An op needs one entry in :data:`OPS`: its float64 reference, the arguments that
may be cut into chunks for it, and its peers. The functions themselves live in
modules that are imported when they are needed, as torch and Triton are.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import inputs
from .inputs import Args, Draw
from .suites import Problem

#: Does the work once, on inputs that it holds; waits for nothing.
Call = Callable[[], Any]
#: Says why something does not apply to a problem; none where it does.
WhyNot = Callable[[Problem], str | None]

#: The kinds of peers. The first gives the yardstick for errors.
EAGER, COMPILED, CUBLAS, CUDNN, TRITON = "eager", "compiled", "cublas", "cudnn", "triton"


@dataclass(frozen=True)
class Built:
    """A contender on its inputs."""

    call: Call
    #: How it was set up, for the record.
    note: str = ""


@dataclass(frozen=True)
class Peer:
    """Another way to solve the problems of an op."""

    name: str
    kind: str
    build: Callable[[Args], Built]
    why_not: WhyNot = lambda problem: None
    #: How many times what is right its errors may be, where it is less exact by nature: it is
    #: timed then, and its error told.
    slack: float = 1.0


@dataclass(frozen=True)
class Tolerance:
    """What every element of an output may be off: so much, and a share of what is expected."""

    least: float
    share: float


@dataclass(frozen=True)
class Bare:
    """The product of an op alone: what the rest costs is seen beside it."""

    #: Whose it is.
    name: str
    build: Callable[[Args], Built]


@dataclass(frozen=True)
class Op:
    """What an op is compared with."""

    #: Takes the arguments by name, floats in float64, and gives the output or a tuple of them.
    reference: Callable[..., Any]
    #: Arguments that are cut along their first side, as the outputs are, so
    #: that the reference fits into memory; the others are passed whole.
    split: tuple[str, ...]
    peers: tuple[Peer, ...]
    #: Tensors that are not drawn from N(0, 1).
    draw: Mapping[str, Draw] = field(default_factory=dict)
    bare: Bare | None = None
    #: The same problem with small tensors, where sides are not all cut alike.
    small: Callable[[Problem], Problem] = inputs.small
    #: What is right, by element type, where torch's own function is no yardstick.
    tolerance: Mapping[str, Tolerance] = field(default_factory=dict)


def found(module: str, name: str) -> Callable[..., Any]:
    """A function of a module of this package, which is imported now."""
    return getattr(importlib.import_module(f".{module}", __package__), name)


def later(module: str, name: str) -> Callable[..., Any]:
    """A function of a module of this package, which is imported when it is called."""
    return lambda *args, **kwargs: found(module, name)(*args, **kwargs)


def eager(module: str, name: str) -> Peer:
    """torch's own function."""

    def build(args: Args) -> Built:
        function = found(module, name)
        return Built(lambda: function(**args))

    return Peer("torch", EAGER, build)


def compiled(module: str, name: str) -> Peer:
    """The same through ``torch.compile``, for this shape alone."""

    def build(args: Args) -> Built:
        import torch

        function = torch.compile(found(module, name), fullgraph=True, dynamic=False)
        return Built(lambda: function(**args))

    return Peer("torch.compile", COMPILED, build)


def triton(module: str, name: str, why_not: WhyNot = lambda problem: None) -> Peer:
    """A Triton kernel, by a function that takes the arguments and builds it."""

    def missing(problem: Problem) -> str | None:
        if importlib.util.find_spec("triton") is None:
            return "Triton is not installed"
        return why_not(problem)

    def build(args: Args) -> Built:
        built: Built = found(module, name)(**args)
        return built

    return Peer("Triton", TRITON, build, missing)


def longer_rows_than(most: int) -> WhyNot:
    """Rows of the first tensor must not be longer than this."""

    def why_not(problem: Problem) -> str | None:
        shape = next(arg.tensor.shape for arg in problem.args if arg.tensor)
        if shape[-1] <= most:
            return None
        return f"one program holds a row of at most {most} elements"

    return why_not


def row_op(name: str) -> Op:
    """An op on the rows of ``x``."""
    return Op(
        reference=later("torch_rows", f"{name}_reference"),
        split=("x",),
        peers=(
            eager("torch_rows", name),
            compiled("torch_rows", name),
            triton("triton_rows", name, longer_rows_than(32768)),
        ),
    )


def our_product(args: Args) -> Built:
    """The product of a layer alone, by our own kernel."""
    function = importlib.import_module("warpline").matmul
    a, b = args["x"], args["weight"].mT
    scales = args.get("scale_x"), args.get("scale_weight"), args.get("out_dtype")
    return Built(lambda: function(a, b, *scales))


def concatenated(args: Args) -> tuple[Any, Any]:
    """x and both weights of a gated layer as one tensor."""
    import torch

    return args["x"], torch.cat([args["w_gate"], args["w_up"]])


def one_product(args: Args) -> Built:
    """Both products of a gated layer as one of torch's, and nothing else."""
    function = found("torch_products", "matmul")
    x, weights = concatenated(args)
    scales = args["scale_x"], args["scale_gate"]
    return Built(lambda: function(x, weights.mT, *scales))


def compiled_at_once(args: Args) -> Built:
    """A gated layer through ``torch.compile``, with one product for both weights."""
    import torch

    function = torch.compile(
        found("torch_products", "swiglu_at_once"), fullgraph=True, dynamic=False
    )
    x, weights = concatenated(args)
    scales = args["scale_x"], args["scale_gate"]
    return Built(lambda: function(x, weights, *scales), "one product with both weights")


#: Tensors that hold a scale.
SCALES = (
    "scale_a",
    "scale_b",
    "scale_x",
    "scale_weight",
    "scale_gate",
    "scale_up",
)


def product(
    name: str, split: tuple[str, ...], bare: Bare | None = None, more: tuple[Peer, ...] = ()
) -> Op:
    """An op that multiplies matrices: torch's own is cuBLAS's."""
    return Op(
        reference=later("torch_products", f"{name}_reference"),
        split=split,
        peers=(
            eager("torch_products", name),
            compiled("torch_products", name),
            *more,
        ),
        draw={scale: later("torch_products", "one") for scale in SCALES},
        bare=bare,
    )


#: Every op that has peers.
OPS: dict[str, Op] = {
    "add": Op(
        reference=later("torch_rows", "add_reference"),
        split=("a", "b"),
        peers=(
            eager("torch_rows", "add"),
            compiled("torch_rows", "add"),
            triton("triton_rows", "add"),
        ),
    ),
    "softmax": row_op("softmax"),
    "layer_norm": row_op("layer_norm"),
    "rms_norm": row_op("rms_norm"),
    "matmul": product("matmul", ("a",)),
    "linear": product("linear", ("x", "residual"), Bare("warpline", our_product)),
    "swiglu": product(
        "swiglu",
        ("x",),
        Bare("torch", one_product),
        (Peer("torch.compile, one mm", COMPILED, compiled_at_once),),
    ),
    "nvfp4_dual_gemm": Op(
        reference=later("torch_nvfp4", "reference"),
        split=(),
        peers=(
            Peer("torch", EAGER, later("torch_nvfp4", "eager")),
            Peer("torch.compile", COMPILED, later("torch_nvfp4", "compiled")),
            Peer("torch.compile, one mm", COMPILED, later("torch_nvfp4", "compiled_at_once")),
        ),
        draw={
            **dict.fromkeys(("x", "w_gate", "w_up"), later("torch_nvfp4", "codes")),
            **dict.fromkeys(
                ("x_scales", "gate_scales", "up_scales"), later("torch_nvfp4", "scales")
            ),
        },
        bare=Bare("torch", later("torch_nvfp4", "one_product")),
        small=later("torch_nvfp4", "small"),
    ),
    "ms_deform_attn": Op(
        reference=later("torch_msda", "reference"),
        split=("value", "sampling_locations", "attention_weights"),
        # Both work out where points are in 16 bits.
        peers=(
            Peer("torch", EAGER, later("torch_msda", "eager"), slack=100),
            Peer("torch.compile", COMPILED, later("torch_msda", "compiled"), slack=100),
        ),
        draw={
            "value": later("torch_msda", "value"),
            "sampling_locations": later("torch_msda", "locations"),
            "attention_weights": later("torch_msda", "weights"),
        },
        small=later("torch_msda", "small"),
        tolerance={
            "f16": Tolerance(2e-3, 2.0**-10),
            "bf16": Tolerance(4e-3, 2.0**-7),
            "f32": Tolerance(2e-5, 2.0**-18),
        },
    ),
}
