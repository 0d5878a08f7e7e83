"""Modules of torch, which is imported with them: when a user asks for one."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from torch import Tensor, nn

from ._drop_in import attend


class MultiScaleDeformableAttention(nn.Module):
    """Takes the place of the module of that name in Hugging Face's models, for the forward alone,
    before a model is made::

        from transformers.models.deformable_detr import modeling_deformable_detr

        modeling_deformable_detr.MultiScaleDeformableAttention = warpline.MultiScaleDeformableAttention

    It takes the levels from the list, as theirs does, so that nothing is read from the GPU.
    """

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
        """``ms_deform_attn`` with the arguments of theirs."""
        pixels = [height * width for height, width in value_spatial_shapes_list]
        starts = list(accumulate(pixels[:-1], initial=0))
        return attend(
            value,
            value_spatial_shapes_list,
            starts,
            sampling_locations,
            attention_weights,
            im2col_step,
        )
