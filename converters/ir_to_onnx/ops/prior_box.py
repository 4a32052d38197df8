"""PriorBoxClustered: boxes on a grid."""

from __future__ import annotations

from typing import Any

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.ops.shape import as_i64
from converters.ir_to_onnx.registry import composed
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import F32


@composed("PriorBoxClustered")
def prior_box_clustered(ctx: ExportContext, output_size: Tensor, image_size: Tensor, *, attributes: Any) -> Tensor:
    """Centres by Range, edges by Add and Sub, Concat; sizes may be computed when the model runs."""
    grid, image = as_i64(ctx, output_size), ctx.cast(image_size, F32)
    steps = [attributes.step_h or attributes.step, attributes.step_w or attributes.step]
    edges = []
    for axis, sizes in ((0, attributes.height), (1, attributes.width)):
        count, length = ctx.slice(grid, axis, axis + 1, 0), ctx.slice(image, axis, axis + 1, 0)
        step = ctx.constant([steps[axis]], F32) if any(steps) else ctx.emit("Div", length, ctx.cast(count, F32))
        line = ctx.emit("Range", ctx.constant(0), ctx.reshape(count, []), ctx.constant(1))
        centres = ctx.emit("Mul", ctx.emit("Add", ctx.cast(line, F32), ctx.constant(attributes.offset, F32)), step)
        half = ctx.constant(np.array(sizes, np.float32) / 2, F32)
        middle = ctx.unsqueeze(centres, 1)
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
