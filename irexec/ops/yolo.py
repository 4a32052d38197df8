"""The heads of YOLO: RegionYolo and ReorgYolo."""

from __future__ import annotations

import numpy as np

from irexec.errors import check
from irexec.ir.dims import Shape, Size, exact_quotient, high, low, span
from irexec.ir.dims import count as elements
from irexec.ir.facts import Fact
from irexec.ops.activation import softmax
from irexec.reference.elementwise import sigmoid
from irexec.schema.attributes import Floats, Ints, NonNegative, Positives
from irexec.schema.registry import op
from irexec.schema.rules import check_float, normalize_axis, sizes_of


@op("RegionYolo", since=1, widen=True, tolerance=1e-5)
def region_yolo_1(
    data: np.ndarray,
    *,
    anchors: Floats = (),
    axis: int,
    coords: NonNegative,
    classes: NonNegative,
    end_axis: int,
    num: NonNegative,
    do_softmax: bool = True,
    mask: Ints = (),
) -> np.ndarray:
    """Regions of coords + 1 + classes channels each: the first two and the one behind the coords go through the logistic function.

    With ``do_softmax`` (YOLO v2) there are ``num`` regions of data [N, C, H, W], the classes of a region go through softmax, and
    axes ``axis`` to ``end_axis`` of the result are one. Without (YOLO v3) there is a region for each number of ``mask``, whatever the
    numbers are, and the classes go through the logistic function too. ``anchors`` are for what comes after.
    Fewer than two coords leave a channel to the logistic function twice, as in the reference. Channels beyond the regions
    stay as they are with ``do_softmax``, and are left out without; OpenVINO then mixes up the images of a batch.
    Source: RegionYolo-1; OpenVINO's reader takes an absent ``do_softmax`` for false, the specification for true.
    """
    regions, each = num if do_softmax else len(mask), coords + 1 + classes
    result = data.copy() if do_softmax else data[:, : regions * each].copy()
    parts = result[:, : regions * each].reshape(len(data), regions, each, *data.shape[2:])
    scores = parts[:, :, coords + 1 :].copy()
    for channels in (slice(0, 2), slice(coords, coords + 1 if do_softmax else None)):
        parts[:, :, channels] = sigmoid(parts[:, :, channels])
    if do_softmax:
        parts[:, :, coords + 1 :] = softmax(scores, 2)
    result[:, : regions * each] = parts.reshape(len(data), regions * each, *data.shape[2:])
    return result.reshape([int(size) for size in _flattened(result.shape, axis, end_axis)]) if do_softmax else result


def _flattened(shape: Shape, axis: int, end_axis: int) -> Shape:
    """The shape with its axes ``axis`` to ``end_axis`` made one; as it is where the end comes first."""
    first, last = normalize_axis(axis, len(shape)), normalize_axis(end_axis, len(shape), "end_axis")
    if last <= first:
        return shape
    return (*shape[:first], elements(shape[first : last + 1]), *shape[last + 1 :])


@region_yolo_1.shape_rule
def _region_yolo_1_facts(
    data: Fact,
    *,
    anchors: Floats = (),
    axis: int,
    coords: int,
    classes: int,
    end_axis: int,
    num: int,
    do_softmax: bool = True,
    mask: Ints = (),
) -> Fact:
    check_float(data, "data")
    regions, each = num if do_softmax else len(mask), coords + 1 + classes
    shape = sizes_of(data, 4, "data")
    most = high(shape[1])
    check(
        most is None or most >= regions * each,
        f"data has {shape[1]} channels, expected {regions * each}: {regions} regions of {coords} coords, a score and {classes} classes",
    )
    if do_softmax:
        return Fact(data.element, _flattened(shape, axis, end_axis))
    return Fact(data.element, (shape[0], regions * each, *shape[2:]))


@op("ReorgYolo", since=2)
def reorg_yolo_2(data: np.ndarray, *, stride: Positives) -> np.ndarray:
    """Data [N, C, H, W] laid out anew as [N, C * stride * stride, H / stride, W / stride].

    Each image is read as if it were [C', H * stride, W * stride], C' = C / (stride * stride) rounded down, and of channel c' the
    point (h * stride + i, w * stride + j) goes to where (i * stride + j) * C' + c', h, w is in an image [C, H, W]. So the numbers are
    not those of SpaceToDepth. Where C does not divide, what is read is that far into the batch, as in the reference.
    Source: ReorgYolo-1 of the specification, first in opset 2; of a list of strides the first counts, as in OpenVINO.
    """
    images, channels, height, width = data.shape
    step = stride[0]
    deep = channels // (step * step)
    part, channel = np.divmod(np.arange(channels), deep)
    i, j = np.divmod(part, step)
    rows = ((np.arange(images)[:, None] * deep + channel) * height * step + i)[:, :, None] + np.arange(height) * step
    places = (rows * width * step + j[:, None])[..., None] + np.arange(width) * step
    return data.reshape(-1)[places].reshape(images, channels * step * step, height // step, width // step)


@reorg_yolo_2.shape_rule
def _reorg_yolo_2_facts(data: Fact, *, stride: Positives) -> Fact:
    check(len(stride) > 0, "stride is empty")
    step = stride[0]
    shape = sizes_of(data, 4, "data")
    most = high(shape[1])
    check(most is None or most >= step * step, f"data has {shape[1]} channels, expected stride {step} squared or more")
    channels: Size = span(max(low(shape[1]), step * step), most)
    return Fact(data.element, (shape[0], channels * (step * step), exact_quotient(shape[2], step), exact_quotient(shape[3], step)))
