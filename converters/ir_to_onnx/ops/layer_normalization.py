"""LayerNormalization, InstanceNormalization and RMSNormalization, recognised from the layers that compute them."""

from __future__ import annotations

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.recognition import constant_of, has_flag, producer, producer_of, recognises
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import F32
from irexec.ir.dims import Shape
from irexec.ir.graph import Node, Value


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
