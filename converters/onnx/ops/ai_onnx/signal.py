"""Fourier transforms, and mel filter banks."""

from __future__ import annotations

import math

from converters.onnx.algorithms.expression import Expression, arange
from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from converters.onnx.tensors import element_of
from irexec.dtypes.elements import F32, F64, I64, Element
from irexec.errors import OpError
from irexec.ir.graph import Value


@translates("DFT", since=17)
def dft_17(
    ctx: TranslationContext, x: Value, dft_length: Value | None = None, *, axis: int = 1, inverse: int = 0,
    onesided: int = 0,
) -> Value:  # fmt: skip
    return _transform(ctx, x, ctx.constant([ctx.axis(axis, x)]), dft_length, bool(inverse), bool(onesided))


@translates("DFT", since=20)
def dft_20(
    ctx: TranslationContext, x: Value, dft_length: Value | None = None, axis: Value | None = None, *, inverse: int = 0,
    onesided: int = 0,
) -> Value:  # fmt: skip
    """The axis may be an input of run time."""
    if axis is None:
        position = ctx.constant([ctx.axis(-2, x)])
    elif ctx.ints_if_known(axis) is not None:
        position = ctx.constant([ctx.axis(ctx.integer(axis, "the axis"), x)])
    else:
        position = Expression(ctx, ctx.reshape(ctx.convert(axis, I64), [1])).modulo(ctx.rank(x)).value
    return _transform(ctx, x, position, dft_length, bool(inverse), bool(onesided))


def _transform(
    ctx: TranslationContext, x: Value, axis: Value, length: Value | None, inverse: bool, onesided: bool
) -> Value:
    """A Fourier transform. The last axis has size 2 for complex values, 1 for real ones, or is unknown.

    IR has no transform of f64, which is computed in f32.
    """
    if (kind := ctx.element(x)) is F64:
        return ctx.convert(_transform(ctx, ctx.convert(x, F32), axis, length, inverse, onesided), kind)
    last = ctx.rank(x) - 1
    parts = ctx.sizes(x)[last]
    if isinstance(parts, int) and parts not in (1, 2):
        raise OpError(f"the last axis of the data {ctx.fact(x)} must have a size of 1 or 2")
    size = None if length is None else ctx.reshape(ctx.convert(length, I64), [1])
    if inverse:
        if onesided:
            return ctx.unsqueeze(ctx.emit("IRDFT", _complex(ctx, x, last), axis, size), [last])
        return ctx.emit("IDFT", _complex(ctx, x, last), axis, size)
    if onesided and parts == 1:
        return ctx.emit("RDFT", ctx.emit("Squeeze", x, [last]), axis, size)
    whole = ctx.emit("DFT", _complex(ctx, x, last), axis, size)
    if not onesided:
        return whole
    points = ctx.emit("Gather", ctx.shape_of(whole), axis, ctx.constant(0))
    half = Expression(ctx, ctx.emit("Divide", points, ctx.constant([2]))) + 1
    return ctx.emit("Slice", whole, ctx.constant([0]), half.value, ctx.constant([1]), axis)


def _complex(ctx: TranslationContext, x: Value, last: int) -> Value:
    """Complex values; the imaginary part of real values is 0."""
    parts = ctx.sizes(x)[last]
    if parts == 2:
        return x
    missing = (
        ctx.constant([1])
        if parts == 1
        else ctx.emit("Subtract", ctx.constant([2]), ctx.unsqueeze(ctx.size(x, last), [0]))
    )
    ends = ctx.emit("Concat", ctx.constant([0] * last), missing, axis=0) if last else missing
    return ctx.emit("Pad", x, [0] * (last + 1), ends, ctx.constant(0, x), pad_mode="constant")


@translates("STFT", since=17)
def stft(
    ctx: TranslationContext, signal: Value, frame_step: Value, window: Value | None = None,
    frame_length: Value | None = None, *, onesided: int = 1,
) -> Value:  # fmt: skip
    """IR's STFT for real signals and one-sided results; other frames are gathered and transformed."""
    if ctx.rank(signal) == 2:
        signal = ctx.unsqueeze(signal, [2])
    if frame_length is not None:
        length = ctx.scalar(ctx.convert(frame_length, I64))
    else:
        length = ctx.size(signal, 1) if window is None else ctx.size(window, 0)
    weights = ctx.full(ctx.constant(1, signal), ctx.unsqueeze(length, [0])) if window is None else window
    step = ctx.scalar(ctx.convert(frame_step, I64))
    if onesided and ctx.sizes(signal)[2] == 1:
        return ctx.emit("STFT", ctx.emit("Squeeze", signal, [2]), weights, length, step, transpose_frames=False)
    count = Expression(ctx, ctx.emit("Divide", ctx.emit("Subtract", ctx.size(signal, 1), length), step)) + 1
    starts = arange(ctx, 0, count, I64) * Expression(ctx, step)
    positions = starts.column() + arange(ctx, 0, Expression(ctx, length), I64)
    frames = ctx.emit("Gather", signal, positions.value, ctx.constant(1))
    weighted = ctx.emit("Multiply", frames, ctx.unsqueeze(weights, [1]))
    return _transform(ctx, weighted, ctx.constant([2]), None, False, bool(onesided))


@translates("MelWeightMatrix", since=17)
def mel_weight_matrix(
    ctx: TranslationContext, num_mel_bins: Value, dft_length: Value, sample_rate: Value, lower_edge_hertz: Value,
    upper_edge_hertz: Value, *, output_datatype: int = 1,
) -> Value:  # fmt: skip
    """Triangular filters, (bins, mel bins).

    Source: ONNX MelWeightMatrix-17 and its reference, which computes the edges in f64.
    """
    bins, length, rate = (
        Expression(ctx, ctx.scalar(ctx.convert(value, I64))) for value in (num_mel_bins, dft_length, sample_rate)
    )
    low, high = (
        _mel(Expression(ctx, ctx.scalar(ctx.convert(value, F64)))) for value in (lower_edge_hertz, upper_edge_hertz)
    )
    step = (high - low) / (bins + 2).to(F64)
    hertz = (10.0 ** ((arange(ctx, 0, bins + 2, F64) * step + low) / 2595.0) - 1) * 700.0
    edges = ((length + 1).to(F64) * hertz / rate.to(F64)).floor()
    left, centre, right = (_edges_at(ctx, edges, arange(ctx, start, bins + start, I64)) for start in range(3))
    position = arange(ctx, 0, Expression(ctx, ctx.emit("Divide", length.value, ctx.constant(2))) + 1, F64).column()
    steep = centre.equals(left)
    rise = steep.select(position.equals(centre).to(F64), (position - left) / steep.select(1, centre - left))
    fall = (right - position) / right.equals(centre).select(1, right - centre)
    rising = ((position >= left) & (position <= centre)).select(rise, rise * 0)
    result = ((position >= centre) & (position < right)).select(fall, rising)
    kind: Element = element_of(output_datatype)
    return result.to(kind).value


def _mel(hertz: Expression) -> Expression:
    return (hertz / 700.0 + 1).log() * (2595.0 / math.log(10))


def _edges_at(ctx: TranslationContext, edges: Expression, indices: Expression) -> Expression:
    return Expression(ctx, ctx.emit("Gather", edges.value, indices.value, ctx.constant(0)))
