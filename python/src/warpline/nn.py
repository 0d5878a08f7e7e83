"""torch modules: ``warpline.nn.Nvfp4Linear`` and others. Importing this file imports torch."""

from ._modules import MultiScaleDeformableAttention
from ._nvfp4_modules import Nvfp4Linear, Nvfp4SwiGLU

__all__ = ["MultiScaleDeformableAttention", "Nvfp4Linear", "Nvfp4SwiGLU"]
