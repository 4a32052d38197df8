"""Quantization as arithmetic: exact sums of integers, scaled afterwards."""

from __future__ import annotations

import math

import numpy as np

from converters.onnx.algorithms.expression import positions
from converters.onnx.algorithms.windows import WindowAttributes, add_bias, conv_windows, convolve
from converters.onnx.context import TranslationContext
from converters.onnx.graphs import check_generated
from converters.onnx.registry import translates
from converters.onnx.tensors import element_of
from irexec.dtypes.elements import BF16, F16, F32, F64, I32, I64, U8, Element
from irexec.errors import OpError
from irexec.ir.graph import Value

_FLOAT_LIMITS = {"f8e4m3": 448.0, "f8e5m2": 57344.0, "f4e2m1": 6.0}


def _broadcastable(ctx: TranslationContext, parameter: Value, x: Value, axis: int, block: int) -> Value:
    """A scale or zero point broadcast to ``x``: per tensor, per index of an axis, or per block of an axis."""
    rank = ctx.rank(x, "the data")
    if ctx.rank(parameter) == 0:
        return parameter
    if block < 0:
        raise OpError(f"block_size is {block}, expected 0 or more")
    if block:
        normal_axis = ctx.axis(axis, rank)
        # Floats of 8 bits or less, and integers, of zero points are exact in f32.
        kind = ctx.element(parameter) if ctx.element(parameter).bits >= 8 else F32
        return ctx.gather_as(parameter, block_indices(ctx, x, normal_axis, block), normal_axis, kind)
    if ctx.rank(parameter) != 1:
        found = f"the scale or zero point {ctx.fact(parameter)}"
        raise OpError(f"{found} is neither a scalar nor a vector, and block_size is not given")
    if ctx.sizes(parameter)[0] == 1 or rank <= 1:
        return parameter
    normal_axis = ctx.axis(axis, rank)
    return ctx.unsqueeze(parameter, [i for i in range(rank) if i != normal_axis])


def block_indices(ctx: TranslationContext, x: Value, axis: int, block: int) -> Value:
    """Index of the block of each element along an axis of ``x``: a constant if the size of the axis is known."""
    size = ctx.sizes(x, "the data")[axis]
    if isinstance(size, int):
        check_generated((size,), I64, "the indices of blocks")
        return ctx.constant(np.arange(size) // block)
    return (positions(ctx, x, axis) / block).value


def _limits(kind: Element) -> tuple[float, float]:
    if kind.is_float and kind.name not in _FLOAT_LIMITS:
        raise OpError(f"{kind} is not a quantized type")
    if kind.is_float:
        return -_FLOAT_LIMITS[kind.name], _FLOAT_LIMITS[kind.name]
    if kind.kind == "signed":
        return -(2.0 ** (kind.bits - 1)), 2.0 ** (kind.bits - 1) - 1
    return 0.0, 2.0**kind.bits - 1


def quantized(
    ctx: TranslationContext, x: Value, scale: Value, zero: Value | None, kind: Element,
    precision: Element | None = None, *, saturate: bool = True,
) -> Value:  # fmt: skip
    """round(x / scale) + zero point, clamped to the type; halves round to even, division is in ``precision``."""
    divisor = precision or ctx.element(scale)
    level = ctx.emit("Divide", ctx.convert(x, divisor), ctx.convert(scale, divisor))
    wide = F64 if divisor is F64 else F32
    level = ctx.convert(level, wide)
    if not kind.is_float:
        level = ctx.emit("Round", level, mode="half_to_even")
    if zero is not None:
        level = ctx.emit("Add", level, ctx.convert(zero, wide))
    level = ctx.shaped_as(level, x)
    if saturate or not kind.is_float:
        low, high = _limits(kind)
        level = ctx.emit("Clamp", level, min=low, max=high)
    return ctx.convert(level, kind)


@translates("QuantizeLinear", since=10)
def quantize_linear(
    ctx: TranslationContext, x: Value, scale: Value, zero: Value | None = None, *, axis: int = 1, saturate: int = 1,
    block_size: int = 0, output_dtype: int = 0, precision: int = 0,
) -> Value:  # fmt: skip
    kind = ctx.element(zero) if zero is not None else element_of(output_dtype) if output_dtype else U8
    step = _broadcastable(ctx, scale, x, axis, block_size)
    zero_point = None if zero is None else _broadcastable(ctx, zero, x, axis, block_size)
    within = element_of(precision) if precision else ctx.element(scale)
    within = within if within.is_float else F32
    return quantized(ctx, x, step, zero_point, kind, within, saturate=bool(saturate))


@translates("DequantizeLinear", since=10)
def dequantize_linear(
    ctx: TranslationContext, x: Value, scale: Value, zero: Value | None = None, *, axis: int = 1, block_size: int = 0,
    output_dtype: int = 0,
) -> Value:  # fmt: skip
    kind = element_of(output_dtype) if output_dtype else ctx.element(scale)
    shape = ctx.shape_if_known(x)
    if x.node.constant is not None and ctx.element(x).bits < 8 and block_size > 0 and shape:
        split = ctx.axis(axis, x)
        held = (*shape[:split], shape[split] // block_size, block_size, *shape[split + 1 :])
        expected = (*held[: split + 1], *held[split + 2 :])
        parts = [part for part in (scale, zero) if part is not None]
        if shape[split] % block_size == 0 and all(ctx.shape_if_known(part) == expected for part in parts):
            # An axis of blocks: OpenVINO's CPU plugin is wrong where each element of 4 bits has a scale of its own.
            step, *points = (ctx.unsqueeze(part, [split + 1]) for part in parts)
            values = dequantized(ctx, ctx.reshape(x, held), step, points[0] if points else None, kind=kind)
            return ctx.reshape(values, shape)
    zero_point = None if zero is None else _broadcastable(ctx, zero, x, axis, block_size)
    return dequantized(ctx, x, _broadcastable(ctx, scale, x, axis, block_size), zero_point, kind=kind)


def dequantized(ctx: TranslationContext, x: Value, scale: Value, zero: Value | None, *, kind: Element = F32) -> Value:
    """(x - zero point) * scale, in the type of the result."""
    # f16 and bf16 cannot represent every difference of integers; the product is rounded once.
    wide = F32 if kind in (F16, BF16) else kind
    level = ctx.convert(x, wide)
    if zero is not None:
        level = ctx.emit("Subtract", level, ctx.convert(zero, wide))
    return ctx.convert(ctx.shaped_as(ctx.emit("Multiply", level, ctx.convert(scale, wide)), x), kind)


@translates("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(ctx: TranslationContext, x: Value) -> tuple[Value, ...]:
    """Quantization to u8 over the range of the data, extended to 0."""
    data, rank = (ctx.reshape(x, [-1]), 1) if ctx.fact(x).shape is None else (x, ctx.rank(x))
    axes = list(range(rank))
    low = ctx.emit("Minimum", ctx.emit("ReduceMin", data, axes, keep_dims=False), ctx.constant(0, x))
    high = ctx.emit("Maximum", ctx.emit("ReduceMax", data, axes, keep_dims=False), ctx.constant(0, x))
    scale = ctx.emit("Divide", ctx.emit("Subtract", high, low), ctx.constant(255, x))
    level = ctx.emit("Clamp", ctx.emit("Divide", ctx.emit("Negative", low), scale), min=0.0, max=255.0)
    zero = ctx.convert(ctx.emit("Round", level, mode="half_to_even"), U8)
    return quantized(ctx, x, scale, zero, U8), scale, zero


def _exact_float(products: object) -> Element:
    """The float type that sums this number of products of 8-bit integers without rounding."""
    return F32 if isinstance(products, int) and products * 255 * 255 < 1 << 24 else F64


def _minus_zero_point(ctx: TranslationContext, x: Value, zero: Value | None, kind: Element, axis: int) -> Value:
    """Integers minus the zero point, a scalar or one per index of ``axis``, as floats."""
    wide = ctx.convert(x, kind)
    if zero is None:
        return wide
    rank = ctx.rank(x)
    if ctx.rank(zero) == 1 and ctx.sizes(zero)[0] != 1 and rank > 1:
        zero = ctx.unsqueeze(zero, [i for i in range(rank) if i != axis % rank])
    return ctx.emit("Subtract", wide, ctx.convert(zero, kind))


def _integer_conv(
    ctx: TranslationContext, x: Value, w: Value, x_zero: Value | None, w_zero: Value | None, group: int,
    given: WindowAttributes,
) -> Value:  # fmt: skip
    """The convolution of integers minus their zero points, in floats that represent the sums exactly."""
    sizes = ctx.shape_if_known(w)
    windows, kind = conv_windows(ctx, w, given), _exact_float(None if sizes is None else math.prod(sizes[1:]))
    levels = _minus_zero_point(ctx, x, x_zero, kind, 1), _minus_zero_point(ctx, w, w_zero, kind, 0)
    return convolve(ctx, *levels, group, windows)


@translates("ConvInteger", since=10)
def conv_integer(
    ctx: TranslationContext, x: Value, w: Value, x_zero: Value | None = None, w_zero: Value | None = None, *,
    group: int = 1, given: WindowAttributes,
) -> Value:  # fmt: skip
    return ctx.convert(_integer_conv(ctx, x, w, x_zero, w_zero, group, given), I32)


@translates("QLinearConv", since=10)
def qlinear_conv(
    ctx: TranslationContext, x: Value, x_scale: Value, x_zero: Value, w: Value, w_scale: Value, w_zero: Value,
    y_scale: Value, y_zero: Value, bias: Value | None = None, *, group: int = 1, given: WindowAttributes,
) -> Value:  # fmt: skip
    """The bias is quantized with the product of both scales."""
    sums = _integer_conv(ctx, x, w, x_zero, w_zero, group, given)
    rank = ctx.rank(w)
    if bias is not None:
        sums = add_bias(ctx, sums, ctx.convert(bias, ctx.element(sums)), rank)
    scales = [
        scale if ctx.rank(scale) == 0 or ctx.sizes(scale)[0] == 1 else ctx.along_channels(scale, rank)
        for scale in (x_scale, w_scale)
    ]
    y = ctx.emit("Multiply", ctx.convert(sums, F32), ctx.emit("Multiply", *scales))
    return quantized(ctx, y, y_scale, y_zero, ctx.element(y_zero))


def _integer_matmul(ctx: TranslationContext, x: Value, y: Value, x_zero: Value | None, y_zero: Value | None) -> Value:
    """The product of integers minus their zero points: per row for the left matrix, per column for the right one."""
    if 0 in (ctx.rank(x), ctx.rank(y)):
        raise OpError(f"the matrix product of {ctx.fact(x)} and {ctx.fact(y)} is not defined")
    kind = _exact_float(ctx.sizes(x)[-1])
    return ctx.emit("MatMul", _minus_zero_point(ctx, x, x_zero, kind, -2), _minus_zero_point(ctx, y, y_zero, kind, -1))


@translates("MatMulInteger", since=10)
def matmul_integer(
    ctx: TranslationContext, x: Value, y: Value, x_zero: Value | None = None, y_zero: Value | None = None
) -> Value:
    return ctx.convert(_integer_matmul(ctx, x, y, x_zero, y_zero), I32)


@translates("QLinearMatMul", since=10)
def qlinear_matmul(
    ctx: TranslationContext, x: Value, x_scale: Value, x_zero: Value, y: Value, y_scale: Value, y_zero: Value,
    scale: Value, zero: Value,
) -> Value:  # fmt: skip
    left = x_scale if ctx.rank(x_scale) != 1 or ctx.sizes(x_scale)[0] == 1 else ctx.unsqueeze(x_scale, [1])
    sums = ctx.convert(_integer_matmul(ctx, x, y, x_zero, y_zero), F32)
    result = ctx.emit("Multiply", sums, ctx.convert(ctx.emit("Multiply", left, y_scale), F32))
    return quantized(ctx, result, scale, zero, ctx.element(zero), F32)
