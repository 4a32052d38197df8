"""Elements picked by index, slices, updates of elements, distinct values, sorting and cumulative sums."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from converters.onnx.algorithms.expression import Expression, positions
from converters.onnx.context import TranslationContext
from converters.onnx.graphs import check_unrolled
from converters.onnx.registry import add, translates
from irexec.dtypes.elements import I64
from irexec.errors import OpError
from irexec.ir.dims import are_equal
from irexec.ir.graph import Value
from irexec.schema.opdef import VECTOR


@translates("Gather")
def gather(ctx: TranslationContext, x: Value, indices: Value, *, axis: int = 0) -> Value:
    return ctx.emit("Gather", x, indices, ctx.constant(axis))


@translates("GatherElements", since=11)
def gather_elements(ctx: TranslationContext, x: Value, indices: Value, *, axis: int = 0) -> Value:
    """The data is sliced to the indices along other axes, where IR requires equal sizes."""
    normal_axis, sizes, index_sizes = ctx.axis(axis, x), ctx.sizes(x), ctx.sizes(indices, "the indices")
    if len(sizes) != len(index_sizes):
        raise OpError(f"the indices {ctx.fact(indices)} do not have the rank of the data {ctx.fact(x)}")
    sliced = [
        i
        for i, (have, want) in enumerate(zip(sizes, index_sizes, strict=True))
        if i != normal_axis and not are_equal(have, want)
    ]
    if sliced:
        stops = ctx.emit("Gather", ctx.shape_of(indices), ctx.constant(sliced), ctx.constant(0))
        x = ctx.emit("Slice", x, [0] * len(sliced), stops, [1] * len(sliced), sliced)
    return ctx.emit("GatherElements", x, indices, axis=normal_axis)


@translates("GatherND", since=11)
def gather_nd(ctx: TranslationContext, x: Value, indices: Value, *, batch_dims: int = 0) -> Value:
    return ctx.emit("GatherND", x, indices, batch_dims=batch_dims)


@translates("Slice")
def slice_1(
    ctx: TranslationContext, x: Value, *, starts: list[int], ends: list[int], axes: list[int] | None = None
) -> Value:
    sliced_axes = list(range(len(starts))) if axes is None else list(axes)
    return ctx.emit("Slice", x, list(starts), list(ends), [1] * len(sliced_axes), sliced_axes)


@translates("Slice", since=10)
def slice_10(
    ctx: TranslationContext, x: Value, starts: Value, ends: Value, axes: Value | None = None, steps: Value | None = None
) -> Value:
    """Starts and ends are clamped to the data."""
    if steps is None:
        steps = _ones(ctx, [part for part in (starts, ends, axes) if part is not None])
    return ctx.emit(
        "Slice", x, *(part if part is None else ctx.convert(part, I64) for part in (starts, ends, steps, axes))
    )


def _ones(ctx: TranslationContext, parts: list[Value]) -> Value:
    """A stride of 1 per sliced axis; any of ``parts`` has one element per sliced axis.

    torch.nn.EmbeddingBag slices between offsets that are themselves slices of unknown size.
    """
    for part in parts:
        sizes = ctx.sizes(part)
        if len(sizes) == 1 and isinstance(sizes[0], int):
            check_unrolled(sizes[0], "the number of sliced axes")
            return ctx.constant(np.ones(sizes[0], np.int64))
    return ctx.full(ctx.constant(1), ctx.shape_of(parts[0]))


_REDUCTIONS = {"none": "none", "add": "sum", "mul": "prod", "max": "max", "min": "min"}
Reduction = Literal["none", "add", "mul", "max", "min"]


@translates("Scatter", since=9, without=["reduction"])
@translates("ScatterElements", since=11, without=["reduction"])
@translates("ScatterElements", since=16)
def scatter_elements(
    ctx: TranslationContext, x: Value, indices: Value, updates: Value, *, axis: int = 0, reduction: Reduction = "none",
) -> Value:  # fmt: skip
    """A reduction includes the element that is replaced."""
    normal_axis = ctx.constant(ctx.axis(axis, x))
    return ctx.emit(
        "ScatterElementsUpdate", x, indices, updates, normal_axis, reduction=_REDUCTIONS[reduction], use_init_val=True
    )


@translates("ScatterND", since=11, without=["reduction"])
@translates("ScatterND", since=16)
def scatter_nd(
    ctx: TranslationContext, x: Value, indices: Value, updates: Value, *, reduction: Reduction = "none"
) -> Value:
    if reduction == "none":
        return ctx.emit("ScatterNDUpdate", x, indices, updates, version=4)
    return ctx.emit("ScatterNDUpdate", x, indices, updates, version=15, reduction=_REDUCTIONS[reduction])


@translates("Trilu", since=14)
def trilu(ctx: TranslationContext, x: Value, k: Value | None = None, *, upper: int = 1) -> Value:
    """The elements on and above (or below) the k-th diagonal, else 0."""
    rank = ctx.rank(x)
    if rank < 2:
        raise OpError(f"the input {ctx.fact(x)} is not a matrix")
    rows, columns = (positions(ctx, x, axis) for axis in (rank - 2, rank - 1))
    distance = columns - rows.column()
    diagonal = Expression(ctx, ctx.constant(0) if k is None else ctx.scalar(ctx.convert(k, I64)))
    outside = distance < diagonal if upper else distance > diagonal
    return ctx.emit("Select", outside.value, ctx.constant(0, x), x)


@translates("TensorScatter", since=24)
def tensor_scatter(
    ctx: TranslationContext, past_cache: Value, update: Value, write_indices: Value | None = None, *,
    mode: Literal["linear", "circular"] = "linear", axis: int = -2,
) -> Value:  # fmt: skip
    """The cache with consecutive entries replaced, from a start per sample; circular mode wraps around its end."""
    rank, normal_axis = ctx.rank(past_cache), ctx.axis(axis, past_cache)
    index = positions(ctx, update, normal_axis).unsqueeze(*(i for i in range(rank) if i != normal_axis))
    if write_indices is not None:
        index = Expression(ctx, ctx.convert(write_indices, I64)).unsqueeze(*range(1, rank)) + index
    if mode == "circular":
        index = index.modulo(Expression(ctx, ctx.size(past_cache, normal_axis)))
    wide = ctx.full(index.value, ctx.shape_of(update))
    return ctx.emit("ScatterElementsUpdate", past_cache, wide, update, ctx.constant(normal_axis), version=3)


@translates("Unique", since=11)
def unique(ctx: TranslationContext, x: Value, *, axis: int | None = None, sorted: int = 1) -> tuple[Value, ...]:
    axis_input = None if axis is None else ctx.constant(ctx.axis(axis, x))
    return tuple(
        ctx.emit("Unique", x, axis_input, sorted=bool(sorted), index_element_type="i64", count_element_type="i64")
    )


@translates("Compress", since=9)
def compress(
    ctx: TranslationContext, x: Value, condition: Annotated[Value, VECTOR], *, axis: int | None = None
) -> Value:
    """Slices with a true condition; the condition may be shorter than the axis."""
    if axis is None:
        x, axis = ctx.reshape(x, [-1]), 0
    kept = ctx.emit("Squeeze", ctx.emit("NonZero", condition, output_type="i64"), [0])
    return ctx.emit("Gather", x, kept, ctx.constant(ctx.axis(axis, x)))


_MAX = int(np.iinfo(np.int64).max)


@translates("NonZero", since=9)
def non_zero(ctx: TranslationContext, x: Value) -> Value:
    return ctx.emit("NonZero", x, output_type="i64")


@translates("TopK")
def topk_1(ctx: TranslationContext, x: Value, *, k: int, axis: int = -1) -> tuple[Value, ...]:
    return _topk(ctx, x, ctx.constant(k), axis, "max")


@translates("TopK", since=10, without=["largest", "sorted"])
@translates("TopK", since=11)
def topk_10(
    ctx: TranslationContext, x: Value, k: Value, *, axis: int = -1, largest: int = 1, sorted: int = 1
) -> tuple[Value, ...]:
    """``sorted`` has no effect: the result is always sorted, and sorted=0 allows any order."""
    return _topk(ctx, x, ctx.scalar(k), axis, "max" if largest else "min")


def _topk(ctx: TranslationContext, x: Value, k: Value, axis: int, mode: str) -> tuple[Value, ...]:
    """TopK; equal values are in the order of their indices."""
    axis = ctx.axis_if_known(axis, x)
    return tuple(ctx.emit("TopK", x, k, axis=axis, mode=mode, sort="value", stable=True, index_element_type="i64"))


def _register_arg(operator: str, mode: str) -> None:
    """ArgMax or ArgMin; the last extreme is the first along the reversed axis."""

    def translate(
        ctx: TranslationContext, x: Value, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0
    ) -> Value:
        normal_axis = ctx.axis_if_known(axis, x)
        if select_last_index:
            x = ctx.emit("Slice", x, [-1], [-_MAX], [-1], [normal_axis])
        index = first_extreme(ctx, x, mode, normal_axis)
        if select_last_index:
            index = ctx.emit("Subtract", ctx.emit("Subtract", ctx.size(x, normal_axis), ctx.constant(1)), index)
        return index if keepdims else ctx.emit("Squeeze", index, [normal_axis], version=1)

    add(operator, 1, "", translate)


_register_arg("ArgMax", "max")
_register_arg("ArgMin", "min")


def first_extreme(ctx: TranslationContext, x: Value, mode: str, normal_axis: int) -> Value:
    """The index of the first maximum or minimum along an axis, which is kept with size 1."""
    return _topk(ctx, x, ctx.constant(1), normal_axis, mode)[1]


@translates("CumSum", since=11)
def cum_sum(ctx: TranslationContext, x: Value, axis: Value, *, exclusive: int = 0, reverse: int = 0) -> Value:
    return ctx.emit("CumSum", x, ctx.scalar(axis), exclusive=bool(exclusive), reverse=bool(reverse))


@translates("CumProd", since=26)
def cum_prod(ctx: TranslationContext, x: Value, axis: Value, *, exclusive: int = 0, reverse: int = 0) -> Value:
    """A product over a masked row for each element, along the axis moved last: IR has no cumulative product."""
    rank = ctx.rank(x)
    last = Expression(ctx, ctx.constant(rank - 1))
    normal_axis = Expression(ctx, ctx.scalar(ctx.convert(axis, I64))).modulo(rank)
    here = Expression(ctx, ctx.constant(np.arange(rank)))
    swapped = here.equals(normal_axis).select(last, here.equals(last).select(normal_axis, here)).value
    moved = ctx.emit("Transpose", x, swapped)
    columns = positions(ctx, moved, rank - 1)
    row = columns.column()
    if reverse:
        included = columns > row if exclusive else columns >= row
    else:
        included = columns < row if exclusive else columns <= row
    parts = included.select(Expression(ctx, moved).unsqueeze(rank - 1), Expression(ctx, ctx.constant(1, x)))
    return ctx.emit("Transpose", ctx.emit("ReduceProd", parts.value, [rank], keep_dims=False), swapped)
