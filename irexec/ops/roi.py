"""Pooling of regions of interest: ROIAlign, ROIAlignRotated, ROIPooling, PSROIPooling, DeformablePSROIPooling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from irexec.errors import check
from irexec.ir.dims import Size, may_equal, meet
from irexec.ir.facts import Fact
from irexec.reference.roi import pool_bilinear, pool_deformable, pool_max, pool_sensitive, pool_sensitive_bilinear
from irexec.reference.roi_align import MAX_POINTS, corner_boxes, pool_boxes, rotated_boxes
from irexec.schema.attributes import AtLeast, NonNegative, Positive
from irexec.schema.opdef import FloatTensor, IntegerTensor, Rank, widened
from irexec.schema.registry import op
from irexec.schema.shape_rules import sizes_of, unify_elements

Scale = Annotated[float, AtLeast(0)]
Features = Annotated[FloatTensor, Rank(4)]
Rois = Annotated[FloatTensor, Rank(2)]
Indices = Annotated[IntegerTensor, Rank(1)]

TOLERANCE = 1e-5


@dataclass(frozen=True, kw_only=True)
class AlignAttributes:
    """Attributes that ROIAlign and ROIAlignRotated share."""

    pooled_h: Positive
    pooled_w: Positive
    sampling_ratio: NonNegative
    spatial_scale: Scale

    @property
    def pooled(self) -> tuple[int, int]:
        """The number of bins along y and x."""
        return self.pooled_h, self.pooled_w


@dataclass(frozen=True, kw_only=True)
class ROIAlign3Attributes(AlignAttributes):
    """Attributes of ROIAlign-3."""

    mode: Literal["avg", "max"]


@dataclass(frozen=True, kw_only=True)
class ROIAlignAttributes(ROIAlign3Attributes):
    """Attributes of ROIAlign-9."""

    aligned_mode: Literal["asymmetric", "half_pixel_for_nn", "half_pixel"] = "asymmetric"


@dataclass(frozen=True, kw_only=True)
class ROIAlignRotatedAttributes(AlignAttributes):
    """Attributes of ROIAlignRotated."""

    clockwise_mode: bool = False


@dataclass(frozen=True, kw_only=True)
class SensitiveAttributes:
    """Attributes that PSROIPooling and DeformablePSROIPooling share."""

    output_dim: Positive
    spatial_scale: Scale
    group_size: Positive = 1
    spatial_bins_x: Positive = 1
    spatial_bins_y: Positive = 1

    @property
    def parts(self) -> tuple[int, int]:
        """The number of spatial bins along y and x."""
        return self.spatial_bins_y, self.spatial_bins_x


@dataclass(frozen=True, kw_only=True)
class PSROIPoolingAttributes(SensitiveAttributes):
    """Attributes of PSROIPooling."""

    mode: Literal["average", "bilinear"] = "average"


@dataclass(frozen=True, kw_only=True)
class DeformablePSROIPoolingAttributes(SensitiveAttributes):
    """Attributes of DeformablePSROIPooling."""

    mode: Literal["bilinear_deformable"] = "bilinear_deformable"
    trans_std: float = 1
    part_size: Positive = 1


@op("ROIAlign", since=3, widen=True, tolerance=TOLERANCE)
def roi_align_3(data: Features, rois: Rois, batch_indices: Indices, *, attributes: ROIAlign3Attributes) -> np.ndarray:
    """The mean or maximum of points interpolated in each bin of each box (x1, y1, x2, y2), which is at least one pixel
    wide and high.

    ``data`` is [N, C, H, W], ``rois`` [R, 4]; gives [R, C, pooled_h, pooled_w]. The maximum is never below 0, in the
    reference and in the CPU plugin. Source: ROIAlign-3.
    """
    boxes = corner_boxes(rois, attributes.spatial_scale)
    return pool_boxes(data, boxes, batch_indices, attributes.pooled, attributes.sampling_ratio, attributes.mode)


@op("ROIAlign", since=9, widen=True, tolerance=TOLERANCE)
def roi_align_9(data: Features, rois: Rois, batch_indices: Indices, *, attributes: ROIAlignAttributes) -> np.ndarray:
    """Same as ROIAlign-3; unless ``aligned_mode`` is asymmetric, boxes are moved by half a pixel and may be smaller
    than one.

    A box without width or height has no points where their number follows its size: it gives 0, as in the
    reference, where the CPU plugin gives NaN. Source: ROIAlign-9.
    """
    boxes = corner_boxes(rois, attributes.spatial_scale, attributes.aligned_mode)
    return pool_boxes(data, boxes, batch_indices, attributes.pooled, attributes.sampling_ratio, attributes.mode)


@op("ROIAlignRotated", since=15, widen=True, tolerance=TOLERANCE)
def roi_align_rotated_15(
    data: Features, rois: Rois, batch_indices: Indices, *, attributes: ROIAlignRotatedAttributes
) -> np.ndarray:
    """The mean of points interpolated in each bin of each box (centre x, centre y, width, height, angle in radians).

    ``data`` is [N, C, H, W], ``rois`` [R, 5]; gives [R, C, pooled_h, pooled_w]. Source: ROIAlignRotated-15.
    """
    boxes = rotated_boxes(rois, attributes.spatial_scale, attributes.clockwise_mode)
    return pool_boxes(data, boxes, batch_indices, attributes.pooled, attributes.sampling_ratio, "avg")


@roi_align_3.shape_rule
@roi_align_9.shape_rule
@roi_align_rotated_15.shape_rule
def _aligned_shape(data: Fact, rois: Fact, batch_indices: Fact, *, attributes: AlignAttributes) -> Fact:
    element = unify_elements(data, rois)
    (indices,) = sizes_of(batch_indices, 1, "batch_indices")
    is_rotated = isinstance(attributes, ROIAlignRotatedAttributes)
    count = _box_count(rois, 5 if is_rotated else 4, attributes.spatial_scale)
    check(may_equal(count, indices), f"there are {count} boxes and {indices} batch indices")
    return Fact(element, (meet(count, indices), _channels(data), *attributes.pooled))


def _box_count(rois: Fact, box_values: int, spatial_scale: float) -> Size:
    check(0 < spatial_scale < float("inf"), f"spatial_scale {spatial_scale} is not a positive number")
    count, each = sizes_of(rois, 2, "rois")
    check(may_equal(each, box_values), f"a box has {each} values, expected {box_values}")
    return count


def _channels(data: Fact) -> Size:
    return sizes_of(data, 4, "data")[1]


@op("ROIPooling", since=2, widen=True, tolerance=TOLERANCE, ignores=("output_size", "output_roi"))
def roi_pooling_2(
    data: Features,
    rois: Rois,
    *,
    pooled_h: Positive,
    pooled_w: Positive,
    spatial_scale: Scale,
    method: Literal["max", "bilinear"] = "max",
) -> np.ndarray:
    """The maximum pixel of each bin of each box (image, x1, y1, x2, y2), or with ``bilinear`` one interpolated point of
    it.

    ``data`` is [N, C, H, W], ``rois`` [R, 5]; gives [R, C, pooled_h, pooled_w]. With max a box consists of whole
    pixels, its last ones included; with bilinear it is relative to the size of the image, from 0 to 1, and
    ``spatial_scale`` has no effect. The CPU plugin takes image -1 as the end of the boxes: it and all that follow give
    0. Source: ROIPooling-1, in IR of opset2.
    """
    if method == "max":
        return pool_max(data, rois, (pooled_h, pooled_w), spatial_scale)
    return pool_bilinear(data, rois, (pooled_h, pooled_w))


@roi_pooling_2.shape_rule
def _roi_pooling_2_shape(data: Fact, rois: Fact, *, pooled_h: int, pooled_w: int, spatial_scale: float) -> Fact:
    return Fact(unify_elements(data, rois), (_box_count(rois, 5, spatial_scale), _channels(data), pooled_h, pooled_w))


def _narrow(result: np.ndarray, dtype: np.dtype) -> np.ndarray:
    with np.errstate(over="ignore"):
        return result.astype(dtype)


@op("PSROIPooling", since=1, tolerance=TOLERANCE)
def psroi_pooling_1(data: Features, rois: Rois, *, attributes: PSROIPoolingAttributes) -> np.ndarray:
    """Each bin of each box (image, x1, y1, x2, y2) pooled from channels of its own: [R, output_dim, group_size,
    group_size].

    average: the mean of all pixels that a bin touches, from channel (output * group_size + row) * group_size + column.
    bilinear: the mean over the spatial bins, into which the box, relative to the size of the image, is divided, of an
    interpolated point, from channel bin * output_dim + output. As in the CPU plugin, points outside the image do not
    count (the reference moves them to the last pixel), a box is at least a tenth of a pixel wide and high, and image -1
    ends the boxes: it and all that follow give 0. Source: PSROIPooling-1.
    """
    bins = widened(data), widened(rois), attributes.output_dim, attributes.group_size
    if attributes.mode == "average":
        return _narrow(pool_sensitive(*bins, attributes.spatial_scale), data.dtype)
    return _narrow(pool_sensitive_bilinear(*bins, attributes.parts, attributes.spatial_scale), data.dtype)


@psroi_pooling_1.shape_rule
def _psroi_pooling_1_shape(data: Fact, rois: Fact, *, attributes: PSROIPoolingAttributes) -> Fact:
    size, parts = attributes.group_size, attributes.parts
    _check_channels(data, attributes.output_dim, size * size if attributes.mode == "average" else parts[0] * parts[1])
    return Fact(data.element, (_box_count(rois, 5, attributes.spatial_scale), attributes.output_dim, size, size))


def _check_channels(data: Fact, output_dim: int, each: int) -> None:
    channels = _channels(data)
    text = f"data has {channels} channels, expected {each} for each of {output_dim} outputs"
    check(may_equal(channels, output_dim * each), text)


@op("DeformablePSROIPooling", since=1, tolerance=TOLERANCE)
def deformable_psroi_pooling_1(
    data: Features, rois: Rois, offsets: Features | None = None, *, attributes: DeformablePSROIPoolingAttributes
) -> np.ndarray:
    """Each bin of each box (image, x1, y1, x2, y2) from channels of its own: the mean of interpolated points.

    ``offsets`` [R, 2 * classes, part_size, part_size] move the bins, relative to the box and times ``trans_std``; the
    number of outputs is a multiple of the classes. Gives [R, output_dim, group_size, group_size]. As in the CPU plugin,
    image -1 ends the boxes: it and all that follow give 0. Source: DeformablePSROIPooling-1.
    """
    moves, size, part_size = None, attributes.group_size, attributes.part_size
    if offsets is not None:
        part = np.arange(size) * part_size // size
        pairs = widened(offsets).reshape(len(rois), offsets.shape[1] // 2, 2, part_size, part_size)
        with np.errstate(invalid="ignore", over="ignore"):
            moves = pairs[:, :, :, part[:, None], part] * pairs.dtype.type(attributes.trans_std)
    bins = widened(data), widened(rois), moves, attributes.output_dim, size, attributes.parts
    return _narrow(pool_deformable(*bins, attributes.spatial_scale), data.dtype)


@deformable_psroi_pooling_1.shape_rule
def _deformable_psroi_pooling_1_shape(
    data: Fact, rois: Fact, offsets: Fact | None = None, *, attributes: DeformablePSROIPoolingAttributes
) -> Fact:
    outputs, size = attributes.output_dim, attributes.group_size
    down, across = attributes.parts
    check(down * across <= MAX_POINTS, f"a bin has {down} by {across} points, expected {MAX_POINTS} at most")
    _check_channels(data, outputs, size * size)
    count = _box_count(rois, 5, attributes.spatial_scale)
    if offsets is not None:
        count = _check_offsets(offsets, count, outputs, attributes.part_size)
    return Fact(data.element, (count, outputs, size, size))


def _check_offsets(offsets: Fact, count: Size, output_dim: int, part_size: int) -> Size:
    """The number of boxes, which the offsets may know more precisely."""
    boxes, channels, *sizes = sizes_of(offsets, 4, "offsets")
    check(may_equal(boxes, count), f"there are {count} boxes and offsets of {boxes}")
    are_parts = all(may_equal(size, part_size) for size in sizes)
    check(are_parts, f"offsets {offsets} are not of {part_size} by {part_size} parts")
    if isinstance(channels, int):
        message = f"{channels} channels of offsets are not x and y of classes into which {output_dim} outputs divide"
        check(channels > 0 and channels % 2 == 0 and output_dim % (channels // 2) == 0, message)
    return meet(boxes, count)
