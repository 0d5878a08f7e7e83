"""torch modules; importing this file imports torch."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from torch import Tensor, nn

from ._drop_in import attend


class MultiScaleDeformableAttention(nn.Module):
    """Replaces the module of the same name in Hugging Face models. Assign it before the model is
    created::

        from transformers.models.deformable_detr import modeling_deformable_detr

        modeling_deformable_detr.MultiScaleDeformableAttention = warpline.MultiScaleDeformableAttention

    It takes the shapes from the list, so that nothing is copied from the GPU. With ``batch_invariant``
    the bits of a query do not depend on the other queries or on their number.
    """

    def __init__(self, batch_invariant: bool = False) -> None:
        """Creates the module, which has no parameters."""
        super().__init__()
        self.batch_invariant = batch_invariant

    def forward(
        self,
        value: Tensor,
        value_spatial_shapes: Tensor,
        value_spatial_shapes_list: list[tuple[int, int]],
        level_start_index: Tensor,
        sampling_locations: Tensor,
        attention_weights: Tensor,
        im2col_step: int,
    ) -> Any:
        """Calls ``ms_deform_attn`` with the arguments of Hugging Face's module."""
        pixels = [height * width for height, width in value_spatial_shapes_list]
        starts = list(accumulate(pixels[:-1], initial=0))
        return attend(
            value,
            value_spatial_shapes_list,
            starts,
            sampling_locations,
            attention_weights,
            im2col_step,
            self.batch_invariant,
        )
