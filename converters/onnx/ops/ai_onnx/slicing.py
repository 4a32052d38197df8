"""Slices."""

from __future__ import annotations

import numpy as np

from converters.onnx.context import TranslationContext
from converters.onnx.limits import check_unrolled
from converters.onnx.registry import translates
from irexec.dtypes.elements import I64
from irexec.ir.graph import Value


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
