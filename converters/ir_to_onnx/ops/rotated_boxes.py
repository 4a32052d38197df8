"""Overlaps of rotated boxes, composed of arithmetic in f64.

The intersection area of two boxes is integrated along its border, which consists of the parts of either's edges that
are inside the other. Where edges coincide, a tolerance in favour of one box makes them count once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.ops.suppression import Overlaps
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import F32, F64

_X, _Y = np.array([-1.0, 1, 1, -1]), np.array([-1.0, -1, 1, 1])
"""The corners of a box, in the order of its border, in halves of its sides."""


@dataclass(frozen=True)
class _Sides:
    """Boxes; each attribute is (G, m), or (G, m, 4) where it is of corners.

    Attributes:
        x, y: of the centre.
        cosine, sine: of the angle.
        half_width, half_height, area: of the box.
        radius: half the diagonal; NaN for a box without area, which makes every comparison of distances false.
        corners_x, corners_y: relative to the centre.
    """

    x: Tensor
    y: Tensor
    cosine: Tensor
    sine: Tensor
    half_width: Tensor
    half_height: Tensor
    area: Tensor
    radius: Tensor
    corners_x: Tensor
    corners_y: Tensor


def rotated_overlaps(ctx: ExportContext, boxes: Tensor, clockwise: bool) -> Overlaps:
    """Intersection over union of boxes f32 (G, n, 5): centre x and y, width, height, and angle in radians."""
    every = _sides(ctx, boxes, clockwise)

    def overlaps(inner: ExportContext, chosen: Tensor) -> Tensor:
        box = inner.emit("GatherND", boxes, inner.unsqueeze(chosen, 2), batch_dims=1)
        one = _sides(inner, box, clockwise)
        away = _away(inner, every.x, every.y, one.x, one.y)
        distance = inner.emit("Sqrt", _dot(inner, away, away))
        reach = inner.emit("Add", every.radius, one.radius)
        shared = _intersection(inner, every, one, inner.emit("Mul", reach, inner.constant(1e-10, F64)))
        whole = inner.emit("Sub", inner.emit("Add", every.area, one.area), shared)
        quotient = inner.emit("Div", shared, whole)
        return inner.cast(inner.where(inner.emit("Less", distance, reach), quotient, inner.constant(0, F64)), F32)

    return overlaps


def _sides(ctx: ExportContext, boxes: Tensor, clockwise: bool) -> _Sides:
    wide = ctx.cast(boxes, F64)
    x, y, width, height, angle = (ctx.squeeze(ctx.slice(wide, i, i + 1, 2), 2) for i in range(5))
    cosine, sine = ctx.emit("Cos", angle), ctx.emit("Sin", angle)
    if not clockwise:
        sine = ctx.emit("Neg", sine)
    half = ctx.constant(0.5, F64)
    halves = [ctx.emit("Mul", ctx.emit("Abs", side), half) for side in (width, height)]
    area = ctx.emit("Mul", width, height)
    diagonal = ctx.emit("Sqrt", _dot(ctx, halves, halves))
    radius = ctx.where(ctx.emit("Greater", area, ctx.constant(0, F64)), diagonal, ctx.constant(np.nan, F64))
    u, v = (
        ctx.emit("Mul", ctx.unsqueeze(side, 2), ctx.constant(signs, F64))
        for side, signs in zip(halves, (_X, _Y), strict=True)
    )
    corners = _turned(ctx, [u, v], ctx.unsqueeze(cosine, 2), ctx.unsqueeze(sine, 2))
    return _Sides(x, y, cosine, sine, halves[0], halves[1], area, radius, corners[0], corners[1])


Point = list[Tensor]


def _away(ctx: ExportContext, x: Tensor, y: Tensor, other_x: Tensor, other_y: Tensor) -> Point:
    return [ctx.emit("Sub", x, other_x), ctx.emit("Sub", y, other_y)]


def _dot(ctx: ExportContext, one: Point, other: Point) -> Tensor:
    return ctx.emit("Add", *(ctx.emit("Mul", a, b) for a, b in zip(one, other, strict=True)))


def _turned(ctx: ExportContext, point: Point, cosine: Tensor, sine: Tensor) -> Point:
    """A point, rotated about the origin."""
    x, y = point
    return [
        ctx.emit("Sub", ctx.emit("Mul", x, cosine), ctx.emit("Mul", y, sine)),
        ctx.emit("Add", ctx.emit("Mul", x, sine), ctx.emit("Mul", y, cosine)),
    ]


def _intersection(ctx: ExportContext, one: _Sides, other: _Sides, tolerance: Tensor) -> Tensor:
    """The intersection areas of pairs of boxes, (G, n)."""
    start, edge, inside = _clipped_edges(ctx, one, other, tolerance)
    moment = ctx.emit("Sub", ctx.emit("Mul", start[0], edge[1]), ctx.emit("Mul", start[1], edge[0]))
    sums = ctx.reduce("ReduceSum", ctx.emit("Mul", moment, inside), [2])
    # The triangle of an edge and the centre of its own box is a quarter of the box.
    back = ctx.reduce("ReduceSum", _clipped_edges(ctx, other, one, ctx.emit("Neg", tolerance))[2], [2])
    quarter = ctx.emit("Mul", other.area, ctx.constant(0.25, F64))
    both = ctx.emit("Add", ctx.emit("Mul", sums, ctx.constant(0.5, F64)), ctx.emit("Mul", quarter, back))
    return ctx.emit("Max", both, ctx.constant(0, F64))


def _clipped_edges(ctx: ExportContext, one: _Sides, other: _Sides, tolerance: Tensor) -> tuple[Point, Point, Tensor]:
    """The edges of ``one`` in the coordinates of ``other``: starts and vectors (G, n, 4), and the fraction of each that
    is inside."""
    away = [ctx.unsqueeze(x, 2) for x in _away(ctx, one.x, one.y, other.x, other.y)]
    corners = [ctx.emit("Add", a, b) for a, b in zip((one.corners_x, one.corners_y), away, strict=True)]
    cosine, sine = (ctx.unsqueeze(x, 2) for x in (other.cosine, other.sine))
    start = _turned(ctx, corners, cosine, ctx.emit("Neg", sine))
    following = ctx.ints(1, 2, 3, 0)
    edge = [ctx.emit("Sub", ctx.emit("Gather", x, following, axis=2), x) for x in start]
    enter, leave = ctx.constant(0, F64), ctx.constant(1, F64)
    for position, direction, half in zip(start, edge, (other.half_width, other.half_height), strict=True):
        limit = ctx.unsqueeze(ctx.emit("Add", half, tolerance), 2)
        first, second = (
            ctx.emit("Div", ctx.emit("Sub", end, position), direction) for end in (ctx.emit("Neg", limit), limit)
        )
        enter = ctx.emit("Max", enter, ctx.emit("Min", first, second))
        leave = ctx.emit("Min", leave, ctx.emit("Max", first, second))
    return start, edge, ctx.emit("Max", ctx.emit("Sub", leave, enter), ctx.constant(0, F64))
