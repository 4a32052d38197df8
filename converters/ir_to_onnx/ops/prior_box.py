"""PriorBox and PriorBoxClustered: boxes on a grid."""

from __future__ import annotations

from typing import Any

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.ops.shape import as_i64
from converters.ir_to_onnx.registry import composed
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import BOOLEAN, F32
from irexec.errors import check
from irexec.schema.prior_box import PriorBoxAttributes, centred_boxes, fixed_boxes


@composed("PriorBox")
def prior_box(ctx: ExportContext, output_size: Tensor, image_size: Tensor, *, attributes: PriorBoxAttributes) -> Tensor:
    """Centres by Range, edges by Add and Sub, Concat; sizes may be computed when the model runs."""
    grid, image = as_i64(ctx, output_size), ctx.cast(image_size, F32)
    height, step = ctx.slice(image, 0, 1, 0), np.float32(attributes.step)
    sizes = list(attributes.min_size)
    if not attributes.scale_all_sizes and sizes:
        first = np.float32(image_size.require_value("the size of the image").ravel()[0])
        sizes = [float(np.float32(size) * first) for size in sizes]
    boxes = np.array(fixed_boxes(attributes) + centred_boxes(sizes, attributes), np.float32).reshape(-1, 7)
    check(len(boxes) > 0, "there are no boxes")
    edges = []
    for axis in (0, 1):
        count, length = ctx.slice(grid, axis, axis + 1, 0), ctx.slice(image, axis, axis + 1, 0)
        if not step:
            distance = ctx.emit("Div", length, ctx.cast(count, F32))
        elif attributes.scale_all_sizes:
            distance = ctx.constant([step], F32)
        elif attributes.step == -1:
            distance = ctx.emit("Div", height, ctx.cast(ctx.slice(grid, 0, 1, 0), F32))
        else:
            distance = ctx.emit("Mul", height, ctx.constant([step], F32))
        centres = _centres(ctx, count, distance, attributes.offset if step else 0.5)
        edges.append(_edges(ctx, centres, boxes, axis, length))
    return _grid(ctx, edges[0], edges[1], grid, len(boxes), attributes)


def _centres(ctx: ExportContext, count: Tensor, step: Tensor, offset: float) -> Tensor:
    """The centres of the cells along an axis, (cells, 1)."""
    line = ctx.emit("Range", ctx.constant(0), ctx.reshape(count, []), ctx.constant(1))
    moved = ctx.emit("Add", ctx.cast(line, F32), ctx.constant(offset, F32))
    return ctx.unsqueeze(ctx.emit("Mul", moved, step), 1)


def _edges(ctx: ExportContext, centres: Tensor, boxes: np.ndarray, axis: int, length: Tensor) -> list[Tensor]:
    """First and last coordinates of boxes (rows of CellBox), relative to the size of the image."""
    back, forward, shift, half, clipped = (boxes[:, i] for i in (0, 1, 3 - axis, 5 - axis, 6))
    middle = ctx.emit("Sub", centres, ctx.constant(back, F32))
    for part in (forward, shift):
        middle = ctx.emit("Add", middle, ctx.constant(part, F32))
    scale, found = ctx.emit("Reciprocal", length), list[Tensor]()
    for sign, limit, bound in (("Sub", "Max", 0), ("Add", "Min", 1)):
        edge = ctx.emit("Mul", ctx.emit(sign, middle, ctx.constant(half, F32)), scale)
        if clipped.any():
            bounded = ctx.emit(limit, edge, ctx.scalar(bound, edge))
            edge = ctx.where(ctx.constant(clipped > 0, BOOLEAN), bounded, edge)
        found.append(edge)
    return found


@composed("PriorBoxClustered")
def prior_box_clustered(ctx: ExportContext, output_size: Tensor, image_size: Tensor, *, attributes: Any) -> Tensor:
    """Centres by Range, edges by Add and Sub, Concat; sizes may be computed when the model runs."""
    grid, image = as_i64(ctx, output_size), ctx.cast(image_size, F32)
    steps = [attributes.step_h or attributes.step, attributes.step_w or attributes.step]
    edges = []
    for axis, sizes in ((0, attributes.height), (1, attributes.width)):
        count, length = ctx.slice(grid, axis, axis + 1, 0), ctx.slice(image, axis, axis + 1, 0)
        step = ctx.constant([steps[axis]], F32) if any(steps) else ctx.emit("Div", length, ctx.cast(count, F32))
        half = ctx.constant(np.array(sizes, np.float32) / 2, F32)
        middle = _centres(ctx, count, step, attributes.offset)
        edges.append([ctx.emit("Div", ctx.emit(sign, middle, half), length) for sign in ("Sub", "Add")])
    return _grid(ctx, edges[0], edges[1], grid, len(attributes.width), attributes)


def _grid(
    ctx: ExportContext, rows: list[Tensor], columns: list[Tensor], grid: Tensor, boxes: int, attributes: Any
) -> Tensor:
    """The boxes of all cells as x and y of both corners, and their variances: (2, coordinates)."""
    shape = ctx.concat(grid, ctx.ints(boxes, 1))
    parts = []
    for i in (0, 1):
        for edge, axis in ((columns[i], 0), (rows[i], 1)):
            parts.append(ctx.emit("Expand", ctx.unsqueeze(ctx.unsqueeze(edge, axis), 3), shape))
    whole = ctx.concat(*parts, axis=3)
    if attributes.clip:
        whole = ctx.emit("Clip", whole, ctx.scalar(0, whole), ctx.scalar(1, whole))
    variances = ctx.emit("Expand", ctx.constant(np.array(attributes.variance or [0.1]), F32), ctx.emit("Shape", whole))
    return ctx.concat(ctx.reshape(whole, [1, -1]), ctx.reshape(variances, [1, -1]), axis=0)
