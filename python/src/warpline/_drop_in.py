"""Deformable attention under the names that others have for it: it takes their place in one line."""

from __future__ import annotations

from typing import Any

from ._functions import FUNCTIONS


def attend(
    value: Any, shapes: Any, starts: Any, locations: Any, weights: Any, im2col_step: int
) -> Any:
    """``ms_deform_attn`` on tensors of torch, made dense where they are not."""
    return FUNCTIONS["ms_deform_attn"](
        value.contiguous(),
        shapes,
        starts,
        locations.contiguous(),
        weights.to(locations.dtype).contiguous(),
        im2col_step,
    )


class MultiScaleDeformableAttnFunction:
    """Takes the place of mmcv's function of that name, for the forward alone::

        mmcv.ops.multi_scale_deform_attn.MultiScaleDeformableAttnFunction = (
            warpline.MultiScaleDeformableAttnFunction
        )
    """

    @staticmethod
    def apply(
        value: Any,
        value_spatial_shapes: Any,
        value_level_start_index: Any,
        sampling_locations: Any,
        attention_weights: Any,
        im2col_step: int = 64,
    ) -> Any:
        """``ms_deform_attn`` with mmcv's arguments. Levels in tensors on a GPU are read once
        for each tensor, which waits for the GPU."""
        return attend(
            value,
            value_spatial_shapes,
            value_level_start_index,
            sampling_locations,
            attention_weights,
            im2col_step,
        )
