"""Pooling of regions of interest: ROIAlign, ROIAlignRotated, ROIPooling, PSROIPooling, DeformablePSROIPooling."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np

from irexec.dtypes.elements import Element
from irexec.errors import check
from irexec.ir.dims import Size, may_equal, meet
from irexec.ir.facts import Fact
from irexec.reference.roi import pool_between, pool_deformable, pool_greatest, pool_sensitive_between, pool_sensitive_mean
from irexec.reference.roi_points import corner_boxes, pool_boxes, turned_boxes
from irexec.schema.attributes import AtLeast, NonNegative, Positive
from irexec.schema.registry import op
from irexec.schema.rules import check_integers, same_element, sizes_of

Mode = Literal["avg", "max"]
Aligned = Literal["asymmetric", "half_pixel_for_nn", "half_pixel"]
Method = Literal["max", "bilinear"]
Scale = Annotated[float, AtLeast(0)]

_TOLERANCE = 1e-5


@op("ROIAlign", since=3, widen=True, tolerance=_TOLERANCE)
def roi_align_3(
    data: np.ndarray, rois: np.ndarray, batch_indices: np.ndarray, *, pooled_h: Positive, pooled_w: Positive, sampling_ratio: NonNegative,
    spatial_scale: Scale, mode: Mode,
) -> np.ndarray:  # fmt: skip
    """The mean or maximum of points sampled linearly in each bin of each box (x1, y1, x2, y2), none smaller than a pixel.

    The maximum is never below 0, in the reference and in the CPU plugin. Source: ROIAlign-3.
    """
    return pool_boxes(data, corner_boxes(rois, spatial_scale), batch_indices, (pooled_h, pooled_w), sampling_ratio, mode)


@op("ROIAlign", since=9, widen=True, tolerance=_TOLERANCE)
def roi_align_9(
    data: np.ndarray, rois: np.ndarray, batch_indices: np.ndarray, *, pooled_h: Positive, pooled_w: Positive, sampling_ratio: NonNegative,
    spatial_scale: Scale, mode: Mode, aligned_mode: Aligned = "asymmetric",
) -> np.ndarray:  # fmt: skip
    """As ROIAlign-3; unless ``aligned_mode`` is asymmetric, boxes are moved by half a pixel and may be smaller than one.

    A box without extent has no points where their number follows its size: it gives 0, as in the
    reference, where the CPU plugin gives NaN. Source: ROIAlign-9.
    """
    boxes = corner_boxes(rois, spatial_scale, aligned_mode)
    return pool_boxes(data, boxes, batch_indices, (pooled_h, pooled_w), sampling_ratio, mode)


@roi_align_3.shape_rule
@roi_align_9.shape_rule
def _roi_align_facts(data: Fact, rois: Fact, batch_indices: Fact, **settings: Any) -> Fact:
    return _aligned_facts(data, rois, batch_indices, 4, **settings)


@op("ROIAlignRotated", since=15, widen=True, tolerance=_TOLERANCE)
def roi_align_rotated_15(
    data: np.ndarray, rois: np.ndarray, batch_indices: np.ndarray, *, pooled_h: Positive, pooled_w: Positive, sampling_ratio: NonNegative,
    spatial_scale: Scale, clockwise_mode: bool = False,
) -> np.ndarray:  # fmt: skip
    """The mean of points sampled linearly in each bin of each box (centre x, centre y, width, height, angle in radians).

    Source: ROIAlignRotated-15.
    """
    boxes = turned_boxes(rois, spatial_scale, clockwise_mode)
    return pool_boxes(data, boxes, batch_indices, (pooled_h, pooled_w), sampling_ratio, "avg")


@roi_align_rotated_15.shape_rule
def _roi_align_rotated_15_facts(data: Fact, rois: Fact, batch_indices: Fact, **settings: Any) -> Fact:
    return _aligned_facts(data, rois, batch_indices, 5, **settings)


def _aligned_facts(
    data: Fact, rois: Fact, batch_indices: Fact, numbers: int, *, pooled_h: int, pooled_w: int, spatial_scale: float, **others: Any
) -> Fact:
    kind = _float_element(data, rois)
    check_integers(batch_indices, "batch_indices")
    (indices,) = sizes_of(batch_indices, 1, "batch_indices")
    count = _boxes(rois, numbers, spatial_scale)
    check(may_equal(count, indices), f"there are {count} boxes and {indices} batch indices")
    return Fact(kind, (meet(count, indices), _channels(data), pooled_h, pooled_w))


def _float_element(*facts: Fact) -> Element | None:
    kind = same_element(*facts)
    check(kind is None or kind.is_float, f"element type {kind} is not of floating-point numbers")
    return kind


def _each_float(*facts: Fact) -> None:
    for fact in facts:
        _float_element(fact)


def _boxes(rois: Fact, numbers: int, spatial_scale: float) -> Size:
    """How many boxes there are."""
    check(0 < spatial_scale < float("inf"), f"spatial_scale {spatial_scale} is not a positive number")
    count, each = sizes_of(rois, 2, "rois")
    check(may_equal(each, numbers), f"a box has {each} numbers, expected {numbers}")
    return count


def _channels(data: Fact) -> Size:
    return sizes_of(data, 4, "data")[1]


@op("ROIPooling", since=2, widen=True, tolerance=_TOLERANCE, ignores=("output_size", "output_roi"))
def roi_pooling_2(
    data: np.ndarray, rois: np.ndarray, *, pooled_h: Positive, pooled_w: Positive, spatial_scale: Scale, method: Method = "max"
) -> np.ndarray:
    """The greatest pixel of each bin of each box (image, x1, y1, x2, y2), or with ``bilinear`` one point of it.

    With max a box holds whole pixels, its last ones included; with bilinear it is in parts of the image, from 0
    to 1, and ``spatial_scale`` does not matter. The CPU plugin takes image -1 as the end of the boxes: it
    and all that follow give 0. Source: ROIPooling-1, in IR of opset2.
    """
    if method == "max":
        return pool_greatest(data, rois, (pooled_h, pooled_w), spatial_scale)
    return pool_between(data, rois, (pooled_h, pooled_w))


@roi_pooling_2.shape_rule
def _roi_pooling_2_facts(data: Fact, rois: Fact, *, pooled_h: int, pooled_w: int, spatial_scale: float, method: str = "max") -> Fact:
    return Fact(_float_element(data, rois), (_boxes(rois, 5, spatial_scale), _channels(data), pooled_h, pooled_w))


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32) if x.dtype == np.float16 else x


def _narrowed(result: np.ndarray, dtype: np.dtype) -> np.ndarray:
    with np.errstate(over="ignore"):
        return result.astype(dtype)


@op("PSROIPooling", since=1, tolerance=_TOLERANCE)
def psroi_pooling_1(
    data: np.ndarray, rois: np.ndarray, *, output_dim: Positive, spatial_scale: Scale, group_size: Positive = 1,
    mode: Literal["average", "bilinear"] = "average", spatial_bins_x: Positive = 1, spatial_bins_y: Positive = 1,
) -> np.ndarray:  # fmt: skip
    """Each bin of each box (image, x1, y1, x2, y2) pooled from channels of its own.

    average: the mean of all pixels that a bin touches, from channel (output*group_size + line)*group_size +
    column. bilinear: the mean over the spatial bins, into which the box, in parts of the image, is cut, of a
    point between pixels, from channel bin*output_dim + output. As the CPU plugin has it, what lies beyond
    the border does not count (the reference moves it to the last pixel), a box is a tenth of a pixel at
    least, and image -1 ends the boxes: it and all that follow give 0. Source: PSROIPooling-1.
    """
    wide, boxes = _wide(data), _wide(rois)
    if mode == "average":
        return _narrowed(pool_sensitive_mean(wide, boxes, output_dim, group_size, spatial_scale), data.dtype)
    parts = (spatial_bins_y, spatial_bins_x)
    return _narrowed(pool_sensitive_between(wide, boxes, output_dim, group_size, parts, spatial_scale), data.dtype)


@psroi_pooling_1.shape_rule
def _psroi_pooling_1_facts(
    data: Fact, rois: Fact, *, output_dim: int, spatial_scale: float, group_size: int = 1, mode: str = "average", spatial_bins_x: int = 1,
    spatial_bins_y: int = 1,
) -> Fact:  # fmt: skip
    _each_float(data, rois)
    each = group_size * group_size if mode == "average" else spatial_bins_x * spatial_bins_y
    _check_sensitive(data, output_dim, each)
    return Fact(data.element, (_boxes(rois, 5, spatial_scale), output_dim, group_size, group_size))


def _check_sensitive(data: Fact, output_dim: int, each: int) -> None:
    channels = _channels(data)
    check(may_equal(channels, output_dim * each), f"data has {channels} channels, expected {each} for each of {output_dim} outputs")


@op("DeformablePSROIPooling", since=1, tolerance=_TOLERANCE)
def deformable_psroi_pooling_1(
    data: np.ndarray, rois: np.ndarray, offsets: np.ndarray | None = None, *, output_dim: Positive, spatial_scale: Scale,
    group_size: Positive = 1, mode: Literal["bilinear_deformable"] = "bilinear_deformable", spatial_bins_x: Positive = 1,
    spatial_bins_y: Positive = 1, trans_std: float = 1, part_size: Positive = 1,
) -> np.ndarray:  # fmt: skip
    """Each bin of each box (image, x1, y1, x2, y2) from channels of its own: the mean of points between pixels.

    Offsets (boxes, 2*classes, part_size, part_size) move the bins, as parts of the box times ``trans_std``; the
    outputs divide into the classes. As the CPU plugin has it, image -1 ends the boxes: it and all that
    follow give 0. Source: DeformablePSROIPooling-1.
    """
    moves = None
    if offsets is not None:
        part = np.arange(group_size) * part_size // group_size
        pairs = _wide(offsets).reshape(len(rois), offsets.shape[1] // 2, 2, part_size, part_size)
        with np.errstate(invalid="ignore", over="ignore"):
            moves = pairs[:, :, :, part[:, None], part] * pairs.dtype.type(trans_std)
    parts = (spatial_bins_y, spatial_bins_x)
    return _narrowed(pool_deformable(_wide(data), _wide(rois), moves, output_dim, group_size, parts, spatial_scale), data.dtype)


@deformable_psroi_pooling_1.shape_rule
def _deformable_psroi_pooling_1_facts(
    data: Fact, rois: Fact, offsets: Fact | None = None, *, output_dim: int, spatial_scale: float, group_size: int = 1,
    mode: str = "bilinear_deformable", spatial_bins_x: int = 1, spatial_bins_y: int = 1, trans_std: float = 1, part_size: int = 1,
) -> Fact:  # fmt: skip
    _each_float(data, rois)
    _check_sensitive(data, output_dim, group_size * group_size)
    count = _boxes(rois, 5, spatial_scale)
    if offsets is not None:
        count = _check_offsets(offsets, count, output_dim, part_size)
    return Fact(data.element, (count, output_dim, group_size, group_size))


def _check_offsets(offsets: Fact, count: Size, output_dim: int, part_size: int) -> Size:
    """How many boxes there are, where the offsets may know it better."""
    _each_float(offsets)
    boxes, channels, *sizes = sizes_of(offsets, 4, "offsets")
    check(may_equal(boxes, count), f"there are {count} boxes and offsets of {boxes}")
    check(all(may_equal(size, part_size) for size in sizes), f"offsets {offsets} are not of {part_size} by {part_size} parts")
    if isinstance(channels, int):
        says = f"{channels} channels of offsets are not x and y of classes into which {output_dim} outputs divide"
        check(channels > 0 and channels % 2 == 0 and output_dim % (channels // 2) == 0, says)
    return meet(boxes, count)
