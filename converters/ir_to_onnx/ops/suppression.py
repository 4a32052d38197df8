"""Suppression of boxes by a Loop that keeps one box of every group in each iteration.

ONNX's NonMaxSuppression has no rotated boxes, no other rules of overlap, no soft suppression and no changing
thresholds. Names of sizes: G groups, such as the classes of all images; n boxes of a group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from converters.ir_to_onnx.bodies import loop
from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import I64
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
        return [_goes_on(inner, rated, number, rule.limit), rated, highest, threshold], kept

    lowest = ctx.emit("Expand", ctx.scalar(-np.inf, rule.threshold), ctx.emit("Shape", scores))
    condition = _goes_on(ctx, scores, ctx.constant(-1), rule.limit)
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
        return [_goes_on(inner, rated, number, rule.limit), rated], kept

    condition = _goes_on(ctx, scores, ctx.constant(-1), rule.limit)
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


def _goes_on(ctx: ExportContext, rated: Tensor, number: Tensor, limit: Tensor) -> Tensor:
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
