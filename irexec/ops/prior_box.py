"""Boxes of SSD and YOLO: PriorBox, PriorBoxClustered, RegionYolo, ReorgYolo."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from irexec.dtypes.elements import F32
from irexec.errors import check
from irexec.ir.dims import ANY, Shape, Size, at_least, exact_quotient, high, low, may_equal, span
from irexec.ir.dims import count as elements
from irexec.ir.facts import Fact, integers
from irexec.reference.detection import Edges, cell_centres, grid_of_boxes
from irexec.reference.products import softmax
from irexec.reference.special import sigmoid
from irexec.schema.attributes import Floats, Ints, NonNegative, Positives
from irexec.schema.opdef import FloatTensor, IntegerTensor, Rank, Tensor
from irexec.schema.prior_box import (
    PriorBox8Attributes,
    PriorBoxAttributes,
    PriorBoxClusteredAttributes,
    centred_boxes,
    fixed_boxes,
    ratios_of,
)
from irexec.schema.registry import op
from irexec.schema.shape_rules import normalize_axis, sizes_of

# Height and width.
Sizes = Annotated[IntegerTensor, Rank(1)]


# Further attributes that Model Optimizer wrote, from Caffe and older versions of IR.
_OLD = ("img_h", "img_w", "img_size", "step_h", "step_w")


@op("PriorBox", since=1, ignores=_OLD)
def prior_box_1(output_size: Sizes, image_size: Sizes, *, attributes: PriorBoxAttributes) -> np.ndarray:
    """Boxes in every cell of a grid, and their variances: f32 [2, 4 * height * width * boxes of a cell].

    As PriorBox-8 with ``min_max_aspect_ratios_order``. Source: PriorBox-1.
    """
    return prior_box_8.kernel(output_size, image_size, attributes=attributes)


@op("PriorBox", since=8, ignores=_OLD)
def prior_box_8(output_size: Sizes, image_size: Sizes, *, attributes: PriorBox8Attributes) -> np.ndarray:
    """Boxes in every cell of a grid, and their variances: f32 [2, 4 * height * width * boxes of a cell].

    First come the boxes of ``fixed_size``, ``density`` by ``density`` of them for each of ``fixed_ratio``, or else of 1
    and ``aspect_ratio``; each is clipped at the borders of the image. Then for each of ``min_size`` a square, one of
    sqrt(min * max), and one box for each ratio (in the other order without ``min_max_aspect_ratios_order``). Without
    ``scale_all_sizes`` sizes and step are relative to the image's height, max_size has no effect, and the ratios apply
    to the first of ``min_size``, after the last. With step 0 the cells cover the image, and boxes are in their centres
    whatever ``offset`` is; so does -1 without ``scale_all_sizes``. Source: PriorBox-8 and OpenVINO's reference, all in
    f32. Attributes for which OpenVINO counts another number of boxes than it makes (and then writes beyond its memory,
    or leaves some of it uninitialised) are refused.
    """
    grid, image = integers(output_size, "output_size"), image_size.astype(np.float32)
    if 0 in grid:
        return np.empty((2, 0), np.float32)
    with np.errstate(all="ignore"):
        step, min_sizes = np.float32(attributes.step), list(attributes.min_size)
        if not attributes.scale_all_sizes:
            step = image[0] / np.float32(grid[0]) if attributes.step == -1 else step * image[0]
            min_sizes = [np.float32(size) * image[0] for size in min_sizes]
        boxes = np.array(fixed_boxes(attributes) + centred_boxes(min_sizes, attributes), np.float32).reshape(-1, 7)
        if not len(boxes):
            return np.empty((2, 0), np.float32)
        steps = [step if step else size / np.float32(count) for size, count in zip(image, grid, strict=True)]
        offset = attributes.offset if step else 0.5
        centres = [cell_centres(count, each, offset) for count, each in zip(grid, steps, strict=True)]
        rows, columns = (_edges(centres[axis], boxes, axis, image[axis]) for axis in (0, 1))
    return grid_of_boxes(rows, columns, attributes.clip, attributes.variance)


def _edges(centres: np.ndarray, boxes: np.ndarray, axis: int, image: np.float32) -> Edges:
    """The edges of the boxes (rows of CellBox) along y (axis 0) or x, relative to the size of the image."""
    back, forward, shift, half, clipped = (boxes[:, i] for i in (0, 1, 3 - axis, 5 - axis, 6))
    middle = centres[:, None] - back + forward + shift
    first, last = (middle - half) * (1 / image), (middle + half) * (1 / image)
    return np.where(clipped > 0, np.maximum(first, 0), first), np.where(clipped > 0, np.minimum(last, 1), last)


@prior_box_1.shape_rule
@prior_box_8.shape_rule
def _prior_box_shape(output_size: Fact, image_size: Fact, *, attributes: PriorBoxAttributes) -> Fact:
    return _grid_shape(output_size, image_size, _box_count(attributes), attributes.variance)


def _box_count(attributes: PriorBoxAttributes) -> int:
    """The number of boxes of a cell as OpenVINO counts them; OpError if it makes another number."""
    _check_values(attributes)
    sizes, fixed_ratios = len(attributes.min_size), len(attributes.fixed_ratio)
    ratios = len(ratios_of(attributes.aspect_ratio, attributes.flip))
    squares = [int(value) ** 2 for value in attributes.density]
    made = sum(squares) * (fixed_ratios or ratios) if attributes.fixed_size else 0
    if attributes.scale_all_sizes:
        made += sizes * ratios + min(sizes, len(attributes.max_size))
    elif sizes:
        made += sizes + ratios - 1
    rounded = _rounded_ratio_count(attributes)
    counted = _count_without_density(attributes, rounded)
    counted += (fixed_ratios or rounded) * sum(square - 1 for square in squares)
    check(made == counted, f"the sizes and ratios make {made} boxes in each cell, but count as {counted}")
    return counted


def _check_values(attributes: PriorBoxAttributes) -> None:
    ratios = (("aspect_ratio", attributes.aspect_ratio, 1e-6), ("fixed_ratio", attributes.fixed_ratio, 1e-6))
    for name, values, minimum in (*ratios, ("density", attributes.density, 1)):
        check(
            all(minimum <= value < 1e9 for value in values),
            f"{name} has values that are not positive, or below {minimum:g}",
        )
    fixed, densities = attributes.fixed_size, len(attributes.density)
    check(all(0 <= size < 1e9 for size in fixed), f"fixed_size {fixed} has values that are not sizes")
    check(densities == len(fixed) or not fixed, f"density has {densities} values for {len(fixed)} fixed sizes")


def _count_without_density(attributes: PriorBoxAttributes, ratios: int) -> int:
    if attributes.fixed_size:
        return ratios * len(attributes.fixed_size)
    sizes = len(attributes.min_size)
    return ratios * sizes + len(attributes.max_size) if attributes.scale_all_sizes else ratios + sizes - 1


def _rounded_ratio_count(attributes: PriorBoxAttributes) -> int:
    """The number of different ratios, 1 among them, rounded to six digits."""
    flip = attributes.flip
    ratios = [value for ratio in attributes.aspect_ratio for value in ((ratio, 1 / ratio) if flip else (ratio,))]
    return len({1.0, *(math.floor(value * 1e6 + 0.5) / 1e6 for value in ratios)})


@op("PriorBoxClustered", since=1, ignores=("img_h", "img_w", "img_size", "flip"))
def prior_box_clustered_1(
    output_size: Sizes, image_size: Sizes, *, attributes: PriorBoxClusteredAttributes
) -> np.ndarray:
    """Boxes of given widths and heights in every cell of a grid, and their variances: f32 [2, 4 * rows * columns *
    boxes].

    A step of 0 along an axis is ``step``; if then both are 0, the cells cover the image. All is in f32.
    Source: PriorBoxClustered-1; OpenVINO's reader takes absent sizes for none, the specification for 1, and it wants
    the image's size.
    """
    grid, image = integers(output_size, "output_size"), image_size.astype(np.float32)
    if 0 in grid or not attributes.width:
        return np.empty((2, 0), np.float32)
    edges = []
    with np.errstate(all="ignore"):
        steps = [np.float32(attributes.step_h or attributes.step), np.float32(attributes.step_w or attributes.step)]
        if not any(steps):
            steps = [size / np.float32(count) for size, count in zip(image, grid, strict=True)]
        for axis, sizes in ((0, attributes.height), (1, attributes.width)):
            half = np.array(sizes, np.float32) / 2
            middle = cell_centres(grid[axis], steps[axis], attributes.offset)[:, None]
            edges.append(((middle - half) / image[axis], (middle + half) / image[axis]))
    return grid_of_boxes(edges[0], edges[1], attributes.clip, attributes.variance)


@prior_box_clustered_1.shape_rule
def _prior_box_clustered_1_shape(
    output_size: Fact, image_size: Fact, *, attributes: PriorBoxClusteredAttributes
) -> Fact:
    widths, heights = len(attributes.width), len(attributes.height)
    check(widths == heights, f"width has {widths} values, height {heights}")
    return _grid_shape(output_size, image_size, widths, attributes.variance)


def _grid_shape(output_size: Fact, image_size: Fact, boxes: int, variance: Floats) -> Fact:
    for name, fact in (("output_size", output_size), ("image_size", image_size)):
        check(not fact.shape or may_equal(fact.shape[0], 2), f"{name} has shape {fact}, expected 2 values")
    check(len(variance) in (0, 1, 4), f"variance has {len(variance)} values, expected 0, 1 or 4")
    total: Size = 4 * boxes
    for size in output_size.sizes("output_size") or (ANY, ANY):
        check(not isinstance(size, int) or size >= 0, f"output_size has {size}, expected 0 or more")
        total = total * at_least(size, 0)
    return Fact(F32, (2, total))


@dataclass(frozen=True, kw_only=True)
class RegionYoloAttributes:
    """Attributes of RegionYolo; ``anchors`` are for the layers that follow."""

    anchors: Floats = ()
    axis: int
    coords: NonNegative
    classes: NonNegative
    end_axis: int
    num: NonNegative
    do_softmax: bool = True
    mask: Ints = ()

    @property
    def regions(self) -> int:
        """The number of regions of each point."""
        return self.num if self.do_softmax else len(self.mask)

    @property
    def region_channels(self) -> int:
        """The number of channels of each region: coordinates, a score and the classes."""
        return self.coords + 1 + self.classes


@op("RegionYolo", since=1, widen=True, tolerance=1e-5)
def region_yolo_1(data: Annotated[FloatTensor, Rank(4)], *, attributes: RegionYoloAttributes) -> np.ndarray:
    """Activations of data [N, C, H, W] in regions of coords + 1 + classes channels: sigmoid of the first two and of the
    score after coords.

    With ``do_softmax`` (YOLO v2) there are ``num`` regions, softmax is applied to the classes of a region, and axes
    ``axis`` to ``end_axis`` of the result are flattened. Without (YOLO v3) there is a region for each value of
    ``mask``, whatever the values are, and sigmoid is applied to the classes too.
    With fewer than two coords sigmoid is applied twice to a channel, as in the reference. Channels after the regions
    are unchanged with ``do_softmax``, and left out without; OpenVINO then mixes up the images of a batch.
    Source: RegionYolo-1; OpenVINO's reader takes an absent ``do_softmax`` for false, the specification for true.
    """
    regions, each = attributes.regions, attributes.region_channels
    coords, do_softmax = attributes.coords, attributes.do_softmax
    result = data.copy() if do_softmax else data[:, : regions * each].copy()
    parts = result[:, : regions * each].reshape(len(data), regions, each, *data.shape[2:])
    scores = parts[:, :, coords + 1 :].copy()
    for channels in (slice(0, 2), slice(coords, coords + 1 if do_softmax else None)):
        parts[:, :, channels] = sigmoid(parts[:, :, channels])
    if do_softmax:
        parts[:, :, coords + 1 :] = softmax(scores, 2)
    result[:, : regions * each] = parts.reshape(len(data), regions * each, *data.shape[2:])
    return result.reshape([int(size) for size in _flattened(result.shape, attributes)]) if do_softmax else result


def _flattened(shape: Shape, attributes: RegionYoloAttributes) -> Shape:
    """The shape with axes ``axis`` to ``end_axis`` flattened; unchanged where end_axis is not after axis."""
    first = normalize_axis(attributes.axis, len(shape))
    last = normalize_axis(attributes.end_axis, len(shape), "end_axis")
    if last <= first:
        return shape
    return (*shape[:first], elements(shape[first : last + 1]), *shape[last + 1 :])


@region_yolo_1.shape_rule
def _region_yolo_1_shape(data: Fact, *, attributes: RegionYoloAttributes) -> Fact:
    regions, each = attributes.regions, attributes.region_channels
    shape = sizes_of(data, 4, "data")
    maximum = high(shape[1])
    check(
        maximum is None or maximum >= regions * each,
        f"data has {shape[1]} channels, expected {regions * each}: {regions} regions of {attributes.coords} coords, a "
        f"score and {attributes.classes} classes",
    )
    if attributes.do_softmax:
        return Fact(data.element, _flattened(shape, attributes))
    return Fact(data.element, (shape[0], regions * each, *shape[2:]))


@op("ReorgYolo", since=2)
def reorg_yolo_2(data: Annotated[Tensor, Rank(4)], *, stride: Positives) -> np.ndarray:
    """Data [N, C, H, W] rearranged to [N, C * stride * stride, H / stride, W / stride].

    Each image is read as if it were [C', H * stride, W * stride], C' = C // (stride * stride), and element (c', h *
    stride + i, w * stride + j) is written to ((i * stride + j) * C' + c', h, w) of an image [C, H, W]. Therefore the
    result differs from that of SpaceToDepth. Where C is not a multiple of stride * stride, the same offsets are read
    from the whole batch, as in the reference. Source: ReorgYolo-1 of the specification, first in opset 2; of a list of
    strides the first counts, as in OpenVINO.
    """
    images, channels, height, width = data.shape
    step = stride[0]
    depth = channels // (step * step)
    part, channel = np.divmod(np.arange(channels), depth)
    i, j = np.divmod(part, step)
    rows = ((np.arange(images)[:, None] * depth + channel) * height * step + i)[:, :, None] + np.arange(height) * step
    indices = (rows * width * step + j[:, None])[..., None] + np.arange(width) * step
    return data.reshape(-1)[indices].reshape(images, channels * step * step, height // step, width // step)


@reorg_yolo_2.shape_rule
def _reorg_yolo_2_shape(data: Fact, *, stride: Positives) -> Fact:
    check(len(stride) > 0, "stride is empty")
    step = stride[0]
    shape = sizes_of(data, 4, "data")
    maximum = high(shape[1])
    check(
        maximum is None or maximum >= step * step,
        f"data has {shape[1]} channels, expected stride {step} squared or more",
    )
    channels: Size = span(max(low(shape[1]), step * step), maximum)
    rows, columns = (exact_quotient(size, step) for size in shape[2:])
    return Fact(data.element, (shape[0], channels * (step * step), rows, columns))
