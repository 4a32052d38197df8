"""Broadcasting, tiling and padding."""

from __future__ import annotations

from typing import Literal

from converters.onnx.algorithms.expression import Expression, arange
from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from irexec.dtypes.elements import I64
from irexec.errors import OpError
from irexec.ir.graph import Value

PadMode = Literal["constant", "edge", "reflect", "wrap"]


@translates("Expand", since=8)
def expand(ctx: TranslationContext, x: Value, shape: Value) -> Value:
    """Bidirectional broadcasting: a size 1 of the shape becomes the size of the data."""
    return ctx.emit("Broadcast", x, shape, mode="bidirectional")


@translates("Tile")
def tile_1(ctx: TranslationContext, x: Value, tiles: Value, axis: Value) -> Value:
    """Repetition along one axis."""
    tiled = ctx.axis(ctx.integer(axis, "axis"), x)
    ones, count = ctx.constant([1] * ctx.rank(x)), ctx.reshape(ctx.convert(tiles, I64), [1])
    return ctx.emit(
        "Tile", x, ctx.emit("ScatterElementsUpdate", ones, ctx.constant([tiled]), count, ctx.constant(0), version=3)
    )


@translates("Tile", since=6)
def tile_6(ctx: TranslationContext, x: Value, repeats: Value) -> Value:
    return ctx.emit("Tile", x, repeats)


@translates("Pad")
def pad_1(
    ctx: TranslationContext, x: Value, *, paddings: list[int] | None = None, pads: list[int] | None = None,
    mode: PadMode = "constant", value: float = 0.0,
) -> Value:  # fmt: skip
    """``paddings`` became ``pads`` in opset 2."""
    given = pads if pads is not None else paddings
    if given is None:
        raise OpError("required attribute pads is missing")
    return _pad(ctx, x, ctx.constant(list(given)), mode, ctx.constant(value, x), None)


@translates("Pad", since=11)
def pad_11(
    ctx: TranslationContext, x: Value, pads: Value, value: Value | None = None, axes: Value | None = None, *,
    mode: PadMode = "constant",
) -> Value:  # fmt: skip
    """Negative pads remove elements."""
    return _pad(ctx, x, ctx.convert(pads, I64), mode, value, axes)


def _pad(ctx: TranslationContext, x: Value, pads: Value, mode: str, value: Value | None, axes: Value | None) -> Value:
    rank = ctx.rank(x)
    begins, ends = ctx.emit("Split", pads, ctx.constant(0), num_splits=2)
    if axes is not None:
        begins, ends = (_for_all_axes(ctx, amounts, axes, rank) for amounts in (begins, ends))
    known = [ctx.ints_if_known(amounts) for amounts in (begins, ends)]
    if all(amounts is not None and len(amounts) != rank for amounts in known):
        raise OpError(f"pads are {known[0]} and {known[1]} for {rank} axes")
    if mode == "wrap" or (mode == "reflect" and _is_reflected_twice(ctx, x, known)):
        return _indexed(ctx, x, begins, ends, mode)
    fill = None
    if mode == "constant":
        fill = ctx.constant(0, x) if value is None else ctx.scalar(value)
    lists = [amounts if values is None else list(values) for amounts, values in zip((begins, ends), known, strict=True)]
    return ctx.emit("Pad", x, *lists, fill, pad_mode=mode)


def _for_all_axes(ctx: TranslationContext, amounts: Value, axes: Value, rank: int) -> Value:
    """Pads of all axes from pads of some axes, which need not be known; pads of other axes are 0."""
    wide, one, none = ctx.convert(axes, I64), ctx.constant(1), ctx.constant(0)
    hits = ctx.emit("OneHot", wide, ctx.constant(rank), one, none, axis=-1, negative_indices_mode="normalize")
    return ctx.emit("ReduceSum", ctx.emit("Multiply", hits, ctx.unsqueeze(amounts, [1])), [0], keep_dims=False)


def _is_reflected_twice(ctx: TranslationContext, x: Value, pads: list[tuple[int, ...] | None]) -> bool:
    """Whether the data is reflected more than once, which IR's Pad does not support."""
    shape = ctx.shape_if_known(x)
    if shape is None:
        return False
    return any(
        amounts is not None and any(n >= size for n, size in zip(amounts, shape, strict=True)) for amounts in pads
    )


def _indexed(ctx: TranslationContext, x: Value, begins: Value, ends: Value, mode: str) -> Value:
    """Padding as a Gather along each axis, with the indices of periodic data.

    Elements removed by a negative pad do not come back on the other side. Source: ONNX Runtime; ONNX does not define
    it.
    """
    for axis in range(ctx.rank(x)):
        begin, end = (
            Expression(ctx, ctx.emit("Gather", amounts, ctx.constant(axis), ctx.constant(0)))
            for amounts in (begins, ends)
        )
        if ctx.ints_if_known(begin.value) == ctx.ints_if_known(end.value) == (0,):
            continue
        removed = begin.minimum(0)
        size = Expression(ctx, ctx.size(x, axis)) + removed + end.minimum(0)
        period = size if mode == "wrap" else ((size - 1) * 2).maximum(1)
        position = arange(ctx, -begin.maximum(0), size + end.maximum(0), I64).modulo(period)
        if mode == "reflect":
            position = position.minimum(period - position)
        position = position - removed
        x = ctx.emit("Gather", x, position.value, ctx.constant(axis))
    return x
