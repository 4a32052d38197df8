"""Suppression of boxes, and overlaps of rotated ones.

ONNX's NonMaxSuppression has no rotated boxes, no other rules of overlap, no soft suppression and no changing
thresholds. Names of sizes: G groups, such as the classes of all images; n boxes of a group.

The intersection area of two boxes is integrated along its border, which consists of the parts of either's edges that
are inside the other. Where edges coincide, a tolerance in favour of one box makes them count once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from converters.ir_to_onnx.bodies import loop
from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.graph import Tensor
from irexec.dtypes.elements import F32, F64, I64
from irexec.ir.dims import ANY

Overlaps = Callable[[ExportContext, Tensor], Tensor]
"""Takes a context and a box of each group, i64 (G, 1); returns its overlaps with the boxes of its group, (G, n)."""


@dataclass(frozen=True)
class Rule:
    """The rule by which a box that is kept suppresses others.

    Attributes:
        threshold: boxes that overlap a kept one by more are dropped; a scalar of the element type of the overlaps.
        limit: the maximum number of kept boxes of a group, a scalar of i64.
        is_inclusive: an overlap equal to the threshold drops a box too.
        eta: the factor of a threshold above one half after each kept box.
    """

    threshold: Tensor
    limit: Tensor
    is_inclusive: bool = False
    eta: float = 1.0


@dataclass(frozen=True)
class SoftRule:
    """The rule by which a box that is kept lowers the scores of others: by exp(-overlap² / (2 * sigma)).

    Attributes:
        sigma: positive.
        min_score: boxes whose scores are not above it are dropped, a scalar of f32.
        limit: the maximum number of kept boxes of a group, a scalar of i64.
    """

    sigma: float
    min_score: Tensor
    limit: Tensor


@dataclass(frozen=True)
class Kept:
    """The boxes that are kept, k of each group, in the order in which they were chosen.

    Attributes:
        boxes: their indices, i64 (G, k).
        is_box: false where a group has fewer, (G, k).
        scores: when they were chosen, (G, k).
    """

    boxes: Tensor
    is_box: Tensor
    scores: Tensor

    def places(self, ctx: ExportContext) -> Tensor:
        """The groups and ranks of all kept boxes, i64 (boxes, 2), group by group."""
        return ctx.transpose(ctx.emit("NonZero", self.is_box), [1, 0])

    def triplets(self, ctx: ExportContext, classes: Tensor) -> Tensor:
        """Image, class and box of all kept boxes, where groups are the classes of images; ``classes`` is their number,
        a vector of one element."""
        places = self.places(ctx)
        group = ctx.slice(places, 0, 1, 1)
        image, number = ctx.emit("Div", group, classes), ctx.emit("Mod", group, classes)
        return ctx.concat(image, number, ctx.unsqueeze(ctx.emit("GatherND", self.boxes, places), 1), axis=1)


def suppressed(ctx: ExportContext, scores: Tensor, overlaps: Overlaps, rule: Rule) -> Kept:
    """The boxes that overlap no box kept before by more than a threshold.

    Args:
        ctx: the context.
        scores: (G, n), the best box of a group first, of equal ones the first; -infinity for a box that is dropped.
        overlaps: of the boxes.
        rule: the thresholds.
    """
    none, index = ctx.scalar(-np.inf, scores), _indices(ctx, scores)
    compare = "GreaterOrEqual" if rule.is_inclusive else "Greater"

    def step(
        inner: ExportContext, number: Tensor, rated: Tensor, highest: Tensor, threshold: Tensor
    ) -> tuple[list[Tensor], list[Tensor]]:
        chosen, kept = _best(inner, rated, none)
        found = overlaps(inner, chosen)
        # A comparison with NaN is false: it does not count.
        highest = inner.where(inner.emit("Greater", found, highest), found, highest)
        if rule.eta < 1:
            lowered = inner.emit("Mul", threshold, inner.scalar(float(np.float32(rule.eta)), threshold))
            half = inner.scalar(0.5, threshold)
            threshold = inner.where(inner.emit("Greater", threshold, half), lowered, threshold)
        gone = inner.emit("Or", inner.emit(compare, highest, threshold), inner.emit("Equal", index, chosen))
        rated = inner.where(gone, none, rated)
        return [_continues(inner, rated, number, rule.limit), rated, highest, threshold], kept

    lowest = ctx.emit("Expand", ctx.scalar(-np.inf, rule.threshold), ctx.emit("Shape", scores))
    condition = _continues(ctx, scores, ctx.constant(-1), rule.limit)
    return _kept(ctx, scores, loop(ctx, None, [scores, lowest, rule.threshold], step, condition, fixed=False)[1])


def softly_suppressed(ctx: ExportContext, scores: Tensor, overlaps: Overlaps, rule: SoftRule) -> Kept:
    """The boxes whose scores stay above a minimum after better boxes that overlap them have lowered them; of ``scores``
    as those of ``suppressed``."""
    none, index = ctx.scalar(-np.inf, scores), _indices(ctx, scores)
    scale = float(np.float32(-0.5) / np.float32(rule.sigma))

    def step(inner: ExportContext, number: Tensor, rated: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        chosen, kept = _best(inner, rated, none)
        found = overlaps(inner, chosen)
        exponent = inner.emit("Mul", inner.emit("Mul", found, inner.scalar(scale, found)), found)
        lowered = inner.emit("Mul", rated, inner.emit("Exp", exponent))
        is_other = inner.emit("Not", inner.emit("Equal", index, chosen))
        stays = inner.emit("And", inner.emit("Greater", lowered, rule.min_score), is_other)
        rated = inner.where(stays, lowered, none)
        return [_continues(inner, rated, number, rule.limit), rated], kept

    condition = _continues(ctx, scores, ctx.constant(-1), rule.limit)
    return _kept(ctx, scores, loop(ctx, None, [scores], step, condition, fixed=False)[1])


def _indices(ctx: ExportContext, scores: Tensor) -> Tensor:
    count = ctx.reshape(ctx.slice(ctx.shape_of(scores), 1, 2, 0), [])
    return ctx.emit("Range", ctx.constant(0), count, ctx.constant(1))


def _best(ctx: ExportContext, rated: Tensor, none: Tensor) -> tuple[Tensor, list[Tensor]]:
    """The best box of each group (G, 1); and its index, whether there is one, and its score, (G,) each."""
    # Without the rank ONNX Runtime stacks no iterations to a tensor without axes.
    shape = (ANY, 1)
    chosen = ctx.emit("ArgMax", rated, shape=shape, axis=1, keepdims=1)
    score = ctx.emit("GatherElements", rated, chosen, shape=shape, axis=1)
    parts = (chosen, ctx.emit("Greater", score, none, shape=shape), score)
    return chosen, [ctx.squeeze(part, 1) for part in parts]


def _continues(ctx: ExportContext, rated: Tensor, number: Tensor, limit: Tensor) -> Tensor:
    """Whether another iteration follows that of a number: boxes are left, and no group has as many as it may."""
    is_left = ctx.cast(ctx.emit("Greater", rated, ctx.scalar(-np.inf, rated)), I64)
    is_any = ctx.emit("Greater", ctx.emit("ReduceSum", is_left, keepdims=0), ctx.constant(0))
    return ctx.emit("And", is_any, ctx.emit("Less", ctx.emit("Add", number, ctx.constant(1)), limit), shape=())


def _kept(ctx: ExportContext, scores: Tensor, stacked: tuple[Tensor, ...]) -> Kept:
    # ONNX Runtime stacks no iterations to a tensor of no groups; a 0 copies the size.
    shape = ctx.concat(ctx.ints(0), ctx.slice(ctx.shape_of(scores), 0, 1, 0))
    boxes, is_box, found = (ctx.transpose(ctx.emit("Reshape", tensor, shape), [1, 0]) for tensor in stacked)
    return Kept(boxes, is_box, found)


@dataclass(frozen=True)
class AlignedBoxes:
    """Boxes with sides parallel to the axes; one without a positive area overlaps nothing.

    Attributes:
        corners: x and y of the first, then of the last corner, (G, n) each.
        unit: 1 where coordinates are pixels that belong to the box, else 0.
        must_touch: whether boxes less than a unit apart overlap nothing.
    """

    corners: tuple[Tensor, ...]
    unit: float = 0.0
    must_touch: bool = False

    def areas(self, ctx: ExportContext) -> Tensor:
        """The areas of the boxes, (G, n)."""
        return ctx.emit("Mul", *(self._length(ctx, self.corners[i + 2], self.corners[i]) for i in (0, 1)))

    def _length(self, ctx: ExportContext, last: Tensor, first: Tensor) -> Tensor:
        return ctx.emit("Add", ctx.emit("Sub", last, first), ctx.scalar(self.unit, last))

    def overlaps(self, ctx: ExportContext) -> Overlaps:
        """Intersection over union; adds nodes to the graph that the Loop is in."""
        areas = self.areas(ctx)

        def overlaps(inner: ExportContext, chosen: Tensor) -> Tensor:
            *one, area = (inner.emit("GatherElements", x, chosen, axis=1) for x in (*self.corners, areas))
            zero, sides, counts = inner.scalar(0, areas), [], []
            for i in (0, 1):
                last = inner.emit("Min", one[i + 2], self.corners[i + 2])
                first = inner.emit("Max", one[i], self.corners[i])
                length = self._length(inner, last, first)
                counts.append(inner.emit("GreaterOrEqual", last, first) if self.must_touch else None)
                sides.append(inner.where(inner.emit("Greater", length, zero), length, zero))
            shared = inner.emit("Mul", *sides)
            whole = inner.emit("Sub", inner.emit("Add", areas, area), shared)
            counts += [inner.emit("Greater", size, zero) for size in (areas, area)]
            return where_all(inner, [x for x in counts if x is not None], inner.emit("Div", shared, whole), zero)

        return overlaps


def where_all(ctx: ExportContext, conditions: list[Tensor], then: Tensor, otherwise: Tensor) -> Tensor:
    """``then`` where all conditions hold, ``otherwise`` elsewhere."""
    whole = conditions[0]
    for condition in conditions[1:]:
        whole = ctx.emit("And", whole, condition)
    return ctx.where(whole, then, otherwise)


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
