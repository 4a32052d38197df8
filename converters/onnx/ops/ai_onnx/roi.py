"""Pooling of regions, and suppression of boxes that overlap boxes of a higher score."""

from __future__ import annotations

import itertools
from typing import Literal

from converters.onnx.algorithms.expression import Expression, arange
from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from irexec.dtypes.elements import I64
from irexec.errors import OpError
from irexec.ir.graph import Value

Mode = Literal["avg", "max"]


@translates("RoiAlign", since=10)
def roi_align_10(
    ctx: TranslationContext, x: Value, rois: Value, batch_indices: Value, *, mode: Mode = "avg", output_height: int = 1,
    output_width: int = 1, sampling_ratio: int = 0, spatial_scale: float = 1.0,
) -> Value:  # fmt: skip
    return _align(
        ctx, x, rois, batch_indices, mode, (output_height, output_width), sampling_ratio, spatial_scale, False
    )


@translates("RoiAlign", since=16)
def roi_align_16(
    ctx: TranslationContext, x: Value, rois: Value, batch_indices: Value, *,
    coordinate_transformation_mode: Literal["half_pixel", "output_half_pixel"] = "half_pixel", mode: Mode = "avg",
    output_height: int = 1, output_width: int = 1, sampling_ratio: int = 0, spatial_scale: float = 1.0,
) -> Value:  # fmt: skip
    half = coordinate_transformation_mode == "half_pixel"
    return _align(ctx, x, rois, batch_indices, mode, (output_height, output_width), sampling_ratio, spatial_scale, half)


def _align(
    ctx: TranslationContext, x: Value, rois: Value, batch: Value, mode: str, bins: tuple[int, int], ratio: int,
    scale: float, half: bool,
) -> Value:  # fmt: skip
    if min(bins) < 1 or ratio < 0:
        found = f"the output is {bins[0]} x {bins[1]} and sampling_ratio {ratio}"
        raise OpError(f"{found}, expected sizes of 1 or more and no negative ratio")
    if mode == "max":
        return _max_align(ctx, x, rois, batch, bins, ratio, scale, half)
    return ctx.emit(
        "ROIAlign", x, rois, batch, pooled_h=bins[0], pooled_w=bins[1], sampling_ratio=ratio, spatial_scale=scale,
        mode="avg", aligned_mode="half_pixel_for_nn" if half else "asymmetric",
    )  # fmt: skip


def _max_align(
    ctx: TranslationContext, x: Value, rois: Value, batch: Value, bins: tuple[int, int], ratio: int, scale: float,
    half: bool,
) -> Value:  # fmt: skip
    """The maximum over all weighted corners of the samples of a bin; IR computes the maximum over the samples.

    The samples of both axes form a table of rows and columns; each box uses a part of it. Source: ONNX RoiAlign and its
    reference.
    """
    rows, columns = (_samples(ctx, x, rois, axis, bins[axis], ratio, scale, half) for axis in (0, 1))
    images = ctx.emit("Gather", x, ctx.convert(batch, I64), ctx.constant(0))
    result: Expression | None = None
    for (y, y_weight), (z, z_weight) in itertools.product(rows[0], columns[0]):
        # (boxes, C, H, W) to (boxes, C, bins and samples, W), then likewise the columns.
        lines = ctx.emit("Gather", images, y.value, ctx.constant(2), batch_dims=1)
        found = Expression(ctx, ctx.emit("Gather", lines, z.value, ctx.constant(3), batch_dims=1))
        value = found * (y_weight.unsqueeze(1, 3) * z_weight.unsqueeze(1, 2))
        result = value if result is None else result.maximum(value)
    if result is None:
        raise OpError("the bins have no samples")
    used = rows[1].unsqueeze(1, 3) & columns[1].unsqueeze(1, 2)
    low = Expression(ctx, ctx.constant(float("-inf"), x))
    counted = used.select(result, low).value
    # The samples of a bin are adjacent: rows are (bins, samples).
    split = ctx.emit("Reshape", counted, _split_shape(ctx, counted, bins), special_zero=True)
    maxima = Expression(ctx, ctx.emit("ReduceMax", split, [3, 5], keep_dims=False))
    return maxima.equals(float("-inf")).select(0, maxima).value


def _split_shape(ctx: TranslationContext, table: Value, bins: tuple[int, int]) -> Value:
    per_bin = [
        ctx.emit("Divide", ctx.unsqueeze(ctx.size(table, axis), [0]), ctx.constant([bins[axis - 2]])) for axis in (2, 3)
    ]
    parts = [ctx.constant([0, 0, bins[0]]), per_bin[0], ctx.constant([bins[1]]), per_bin[1]]
    return ctx.emit("Concat", *parts, axis=0)


def _samples(
    ctx: TranslationContext, x: Value, rois: Value, axis: int, bins: int, ratio: int, scale: float, half: bool
) -> tuple[list[tuple[Expression, Expression]], Expression]:
    """Two pixels with their weights, and whether the sample is used, for each box and sample of a bin along an axis."""
    kind = ctx.element(rois)
    size = Expression(ctx, ctx.size(x, axis + 2))
    shift = 0.5 if half else 0.0
    start, end = (Expression(ctx, _column(ctx, rois, side * 2 + 1 - axis)) * scale - shift for side in (0, 1))
    length = end - start if half else (end - start).maximum(1)
    per_bin = (length / bins).ceil() if not ratio else length * 0 + ratio
    max_samples = Expression(ctx, ctx.emit("ReduceMax", per_bin.value, [0], keep_dims=False)).to(I64).maximum(1)
    number = arange(ctx, 0, max_samples * bins, I64)
    inner = number.modulo(max_samples)
    which = Expression(ctx, ctx.emit("Divide", number.value, max_samples.value)).to(kind)
    counted = inner.to(kind).unsqueeze(0) < per_bin.column()
    part = (inner.to(kind) + 0.5).unsqueeze(0) / per_bin.maximum(1).column()
    position = start.column() + (which.unsqueeze(0) + part) * (length / bins).column()
    outside = (position < -1) | (position > size.to(kind))
    position = position.maximum(0).minimum((size - 1).to(kind))
    low = position.floor()
    fraction = position - low
    pixels = [(low.to(I64), 1 - fraction), (low.to(I64) + 1, fraction)]
    return [(pixel.minimum(size - 1), outside.select(0, weight)) for pixel, weight in pixels], counted


def _column(ctx: TranslationContext, rois: Value, index: int) -> Value:
    return ctx.emit("Gather", rois, ctx.constant(index), ctx.constant(1))


@translates("MaxRoiPool")
def max_roi_pool(
    ctx: TranslationContext, x: Value, rois: Value, *, pooled_shape: list[int], spatial_scale: float = 1.0
) -> Value:
    if len(pooled_shape) != 2:
        raise OpError(f"pooled_shape is {list(pooled_shape)}, expected a height and a width")
    height, width = pooled_shape
    return ctx.emit("ROIPooling", x, rois, pooled_h=height, pooled_w=width, spatial_scale=spatial_scale, method="max")


@translates("NonMaxSuppression", since=10)
def non_max_suppression(
    ctx: TranslationContext, boxes: Value, scores: Value, max_output_boxes_per_class: Value | None = None,
    iou_threshold: Value | None = None, score_threshold: Value | None = None, *, center_point_box: int = 0,
) -> Value:  # fmt: skip
    """Without score_threshold every score is high enough; without max_output_boxes_per_class no box is selected."""
    max_boxes = ctx.constant(0)
    if max_output_boxes_per_class is not None:
        max_boxes = ctx.scalar(ctx.convert(max_output_boxes_per_class, I64))
    max_overlap = ctx.constant(0, boxes) if iou_threshold is None else ctx.scalar(iou_threshold)
    min_score = ctx.constant(float("-inf"), boxes) if score_threshold is None else ctx.scalar(score_threshold)
    results: tuple[Value, ...] = ctx.emit(
        "NonMaxSuppression", boxes, scores, max_boxes, max_overlap, min_score, sort_result_descending=False,
        box_encoding="center" if center_point_box else "corner", output_type="i64",
    )  # fmt: skip
    return results[0]
