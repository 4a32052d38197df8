"""Quantization as arithmetic: integers are summed exactly, and scaled afterwards."""

from __future__ import annotations

import math

import numpy as np

from converters.onnx.algorithms.convolution import add_bias, conv_windows, convolve
from converters.onnx.algorithms.windows import Windows
from converters.onnx.context import Context
from converters.onnx.limits import check_generated
from converters.onnx.registry import translates
from converters.onnx.tensors import element_of
from irexec.dtypes.elements import BF16, F16, F32, F64, I32, I64, U8, Element
from irexec.errors import OpError
from irexec.ir.graph import Value

_FLOAT_LIMITS = {"f8e4m3": 448.0, "f8e5m2": 57344.0, "f4e2m1": 6.0}


def _broadcastable(b: Context, parameter: Value, x: Value, axis: int, block: int) -> Value:
    """A scale or zero point that broadcasts with ``x``: per tensor, per index of an axis, or per block of an axis."""
    rank = b.rank(x, "the data")
    if b.rank(parameter) == 0:
        return parameter
    if block < 0:
        raise OpError(f"block_size is {block}, expected 0 or more")
    if block:
        normal_axis = b.axis(axis, rank)
        size = b.static(x, "the data")[normal_axis]
        check_generated((size,), I64, "the indices of blocks")
        return b.emit("Gather", parameter, b.constant(np.arange(size) // block), b.constant(normal_axis))
    if b.rank(parameter) != 1:
        raise OpError(
            f"the scale or zero point {b.fact(parameter)} is neither a scalar nor a vector, and block_size is not given"
        )
    if b.sizes(parameter)[0] == 1 or rank <= 1:
        return parameter
    normal_axis = b.axis(axis, rank)
    return b.unsqueeze(parameter, [i for i in range(rank) if i != normal_axis])


def _limits(kind: Element) -> tuple[float, float]:
    if kind.is_float and kind.name not in _FLOAT_LIMITS:
        raise OpError(f"{kind} is not a quantized type")
    if kind.is_float:
        return -_FLOAT_LIMITS[kind.name], _FLOAT_LIMITS[kind.name]
    if kind.kind == "signed":
        return -(2.0 ** (kind.bits - 1)), 2.0 ** (kind.bits - 1) - 1
    return 0.0, 2.0**kind.bits - 1


def quantized(
    b: Context,
    x: Value,
    scale: Value,
    zero: Value | None,
    kind: Element,
    precision: Element | None = None,
    *,
    saturate: bool = True,
) -> Value:
    """round(x / scale) + zero point, clamped to the type; halves round to even. ``precision`` is the type of the division."""
    divisor = precision or b.element(scale)
    level = b.emit("Divide", b.convert(x, divisor), b.convert(scale, divisor))
    wide = F64 if divisor is F64 else F32
    level = b.convert(level, wide)
    if not kind.is_float:
        level = b.emit("Round", level, mode="half_to_even")
    if zero is not None:
        level = b.emit("Add", level, b.convert(zero, wide))
    if saturate or not kind.is_float:
        low, high = _limits(kind)
        level = b.emit("Clamp", level, min=low, max=high)
    return b.convert(level, kind)


@translates("QuantizeLinear", since=10)
def quantize_linear(
    b: Context, x: Value, scale: Value, zero: Value | None = None, *, axis: int = 1, saturate: int = 1, block_size: int = 0,
    output_dtype: int = 0, precision: int = 0,
) -> Value:  # fmt: skip
    kind = b.element(zero) if zero is not None else element_of(output_dtype) if output_dtype else U8
    step, zero_point = (
        _broadcastable(b, scale, x, axis, block_size),
        None if zero is None else _broadcastable(b, zero, x, axis, block_size),
    )
    within = element_of(precision) if precision else b.element(scale)
    if not within.is_float:
        within = F32
    return quantized(b, x, step, zero_point, kind, within, saturate=bool(saturate))


@translates("DequantizeLinear", since=10)
def dequantize_linear(
    b: Context,
    x: Value,
    scale: Value,
    zero: Value | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Value:
    kind = element_of(output_dtype) if output_dtype else b.element(scale)
    zero_point = None if zero is None else _broadcastable(b, zero, x, axis, block_size)
    return dequantized(b, x, _broadcastable(b, scale, x, axis, block_size), zero_point, kind=kind)


def dequantized(b: Context, x: Value, scale: Value, zero: Value | None, *, kind: Element = F32) -> Value:
    """(x - zero point) * scale, in the type of the result."""
    # f16 and bf16 cannot represent every difference of integers; the product is rounded once.
    wide = F32 if kind in (F16, BF16) else kind
    level = b.convert(x, wide)
    if zero is not None:
        level = b.emit("Subtract", level, b.convert(zero, wide))
    return b.convert(b.emit("Multiply", level, b.convert(scale, wide)), kind)


@translates("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(b: Context, x: Value) -> tuple[Value, ...]:
    """To u8 with the range of the data and 0."""
    data, rank = (b.reshape(x, [-1]), 1) if b.fact(x).shape is None else (x, b.rank(x))
    axes = list(range(rank))
    low = b.emit("Minimum", b.emit("ReduceMin", data, axes, keep_dims=False), b.constant(0, x))
    high = b.emit("Maximum", b.emit("ReduceMax", data, axes, keep_dims=False), b.constant(0, x))
    scale = b.emit("Divide", b.emit("Subtract", high, low), b.constant(255, x))
    level = b.emit("Clamp", b.emit("Divide", b.emit("Negative", low), scale), min=0.0, max=255.0)
    zero = b.convert(b.emit("Round", level, mode="half_to_even"), U8)
    return quantized(b, x, scale, zero, U8), scale, zero


def _exact_float(products: object) -> Element:
    """The float type that sums this many products of 8-bit integers without rounding."""
    return F32 if isinstance(products, int) and products * 255 * 255 < 1 << 24 else F64


def _minus_zero_point(b: Context, x: Value, zero: Value | None, kind: Element, axis: int) -> Value:
    """Integers minus the zero point, a scalar or one per index of ``axis``, as floats."""
    wide = b.convert(x, kind)
    if zero is None:
        return wide
    rank = b.rank(x)
    if b.rank(zero) == 1 and b.sizes(zero)[0] != 1 and rank > 1:
        zero = b.unsqueeze(zero, [i for i in range(rank) if i != axis % rank])
    return b.emit("Subtract", wide, b.convert(zero, kind))


def _integer_conv(
    b: Context, x: Value, w: Value, x_zero: Value | None, w_zero: Value | None, group: int, windows: Windows
) -> Value:
    """The convolution of integers minus their zero points, in floats that represent the sums exactly."""
    kind = _exact_float(math.prod(b.static(w, "the weights")[1:]))
    return convolve(
        b, _minus_zero_point(b, x, x_zero, kind, 1), _minus_zero_point(b, w, w_zero, kind, 0), group, windows
    )


@translates("ConvInteger", since=10)
def conv_integer(
    b: Context, x: Value, w: Value, x_zero: Value | None = None, w_zero: Value | None = None, *, auto_pad: str = "NOTSET",
    dilations: list[int] | None = None, group: int = 1, kernel_shape: list[int] | None = None, pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Value:  # fmt: skip
    windows = conv_windows(b, w, kernel_shape, strides, dilations, pads, auto_pad)
    return b.convert(_integer_conv(b, x, w, x_zero, w_zero, group, windows), I32)


@translates("QLinearConv", since=10)
def qlinear_conv(
    b: Context, x: Value, x_scale: Value, x_zero: Value, w: Value, w_scale: Value, w_zero: Value, y_scale: Value, y_zero: Value,
    bias: Value | None = None, *, auto_pad: str = "NOTSET", dilations: list[int] | None = None, group: int = 1,
    kernel_shape: list[int] | None = None, pads: list[int] | None = None, strides: list[int] | None = None,
) -> Value:  # fmt: skip
    """The bias is quantized with the product of both scales."""
    windows = conv_windows(b, w, kernel_shape, strides, dilations, pads, auto_pad)
    sums = _integer_conv(b, x, w, x_zero, w_zero, group, windows)
    rank = b.rank(w)
    if bias is not None:
        sums = add_bias(b, sums, b.convert(bias, b.element(sums)), rank)
    scales = [
        scale if b.rank(scale) == 0 or b.sizes(scale)[0] == 1 else b.along_channels(scale, rank)
        for scale in (x_scale, w_scale)
    ]
    y = b.emit("Multiply", b.convert(sums, F32), b.emit("Multiply", *scales))
    return quantized(b, y, y_scale, y_zero, b.element(y_zero))


def _integer_matmul(b: Context, x: Value, y: Value, x_zero: Value | None, y_zero: Value | None) -> Value:
    """The product of integers minus their zero points: per row for the left matrix, per column for the right one."""
    if 0 in (b.rank(x), b.rank(y)):
        raise OpError(f"the matrix product of {b.fact(x)} and {b.fact(y)} is not defined")
    kind = _exact_float(b.sizes(x)[-1])
    return b.emit("MatMul", _minus_zero_point(b, x, x_zero, kind, -2), _minus_zero_point(b, y, y_zero, kind, -1))


@translates("MatMulInteger", since=10)
def matmul_integer(b: Context, x: Value, y: Value, x_zero: Value | None = None, y_zero: Value | None = None) -> Value:
    return b.convert(_integer_matmul(b, x, y, x_zero, y_zero), I32)


@translates("QLinearMatMul", since=10)
def qlinear_matmul(
    b: Context,
    x: Value,
    x_scale: Value,
    x_zero: Value,
    y: Value,
    y_scale: Value,
    y_zero: Value,
    scale: Value,
    zero: Value,
) -> Value:
    left = x_scale if b.rank(x_scale) != 1 or b.sizes(x_scale)[0] == 1 else b.unsqueeze(x_scale, [1])
    sums = b.convert(_integer_matmul(b, x, y, x_zero, y_zero), F32)
    return quantized(
        b,
        b.emit("Multiply", sums, b.convert(b.emit("Multiply", left, y_scale), F32)),
        scale,
        zero,
        b.element(zero),
        F32,
    )
