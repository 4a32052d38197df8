"""Boxes of regions: decoded from deltas, limited to the image, the best of them without overlaps.

A box is (xmin, ymin, xmax, ymax) along the last axis. With an ``offset`` of 1 the corners are pixels that belong to
the box. Names of sizes: G groups, such as images; n boxes of a group.
"""

from __future__ import annotations

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.ops.suppression import AlignedBoxes, Kept, Rule, suppressed
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import F32, I64
from irexec.ir.dims import ANY
from irexec.reference.proposals import as_f32


def decoded(
    ctx: ExportContext, boxes: Tensor, deltas: Tensor, offset: float, is_inclusive: bool, max_log_scale: float | None
) -> Tensor:
    """Boxes (..., 4) moved and scaled by deltas (dx, dy, dw, dh) (..., 4), as irexec.reference.proposals.decode."""
    first, last = ctx.slice(boxes, 0, 2, -1), ctx.slice(boxes, 2, 4, -1)
    half = ctx.scalar(0.5, boxes)
    sizes = ctx.emit("Add", ctx.emit("Sub", last, first), ctx.scalar(offset, boxes))
    centres = ctx.emit("Add", first, ctx.emit("Mul", sizes, half))
    moved = ctx.emit("Add", ctx.emit("Mul", ctx.slice(deltas, 0, 2, -1), sizes), centres)
    log_scale = ctx.slice(deltas, 2, 4, -1)
    if max_log_scale is not None:
        log_scale = ctx.emit("Min", log_scale, ctx.scalar(max_log_scale, log_scale))
    halves = ctx.emit("Mul", ctx.emit("Mul", ctx.emit("Exp", log_scale), sizes), half)
    end = ctx.emit("Add", moved, halves)
    if is_inclusive and offset:
        end = ctx.emit("Sub", end, ctx.scalar(offset, end))
    return ctx.concat(ctx.emit("Sub", moved, halves), end, axis=-1)


def positive(ctx: ExportContext, x: Tensor) -> Tensor:
    """The values above 0; 0 for others and for NaN."""
    zero = ctx.scalar(0, x)
    return ctx.where(ctx.emit("Greater", x, zero), x, zero)


def clipped(ctx: ExportContext, boxes: Tensor, limits: Tensor) -> Tensor:
    """Boxes (..., 4) with every corner inside; ``limits`` are the largest x, y, x and y, and broadcast."""
    return positive(ctx, ctx.emit("Min", boxes, limits))


def sides(ctx: ExportContext, boxes: Tensor, offset: float) -> tuple[Tensor, Tensor]:
    """The widths and heights of boxes (..., 4)."""
    width, height = (
        ctx.squeeze(ctx.emit("Sub", ctx.slice(boxes, i + 2, i + 3, -1), ctx.slice(boxes, i, i + 1, -1)), -1)
        for i in (0, 1)
    )
    added = ctx.scalar(offset, width)
    return ctx.emit("Add", width, added), ctx.emit("Add", height, added)


def best(ctx: ExportContext, boxes: Tensor, scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The boxes (G, n, 4) with the best ``count`` scores (G, n) in descending order, NaN last, and these scores."""
    limit = ctx.emit("Min", ctx.ints(count), ctx.slice(ctx.shape_of(scores), 1, 2, 0))
    order = descending(ctx, scores, limit, 1)
    found = ctx.emit("GatherND", boxes, ctx.unsqueeze(order, 2), batch_dims=1)
    return found, ctx.emit("GatherElements", scores, order, axis=1)


def descending(ctx: ExportContext, scores: Tensor, count: Tensor, axis: int) -> Tensor:
    """The indices of the ``count`` best scores along an axis; of equal ones the first comes first, NaN last."""
    is_number = ctx.emit("Equal", scores, scores)
    return ctx.emit_all("TopK", 2, ctx.where(is_number, scores, ctx.scalar(-np.inf, scores)), count, axis=axis)[1]


def ranks(ctx: ExportContext, like: Tensor) -> Tensor:
    """Scores f32 (G, n) of boxes that are sorted: -1, -2, ... in each group."""
    sizes = ctx.emit("Shape", like)
    one = ctx.emit("Expand", ctx.constant(-1.0, F32), sizes)
    return ctx.emit("CumSum", one, ctx.constant(1))


def kept_boxes(ctx: ExportContext, boxes: Tensor, rated: Tensor, rule: Rule, offset: float) -> Kept:
    """The boxes (G, n, 4) that overlap none with a better score, of ``rated`` (G, n), by more than a threshold."""
    corners = tuple(ctx.squeeze(ctx.slice(boxes, i, i + 1, 2), 2) for i in range(4))
    return suppressed(ctx, rated, AlignedBoxes(corners, offset, must_touch=True).overlaps(ctx), rule)


def rule_of(ctx: ExportContext, threshold: float, limit: int, like: Tensor, eta: float = 1.0) -> Rule:
    """The rule of a threshold, which is an attribute; overlaps have the element type of ``like``."""
    return Rule(ctx.scalar(as_f32(threshold), like), ctx.constant(limit), eta=eta)


def chosen(ctx: ExportContext, values: Tensor, kept: Kept) -> Tensor:
    """The values (G, n, ...) of kept boxes, (G, k, ...)."""
    return ctx.emit("GatherND", values, ctx.unsqueeze(kept.boxes, 2), batch_dims=1)


def padded(ctx: ExportContext, rows: Tensor, count: int, axis: int, rank: int) -> Tensor:
    """The first ``count`` rows along an axis, with zeros where there are fewer."""
    pads = [0] * (2 * rank)
    pads[rank + axis] = count
    wide = ctx.emit("Pad", rows, ctx.ints(*pads))
    return ctx.slice(wide, 0, count, axis)


def grid_values(ctx: ExportContext, maps: Tensor, anchors: int, each: int) -> Tensor:
    """Maps (G, anchors * each, H, W) as (G, H * W * anchors, each); without the last axis if ``each`` is 1."""
    sizes = ctx.shape_of(maps)
    apart = ctx.emit(
        "Reshape", maps, ctx.concat(ctx.slice(sizes, 0, 1, 0), ctx.ints(anchors, each), ctx.slice(sizes, 2, 4, 0))
    )
    moved = ctx.transpose(apart, [0, 3, 4, 1, 2])
    shape = [0, -1, each] if each > 1 else [0, -1]
    return ctx.emit("Reshape", moved, ctx.ints(*shape), shape=(ANY, ANY, each)[: len(shape)])


def counted(ctx: ExportContext, is_box: Tensor) -> Tensor:
    """The number of kept boxes of each group, i64 (G,)."""
    return ctx.reduce("ReduceSum", ctx.cast(is_box, I64), [1])
