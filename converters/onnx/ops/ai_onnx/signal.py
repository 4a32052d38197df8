"""Fourier transforms, and mel filter banks."""

from __future__ import annotations

import math

from converters.onnx.algorithms.expression import Expression, arange
from converters.onnx.context import Context
from converters.onnx.registry import translates
from converters.onnx.tensors import element_of
from irexec.dtypes.elements import F64, I64, Element
from irexec.errors import OpError
from irexec.ir.graph import Value


@translates("DFT", since=17)
def dft_17(
    b: Context, x: Value, dft_length: Value | None = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0
) -> Value:  # fmt: skip
    return _transform(b, x, b.constant([b.axis(axis, x)]), dft_length, bool(inverse), bool(onesided))


@translates("DFT", since=20)
def dft_20(
    b: Context, x: Value, dft_length: Value | None = None, axis: Value | None = None, *, inverse: int = 0, onesided: int = 0
) -> Value:  # fmt: skip
    """The axis may be known only at run time."""
    if axis is None:
        position = b.constant([b.axis(-2, x)])
    elif b.ints_if_known(axis) is not None:
        position = b.constant([b.axis(b.integer(axis, "the axis"), x)])
    else:
        position = Expression(b, b.reshape(b.convert(axis, I64), [1])).modulo(b.rank(x)).value
    return _transform(b, x, position, dft_length, bool(inverse), bool(onesided))


def _transform(b: Context, x: Value, axis: Value, length: Value | None, inverse: bool, onesided: bool) -> Value:
    """The last axis has size 2 for complex values, 1 for real ones; it may be known only at run time."""
    last = b.rank(x) - 1
    parts = b.sizes(x)[last]
    if isinstance(parts, int) and parts not in (1, 2):
        raise OpError(f"the last axis of the data {b.fact(x)} must have a size of 1 or 2")
    size = None if length is None else b.reshape(b.convert(length, I64), [1])
    if inverse:
        if onesided:
            return b.unsqueeze(b.emit("IRDFT", _complex(b, x, last), axis, size), [last])
        return b.emit("IDFT", _complex(b, x, last), axis, size)
    if onesided and parts == 1:
        return b.emit("RDFT", b.emit("Squeeze", x, [last]), axis, size)
    whole = b.emit("DFT", _complex(b, x, last), axis, size)
    if not onesided:
        return whole
    points = b.emit("Gather", b.shape_of(whole), axis, b.constant(0))
    half = Expression(b, b.emit("Divide", points, b.constant([2]))) + 1
    return b.emit("Slice", whole, b.constant([0]), half.value, b.constant([1]), axis)


def _complex(b: Context, x: Value, last: int) -> Value:
    """Real values get an imaginary part of 0."""
    parts = b.sizes(x)[last]
    if parts == 2:
        return x
    missing = b.constant([1]) if parts == 1 else b.emit("Subtract", b.constant([2]), b.unsqueeze(b.size(x, last), [0]))
    ends = b.emit("Concat", b.constant([0] * last), missing, axis=0) if last else missing
    return b.emit("Pad", x, [0] * (last + 1), ends, b.constant(0, x), pad_mode="constant")


@translates("STFT", since=17)
def stft(
    b: Context,
    signal: Value,
    frame_step: Value,
    window: Value | None = None,
    frame_length: Value | None = None,
    *,
    onesided: int = 1,
) -> Value:
    """IR's STFT of real signals with one-sided results; otherwise frames are gathered and transformed."""
    if b.rank(signal) == 2:
        signal = b.unsqueeze(signal, [2])
    if frame_length is not None:
        length = b.scalar(b.convert(frame_length, I64))
    else:
        length = b.size(signal, 1) if window is None else b.size(window, 0)
    weights = b.full(b.constant(1, signal), b.unsqueeze(length, [0])) if window is None else window
    step = b.scalar(b.convert(frame_step, I64))
    if onesided and b.sizes(signal)[2] == 1:
        return b.emit("STFT", b.emit("Squeeze", signal, [2]), weights, length, step, transpose_frames=False)
    count = Expression(b, b.emit("Divide", b.emit("Subtract", b.size(signal, 1), length), step)) + 1
    starts = arange(b, 0, count, I64) * Expression(b, step)
    positions = starts.column() + arange(b, 0, Expression(b, length), I64)
    frames = b.emit("Gather", signal, positions.value, b.constant(1))
    weighted = b.emit("Multiply", frames, b.unsqueeze(weights, [1]))
    return _transform(b, weighted, b.constant([2]), None, False, bool(onesided))


@translates("MelWeightMatrix", since=17)
def mel_weight_matrix(
    b: Context, num_mel_bins: Value, dft_length: Value, sample_rate: Value, lower_edge_hertz: Value, upper_edge_hertz: Value, *,
    output_datatype: int = 1,
) -> Value:  # fmt: skip
    """Triangular filters, (bins, mel bins): each rises up to its centre and then falls.

    Source: ONNX MelWeightMatrix-17 and its reference, which computes the edges in f64.
    """
    bins, length, rate = (
        Expression(b, b.scalar(b.convert(value, I64))) for value in (num_mel_bins, dft_length, sample_rate)
    )
    low, high = (_mel(Expression(b, b.scalar(b.convert(value, F64)))) for value in (lower_edge_hertz, upper_edge_hertz))
    step = (high - low) / (bins + 2).to(F64)
    hertz = (10.0 ** ((arange(b, 0, bins + 2, F64) * step + low) / 2595.0) - 1) * 700.0
    edges = ((length + 1).to(F64) * hertz / rate.to(F64)).floor()
    left, centre, right = (_edges_at(b, edges, arange(b, start, bins + start, I64)) for start in range(3))
    position = arange(b, 0, Expression(b, b.emit("Divide", length.value, b.constant(2))) + 1, F64).column()
    steep = centre.equals(left)
    rise = steep.select(position.equals(centre).to(F64), (position - left) / steep.select(1, centre - left))
    fall = (right - position) / right.equals(centre).select(1, right - centre)
    rising = ((position >= left) & (position <= centre)).select(rise, rise * 0)
    result = ((position >= centre) & (position < right)).select(fall, rising)
    kind: Element = element_of(output_datatype)
    return result.to(kind).value


def _mel(hertz: Expression) -> Expression:
    return (hertz / 700.0 + 1).log() * (2595.0 / math.log(10))


def _edges_at(b: Context, edges: Expression, indices: Expression) -> Expression:
    return Expression(b, b.emit("Gather", edges.value, indices.value, b.constant(0)))
