"""Quantisation, by arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np

from converters.onnx.context import Context
from converters.onnx.ops.convolution import conv
from converters.onnx.registry import translates
from converters.onnx.tensors import element_of
from irexec.ir.elements import F32, U8, Element
from irexec.ir.graph import Value

_FLOAT_LIMITS = {"f8e4m3": 448.0, "f8e5m2": 57344.0, "f4e2m1": 6.0}


def _along(b: Context, part: Value, x: Value, axis: int, block: int) -> Value:
    """A scale or zero point shaped to stretch over ``x``: one for all, one for each place of an axis, or one for each block."""
    rank = b.rank(x)
    if b.rank(part) == 0 or (b.rank(part) == 1 and b.sizes(part)[0] == 1 and not block):
        return part if b.rank(part) == 0 else b.emit("Squeeze", part, [0], version=1)
    place = axis + rank if axis < 0 else axis
    if block:
        size = b.static(x, "the data")[place]
        return b.emit("Gather", part, b.constant(np.arange(size) // block), place)
    return b.emit("Reshape", part, [-1 if i == place else 1 for i in range(rank)], special_zero=False)


def _limits(kind: Element) -> tuple[float, float]:
    if kind.is_float:
        return -_FLOAT_LIMITS[kind.name], _FLOAT_LIMITS[kind.name]
    if kind.kind == "signed":
        return -(2.0 ** (kind.bits - 1)), 2.0 ** (kind.bits - 1) - 1
    return 0.0, 2.0**kind.bits - 1


def quantized(b: Context, x: Value, scale: Value, zero: Value | None, kind: Element) -> Value:
    """x / scale rounded to even, plus the zero point, kept within the type."""
    wide = x if b.element(x) is F32 else b.emit("Convert", x, destination_type=F32)
    step = scale if b.element(scale) is F32 else b.emit("Convert", scale, destination_type=F32)
    level = b.emit("Divide", wide, step)
    if not kind.is_float:
        level = b.emit("Round", level, mode="half_to_even")
    if zero is not None:
        level = b.emit("Add", level, b.emit("Convert", zero, destination_type=F32))
    low, high = _limits(kind)
    return b.emit("Convert", b.emit("Clamp", level, min=low, max=high), destination_type=kind)


def dequantized(b: Context, x: Value, scale: Value, zero: Value | None) -> Value:
    """(x - zero point) * scale, in the type of the scale."""
    kind = b.element(scale)
    level = b.emit("Convert", x, destination_type=kind)
    if zero is not None:
        level = b.emit("Subtract", level, b.emit("Convert", zero, destination_type=kind))
    return b.emit("Multiply", level, scale)


@translates("QuantizeLinear", since=10)
def quantize_linear(
    b: Context, x: Value, scale: Value, zero: Value | None = None, *, axis: int = 1, saturate: int = 1, block_size: int = 0,
    output_dtype: int = 0, precision: int = 0,
) -> Value:  # fmt: skip
    kind = b.element(zero) if zero is not None else element_of(output_dtype) if output_dtype else U8
    step = _along(b, scale, x, axis, block_size)
    return quantized(b, x, step, None if zero is None else _along(b, zero, x, axis, block_size), kind)


@translates("DequantizeLinear", since=10)
def dequantize_linear(
    b: Context, x: Value, scale: Value, zero: Value | None = None, *, axis: int = 1, block_size: int = 0, output_dtype: int = 0
) -> Value:
    step = _along(b, scale, x, axis, block_size)
    y = dequantized(b, x, step, None if zero is None else _along(b, zero, x, axis, block_size))
    return b.emit("Convert", y, destination_type=element_of(output_dtype)) if output_dtype else y


@translates("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(b: Context, x: Value) -> tuple[Value, ...]:
    """To u8 by the range of the data, which includes 0."""
    axes = list(range(b.rank(x)))
    low = b.emit("Minimum", b.emit("ReduceMin", x, axes, keep_dims=False), b.constant(0, x))
    high = b.emit("Maximum", b.emit("ReduceMax", x, axes, keep_dims=False), b.constant(0, x))
    scale = b.emit("Divide", b.emit("Subtract", high, low), b.constant(255, x))
    place = b.emit("Clamp", b.emit("Divide", b.emit("Negative", low), scale), min=0.0, max=255.0)
    zero = b.emit("Convert", b.emit("Round", place, mode="half_to_even"), destination_type=U8)
    return quantized(b, x, scale, zero, U8), scale, zero


@translates("QLinearMatMul", since=10)
def qlinear_matmul(
    b: Context, x: Value, x_scale: Value, x_zero: Value, y: Value, y_scale: Value, y_zero: Value, scale: Value, zero: Value
) -> Value:
    left = dequantized(b, x, _row(b, x_scale, x), _row(b, x_zero, x))
    right = dequantized(b, y, y_scale, y_zero)
    return quantized(b, b.emit("MatMul", left, right), scale, zero, b.element(zero))


def _row(b: Context, part: Value, x: Value) -> Value:
    """One number for each row."""
    if b.rank(part) == 1 and b.sizes(part)[0] != 1:
        return b.emit("Unsqueeze", part, [1])
    return part


@translates("QLinearConv", since=10)
def qlinear_conv(
    b: Context, x: Value, x_scale: Value, x_zero: Value, w: Value, w_scale: Value, w_zero: Value, scale: Value, zero: Value,
    bias: Value | None = None, *, auto_pad: str = "NOTSET", dilations: list[int] | None = None, group: int = 1,
    kernel_shape: list[int] | None = None, pads: list[int] | None = None, strides: list[int] | None = None,
) -> Value:  # fmt: skip
    """The bias is in steps of the product of both scales."""
    data = dequantized(b, x, x_scale, x_zero)
    step = _along(b, w_scale, w, 0, 0)
    weights = dequantized(b, w, step, _along(b, w_zero, w, 0, 0))
    if bias is not None:
        unit = b.emit("Multiply", x_scale, w_scale)
        bias = b.emit("Multiply", b.emit("Convert", bias, destination_type=F32), unit)
    texts: dict[str, Any] = {"auto_pad": auto_pad, "dilations": dilations, "group": group, "kernel_shape": kernel_shape}
    y = conv(b, data, weights, bias, pads=pads, strides=strides, **texts)
    return quantized(b, y, scale, zero, b.element(zero))
