"""Warp-specialized GPU kernels for Hopper.

Each function takes torch tensors, GPU arrays of other libraries (DLPack, CUDA
array interface), or NumPy arrays, which run on the CPU executor:

>>> import numpy as np, warpline
>>> warpline.softmax(np.zeros((1, 4), np.float32))
array([[0.25, 0.25, 0.25, 0.25]], dtype=float32)

With torch they are also torch ops: ``torch.ops.warpline.softmax``.
"""

import importlib

from . import _transformers, _when_imported, _warpline
from ._drop_in import MultiScaleDeformableAttnFunction
from ._errors import DeviceError, Error, FallbackWarning, InputError, KernelError
from ._functions import FUNCTIONS
from ._nvfp4 import Nvfp4, nvfp4_arrange_scales, nvfp4_dequantize, nvfp4_quantize
from ._tools import check, devices, emit, families
from ._weights import pack_weights, unpack_weights

__version__: str = _warpline.build_info()["version"]

globals().update(FUNCTIONS)

__all__ = [
    *FUNCTIONS,
    "DeviceError",
    "Error",
    "FallbackWarning",
    "InputError",
    "MultiScaleDeformableAttnFunction",
    "Nvfp4",
    "KernelError",
    "check",
    "devices",
    "emit",
    "families",
    "nvfp4_arrange_scales",
    "nvfp4_dequantize",
    "nvfp4_quantize",
    "pack_weights",
    "unpack_weights",
]

#: Names that need torch, and their modules. The first access imports torch. They are not in ``__all__``,
#: so that ``import *`` does not import torch.
_NEED_TORCH = {"MultiScaleDeformableAttention": "_modules", "scaled_dot_product_attention": "_sdpa"}


def __getattr__(name: str) -> object:
    if name == "nn":
        # Imports torch.
        return importlib.import_module(".nn", __name__)
    if name not in _NEED_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_NEED_TORCH[name]}", __name__), name)
    return globals().setdefault(name, value)


def _register() -> None:
    from . import _torch

    _torch.register()


# This package does not import torch; it registers its ops as soon as torch is imported.
_when_imported.call("torch", _register)
_when_imported.call("transformers.modeling_utils", _transformers.register_attention)
_when_imported.call("transformers.masking_utils", _transformers.register_mask)
