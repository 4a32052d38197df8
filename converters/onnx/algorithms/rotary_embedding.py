"""Rotary position embedding: pairs of values rotated by the angle of their position."""

from __future__ import annotations

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import Context
from irexec.errors import OpError
from irexec.ir.graph import Value


def rotate(b: Context, x: Value, cos: Value, sin: Value, interleaved: bool, width: int) -> Value:
    """(batch, heads, length, size) rotated by angles (batch, length, width / 2): the first ``width`` elements of a head, 0 for all."""
    size = b.sizes(x)[3]
    if isinstance(size, int):
        width = width or size
        if width > size or width % 2:
            raise OpError(f"{width} elements of a head of {size} cannot be rotated")
    rotated, rest = (x, None) if width in (0, size) else b.emit("VariadicSplit", x, b.constant(3), [width, -1])
    if interleaved:
        pairs = b.emit("Reshape", rotated, [0, 0, 0, -1, 2], special_zero=True)
        halves = [b.emit("Squeeze", half, [4]) for half in b.emit("Split", pairs, b.constant(4), num_splits=2)]
    else:
        halves = list(b.emit("Split", rotated, b.constant(3), num_splits=2))
    first, second = (Expression(b, half) for half in halves)
    c, s = (Expression(b, b.unsqueeze(cache, [1])) for cache in (cos, sin))
    results = [(first * c - second * s).value, (first * s + second * c).value]
    if interleaved:
        together = b.emit("Concat", *(b.unsqueeze(part, [4]) for part in results), axis=4)
        y = b.emit("Reshape", together, [0, 0, 0, -1], special_zero=True)
    else:
        y = b.emit("Concat", *results, axis=3)
    return y if rest is None else b.emit("Concat", y, rest, axis=3)
