"""Gradients of the ops: the kernel computes the op, torch's ops compute its gradient.

The backward pass computes the op again with torch's ops, and differentiates that. It is correct, not
fast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from . import _composed
from ._declared import Op
from ._errors import input_error



class Differentiable(torch.autograd.Function):
    """An op in a graph of torch's autograd."""

    @staticmethod
    def forward(ctx: Any, op: Op, overload: Callable[..., Any], *args: Any) -> Any:
        """Calls the op. Grad mode is disabled here, so that the op runs its kernel."""
        ctx.op = op
        ctx.others = [None if isinstance(a, Tensor) else a for a in args]
        ctx.positions = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.positions))
        found = overload(*args)
        ctx.dtypes = tuple(y.dtype for y in (found if isinstance(found, tuple) else (found,)))
        return found

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        """Returns the gradients of the tensors that need one."""
        args, inputs = list(ctx.others), {}
        # A second derivative needs the graph of this pass.
        create_graph = torch.is_grad_enabled()
        with torch.enable_grad():
            for i, tensor in zip(ctx.positions, ctx.saved_tensors):
                args[i] = tensor
                if ctx.needs_input_grad[2 + i]:
                    # Each argument is its own tensor, also if the call passes one tensor twice.
                    args[i] = tensor.view_as(tensor) if create_graph else tensor.detach().requires_grad_()
                    inputs[i] = args[i]
            found = _composed.call(ctx.op.name, ctx.dtypes, tuple(args))
            gradients = torch.autograd.grad(
                found, list(inputs.values()), grads, create_graph=create_graph, allow_unused=True
            )
        by_index = dict(zip(inputs, gradients))
        return None, None, *(by_index.get(i) for i in range(len(args)))


def differentiate(op: Op, overload: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Calls an op and records it for the backward pass."""
    for param, value in zip(op.params, args):
        if param.name.endswith("_scales") and isinstance(value, Tensor) and value.requires_grad:
            raise input_error(f"{op.name}: {param.name} requires grad, but block scales have no gradient", "no-grad")
    return Differentiable.apply(op, overload, *args)


def reject_out(op: Op) -> None:
    """Raises the error of ``out=`` with a tensor that requires grad."""
    raise input_error(
        f"{op.name}: out= has no gradient, but a tensor requires grad: leave out= out, or call it under"
        " torch.no_grad()",
        "no-grad",
    )
