"""Normalizations, also recognised from the layers that compute them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.graph import Tensor
from converters.ir_to_onnx.registry import composed, constant_of, exact, has_flag, producer, producer_of, recognises
from irexec.dtypes.elements import F32
from irexec.ir.dims import Shape
from irexec.ir.graph import Node, Value
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


@recognises("Add")
def normalized_with_bias(ctx: ExportContext) -> Tensor | None:
    """Add(Multiply(MVN(x), scale), bias)."""
    for index in (0, 1):
        multiply, bias = producer(ctx.node, index, "Multiply"), ctx.node.inputs[1 - index]
        found = None if multiply is None or bias is None else _scaled(ctx, multiply, bias)
        if found is not None:
            return found
    return None


@recognises("Multiply")
def normalized(ctx: ExportContext) -> Tensor | None:
    """Multiply(MVN(x), scale), or Multiply(x / sqrt(mean of squares + epsilon), scale)."""
    found = _scaled(ctx, ctx.node, None)
    return _rms(ctx) if found is None else found


def _scaled(ctx: ExportContext, multiply: Node, bias: Value | None) -> Tensor | None:
    for index in (0, 1):
        mvn, scale = producer(multiply, index, "MVN"), multiply.inputs[1 - index]
        if mvn is not None and scale is not None and _is_plain(mvn):
            return _normalization(ctx, mvn, scale, bias)
    return None


def _is_plain(mvn: Node) -> bool:
    """Whether the variance is divided by, and epsilon is inside of the square root."""
    given = mvn.attributes
    inside = given.get("eps_mode", "").lower() == "inside_sqrt"
    return len(mvn.inputs) == 2 and inside and has_flag(mvn, "normalize_variance")


def _normalization(ctx: ExportContext, mvn: Node, scale: Value, bias: Value | None) -> Tensor | None:
    given, x = constant_of(mvn.inputs[1]), _tensor(ctx, mvn.inputs[0])
    if given is None or x is None or x.shape is None or x.element is not F32:
        return None
    rank, eps = len(x.shape), float(mvn.attributes["eps"])
    axes = sorted({int(axis) % rank for axis in given.ravel().tolist()})
    if _are_last(axes, rank) and ctx.has("LayerNormalization"):
        parts = [_trailing(ctx, part, x.shape, len(axes)) for part in (scale, bias) if part is not None]
        if all(part is not None for part in parts):
            return ctx.emit("LayerNormalization", x, *parts, axis=rank - len(axes), epsilon=eps)
    if rank > 2 and axes == list(range(2, rank)):
        return _instance_normalization(ctx, x, scale, bias, eps)
    return None


def _are_last(axes: list[int], rank: int) -> bool:
    return bool(axes) and axes == list(range(rank - len(axes), rank))


def _tensor(ctx: ExportContext, value: Value | None) -> Tensor | None:
    return None if value is None else ctx.writer.tensor(value)


def _trailing(ctx: ExportContext, value: Value, shape: Shape, count: int) -> Tensor | None:
    """Scale or bias in the shape of the last axes; None if it varies along others, or the sizes are not known."""
    sizes = tuple(size for size in shape[len(shape) - count :] if isinstance(size, int))
    if len(sizes) != count:
        return None
    part = constant_of(value)
    if part is None:
        tensor = ctx.writer.tensor(value)
        return tensor if tensor.element is F32 and tensor.shape == sizes else None
    lead = part.shape[: max(part.ndim - count, 0)]
    if part.ndim > len(shape) or any(size != 1 for size in lead):
        return None
    try:
        return ctx.constant(np.broadcast_to(part.reshape(part.shape[len(lead) :]), sizes), F32)
    except ValueError:
        return None


def _instance_normalization(
    ctx: ExportContext, x: Tensor, scale: Value, bias: Value | None, eps: float
) -> Tensor | None:
    assert x.shape is not None
    channels, rank = x.shape[1], len(x.shape)
    if not isinstance(channels, int):
        return None
    zeros = ctx.constant(np.zeros(channels), F32)
    vectors = [zeros if part is None else _of_channels(ctx, part, channels, rank) for part in (scale, bias)]
    if any(vector is None for vector in vectors):
        return None
    return ctx.emit("InstanceNormalization", x, *vectors, epsilon=eps)


def _of_channels(ctx: ExportContext, value: Value, channels: int, rank: int) -> Tensor | None:
    """Scale or bias as a vector with one element per channel; None if it varies along other axes."""
    part = constant_of(value)
    if part is None:
        source, expected = producer_of(value, "Unsqueeze"), (channels, *[1] * (rank - 2))
        vector = None if source is None else _tensor(ctx, source.inputs[0])
        is_along = ctx.writer.tensor(value).shape in (expected, (1, *expected))
        return vector if is_along and vector is not None and vector.rank == 1 and vector.element is F32 else None
    full = part.reshape((1,) * (rank - part.ndim) + part.shape) if part.ndim <= rank else part
    if full.ndim != rank or any(full.shape[axis] != 1 for axis in range(rank) if axis != 1):
        return None
    return ctx.constant(np.broadcast_to(full.reshape(-1), (channels,)), F32)


def _rms(ctx: ExportContext) -> Tensor | None:
    """RMSNormalization of the last axes, in both forms that exporters write."""
    if not ctx.has("RMSNormalization"):
        return None
    for index in (0, 1):
        scale, value = ctx.node.inputs[1 - index], ctx.node.inputs[index]
        found = None if scale is None or value is None else _divided(value.node)
        if scale is None or found is None:
            continue
        x, (mean, eps) = _tensor(ctx, found[0]), found[1]
        axes = constant_of(mean.inputs[1])
        if x is None or x.shape is None or x.element is not F32 or axes is None:
            continue
        rank = len(x.shape)
        chosen = sorted({int(axis) % rank for axis in axes.ravel().tolist()})
        part = _trailing(ctx, scale, x.shape, len(chosen)) if _are_last(chosen, rank) else None
        if part is not None:
            return ctx.emit("RMSNormalization", x, part, axis=rank - len(chosen), epsilon=eps)
    return None


def _divided(node: Node) -> tuple[Value, tuple[Node, float]] | None:
    """x of x / root or x * (1 / root), with the mean of squares under the root and its epsilon."""
    if node.type == "Divide" and node.inputs[0] is not None:
        root = _root(producer(node, 1, "Sqrt"), node.inputs[0])
        return None if root is None else (node.inputs[0], root)
    for index in (0, 1) if node.type == "Multiply" else ():
        reciprocal, x = producer(node, index, "Divide"), node.inputs[1 - index]
        if reciprocal is None or x is None:
            continue
        one = constant_of(reciprocal.inputs[0])
        root = _root(producer(reciprocal, 1, "Sqrt"), x)
        if one is not None and (one == 1).all() and root is not None:
            return x, root
    return None


def _root(sqrt: Node | None, x: Value) -> tuple[Node, float] | None:
    """The ReduceMean of x * x in Sqrt(mean + epsilon), and epsilon."""
    add = producer(sqrt, 0, "Add")
    for index in (0, 1) if add is not None else ():
        assert add is not None
        mean, eps = producer(add, index, "ReduceMean"), constant_of(add.inputs[1 - index])
        if mean is None or eps is None or eps.size != 1 or not _is_square(mean.inputs[0], x):
            continue
        if has_flag(mean, "keep_dims"):
            return mean, float(eps.ravel()[0])
    return None


def _is_square(value: Value | None, x: Value) -> bool:
    node = None if value is None else value.node
    if node is None or node.inputs[0] is not x:
        return False
    if node.type == "Multiply":
        return node.inputs[1] is x
    power = constant_of(node.inputs[1]) if node.type == "Power" else None
    return power is not None and bool((power == 2).all())
