"""SimplerNMS, the region proposals of Caffe: composed, since no operation computes it.

Measured on Inference Engine 2020.1 and 2020.4: sizes of boxes count both borders, as in ``x1 - x0 + 1``.
"""

from __future__ import annotations

import math

import numpy as np

from converters.legacy_ir.layer import Layer
from converters.legacy_ir.layers.shapes import strided_slice
from converters.legacy_ir.registry import translates
from irexec.dtypes.elements import F32, I32, I64
from irexec.errors import check
from irexec.ir.graph import Value
from irexec.schema.attributes import Floats, Positive

_SIDE = 16
_RATIOS = (0.5, 1.0, 2.0)
# A constant has the boxes of all cells; the sizes of a file may be anything.
_LARGEST_MAP = 1 << 20
_LOWEST = float(np.finfo(np.float32).min)


@translates("SimplerNMS")
def simpler_nms(
    layer: Layer, scores: Value, deltas: Value, image: Value, *, feat_stride: Positive, min_bbox_size: int,
    pre_nms_topn: Positive, post_nms_topn: Positive, iou_threshold: float, scale: Floats = (),
) -> Value:  # fmt: skip
    """Rows 0, x0, y0, x1, y1 of the boxes with the best scores; the rest is 0."""
    _, channels, height, width = layer.shape(deltas)
    anchors = _anchors(scale)
    check(height * width < _LARGEST_MAP, f"the map has {height} x {width} cells, at most {_LARGEST_MAP} are translated")
    check(channels == 4 * len(anchors), f"the deltas have {channels} channels, the anchors need {4 * len(anchors)}")
    boxes = _boxes(
        layer, _by_box(layer, deltas, (len(anchors), 4)), _centres(anchors, height, width, feat_stride), image
    )
    kept = strided_slice(layer, layer.f32(scores), [0, len(anchors)], [1, 2 * len(anchors)])
    masked = _of_large_boxes(layer, _by_box(layer, kept, (len(anchors), 1)), boxes, image, min_bbox_size)
    count = min(pre_nms_topn, height * width * len(anchors))
    best, order = layer.outputs(
        "TopK", layer.reshaped(masked, (height * width * len(anchors),)), layer.constant(count, I64), version=3, axis=0,
        mode="max", sort="value", index_element_type=I32,
    )  # fmt: skip
    ordered = layer.emit("Gather", boxes, order, layer.constant(0), version=8, batch_dims=0)
    return _suppressed(layer, ordered, best, post_nms_topn, iou_threshold)


def _anchors(scales: Floats) -> np.ndarray:
    """Corners [ratios * scales, 4] of the boxes around the middle of the first cell."""
    found = []
    for ratio in _RATIOS:
        wide = np.round(np.sqrt(_SIDE * _SIDE / ratio))
        high = np.round(wide * ratio)
        for scale in scales:
            half = np.array([wide * scale - 1, high * scale - 1]) / 2
            middle = (_SIDE - 1) / 2
            found.append([*(middle - half), *(middle + half)])
    return np.array(found, np.float32).reshape(-1, 4)


def _centres(anchors: np.ndarray, height: int, width: int, stride: int) -> np.ndarray:
    """Centres and sizes [height * width * anchors, 4] of the boxes of all cells."""
    sizes = anchors[:, 2:] - anchors[:, :2] + 1
    y, x = np.meshgrid(np.arange(height) * stride, np.arange(width) * stride, indexing="ij")
    shifts = np.stack([x, y], -1).reshape(-1, 1, 2)
    centres = anchors[None, :, :2] + sizes / 2 + shifts
    return np.concatenate([centres, np.broadcast_to(sizes, centres.shape)], -1).reshape(-1, 4).astype(np.float32)


def _by_box(layer: Layer, value: Value, parts: tuple[int, int]) -> Value:
    """[1, anchors * n, H, W] as [H * W * anchors, n]."""
    _, _, height, width = layer.shape(value)
    split = layer.reshaped(layer.f32(value), (*parts, height, width))
    moved = layer.emit("Transpose", split, layer.constant([2, 3, 0, 1]), version=1)
    return layer.reshaped(moved, (height * width * parts[0], parts[1]))


def _column(layer: Layer, value: Value, first: int, last: int) -> Value:
    return strided_slice(layer, value, [0, first], [layer.shape(value)[0], last])


def _number(layer: Layer, image: Value, index: int) -> Value:
    """One number of the information about the image: height, width, scale."""
    flat = layer.reshaped(layer.f32(image), (math.prod(layer.shape(image)),))
    return strided_slice(layer, flat, [index], [index + 1])


def _boxes(layer: Layer, deltas: Value, centres: np.ndarray, image: Value) -> Value:
    """Corners [count, 4] of the moved boxes, inside the image."""
    sizes = layer.constant(centres[:, 2:].copy(), F32)
    moved = layer.emit("Multiply", _column(layer, deltas, 0, 2), sizes, version=1)
    middle = layer.emit("Add", moved, layer.constant(centres[:, :2].copy(), F32), version=1)
    grown = layer.emit("Multiply", layer.emit("Exp", _column(layer, deltas, 2, 4), version=1), sizes, version=1)
    half = layer.emit("Multiply", grown, layer.constant(0.5, F32), version=1)
    corners = [layer.emit(type, middle, half, version=1) for type in ("Subtract", "Add")]
    size = layer.emit("Concat", _number(layer, image, 1), _number(layer, image, 0), version=1, axis=0)
    limit = layer.emit("Subtract", size, layer.constant(1.0, F32), version=1)
    inside = [
        layer.emit("Maximum", layer.emit("Minimum", each, limit, version=1), layer.constant(0.0, F32), version=1)
        for each in corners
    ]
    return layer.emit("Concat", *inside, version=1, axis=1)


def _of_large_boxes(layer: Layer, scores: Value, boxes: Value, image: Value, smallest: int) -> Value:
    """The scores, the lowest number in place of those of boxes that are too small."""
    difference = layer.emit("Subtract", _column(layer, boxes, 2, 4), _column(layer, boxes, 0, 2), version=1)
    sizes = layer.emit("Add", difference, layer.constant(1.0, F32), version=1)
    limit = layer.emit("Multiply", _number(layer, image, 2), layer.constant(float(smallest), F32), version=1)
    fits = layer.emit("GreaterEqual", sizes, limit, version=1)
    both = layer.emit("ReduceLogicalAnd", fits, layer.constant([1]), version=1, keep_dims=True)
    return layer.emit("Select", both, scores, layer.constant(_LOWEST, F32), version=1)


def _suppressed(layer: Layer, boxes: Value, scores: Value, count: int, threshold: float) -> Value:
    """The rows of the boxes that overlap no better one by more than the threshold."""
    total = layer.shape(boxes)[0]
    # The area of a box with its last border is that of a box that ends 1 later.
    ends = layer.emit("Add", boxes, layer.constant([[0.0, 0.0, 1.0, 1.0]], F32), version=1)
    numbers = [layer.constant(count, I64), layer.constant(threshold, F32), layer.constant(_LOWEST / 2, F32)]
    found = layer.emit(
        "NonMaxSuppression", layer.reshaped(ends, (1, total, 4)), layer.reshaped(scores, (1, 1, total)), *numbers,
        version=3, box_encoding="corner", sort_result_descending=True, output_type=I64,
    )  # fmt: skip
    rows = layer.emit("Gather", found, layer.constant(2), layer.constant(1), version=8, batch_dims=0)
    chosen = layer.emit("Gather", boxes, rows, layer.constant(0), version=8, batch_dims=0)
    rest = layer.filled(0, (count, 4), F32)
    kept = strided_slice(layer, layer.emit("Concat", chosen, rest, version=1, axis=0), [0], [count])
    return layer.emit("Concat", layer.filled(0, (count, 1), F32), kept, version=1, axis=1)
