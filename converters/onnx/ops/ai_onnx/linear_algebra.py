"""Products of matrices, reductions along axes, Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from converters.onnx.algorithms.expression import Expression, arange, positions
from converters.onnx.body_builder import BodyBuilder, IterationResult, build_loop
from converters.onnx.context import TranslationContext
from converters.onnx.ops.ai_onnx.indexing import first_extreme
from converters.onnx.registry import add, translates
from converters.onnx.tensors import element_of
from irexec.dtypes.elements import BOOLEAN, F32, F64, I64, U8, Element
from irexec.errors import OpError
from irexec.ir.dims import low
from irexec.ir.graph import Value

_END = (1 << 63) - 1


@translates("Det", since=11)
def det(ctx: TranslationContext, x: Value) -> Value:
    """Gaussian elimination with partial pivoting: a Loop that eliminates one column per iteration.

    The matrices keep their size: after each iteration the remaining rows and columns are followed by those of an
    identity matrix.
    """
    rank = ctx.rank(x)
    rows, columns = ctx.sizes(x)[-2:] if rank >= 2 else (0, 1)
    if isinstance(rows, int) and isinstance(columns, int) and rows != columns:
        raise OpError(f"the input {ctx.fact(x)} does not consist of square matrices")
    shape, size = ctx.shape_of(x), ctx.size(x, rank - 1)
    leading = ctx.emit("Slice", shape, [0], [rank - 2], [1], [0])
    if ctx.shape_if_known(x) is None:
        # A matrix that is not square fails here.
        square = ctx.emit("Concat", leading, *[ctx.reshape(size, [1])] * 2, axis=0)
        x = ctx.emit("Reshape", x, square, special_zero=False)
    if not isinstance(columns, int) or columns == 0:
        # The body needs a column, even without an iteration.
        x = _enlarged(Expression(ctx, x))

    def iteration(builder: BodyBuilder, states: list[Value], _: list[Value]) -> IterationResult:
        smaller, factor = _eliminated(builder.inner, states[0])
        return IterationResult([_enlarged(smaller), builder.inner.emit("Multiply", states[1], factor)])

    states = [x, ctx.full(ctx.constant(1, x), leading)]
    return build_loop(ctx, states, [], iteration, bounds=(size, ctx.constant(True)))[1]


def _eliminated(ctx: TranslationContext, x: Value) -> tuple[Expression, Value]:
    """The matrices without the row and column of the pivot; and the pivot, negated if rows were exchanged."""
    rank = ctx.rank(x)
    column = ctx.emit("Slice", x, [0], [1], [1], [rank - 1])
    pivot_index = first_extreme(ctx, ctx.emit("Abs", column), "max", rank - 2)
    first = ctx.emit("Slice", x, [0], [1], [1], [rank - 2])
    pivot_row = Expression(
        ctx, ctx.emit("GatherND", x, ctx.emit("Squeeze", pivot_index, [rank - 1]), batch_dims=rank - 2)
    ).unsqueeze(rank - 2)
    rest = _without_first(ctx, x, rank - 2)
    is_pivot = Expression(ctx, pivot_index).equals((positions(ctx, rest, rank - 2) + 1).column())
    rows = is_pivot.select(Expression(ctx, first), Expression(ctx, rest)).value
    pivot = Expression(ctx, ctx.emit("Slice", pivot_row.value, [0], [1], [1], [rank - 1]))
    factor = Expression(ctx, ctx.emit("Slice", rows, [0], [1], [1], [rank - 1])) / pivot.equals(0).select(1, pivot)
    smaller = Expression(ctx, _without_first(ctx, rows, rank - 1))
    pivot_tail = Expression(ctx, _without_first(ctx, pivot_row.value, rank - 1))
    signed = Expression(ctx, pivot_index).equals(0).select(pivot, -pivot)
    return smaller - factor * pivot_tail, ctx.emit("Squeeze", signed.value, [rank - 2, rank - 1])


def _without_first(ctx: TranslationContext, x: Value, axis: int) -> Value:
    return ctx.emit("Slice", x, [1], [_END], [1], [axis])


def _enlarged(matrices: Expression) -> Value:
    """The matrices with a row and a column more, those of an identity matrix."""
    ctx = matrices.ctx
    rank = ctx.rank(matrices.value)
    ends = [0] * (rank - 2) + [1, 1]
    padded = ctx.emit("Pad", matrices.value, [0] * rank, ends, ctx.constant(0, matrices.value), pad_mode="constant")
    index = positions(ctx, padded, rank - 1)
    last = Expression(ctx, ctx.size(matrices.value, rank - 1))
    at_corner = index.column().equals(last) & index.equals(last)
    return at_corner.select(1, Expression(ctx, padded)).value


@translates("MatMul")
def matmul(ctx: TranslationContext, x: Value, y: Value) -> Value:
    return ctx.emit("MatMul", x, y)


@translates("Gemm")
@translates("Gemm", since=7, without=["broadcast"])
def gemm(
    ctx: TranslationContext, x: Value, y: Value, z: Value | None = None, *, alpha: float = 1.0, beta: float = 1.0,
    transA: int = 0, transB: int = 0, broadcast: int = 0,
) -> Value:  # fmt: skip
    """alpha * A @ B + beta * C, which broadcasts to the product. ``broadcast`` has no effect: shapes are equal then."""
    product, kind = ctx.emit("MatMul", x, y, transpose_a=bool(transA), transpose_b=bool(transB)), ctx.element(x)
    if not kind.is_float and not (float(alpha).is_integer() and float(beta).is_integer()):
        # Rounded once, towards zero, as by onnx.reference.
        product, z = ctx.convert(product, F64), None if z is None else ctx.convert(z, F64)
    result = _scaled(ctx, product, alpha)
    return ctx.convert(result if z is None else ctx.added(result, _scaled(ctx, z, beta)), kind)


def _scaled(ctx: TranslationContext, x: Value, factor: float) -> Value:
    return x if factor == 1.0 else ctx.emit("Multiply", x, ctx.constant(factor, x))


@translates("Einsum", since=12)
def einsum(ctx: TranslationContext, *inputs: Value, equation: str) -> Value:
    return ctx.emit("Einsum", *inputs, equation=equation.replace(" ", ""))


Reduce = Callable[[TranslationContext, Value, Value, bool], Value]


def _emit(type: str) -> Reduce:
    return lambda ctx, x, axes, keep: ctx.emit(type, x, axes, keep_dims=keep)


def _extreme(type: str, logical: str) -> Reduce:
    """Maximum and minimum; opset 20 extended both to booleans.

    OpenVINO's CPU plugin has no ReduceLogicalOr and ReduceLogicalAnd with variable axes. Booleans are then reduced as
    u8, whose extremes of no elements are the extremes of booleans too.
    """

    def reduce(ctx: TranslationContext, x: Value, axes: Value, keep: bool) -> Value:
        if ctx.element(x) is not BOOLEAN:
            return ctx.emit(type, x, axes, keep_dims=keep)
        if axes.node.constant is not None:
            return ctx.emit(logical, x, axes, keep_dims=keep)
        return ctx.convert(ctx.emit(type, ctx.convert(x, U8), axes, keep_dims=keep), BOOLEAN)

    return reduce


def _sum_square(ctx: TranslationContext, x: Value, axes: Value, keep: bool) -> Value:
    return ctx.emit("ReduceSum", ctx.emit("Multiply", x, x), axes, keep_dims=keep)


def _log_sum(ctx: TranslationContext, x: Value, axes: Value, keep: bool) -> Value:
    return ctx.emit("Log", ctx.emit("ReduceSum", x, axes, keep_dims=keep))


def _log_sum_exp(ctx: TranslationContext, x: Value, axes: Value, keep: bool) -> Value:
    """A finite maximum is subtracted first, so that nothing overflows."""
    top = ctx.emit("ReduceMax", x, axes, keep_dims=True)
    top = ctx.emit("Select", ctx.emit("IsFinite", top), top, ctx.constant(0, x))
    total = ctx.emit("ReduceSum", ctx.emit("Exp", ctx.emit("Subtract", x, top)), axes, keep_dims=True)
    result: Value = ctx.emit("Add", ctx.emit("Log", total), top)
    return result if keep else ctx.emit("Squeeze", result, axes, version=1)


def _in_floats(reduce: Reduce) -> Reduce:
    """The reduction in f64 for integers, with a truncated result."""

    def wrapped(ctx: TranslationContext, x: Value, axes: Value, keep: bool) -> Value:
        kind = ctx.element(x)
        return ctx.convert(reduce(ctx, x if kind.is_float else ctx.convert(x, F64), axes, keep), kind)

    return wrapped


_REDUCTIONS: dict[str, Reduce] = {
    "ReduceSum": _emit("ReduceSum"),
    "ReduceMean": _emit("ReduceMean"),
    "ReduceProd": _emit("ReduceProd"),
    "ReduceMax": _extreme("ReduceMax", "ReduceLogicalOr"),
    "ReduceMin": _extreme("ReduceMin", "ReduceLogicalAnd"),
    "ReduceL1": _emit("ReduceL1"),
    "ReduceL2": _in_floats(_emit("ReduceL2")),
    "ReduceSumSquare": _sum_square,
    "ReduceLogSum": _in_floats(_log_sum),
    "ReduceLogSumExp": _in_floats(_log_sum_exp),
}

# The result per element without an axis to reduce; the element itself for operators that are not listed.
_OF_ONE_ELEMENT: dict[str, Callable[[TranslationContext, Value], Value]] = {
    "ReduceL1": lambda ctx, x: ctx.emit("Abs", x),
    "ReduceL2": lambda ctx, x: ctx.emit("Abs", x),
    "ReduceSumSquare": lambda ctx, x: ctx.emit("Multiply", x, x),
    "ReduceLogSum": lambda ctx, x: ctx.emit("Log", x),
}


def _all_axes(ctx: TranslationContext, x: Value) -> Value:
    rank = ctx.fact(x).rank
    if rank is not None:
        return ctx.constant(np.arange(rank))
    count = ctx.scalar(ctx.shape_of(ctx.shape_of(x)))
    return ctx.emit("Range", ctx.constant(0), count, ctx.constant(1), output_type="i64")


def _given_or_all_axes(ctx: TranslationContext, x: Value, axes: Value) -> Value:
    """The given axes, or all axes if the list is empty at run time."""
    shape = ctx.fact(axes).shape
    if shape is not None and len(shape) == 1 and low(shape[0]) > 0:
        return axes
    rank = ctx.constant(ctx.rank(x, "the data"))
    inputs = ctx.convert(axes, I64), rank, ctx.constant(1), ctx.constant(0)
    hits = ctx.emit("OneHot", *inputs, axis=-1, negative_indices_mode="normalize")
    counts = ctx.emit("ReduceSum", hits, [0], keep_dims=False)
    none = ctx.emit("Equal", ctx.shape_of(axes), ctx.constant([0]))
    chosen = ctx.emit("LogicalOr", ctx.emit("Greater", counts, ctx.constant(0)), none)
    return ctx.emit("Squeeze", ctx.emit("NonZero", chosen, output_type="i64"), [0], version=1)


def _register(operator: str, reduce: Reduce) -> None:
    def reduce_all(ctx: TranslationContext, x: Value, keep: bool) -> Value:
        return reduce(ctx, x, _all_axes(ctx, x), keep)

    def by_attribute(ctx: TranslationContext, x: Value, *, axes: list[int] | None = None, keepdims: int = 1) -> Value:
        return reduce(ctx, x, ctx.constant(list(axes)), bool(keepdims)) if axes else reduce_all(ctx, x, bool(keepdims))

    def by_input(
        ctx: TranslationContext, x: Value, axes: Value | None = None, *, keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Value:  # fmt: skip
        known = ctx.ints_if_known(axes)
        if known:
            # A constant even where layers compute the axes: OpenVINO needs it for booleans, and infers better shapes.
            return reduce(ctx, x, ctx.constant(list(known)), bool(keepdims))
        if axes is not None and known is None and ctx.fact(axes).shape != (0,):
            return reduce(ctx, x, axes if noop_with_empty_axes else _given_or_all_axes(ctx, x, axes), bool(keepdims))
        if noop_with_empty_axes:
            return _OF_ONE_ELEMENT[operator](ctx, x) if operator in _OF_ONE_ELEMENT else x
        return reduce_all(ctx, x, bool(keepdims))

    add(operator, 1, "", by_attribute)
    add(operator, 13 if operator == "ReduceSum" else 18, "", by_input)


for _operator, _reduce in _REDUCTIONS.items():
    _register(_operator, _reduce)


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
