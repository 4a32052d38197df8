"""Updates of elements by index, and triangles of matrices."""

from __future__ import annotations

from typing import Literal

from converters.onnx.algorithms.expression import Expression, positions
from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from irexec.dtypes.elements import I64
from irexec.errors import OpError
from irexec.ir.graph import Value

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
