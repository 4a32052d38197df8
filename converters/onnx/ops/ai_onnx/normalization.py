"""Normalization."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import TranslationContext
from converters.onnx.graphs import check_generated
from converters.onnx.registry import translates
from irexec.dtypes.elements import BF16, F16, F32, F64, I64, Element
from irexec.errors import OpError
from irexec.ir.graph import Value


def _widest(ctx: TranslationContext, *values: Value) -> Element:
    """The element type that can represent all of them."""
    kinds = [ctx.element(value) for value in values]
    if len(set(kinds)) == 1:
        return kinds[0]
    return F64 if F64 in kinds else F32


@translates("BatchNormalization")
@translates("BatchNormalization", since=9, without=["spatial", "is_test"])
def batch_normalization_1(
    ctx: TranslationContext, x: Value, scale: Value, bias: Value, mean: Value, variance: Value, *,
    epsilon: float = 1e-5, momentum: float = 0.9, spatial: int = 1, is_test: int = 0,
) -> Value:  # fmt: skip
    """``is_test`` has no effect: outputs of training are refused."""
    if spatial:
        return _by_channel(ctx, x, scale, bias, mean, variance, epsilon)
    # Statistics per element of a sample broadcast from the last axis.
    deviation = ctx.emit("Sqrt", ctx.emit("Add", variance, ctx.constant(epsilon, variance)))
    normal = ctx.emit("Divide", ctx.emit("Subtract", x, mean), deviation)
    return ctx.emit("Add", ctx.emit("Multiply", normal, scale), bias)


@translates("BatchNormalization", since=14)
def batch_normalization_14(
    ctx: TranslationContext, x: Value, scale: Value, bias: Value, mean: Value, variance: Value, *,
    epsilon: float = 1e-5, momentum: float = 0.9, training_mode: int = 0,
) -> Value | tuple[Value, ...]:  # fmt: skip
    """Training mode uses the statistics of the batch, and updates the running ones."""
    if not training_mode:
        return _by_channel(ctx, x, scale, bias, mean, variance, epsilon)
    wide = _widest(ctx, x, mean) if ctx.element(x) not in (F16, BF16) else F32
    data = ctx.convert(x, wide)
    axes = [axis for axis in range(ctx.rank(x)) if axis != 1]
    mean_of_batch = ctx.emit("ReduceMean", data, axes, keep_dims=False)
    centred = ctx.emit("Subtract", data, ctx.along_channels(mean_of_batch, ctx.rank(x)))
    variance_of_batch = ctx.emit("ReduceMean", ctx.emit("Multiply", centred, centred), axes, keep_dims=False)

    def running(old: Value, new: Value) -> Value:
        kept = ctx.emit("Multiply", old, ctx.constant(momentum, old))
        return ctx.emit(
            "Add", kept, ctx.emit("Multiply", ctx.convert(new, ctx.element(old)), ctx.constant(1 - momentum, old))
        )

    return (
        _by_channel(ctx, x, scale, bias, mean_of_batch, variance_of_batch, epsilon),
        running(mean, mean_of_batch),
        running(variance, variance_of_batch),
    )


def _by_channel(
    ctx: TranslationContext, x: Value, scale: Value, bias: Value, mean: Value, variance: Value, epsilon: float
) -> Value:
    kind = _widest(ctx, x, scale, bias, mean, variance)
    values = [ctx.convert(value, kind) for value in (x, scale, bias, mean, variance)]
    return ctx.convert(ctx.emit("BatchNormInference", *values, epsilon=epsilon), ctx.element(x))


def _mvn(ctx: TranslationContext, x: Value, axes: list[int], epsilon: float, mode: str = "inside_sqrt") -> Value:
    """Mean 0 and variance 1 along the axes."""
    return ctx.emit("MVN", x, axes, normalize_variance=True, eps=epsilon, eps_mode=mode)


@translates("InstanceNormalization")
def instance_normalization(
    ctx: TranslationContext, x: Value, scale: Value, bias: Value, *, epsilon: float = 1e-5
) -> Value:
    rank = ctx.rank(x)
    scaled = ctx.emit("Multiply", _mvn(ctx, x, list(range(2, rank)), epsilon), ctx.along_channels(scale, rank))
    return ctx.shaped_as(ctx.emit("Add", scaled, ctx.along_channels(bias, rank)), x)


@translates("GroupNormalization", since=18)
def group_normalization_18(
    ctx: TranslationContext, x: Value, scale: Value, bias: Value, *, num_groups: int, epsilon: float = 1e-5
) -> Value:
    """Scale and bias have one value per group."""
    channels = ctx.sizes(x)[1]
    if not isinstance(channels, int) or num_groups < 1 or channels % num_groups:
        raise OpError(f"{channels} channels cannot be split into {num_groups} groups")
    check_generated((max(channels, num_groups),), I64, "the indices of groups")
    groups = ctx.constant(np.repeat(np.arange(num_groups), channels // num_groups))
    wide = [ctx.emit("Gather", part, groups, ctx.constant(0)) for part in (scale, bias)]
    return ctx.emit("GroupNormalization", x, *wide, num_groups=num_groups, epsilon=epsilon)


@translates("GroupNormalization", since=21)
def group_normalization_21(
    ctx: TranslationContext, x: Value, scale: Value, bias: Value, *, num_groups: int, epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Value:  # fmt: skip
    return ctx.emit("GroupNormalization", x, scale, bias, num_groups=num_groups, epsilon=epsilon)


def _stashed(ctx: TranslationContext, x: Value, stash_type: int) -> Value:
    """The data in the precision of the first stage, by stash_type: f32 for 16-bit floats."""
    return ctx.convert(x, F32) if stash_type == 1 and ctx.element(x) in (F16, BF16) else x


def _trailing(ctx: TranslationContext, x: Value, axis: int) -> list[int]:
    return list(range(ctx.axis(axis, x), ctx.rank(x)))


@translates("LayerNormalization")
def layer_normalization(
    ctx: TranslationContext, x: Value, scale: Value, bias: Value | None = None, *, axis: int = -1,
    epsilon: float = 1e-5, stash_type: int = 1,
) -> tuple[Value, ...]:  # fmt: skip
    """The layer normalization; and the mean and the inverse standard deviation, if the node has these outputs.

    ONNX Runtime writes this operator of opset 17 into models of older opsets too.
    """
    wide, axes = _stashed(ctx, x, stash_type), _trailing(ctx, x, axis)
    y = ctx.emit("Multiply", ctx.convert(_mvn(ctx, wide, axes, epsilon), ctx.element(x)), scale)
    y = ctx.shaped_as(y if bias is None else ctx.emit("Add", y, bias), x)
    if not ctx.needs_output(1) and not ctx.needs_output(2):
        return (y,)
    mean = ctx.emit("ReduceMean", wide, axes, keep_dims=True)
    centred = ctx.emit("Subtract", wide, mean)
    variance = ctx.emit("ReduceMean", ctx.emit("Multiply", centred, centred), axes, keep_dims=True)
    deviation = ctx.emit("Sqrt", ctx.emit("Add", variance, ctx.constant(epsilon, wide)))
    kinds: dict[int, Element] = {TensorProto.FLOAT: F32, TensorProto.BFLOAT16: BF16}
    kind = kinds.get(stash_type, ctx.element(wide))
    return y, ctx.convert(mean, kind), ctx.convert(ctx.emit("Divide", ctx.constant(1, wide), deviation), kind)


@translates("RMSNormalization", since=23)
def rms_normalization(
    ctx: TranslationContext, x: Value, scale: Value, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Value:
    """x / sqrt(mean(x^2) + epsilon) * scale; the result has the type of the scale."""
    return rms_normalized(ctx, x, scale, axis, epsilon, stash_type)[0]


def rms_in_f32(ctx: TranslationContext, x: Value, scale: Value, epsilon: float) -> Value:
    """The RMS normalization along the last axis, of data and scale in f32."""
    return rms_normalization(ctx, ctx.convert(x, F32), ctx.convert(scale, F32), epsilon=epsilon)


def rms_normalized(
    ctx: TranslationContext, x: Value, scale: Value, axis: int, epsilon: float, stash_type: int
) -> tuple[Value, Value]:
    """The RMS normalization, and the root mean square that it divides by."""
    wide, axes = _stashed(ctx, x, stash_type), _trailing(ctx, x, axis)
    square = ctx.emit("ReduceMean", ctx.emit("Multiply", wide, wide), axes, keep_dims=True)
    rms = ctx.emit("Sqrt", ctx.emit("Add", square, ctx.constant(epsilon, wide)))
    normal = ctx.convert(ctx.emit("Divide", wide, rms), ctx.element(x))
    return ctx.shaped_as(ctx.emit("Multiply", ctx.convert(normal, ctx.element(scale)), scale), x), rms


@translates("MeanVarianceNormalization")
def mean_variance_normalization_1(
    ctx: TranslationContext, x: Value, *, across_channels: int = 0, normalize_variance: int = 1
) -> Value:
    """The operator on trial: over all axes but the channels, or over all.

    Source: ONNX Runtime, and the default axes of opset 9; OpenVINO's reader normalizes each sample on its own.
    """
    axes = [axis for axis in range(ctx.rank(x)) if axis != 1 or across_channels]
    return ctx.emit("MVN", x, axes, normalize_variance=bool(normalize_variance), eps=1e-9, eps_mode="outside_sqrt")


@translates("MeanVarianceNormalization", since=9)
def mean_variance_normalization(ctx: TranslationContext, x: Value, *, axes: list[int] | None = None) -> Value:
    return _mvn(ctx, x, [0, 2, 3] if axes is None else list(axes), 1e-9, "outside_sqrt")


@translates("LpNormalization")
def lp_normalization(ctx: TranslationContext, x: Value, *, axis: int = -1, p: int = 2) -> Value:
    """x / norm along the axis; 0 where the norm is 0."""
    if p not in (1, 2):
        raise OpError(f"p is {p}, expected 1 or 2")
    length = ctx.emit("ReduceL1" if p == 1 else "ReduceL2", x, [axis], keep_dims=True)
    safe = ctx.emit("Select", ctx.emit("Equal", length, ctx.constant(0, x)), ctx.constant(1, x), length)
    return ctx.emit("Divide", x, safe)


@translates("LRN")
def lrn(
    ctx: TranslationContext, x: Value, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Value:
    """IR's window is symmetric. The window of an even size has one more channel after than before the current one:
    it is a mean over the channels, padded by 0."""
    if size % 2:
        return ctx.emit("LRN", x, [1], alpha=alpha, beta=beta, bias=bias, size=size)
    if size < 1:
        raise OpError(f"size is {size}, expected a positive one")
    wide = Expression(ctx, x)
    columns = ctx.emit("Reshape", (wide * wide).value, [0, 0, -1], special_zero=True)
    mean = ctx.emit(
        "AvgPool", ctx.unsqueeze(columns, [1]), version=1, kernel=[size, 1], strides=[1, 1],
        pads_begin=[size // 2 - 1, 0], pads_end=[size // 2, 0], exclude_pad=False, rounding_type="floor",
    )  # fmt: skip
    total = Expression(ctx, ctx.emit("Reshape", mean, ctx.shape_of(x), special_zero=False))
    return (wide / (total * alpha + bias) ** beta).value


@translates("SimplifiedLayerNormalization")
def simplified_layer_normalization(
    ctx: TranslationContext, x: Value, scale: Value, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> tuple[Value, ...]:
    """An operator of ONNX Runtime in the domain of ONNX; the second output is the inverse root mean square."""
    y, rms = rms_normalized(ctx, x, scale, axis, epsilon, stash_type)
    return (y, (1.0 / Expression(ctx, rms)).value) if ctx.needs_output(1) else (y,)
