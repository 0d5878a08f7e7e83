"""torch modules with NVFP4 weights; importing this file imports torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ._errors import input_error
from ._nvfp4 import BLOCK, Nvfp4, nvfp4_arrange_scales, nvfp4_quantize, scale_shape

_FP8 = torch.float8_e4m3fn
#: Names of a weight's tensors in checkpoints of other tools, after the name of the weight.
_OTHER_NAMES = {"weight_scale": "weight_scales", "weight_scale_2": "scale_weight"}


class _Nvfp4Module(nn.Module):
    """A module with NVFP4 weights [out_features, in_features].

    A weight ``w`` has the buffers ``w`` (codes), ``w_scales`` (in blocks) and ``scale_w`` (its tensor
    scale). ``.to(dtype)`` keeps their element types. ``load_state_dict`` also accepts plain scales
    [N, K/16], which it converts to blocks, and a missing tensor scale, which is 1.
    """

    #: The weights, and the suffixes of their tensor scales.
    _weights: tuple[tuple[str, str], ...]

    def __init__(self, in_features: int, out_features: int, device: Any = None) -> None:
        super().__init__()
        if in_features <= 0 or in_features % BLOCK:
            raise input_error(
                f"nvfp4: in_features is {in_features}; it must be a positive multiple of {BLOCK}"
                f"\nhelp: pad the weight and the input with zeros to {max(1, -(-in_features // BLOCK)) * BLOCK} columns"
            )
        self.in_features, self.out_features = in_features, out_features
        for name, suffix in self._weights:
            codes = torch.zeros(out_features, in_features // 2, dtype=torch.uint8, device=device)
            blocks = torch.zeros(scale_shape(out_features, in_features, "block"), dtype=torch.uint8, device=device)
            self.register_buffer(name, codes)
            self.register_buffer(f"{name}_scales", blocks.view(_FP8))
            self.register_buffer(f"scale_{suffix}", torch.ones(1, device=device))

    def _set(self, name: str, suffix: str, weight: Nvfp4[Tensor]) -> None:
        """Sets a weight; plain scales are converted to blocks."""
        codes, scales, tensor_scale = weight
        if list(codes.shape) != [self.out_features, self.in_features // 2]:
            raise input_error(
                f"nvfp4: the codes of {name} have the shape {list(codes.shape)}; they must be"
                f" [{self.out_features}, {self.in_features // 2}]"
            )
        setattr(self, name, codes.contiguous())
        setattr(self, f"{name}_scales", self._in_blocks(scales))
        if tensor_scale is None:
            tensor_scale = torch.ones(1, device=codes.device)
        scale = torch.as_tensor(tensor_scale, dtype=torch.float32, device=codes.device)
        setattr(self, f"scale_{suffix}", scale.reshape(1))

    def _in_blocks(self, scales: Tensor) -> Tensor:
        rows, k = self.out_features, self.in_features
        if list(scales.shape) == list(scale_shape(rows, k, "plain")):
            scales = nvfp4_arrange_scales(scales, rows, k, "block")
        return scales.contiguous().view(_FP8)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        """Converts plain scales to blocks, then loads."""
        for other, name in _OTHER_NAMES.items():
            if hasattr(self, name) and prefix + other in state_dict:
                state_dict[prefix + name] = state_dict.pop(prefix + other)
        for name, suffix in self._weights:
            scales = state_dict.get(f"{prefix}{name}_scales")
            if scales is not None:
                state_dict[f"{prefix}{name}_scales"] = self._in_blocks(scales)
            scale = f"{prefix}scale_{suffix}"
            if scale in state_dict:
                state_dict[scale] = state_dict[scale].reshape(1)
            elif prefix + name in state_dict:
                state_dict[scale] = torch.ones(1)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        """Moves the weights, and keeps their element types."""
        names = [n for name, suffix in self._weights for n in (name, f"{name}_scales", f"scale_{suffix}")]
        kept = [getattr(self, name) for name in names]

        def apply(tensor: Tensor) -> Tensor:
            moved = fn(tensor)
            if moved.dtype != tensor.dtype and any(tensor is one for one in kept):
                return tensor.to(moved.device)
            return moved

        return super()._apply(apply, recurse)

    def extra_repr(self) -> str:
        """Returns the sizes, for ``repr``."""
        return f"in_features={self.in_features}, out_features={self.out_features}"


class Nvfp4Linear(_Nvfp4Module):
    """``torch.nn.Linear`` with a weight in NVFP4, for inference: x in bf16 or f16.

    Create it from a layer (``from_float``), from codes and scales (``from_nvfp4``), or empty and
    fill it with ``load_state_dict``.
    """

    _weights = (("weight", "weight"),)

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(in_features, out_features, device)
        dtype = torch.bfloat16 if dtype is None else dtype
        zeros = nn.Parameter(torch.zeros(out_features, dtype=dtype, device=device), requires_grad=False)
        self.register_parameter("bias", zeros if bias else None)

    @classmethod
    def from_float(cls, layer: nn.Linear, tensor_scale: Any = "amax") -> Nvfp4Linear:
        """Quantizes the weight of a layer; ``tensor_scale`` as in ``nvfp4_quantize``."""
        return cls.from_nvfp4(*nvfp4_quantize(layer.weight, tensor_scale), bias=layer.bias)

    @classmethod
    def from_nvfp4(
        cls, codes: Tensor, scales: Tensor, tensor_scale: Any = None, bias: Tensor | None = None
    ) -> Nvfp4Linear:
        """Creates a layer from a checkpoint's tensors; ``scales`` are plain, [N, K/16], or in blocks."""
        layer = cls(2 * codes.shape[1], codes.shape[0], False, codes.device)
        layer._set("weight", "weight", Nvfp4(codes, scales, tensor_scale))
        if bias is not None:
            layer.bias = nn.Parameter(bias.detach(), requires_grad=False)
        return layer

    def forward(self, x: Tensor) -> Any:
        """Returns x · weightᵀ + bias."""
        from . import nvfp4_linear  # type: ignore[attr-defined, unused-ignore]

        return nvfp4_linear(
            x, self.weight, self.weight_scales, self.scale_weight, self.bias, scale_layout="block"
        )


class Nvfp4SwiGLU(_Nvfp4Module):
    """``silu(x · gateᵀ) ∘ (x · upᵀ)`` with both weights in NVFP4, for inference: x in bf16 or f16.

    Create it from two layers (``from_float``), from codes and scales (``from_nvfp4``), or empty and
    fill it with ``load_state_dict``.
    """

    _weights = (("gate", "gate"), ("up", "up"))

    @classmethod
    def from_float(cls, gate: nn.Linear, up: nn.Linear, tensor_scale: Any = "amax") -> Nvfp4SwiGLU:
        """Quantizes the weights of two layers without a bias; ``tensor_scale`` as in ``nvfp4_quantize``."""
        if gate.bias is not None or up.bias is not None:
            raise input_error("nvfp4: gate and up must have no bias\nhelp: use two Nvfp4Linear layers")
        return cls.from_nvfp4(*(nvfp4_quantize(layer.weight, tensor_scale) for layer in (gate, up)))

    @classmethod
    def from_nvfp4(cls, gate: Nvfp4[Tensor], up: Nvfp4[Tensor]) -> Nvfp4SwiGLU:
        """Creates a layer from codes, scales and tensor scale of both weights."""
        layer = cls(2 * gate[0].shape[1], gate[0].shape[0], gate[0].device)
        layer._set("gate", "gate", gate)
        layer._set("up", "up", up)
        return layer

    def forward(self, x: Tensor) -> Any:
        """Returns the gated layer's output."""
        from . import nvfp4_dual_gemm  # type: ignore[attr-defined, unused-ignore]

        return nvfp4_dual_gemm(
            *(x, self.gate, self.gate_scales, self.up, self.up_scales),
            scale_gate=self.scale_gate,
            scale_up=self.scale_up,
            scale_layout="block",
        )
