# Generated from the ops that Rust declares. To update: WARPLINE_WRITE=1 pytest python/tests/test_stubs.py
from typing import Any, Literal, TypeVar, overload

from ._drop_in import MultiScaleDeformableAttnFunction as MultiScaleDeformableAttnFunction
from ._errors import DeviceError as DeviceError
from ._errors import Error as Error
from ._errors import FallbackWarning as FallbackWarning
from ._errors import InputError as InputError
from ._errors import KernelError as KernelError
from ._modules import MultiScaleDeformableAttention as MultiScaleDeformableAttention
from ._nvfp4 import Nvfp4 as Nvfp4
from ._nvfp4 import nvfp4_arrange_scales as nvfp4_arrange_scales
from ._nvfp4 import nvfp4_dequantize as nvfp4_dequantize
from ._nvfp4 import nvfp4_quantize as nvfp4_quantize
from ._sdpa import scaled_dot_product_attention as scaled_dot_product_attention
from ._tools import check as check
from ._tools import devices as devices
from ._tools import emit as emit
from ._tools import families as families
from ._weights import pack_weights as pack_weights
from ._weights import unpack_weights as unpack_weights

__version__: str

# An array of any library; results are of the same library.
_A = TypeVar("_A")

__all__ = [
    "DeviceError",
    "Error",
    "FallbackWarning",
    "InputError",
    "KernelError",
    "MultiScaleDeformableAttnFunction",
    "Nvfp4",
    "add",
    "attention",
    "check",
    "devices",
    "dual_gemm",
    "emit",
    "families",
    "layer_norm",
    "linear",
    "matmul",
    "ms_deform_attn",
    "nvfp4_arrange_scales",
    "nvfp4_dequantize",
    "nvfp4_dual_gemm",
    "nvfp4_linear",
    "nvfp4_quantize",
    "pack_weights",
    "rms_norm",
    "softmax",
    "swiglu",
    "unpack_weights",
]

def swiglu(
    x: _A,
    w_gate: _A,
    w_up: _A,
    scale_x: _A | None = None,
    scale_gate: _A | None = None,
    scale_up: _A | None = None,
    out_dtype: Any = None,
    batch_invariant: bool = False,
    *,
    out: _A | None = None,
    simulate: bool = False,
    stream: int | None = None,
    tune: bool = False,
    deterministic: bool | None = None,
) -> _A: ...
def dual_gemm(
    x: _A,
    w_gate: _A,
    w_up: _A | None = None,
    gate: str = "silu",
    weights: str = "concatenated",
    scale_x: _A | None = None,
    scale_gate: _A | None = None,
    scale_up: _A | None = None,
    out_dtype: Any = None,
    batch_invariant: bool = False,
    *,
    out: _A | None = None,
    simulate: bool = False,
    stream: int | None = None,
    tune: bool = False,
    deterministic: bool | None = None,
) -> _A: ...
def nvfp4_dual_gemm(
    x: _A,
    w_gate: _A,
    gate_scales: _A,
    w_up: _A | None = None,
    up_scales: _A | None = None,
    x_scales: _A | None = None,
    scale_x: _A | None = None,
    scale_gate: _A | None = None,
    scale_up: _A | None = None,
    gate: str = "silu",
    scale_layout: str = "auto",
    out_dtype: Any = None,
    batch_invariant: bool = False,
    *,
    out: _A | None = None,
    simulate: bool = False,
    stream: int | None = None,
    tune: bool = False,
    deterministic: bool | None = None,
) -> _A: ...
def nvfp4_linear(
    x: _A,
    weight: _A,
    weight_scales: _A,
    scale_weight: _A | None = None,
    bias: _A | None = None,
    scale_layout: str = "auto",
    batch_invariant: bool = False,
    *,
    out: _A | None = None,
    simulate: bool = False,
    stream: int | None = None,
    tune: bool = False,
    deterministic: bool | None = None,
) -> _A: ...
def add(
    a: _A,
    b: _A,
    *,
    out: _A | None = None,
    simulate: bool = False,
    stream: int | None = None,
    tune: bool = False,
    deterministic: bool | None = None,
) -> _A: ...
def softmax(
    x: _A,
    dim: int = -1,
    batch_invariant: bool = False,
    *,
    out: _A | None = None,
    simulate: bool = False,
    stream: int | None = None,
    tune: bool = False,
    deterministic: bool | None = None,
) -> _A: ...
def layer_norm(
    x: _A,
    weight: _A | None = None,
    bias: _A | None = None,
    eps: float = 1e-5,
    batch_invariant: bool = False,
    *,
    out: _A | None = None,
    simulate: bool = False,
    stream: int | None = None,
    tune: bool = False,
    deterministic: bool | None = None,
) -> _A: ...
def rms_norm(
    x: _A,
    weight: _A | None = None,
    eps: float = 1e-6,
    batch_invariant: bool = False,
    *,
    out: _A | None = None,
    simulate: bool = False,
    stream: int | None = None,
    tune: bool = False,
    deterministic: bool | None = None,
) -> _A: ...
def matmul(
    a: _A,
    b: _A,
    scale_a: _A | None = None,
    scale_b: _A | None = None,
    out_dtype: Any = None,
    batch_invariant: bool = False,
    *,
    out: _A | None = None,
    simulate: bool = False,
    stream: int | None = None,
    tune: bool = False,
    deterministic: bool | None = None,
) -> _A: ...
def linear(
    x: _A,
    weight: _A,
    bias: _A | None = None,
    activation: str = "none",
    residual: _A | None = None,
    scale_x: _A | None = None,
    scale_weight: _A | None = None,
    out_dtype: Any = None,
    batch_invariant: bool = False,
    *,
    out: _A | None = None,
    simulate: bool = False,
    stream: int | None = None,
    tune: bool = False,
    deterministic: bool | None = None,
) -> _A: ...
def ms_deform_attn(
    value: _A,
    spatial_shapes: Any,
    level_start_index: Any,
    sampling_locations: _A,
    attention_weights: _A,
    im2col_step: int = 64,
    batch_invariant: bool = False,
    *,
    out: _A | None = None,
    simulate: bool = False,
    stream: int | None = None,
    tune: bool = False,
    deterministic: bool | None = None,
) -> _A: ...
@overload
def attention(
    q: _A,
    k: _A,
    v: _A,
    causal: bool = False,
    window: tuple[int, int] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    sink: _A | None = None,
    bias: _A | None = None,
    cu_seqlens_q: _A | None = None,
    cu_seqlens_k: _A | None = None,
    key_lens: _A | None = None,
    block_table: _A | None = None,
    batch_invariant: bool = False,
    *,
    return_lse: Literal[False] = False,
    out: _A | None = None,
    simulate: bool = False,
    stream: int | None = None,
    tune: bool = False,
    deterministic: bool | None = None,
) -> _A: ...
@overload
def attention(
    q: _A,
    k: _A,
    v: _A,
    causal: bool = False,
    window: tuple[int, int] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    sink: _A | None = None,
    bias: _A | None = None,
    cu_seqlens_q: _A | None = None,
    cu_seqlens_k: _A | None = None,
    key_lens: _A | None = None,
    block_table: _A | None = None,
    batch_invariant: bool = False,
    *,
    return_lse: Literal[True],
    out: tuple[_A, _A] | None = None,
    simulate: bool = False,
    stream: int | None = None,
    tune: bool = False,
    deterministic: bool | None = None,
) -> tuple[_A, _A]: ...
@overload
def attention(
    q: _A,
    k: _A,
    v: _A,
    causal: bool = False,
    window: tuple[int, int] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    sink: _A | None = None,
    bias: _A | None = None,
    cu_seqlens_q: _A | None = None,
    cu_seqlens_k: _A | None = None,
    key_lens: _A | None = None,
    block_table: _A | None = None,
    batch_invariant: bool = False,
    *,
    return_lse: bool,
    out: _A | tuple[_A, _A] | None = None,
    simulate: bool = False,
    stream: int | None = None,
    tune: bool = False,
    deterministic: bool | None = None,
) -> _A | tuple[_A, _A]: ...
