"""Warp-specialized GPU kernels for Hopper.

Each function takes torch tensors, arrays of other libraries on a GPU (DLPack,
CUDA array interface), or NumPy arrays, which go through a simulator of the GPU:

>>> import numpy as np, warpline
>>> warpline.softmax(np.zeros((1, 4), np.float32))
array([[0.25, 0.25, 0.25, 0.25]], dtype=float32)

With torch they are ops of torch, too: ``torch.ops.warpline.softmax``.
"""

from . import _when_imported, _warpline
from ._drop_in import MultiScaleDeformableAttnFunction
from ._errors import DeviceError, Error, InputError, RefusedError
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
    "InputError",
    "MultiScaleDeformableAttnFunction",
    "Nvfp4",
    "RefusedError",
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

#: Modules of torch: made, and torch imported, when they are asked for. Not in ``__all__``
#: therefore, as all of that is asked for by ``import *``.
_MODULES = ("MultiScaleDeformableAttention",)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import _modules

    return getattr(_modules, name)


def _register() -> None:
    from . import _torch

    _torch.register()


# Torch is not imported here; where it is, or once it is, the ops are registered with it.
_when_imported.call("torch", _register)
