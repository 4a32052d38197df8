"""Features of regions of interest: pixels and points between them are gathered, one of every bin in each iteration of
a Loop.

Names of sizes: R boxes, C channels; M maps, which are images or, where bins have channels of their own, parts of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from converters.ir_to_onnx.bodies import loop
from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import F32, F64, I64, Element

Step = Callable[[ExportContext, Tensor, Tensor, Tensor], Tensor]
"""Takes the row and column of a point, scalars of i64, and the total so far; returns the total with the point."""


def wide_element(*tensors: Tensor) -> Element:
    """The element type in which positions are computed: f64 if one of the tensors has it, else f32."""
    return F64 if any(tensor.element is F64 for tensor in tensors) else F32


@dataclass(frozen=True)
class FeatureMaps:
    """Maps of one size, as rows of the channels of a pixel.

    Attributes:
        rows: (M * height * width, C), floats.
        height, width: of a map, scalars of i64.
    """

    rows: Tensor
    height: Tensor
    width: Tensor

    def pixels(self, ctx: ExportContext, maps: Tensor, line: Tensor, column: Tensor) -> Tensor:
        """The channels (P..., C) of pixels; indices of i64 that broadcast to P."""
        first = ctx.emit("Add", ctx.emit("Mul", maps, self.height), line)
        return ctx.emit("Gather", self.rows, ctx.emit("Add", ctx.emit("Mul", first, self.width), column), axis=0)

    def points(self, ctx: ExportContext, maps: Tensor, y: Tensor, x: Tensor) -> Tensor:
        """The channels (P..., C) at positions by bilinear interpolation; outside a map as on its border."""
        parts = []
        for line, line_weight in _nearest_two(ctx, y, self.height):
            for column, column_weight in _nearest_two(ctx, x, self.width):
                weight = ctx.unsqueeze(ctx.emit("Mul", line_weight, column_weight), -1)
                parts.append(ctx.emit("Mul", self.pixels(ctx, maps, line, column), weight))
        return ctx.emit("Sum", *parts)

    def is_within(self, ctx: ExportContext, y: Tensor, x: Tensor, margin: float, beyond: float) -> Tensor:
        """Whether positions are at ``-margin`` at least and at the size plus ``beyond`` at most, with a last axis of
        1."""
        parts = []
        for position, size in ((y, self.height), (x, self.width)):
            last = ctx.emit("Add", ctx.cast(size, position.element), ctx.scalar(beyond, position))
            parts.append(ctx.emit("GreaterOrEqual", position, ctx.scalar(-margin, position)))
            parts.append(ctx.emit("LessOrEqual", position, last))
        rows, columns = ctx.emit("And", *parts[:2]), ctx.emit("And", *parts[2:])
        return ctx.unsqueeze(ctx.emit("And", rows, columns), -1)


def _nearest_two(ctx: ExportContext, position: Tensor, size: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """The pixels before and after a position, each with its weight."""
    last = ctx.emit("Sub", size, ctx.constant(1))
    inside = ctx.emit("Min", ctx.emit("Max", position, ctx.scalar(0, position)), ctx.cast(last, position.element))
    is_number = ctx.emit("Equal", inside, inside)
    before = ctx.cast(ctx.where(is_number, inside, ctx.scalar(0, inside)), I64)
    fraction = ctx.emit("Sub", inside, ctx.cast(before, inside.element))
    yield before, ctx.emit("Sub", ctx.scalar(1, fraction), fraction)
    yield ctx.emit("Min", ctx.emit("Add", before, ctx.constant(1)), last), fraction


def over_points(ctx: ExportContext, rows: Tensor, columns: Tensor, start: Tensor, step: Step) -> Tensor:
    """The total of ``rows`` by ``columns`` points, scalars of i64: ``start``, and what ``step`` makes of it."""

    # ONNX Runtime computes constants in advance, and refuses a division by 0 although no iteration makes it.
    divisor = ctx.emit("Max", columns, ctx.constant(1))

    def body(inner: ExportContext, number: Tensor, total: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        return [step(inner, inner.emit("Div", number, divisor), inner.emit("Mod", number, divisor), total)], []

    (found,), _ = loop(ctx, ctx.emit("Mul", rows, columns), [start], body, fixed=False)
    return found


def largest(ctx: ExportContext, counts: Tensor) -> Tensor:
    """The largest of counts of i64, a scalar; 0 of none."""
    return ctx.emit("ReduceMax", ctx.concat(ctx.reshape(counts, [-1]), ctx.ints(0)), keepdims=0)


def below(ctx: ExportContext, count: int, like: Tensor) -> Tensor:
    """The numbers 0 to ``count`` - 1 in the element type of another tensor."""
    return ctx.constant(np.arange(count), like.element)


def round_half_away(ctx: ExportContext, x: Tensor) -> Tensor:
    """The nearest integers; ties are rounded away from zero."""
    size = ctx.emit("Abs", x)
    whole = ctx.emit("Floor", size)
    is_up = ctx.emit("GreaterOrEqual", ctx.emit("Sub", size, whole), ctx.scalar(0.5, x))
    return ctx.emit("Mul", ctx.emit("Sign", x), ctx.emit("Add", whole, ctx.cast(is_up, x.element)))


def column(ctx: ExportContext, boxes: Tensor, index: int) -> Tensor:
    """One value of each box, (R, 1)."""
    return ctx.slice(boxes, index, index + 1, 1)
