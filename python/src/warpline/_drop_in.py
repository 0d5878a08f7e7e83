"""Drop-in replacements for the deformable attention of other libraries."""

from __future__ import annotations

from typing import Any

from ._functions import FUNCTIONS


def attend(
    value: Any,
    shapes: Any,
    starts: Any,
    locations: Any,
    weights: Any,
    im2col_step: int,
    batch_invariant: bool = False,
) -> Any:
    """Calls ``ms_deform_attn`` on torch tensors. Makes them contiguous and converts the weights
    to the dtype of the locations."""
    return FUNCTIONS["ms_deform_attn"](
        value.contiguous(),
        shapes,
        starts,
        locations.contiguous(),
        weights.to(locations.dtype).contiguous(),
        im2col_step,
        batch_invariant,
    )


class MultiScaleDeformableAttnFunction:
    """Replaces mmcv's function of the same name::

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
        """Calls ``ms_deform_attn`` with mmcv's arguments. Shapes and start indices in GPU tensors
        are copied to the host once per tensor, which synchronizes with the GPU."""
        return attend(
            value,
            value_spatial_shapes,
            value_level_start_index,
            sampling_locations,
            attention_weights,
            im2col_step,
        )
