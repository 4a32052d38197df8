"""Slices."""

from __future__ import annotations

import numpy as np

from converters.onnx.context import Context
from converters.onnx.registry import translates
from irexec.dtypes.elements import I64
from irexec.errors import OpError
from irexec.ir.graph import Value


@translates("Slice")
def slice_1(b: Context, x: Value, *, starts: list[int], ends: list[int], axes: list[int] | None = None) -> Value:
    sliced_axes = list(range(len(starts))) if axes is None else list(axes)
    return b.emit("Slice", x, list(starts), list(ends), [1] * len(sliced_axes), sliced_axes)


@translates("Slice", since=10)
def slice_10(b: Context, x: Value, starts: Value, ends: Value, axes: Value | None = None, steps: Value | None = None) -> Value:
    """Starts and ends are clamped to the data."""
    if steps is None:
        counts = b.sizes(starts, "starts")
        count = counts[0] if len(counts) == 1 else None
        if not isinstance(count, int):
            raise OpError(f"the number of sliced axes is not known from starts {b.fact(starts)}")
        steps = b.constant(np.ones(count, np.int64))
    return b.emit("Slice", x, *(part if part is None else b.convert(part, I64) for part in (starts, ends, steps, axes)))
