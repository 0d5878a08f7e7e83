"""The input tensors of a problem, shared by all implementations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .suites import Arg, Problem, TensorSpec

if TYPE_CHECKING:
    import torch

#: Arguments by name, in the order of the op's parameters.
Args = dict[str, Any]
#: Creates a tensor that is not drawn from N(0, 1).
Draw = Callable[[Problem, TensorSpec, "torch.Generator"], "torch.Tensor"]

#: Element types: Warpline's name and torch's.
DTYPES = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "ue8m0": "float8_e8m0fnu",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "u8": "uint8",
    "bool": "bool",
}
#: The current CUDA device.
DEVICE = "cuda"
#: The largest dimension of a small problem.
SMALL = 64


def torch_dtype(name: str) -> torch.dtype:
    """Returns torch's dtype for a name."""
    import torch

    found = getattr(torch, DTYPES.get(name, ""), None)
    if found is None:
        raise TypeError(f"torch has no dtype for {name!r}")
    return found


def dtype_name(dtype: torch.dtype) -> str:
    """Returns the short name of a torch dtype."""
    torch_name = str(dtype).removeprefix("torch.")
    return next((short for short, name in DTYPES.items() if name == torch_name), torch_name)


def draw(problem: Problem, seed: int, special: Mapping[str, Draw] | None = None) -> Args:
    """Creates the arguments of a problem: those in ``special``, else floats from N(0, 1) and integers 0."""
    import torch

    generator = torch.Generator(DEVICE).manual_seed(seed)
    args: Args = {}
    for arg in problem.args:
        if arg.tensor is None:
            args[arg.name] = arg.value
        elif special and arg.name in special:
            args[arg.name] = special[arg.name](problem, arg.tensor, generator)
        else:
            args[arg.name] = _plain(arg.tensor, generator)
    return args


def _plain(spec: TensorSpec, generator: torch.Generator) -> torch.Tensor:
    import torch

    dtype, device = torch_dtype(spec.dtype), generator.device
    shape = (*spec.shape[:-2], spec.shape[-1], spec.shape[-2]) if spec.transposed else spec.shape
    if dtype.is_floating_point:
        tensor = torch.randn(shape, device=device, generator=generator).to(dtype)
    else:
        tensor = torch.zeros(shape, dtype=dtype, device=device)
    return tensor.mT if spec.transposed else tensor


def small(problem: Problem) -> Problem:
    """Returns the same problem with every dimension cut to 64."""

    def reduce(arg: Arg) -> Arg:
        if arg.tensor is None:
            return arg
        shape = tuple(min(size, SMALL) for size in arg.tensor.shape)
        return replace(arg, tensor=replace(arg.tensor, shape=shape))

    return replace(problem, args=tuple(reduce(arg) for arg in problem.args))
