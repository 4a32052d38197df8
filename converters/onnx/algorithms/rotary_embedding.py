"""Rotary position embedding: pairs of values rotated by the angle of their position."""

from __future__ import annotations

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import TranslationContext
from irexec.errors import OpError
from irexec.ir.graph import Value


def rotate(ctx: TranslationContext, x: Value, cos: Value, sin: Value, interleaved: bool, width: int) -> Value:
    """The first ``width`` elements of each head rotated by angles (batch, length, width / 2); a width of 0 is all."""
    size = ctx.sizes(x)[3]
    if isinstance(size, int):
        width = width or size
        if width > size or width % 2:
            raise OpError(f"{width} elements of a head of {size} cannot be rotated")
    rotated, rest = (x, None) if width in (0, size) else ctx.emit("VariadicSplit", x, ctx.constant(3), [width, -1])
    if interleaved:
        pairs = ctx.emit("Reshape", rotated, [0, 0, 0, -1, 2], special_zero=True)
        halves = [ctx.emit("Squeeze", half, [4]) for half in ctx.emit("Split", pairs, ctx.constant(4), num_splits=2)]
    else:
        halves = list(ctx.emit("Split", rotated, ctx.constant(3), num_splits=2))
    first, second = (Expression(ctx, half) for half in halves)
    c, s = (Expression(ctx, ctx.unsqueeze(cache, [1])) for cache in (cos, sin))
    results = [(first * c - second * s).value, (first * s + second * c).value]
    if interleaved:
        together = ctx.emit("Concat", *(ctx.unsqueeze(part, [4]) for part in results), axis=4)
        y = ctx.emit("Reshape", together, [0, 0, 0, -1], special_zero=True)
    else:
        y = ctx.emit("Concat", *results, axis=3)
    return y if rest is None else ctx.emit("Concat", y, rest, axis=3)
