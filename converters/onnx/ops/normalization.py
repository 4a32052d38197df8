"""Normalisation."""

from __future__ import annotations

import numpy as np

from converters.onnx.context import Context
from converters.onnx.registry import translates
from irexec.errors import ConversionError, OpError
from irexec.ir.elements import F32, Element
from irexec.ir.graph import Value


def along_channels(b: Context, x: Value, like: Value) -> Value:
    """One number a channel, shaped to stretch over data of the rank of ``like``."""
    rank = b.rank(like)
    return b.emit("Reshape", x, [1, -1] + [1] * (rank - 2), special_zero=False)


@translates("BatchNormalization")
def batch_normalization(
    b: Context, x: Value, scale: Value, bias: Value, mean: Value, variance: Value, *, epsilon: float = 1e-5, momentum: float = 0.9,
    spatial: int = 1, is_test: int = 0, training_mode: int = 0,
) -> Value | tuple[Value, ...]:  # fmt: skip
    """By the given statistics, or in training by those of the batch."""
    if not spatial:
        raise ConversionError("BatchNormalization with spatial=0 is not supported", unsupported=True)
    if training_mode:
        return _trained(b, x, scale, bias, mean, variance, epsilon, momentum)
    kind = b.element(x)
    parts = [_as(b, part, kind) for part in (scale, bias, mean, variance)]
    return b.emit("BatchNormInference", x, *parts, epsilon=epsilon)


def _as(b: Context, x: Value, kind: Element) -> Value:
    return x if b.element(x) is kind else b.emit("Convert", x, destination_type=kind)


def _trained(
    b: Context, x: Value, scale: Value, bias: Value, mean: Value, variance: Value, epsilon: float, momentum: float
) -> tuple[Value, ...]:
    axes = b.constant([axis for axis in range(b.rank(x)) if axis != 1])
    now = b.emit("ReduceMean", x, axes, keep_dims=False)
    apart = b.emit("Subtract", x, along_channels(b, now, x))
    spread = b.emit("ReduceMean", b.emit("Multiply", apart, apart), axes, keep_dims=False)
    y = b.emit("BatchNormInference", x, scale, bias, now, spread, epsilon=epsilon)

    def running(old: Value, new: Value) -> Value:
        kept = b.emit("Multiply", old, b.constant(momentum, old))
        return b.emit("Add", kept, b.emit("Multiply", new, b.constant(1 - momentum, new)))

    return y, running(mean, now), running(variance, spread)


def mvn(b: Context, x: Value, axes: list[int], epsilon: float, mode: str = "inside_sqrt") -> Value:
    """To mean 0 and variance 1 along the axes."""
    return b.emit("MVN", x, list(axes), normalize_variance=True, eps=epsilon, eps_mode=mode)


@translates("InstanceNormalization")
def instance_normalization(b: Context, x: Value, scale: Value, bias: Value, *, epsilon: float = 1e-5) -> Value:
    normal = mvn(b, x, list(range(2, b.rank(x))), epsilon)
    return b.emit("Add", b.emit("Multiply", normal, along_channels(b, scale, x)), along_channels(b, bias, x))


@translates("GroupNormalization", since=18)
def group_normalization_18(
    b: Context, x: Value, scale: Value, bias: Value, *, num_groups: int, epsilon: float = 1e-5, stash_type: int = 1
) -> Value:
    """Scale and bias are one number a group."""
    channels = b.sizes(x)[1]
    if not isinstance(channels, int):
        raise OpError("the number of channels must be known")
    index = b.constant(np.repeat(np.arange(num_groups), channels // num_groups))
    wide = [b.emit("Gather", part, index, 0) for part in (scale, bias)]
    return b.emit("GroupNormalization", x, *wide, num_groups=num_groups, epsilon=epsilon)


@translates("GroupNormalization", since=21)
def group_normalization_21(
    b: Context, x: Value, scale: Value, bias: Value, *, num_groups: int, epsilon: float = 1e-5, stash_type: int = 1
) -> Value:
    return b.emit("GroupNormalization", x, scale, bias, num_groups=num_groups, epsilon=epsilon)


@translates("LayerNormalization", since=17)
def layer_normalization(
    b: Context, x: Value, scale: Value, bias: Value | None = None, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> tuple[Value, ...]:
    """Also gives the mean and the inverse deviation, where they are wanted."""
    rank = b.rank(x)
    axes = list(range(axis + rank if axis < 0 else axis, rank))
    y = b.emit("Multiply", mvn(b, x, axes, epsilon), scale)
    y = y if bias is None else b.emit("Add", y, bias)
    if not any(b.outputs[1:]):
        return (y,)
    wide = b.emit("Convert", x, destination_type=F32) if stash_type == 1 else x
    centre = b.emit("ReduceMean", wide, axes, keep_dims=True)
    apart = b.emit("Subtract", wide, centre)
    variance = b.emit("ReduceMean", b.emit("Multiply", apart, apart), axes, keep_dims=True)
    deviation = b.emit("Sqrt", b.emit("Add", variance, b.constant(epsilon, wide)))
    return y, centre, b.emit("Divide", b.constant(1, wide), deviation)


@translates("RMSNormalization", since=23)
def rms_normalization(b: Context, x: Value, scale: Value, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1) -> Value:
    rank = b.rank(x)
    axes = list(range(axis + rank if axis < 0 else axis, rank))
    square = b.emit("ReduceMean", b.emit("Multiply", x, x), axes, keep_dims=True)
    root = b.emit("Sqrt", b.emit("Add", square, b.constant(epsilon, x)))
    return b.emit("Multiply", b.emit("Divide", x, root), scale)


@translates("MeanVarianceNormalization", since=9)
def mean_variance_normalization(b: Context, x: Value, *, axes: list[int] | None = None) -> Value:
    return mvn(b, x, [0, 2, 3] if axes is None else list(axes), 1e-9, "outside_sqrt")


@translates("LpNormalization")
def lp_normalization(b: Context, x: Value, *, axis: int = -1, p: int = 2) -> Value:
    """Over the length along the axis; where that is 0 the numbers stay 0."""
    if p not in (1, 2):
        raise OpError(f"p is {p}, expected 1 or 2")
    length = b.emit("ReduceL1" if p == 1 else "ReduceL2", x, [axis], keep_dims=True)
    safe = b.emit("Select", b.emit("Equal", length, b.constant(0, x)), b.constant(1, x), length)
    return b.emit("Divide", x, safe)


@translates("LRN")
def lrn(b: Context, x: Value, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Value:
    return b.emit("LRN", x, [1], alpha=alpha, beta=beta, bias=bias, size=size)
