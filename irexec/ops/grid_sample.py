"""GridSample: an image sampled at the points of a grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from irexec.errors import check
from irexec.ir.dims import ANY, may_equal, meet
from irexec.ir.facts import Fact
from irexec.reference.grid import SampleParams, sample_grid
from irexec.schema.inputs import FloatTensor, Rank, Tensor
from irexec.schema.registry import op


@dataclass(frozen=True)
class GridSampleAttributes:
    """GridSample-9."""

    align_corners: bool = False
    mode: Literal["bilinear", "bicubic", "nearest"] = "bilinear"
    padding_mode: Literal["zeros", "border", "reflection"] = "zeros"


@op("GridSample", since=9, tolerance=1e-5)
def grid_sample_9(
    data: Annotated[Tensor, Rank(4)], grid: Annotated[FloatTensor, Rank(4)], *, attributes: GridSampleAttributes
) -> np.ndarray:
    """Pixels of (N, C, H, W) at the points (N, h, w, 2) of ``grid``, x before y, from -1 to 1 across the image.

    Interpolation is computed in the type of the grid, for f16 in f32; integers are then truncated, as
    OpenVINO's reference does and the CPU plugin for 32 and 64 bits. With ``nearest`` a tie goes to the even
    pixel. A point that is NaN or infinite gives NaN, but with ``nearest`` NaN is the first pixel. A point far
    beyond the border is brought back without loss, where OpenVINO's reference overflows. Source: GridSample-9.
    """
    params = SampleParams(attributes.mode, attributes.padding_mode, attributes.align_corners)
    points = grid.astype(np.float32) if grid.dtype == np.float16 else grid
    sampled = sample_grid(data, points, params)
    return np.ascontiguousarray(sampled) if attributes.mode == "nearest" else _to_type(sampled, data.dtype)


def _to_type(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Computed values in the type of the data: integers are truncated and saturated, NaN is 0."""
    with np.errstate(over="ignore"):
        if dtype.kind not in "iu":
            return values.astype(dtype)
    limits = np.iinfo(dtype)
    whole = np.trunc(np.where(np.isnan(values), 0, values)).astype(np.float64)
    inside = (whole > limits.min) & (whole < limits.max)
    saturated = np.where(whole >= limits.max, limits.max, limits.min).astype(dtype)
    return np.where(inside, np.where(inside, whole, 0).astype(dtype), saturated)


@grid_sample_9.shape_rule
def _grid_sample_9_shape(data: Fact, grid: Fact) -> Fact:
    images, channels, *_ = data.shape or (ANY,) * 4
    batch, height, width, coordinates = grid.shape or (ANY,) * 4
    check(may_equal(coordinates, 2), f"grid has {coordinates} coordinates for each point, expected 2")
    check(may_equal(images, batch), f"data has a batch of {images}, grid one of {batch}")
    return Fact(data.element, (meet(images, batch), channels, height, width))
