"""Normalizations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.registry import composed, exact
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import F32
from irexec.schema.shape_rules import mvn_2_axes


def standardized(
    ctx: ExportContext, data: Tensor, axes: Sequence[int], eps: float, inside: bool = True, variance: bool = True
) -> Tensor:
    """(x - mean) / sqrt(variance + eps) along axes, or / (sqrt(variance) + eps)."""
    centered = ctx.emit("Sub", data, ctx.reduce("ReduceMean", data, axes, keep=True), shape=data.shape)
    if not variance:
        return centered
    spread = ctx.reduce("ReduceMean", ctx.emit("Mul", centered, centered), axes, keep=True)
    epsilon = ctx.scalar(eps, data)
    if inside:
        deviation = ctx.emit("Sqrt", ctx.emit("Add", spread, epsilon))
    else:
        deviation = ctx.emit("Add", ctx.emit("Sqrt", spread), epsilon)
    return ctx.emit("Div", centered, deviation, shape=data.shape)


@composed("MVN", since=6)
def mvn_6(
    ctx: ExportContext, data: Tensor, axes: Tensor, *, normalize_variance: bool, eps: float, eps_mode: str
) -> Tensor:
    """ReduceMean, Sub, Mul, ReduceMean, Sqrt, Div; LayerNormalization of the last axes where their sizes are known."""
    given, rank = axes.require_ints("the axes"), data.require_rank("the data")
    chosen = sorted({axis % rank for axis in given})
    inside = eps_mode == "inside_sqrt"
    if inside and normalize_variance:
        whole = _layer_normalized(ctx, data, chosen, eps)
        if whole is not None:
            return whole
    if not chosen:
        # The mean of an element is itself.
        return ctx.emit("Sub", data, data)
    return standardized(ctx, data, chosen, eps, inside, normalize_variance)


def _layer_normalized(ctx: ExportContext, data: Tensor, axes: Sequence[int], eps: float) -> Tensor | None:
    rank = data.require_rank("the data")
    assert data.shape is not None
    sizes = [size for size in data.shape[rank - len(axes) :] if isinstance(size, int) and size > 0]
    if not axes or list(axes) != list(range(rank - len(axes), rank)) or len(sizes) != len(axes):
        return None
    if not ctx.has("LayerNormalization"):
        return None
    scale = ctx.constant(np.ones(sizes), data.element)
    return ctx.emit("LayerNormalization", data, scale, axis=rank - len(axes), epsilon=eps)


@composed("MVN", since=2)
def mvn_2(
    ctx: ExportContext, data: Tensor, *, across_channels: bool, normalize_variance: bool, eps: float,
    reduction_axes: Sequence[int] | None,
) -> Tensor:  # fmt: skip
    """Same as MVN-6, over the spatial axes, and the channels if asked for."""
    rank = data.require_rank("the data")
    axes = list(mvn_2_axes(rank, across_channels, reduction_axes))
    if not axes:
        return ctx.emit("Sub", data, data)
    return standardized(ctx, data, axes, eps, True, normalize_variance)


@exact("BatchNormInference", since=1)
def batch_norm_1(
    ctx: ExportContext, gamma: Tensor, beta: Tensor, data: Tensor, mean: Tensor, variance: Tensor, *, epsilon: float
) -> Tensor:
    """BatchNormalization."""
    return batch_norm_5(ctx, data, gamma, beta, mean, variance, epsilon=epsilon)


@exact("BatchNormInference", since=5)
def batch_norm_5(
    ctx: ExportContext, data: Tensor, gamma: Tensor, beta: Tensor, mean: Tensor, variance: Tensor, *, epsilon: float
) -> Tensor:
    """BatchNormalization."""
    return ctx.emit("BatchNormalization", data, gamma, beta, mean, variance, epsilon=epsilon)


@composed("NormalizeL2")
def normalize_l2(ctx: ExportContext, data: Tensor, axes: Tensor, *, eps: float, eps_mode: str) -> Tensor:
    """x / sqrt(sum of squares + eps), or / sqrt(max(sum of squares, eps))."""
    given = axes.require_ints("the axes")
    if not given:
        return ctx.cast(ctx.emit("Not", ctx.emit("Equal", data, ctx.scalar(0, data))), data.element)
    rank = data.require_rank("the data")
    total = ctx.reduce("ReduceSum", ctx.emit("Mul", data, data), sorted({axis % rank for axis in given}), keep=True)
    bounded = ctx.emit("Add" if eps_mode == "add" else "Max", total, ctx.scalar(eps, data))
    return ctx.emit("Div", data, ctx.emit("Sqrt", bounded))


@exact("LRN")
def lrn(ctx: ExportContext, data: Tensor, axes: Tensor, *, alpha: float, beta: float, bias: float, size: int) -> Tensor:
    """LRN of an odd size across the channels of images; others as sums of shifted squares."""
    rank, given = data.require_rank("the data"), axes.require_ints("the axes")
    chosen = list(dict.fromkeys(axis % rank for axis in given))
    # Squares of 16-bit floats would be summed in their type.
    x = ctx.cast(data, F32) if data.element.bits == 16 else data
    # ONNX Runtime has no LRN of other ranks.
    if chosen == [1] and size % 2 and rank == 4:
        return ctx.cast(ctx.emit("LRN", x, alpha=alpha, beta=beta, bias=bias, size=size), data.element)
    total = ctx.emit("Mul", x, x)
    for axis in chosen:
        total = _window_sum(ctx, total, axis, (size - 1) // 2, rank)
    scale = ctx.scalar(alpha / size ** len(chosen), x)
    base = ctx.emit("Add", ctx.scalar(bias, x), ctx.emit("Mul", scale, total))
    return ctx.cast(ctx.emit("Div", x, ctx.emit("Pow", base, ctx.scalar(beta, x))), data.element)


def _window_sum(ctx: ExportContext, x: Tensor, axis: int, side: int, rank: int) -> Tensor:
    """The sum of an element and ``side`` neighbours on each side along an axis."""
    if not side:
        return x
    pads = [0] * (2 * rank)
    pads[axis] = pads[axis + rank] = side
    padded = ctx.emit("Pad", x, ctx.ints(*pads))
    parts = [ctx.slice(padded, i, i - 2 * side or None, axis) for i in range(2 * side + 1)]
    return ctx.emit("Sum", *parts)


@exact("GroupNormalization")
def group_normalization(
    ctx: ExportContext, data: Tensor, scale: Tensor, bias: Tensor, *, num_groups: int, epsilon: float
) -> Tensor:
    """GroupNormalization from opset 21 on, before composed of Reshape and the mean and variance of groups."""
    rank = data.require_rank("the data")
    if data.is_known_empty():
        return ctx.emit("Identity", data)
    if ctx.opset >= 21 and rank > 2:
        return ctx.emit("GroupNormalization", data, scale, bias, num_groups=num_groups, epsilon=epsilon)
    grouped = ctx.emit("Reshape", data, ctx.ints(0, num_groups, -1))
    normalized = ctx.emit("Reshape", standardized(ctx, grouped, [2], epsilon), ctx.shape_of(data))
    spread = range(1, rank - 1)
    scale, bias = (ctx.unsqueeze(x, *spread) if rank > 2 else x for x in (scale, bias))
    return ctx.emit("Add", ctx.emit("Mul", normalized, scale), bias)


@composed("GRN")
def grn(ctx: ExportContext, data: Tensor, *, bias: float) -> Tensor:
    """x / sqrt(bias + sum of squares along the channels)."""
    total = ctx.reduce("ReduceSum", ctx.emit("Mul", data, data), [1], keep=True)
    return ctx.emit("Div", data, ctx.emit("Sqrt", ctx.emit("Add", total, ctx.scalar(bias, data))))
