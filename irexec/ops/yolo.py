"""The heads of YOLO: RegionYolo and ReorgYolo."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from irexec.errors import check
from irexec.ir.dims import Shape, Size, exact_quotient, high, low, span
from irexec.ir.dims import count as elements
from irexec.ir.facts import Fact
from irexec.reference.softmax import softmax
from irexec.reference.special import sigmoid
from irexec.schema.attributes import Floats, Ints, NonNegative, Positives
from irexec.schema.inputs import FloatTensor, Rank, Tensor
from irexec.schema.registry import op
from irexec.schema.shape_rules import normalize_axis, sizes_of


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
    regions, each, coords, do_softmax = (
        attributes.regions,
        attributes.region_channels,
        attributes.coords,
        attributes.do_softmax,
    )
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
    return Fact(
        data.element,
        (shape[0], channels * (step * step), exact_quotient(shape[2], step), exact_quotient(shape[3], step)),
    )
