"""FakeQuantize and FakeConvert."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.ops.conversion import converted
from converters.ir_to_onnx.ops.elementwise import aligned
from converters.ir_to_onnx.registry import composed
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import F16, F32, I8, U8, Element, element
from irexec.ir.constants import constant_value

_BYTES = {256, 255}
_TOLERANCE = 1e-4
"""Distance of a zero point from an integer, in levels: bounds are rounded to their type."""


@dataclass(frozen=True)
class _Scaling:
    """Scale and zero point of a range, and the axis along which they vary; None if they do not."""

    scale: np.ndarray
    zero: np.ndarray
    axis: int | None


@composed("FakeQuantize")
def fake_quantize(
    ctx: ExportContext, data: Tensor, input_low: Tensor, input_high: Tensor, output_low: Tensor, output_high: Tensor, *,
    levels: int, **alignment: Any,
) -> Tensor:  # fmt: skip
    """QuantizeLinear and DequantizeLinear of 255 or 256 levels if one is 0; others by Sub, Mul, Round and Where."""
    bounds = [aligned(ctx, data, x, **alignment) for x in (input_low, input_high, output_low, output_high)]
    if levels in _BYTES and data.element is F32:
        into, out = _scaling(data, bounds[0], bounds[1], levels), _scaling(data, bounds[2], bounds[3], levels)
        if into is not None and out is not None:
            return _quantized(ctx, data, into, out, levels)
    return _composed(ctx, data, bounds, levels)


def _scaling(data: Tensor, low: Tensor, high: Tensor, levels: int) -> _Scaling | None:
    """The scale of a range whose zero is a level; None if it is not, or varies along several axes."""
    if low.value is None or high.value is None or data.rank is None:
        return None
    bottom, top = np.broadcast_arrays(low.value.astype(np.float64), high.value.astype(np.float64))
    scale = (top - bottom) / (levels - 1)
    if bottom.size == 0 or (scale <= 0).any() or not np.isfinite(scale).all():
        return None
    zero = -bottom / scale
    whole = np.rint(zero)
    if (np.abs(zero - whole) > _TOLERANCE).any() or (whole < 0).any() or (whole > levels - 1).any():
        return None
    axes = [data.rank - bottom.ndim + i for i, size in enumerate(bottom.shape) if size > 1]
    if len(axes) > 1:
        return None
    axis = axes[0] if axes else None
    return _Scaling(scale.ravel() if axes else scale.ravel()[0], whole.ravel() if axes else whole.ravel()[0], axis)


def _quantized(ctx: ExportContext, data: Tensor, into: _Scaling, out: _Scaling, levels: int) -> Tensor:
    """Levels as bytes."""
    middle = levels // 2
    known = constant_value(data.constant) if data.constant is not None else data.value
    # Weights are signed if their zero is in the middle. Data are not: ONNX Runtime 1.32 loses the type of their zero.
    signed = known is not None and bool((into.zero == middle).all() and (out.zero == middle).all())
    kind: Element = I8 if signed else U8
    offset = 128 if signed and levels == 256 else 127 if signed else 0
    scales = [ctx.constant(part.scale, F32, shared=False) for part in (into, out)]
    zeros = [ctx.constant(part.zero - offset, kind, shared=False) for part in (into, out)]
    if known is not None:
        index = np.rint(known / _shaped(into.scale, into.axis, data) + _shaped(into.zero, into.axis, data))
        level = ctx.constant(np.clip(index, 0, levels - 1) - offset, kind)
        return ctx.emit("DequantizeLinear", level, scales[1], zeros[1], axis=out.axis, element=F32)
    if levels == 255:
        # The 256th level would be the lowest of i8, or the highest of u8.
        low = ctx.constant(_shaped(-into.zero * into.scale, into.axis, data), F32)
        high = ctx.constant(_shaped((levels - 1 - into.zero) * into.scale, into.axis, data), F32)
        data = ctx.emit("Min", ctx.emit("Max", data, low), high)
    level = ctx.emit("QuantizeLinear", data, scales[0], zeros[0], axis=into.axis)
    return ctx.emit("DequantizeLinear", level, scales[1], zeros[1], axis=out.axis, element=F32)


def _shaped(values: np.ndarray, axis: int | None, data: Tensor) -> np.ndarray:
    """Values along an axis of the data."""
    rank = data.require_rank("the data")
    return values if axis is None else values.reshape([-1] + [1] * (rank - axis - 1))


def _composed(ctx: ExportContext, data: Tensor, bounds: list[Tensor], levels: int) -> Tensor:
    kind = data.element
    x = ctx.cast(data, F32) if kind.bits < 32 else data
    low, high, out_low, out_high = (ctx.cast(bound, x.element) for bound in bounds)
    steps = ctx.scalar(levels - 1, x)
    scaled = ctx.emit("Mul", ctx.emit("Sub", x, low), steps)
    index = ctx.emit("Round", ctx.emit("Div", scaled, ctx.emit("Sub", high, low)))
    inside = _values(ctx, index, out_low, out_high, levels)
    below = ctx.emit("LessOrEqual", x, ctx.emit("Min", low, high))
    above = ctx.emit("Greater", x, ctx.emit("Max", low, high))
    return ctx.cast(ctx.where(below, out_low, ctx.where(above, out_high, inside)), kind)


def _values(ctx: ExportContext, index: Tensor, low: Tensor, high: Tensor, levels: int) -> Tensor:
    """The levels by index: (index - zero) * step where one is 0, else index * step + low."""
    if low.value is not None and high.value is not None:
        bottom, top = low.value.astype(np.float64), high.value.astype(np.float64)
        step = (top - bottom) / (levels - 1)
        with np.errstate(all="ignore"):
            zero = -bottom / step
        if np.isfinite(zero).all() and (np.abs(zero - np.rint(zero)) < _TOLERANCE).all():
            from_zero = ctx.emit("Sub", index, ctx.constant(np.rint(zero), index.element))
            return ctx.emit("Mul", from_zero, ctx.constant(step, index.element))
    size = ctx.emit("Div", ctx.emit("Sub", high, low), ctx.scalar(levels - 1, index))
    return ctx.emit("Add", ctx.emit("Mul", index, size), low)


@composed("FakeConvert")
def fake_convert(
    ctx: ExportContext, data: Tensor, scale: Tensor, shift: Tensor | None = None, *, destination_type: str
) -> Tensor:
    """Mul, Sub, Cast to f16 and to an 8-bit float and back, Add, Div; values beyond the type are clipped before."""
    if destination_type == "f8e4m3":
        ctx.remark("f8e4m3 is rounded as ONNX does it: small values and NaN differ from OpenVINO's FakeConvert")
    kind = data.element
    scaled = ctx.emit("Mul", data, scale)
    if shift is not None:
        scaled = ctx.emit("Sub", scaled, shift)
    halves = ctx.cast(scaled, F16)
    largest = 57344.0 if destination_type == "f8e5m2" else 448.0
    bounded = ctx.emit("Clip", halves, ctx.scalar(-largest, halves), ctx.scalar(largest, halves))
    result = ctx.cast(converted(ctx, bounded, element(destination_type)), kind)
    if shift is not None:
        result = ctx.emit("Add", result, shift)
    return ctx.emit("Div", result, scale)
