"""GridSample: an image sampled where another tensor says."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from irexec.errors import check
from irexec.ir.dims import may_equal, meet
from irexec.ir.facts import Fact
from irexec.reference.grid import Way, sample_grid
from irexec.schema.registry import op
from irexec.schema.rules import check_float, sizes_of

Mode = Literal["bilinear", "bicubic", "nearest"]
Padding = Literal["zeros", "border", "reflection"]


@op("GridSample", since=9, tolerance=1e-5)
def grid_sample_9(
    data: np.ndarray, grid: np.ndarray, *, align_corners: bool = False, mode: Mode = "bilinear", padding_mode: Padding = "zeros"
) -> np.ndarray:
    """Pixels of (N, C, H, W) at the points (N, h, w, 2) of ``grid``, x before y, from -1 to 1 across the image.

    Between pixels numbers are computed in the type of the grid, of f16 in f32; integers are then cut
    towards zero, as the reference does and the CPU plugin for 32 and 64 bits. With ``nearest`` a tie
    goes to the even pixel. A point that is NaN or infinite gives NaN, but with ``nearest``: NaN is then
    the first pixel. A point far beyond the border is brought back without loss, where the reference
    overflows. Source: GridSample-9.
    """
    way = Way(mode, padding_mode, align_corners)
    points = grid.astype(np.float32) if grid.dtype == np.float16 else grid
    if mode == "nearest":
        return np.ascontiguousarray(sample_grid(data, points, way))
    return _returned(sample_grid(data, points, way), data.dtype)


def _returned(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Computed numbers in the type of the data: integers are cut to what the type holds, NaN is 0."""
    with np.errstate(over="ignore"):
        if dtype.kind not in "iu":
            return values.astype(dtype)
    limits = np.iinfo(dtype)
    whole = np.trunc(np.where(np.isnan(values), 0, values)).astype(np.float64)
    inside = (whole > limits.min) & (whole < limits.max)
    ends = np.where(whole >= limits.max, limits.max, limits.min).astype(dtype)
    return np.where(inside, np.where(inside, whole, 0).astype(dtype), ends)


@grid_sample_9.shape_rule
def _grid_sample_9_facts(data: Fact, grid: Fact, **settings: Any) -> Fact:
    check(data.element is None or data.element.kind != "string", "data is text, expected numbers")
    check_float(grid, "grid")
    images, channels, *_ = sizes_of(data, 4, "data")
    batch, height, width, numbers = sizes_of(grid, 4, "grid")
    check(may_equal(numbers, 2), f"grid has {numbers} numbers for each point, expected 2")
    check(may_equal(images, batch), f"data has a batch of {images}, grid one of {batch}")
    return Fact(data.element, (meet(images, batch), channels, height, width))
