"""com.microsoft: operators on quantized data, computed in floats and quantized at the end.

Source: onnxruntime ``docs/ContribOperators.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from converters.onnx.algorithms.expression import Expression
from converters.onnx.algorithms.windows import PoolAttributes, on_channels_last
from converters.onnx.context import TranslationContext
from converters.onnx.graphs import check_convertible
from converters.onnx.ops.ai_onnx.elementwise import leaky_relu
from converters.onnx.ops.ai_onnx.quantization import (
    block_indices,
    dequantize_linear,
    dequantized,
    dynamic_quantize_linear,
    matmul_integer,
    qlinear_conv,
    quantize_linear,
    quantized,
)
from converters.onnx.ops.ai_onnx.windows import average_pool, global_average_pool, max_pool
from converters.onnx.registry import COM_MICROSOFT, add, translates
from irexec.dtypes.elements import F32, F64, I32, U8, U32, Element, element
from irexec.dtypes.layouts import NormalFloat4
from irexec.errors import OpError, check
from irexec.ir.constants import Constant
from irexec.ir.graph import Value
from irexec.messages import counted


def _requantized(ctx: TranslationContext, x: Value, scale: Value, zero: Value | None, kind: Element) -> Value:
    return quantized(ctx, x, scale, zero, ctx.element(zero) if zero is not None else kind)


_NEWER = ["saturate", "block_size", "output_dtype", "precision"]
translates("QuantizeLinear", domain=COM_MICROSOFT, without=_NEWER)(quantize_linear)
translates("DequantizeLinear", domain=COM_MICROSOFT, without=_NEWER)(dequantize_linear)


def _pair(operator: str, type: str) -> None:
    @translates(operator, domain=COM_MICROSOFT)
    def translate(
        ctx: TranslationContext, x: Value, x_scale: Value, x_zero: Value | None, y: Value, y_scale: Value,
        y_zero: Value | None, scale: Value, zero: Value | None = None,
    ) -> Value:  # fmt: skip
        result = ctx.emit(type, dequantized(ctx, x, x_scale, x_zero), dequantized(ctx, y, y_scale, y_zero))
        return _requantized(ctx, result, scale, zero, ctx.element(x))


_pair("QLinearAdd", "Add")
_pair("QLinearMul", "Multiply")


def _on_floats(operator: str, emit: Callable[..., Any], *schemas: Callable[..., Any]) -> None:
    """Register an operator on one quantized tensor: ``emit``, whose schema is that of its attributes, on its values."""

    def translate(
        ctx: TranslationContext, x: Value, x_scale: Value, x_zero: Value | None, scale: Value,
        zero: Value | None = None, **attributes: Any,
    ) -> Value:  # fmt: skip
        result = emit(ctx, dequantized(ctx, x, x_scale, x_zero), **attributes)
        return _requantized(ctx, result, scale, zero, ctx.element(x))

    add(operator, 1, COM_MICROSOFT, translate, translate, emit, *schemas)


def _in_either_layout(function: Callable[..., Value]) -> Callable[..., Value]:
    """A translator with another attribute, whether the data is channels last."""

    def translate(
        ctx: TranslationContext, x: Value, *others: Value | None, channels_last: int = 0, **attributes: Any
    ) -> Value:
        return (on_channels_last(function, 0) if channels_last else function)(ctx, x, *others, **attributes)

    return translate


def _softmax(ctx: TranslationContext, x: Value, *, axis: int = -1, opset: int) -> Value:
    """Softmax of opset 13 and later."""
    check_convertible(opset >= 13, f"the softmax of opset {opset}")
    return ctx.emit("Softmax", x, axis=ctx.axis(axis, x))


def _mean(ctx: TranslationContext, x: Value, *, axes: list[int] | None = None, keepdims: int = 1) -> Value:
    """The mean over the axes; over all axes by default."""
    normal_axes = [ctx.axis(axis, x) for axis in axes] if axes else list(range(ctx.rank(x)))
    return ctx.emit("ReduceMean", x, normal_axes, keep_dims=bool(keepdims))


_on_floats("QLinearSigmoid", lambda ctx, x: ctx.emit("Sigmoid", x))
_on_floats("QLinearLeakyRelu", leaky_relu)
_on_floats("QLinearSoftmax", _softmax)
_on_floats("QLinearReduceMean", _mean)
_on_floats("QLinearGlobalAveragePool", _in_either_layout(global_average_pool))
_on_floats("QLinearAveragePool", _in_either_layout(average_pool), average_pool)
_convolution = _in_either_layout(qlinear_conv)
add("QLinearConv", 1, COM_MICROSOFT, _convolution, qlinear_conv, _convolution)


@translates("QLinearConcat", domain=COM_MICROSOFT)
def qlinear_concat(ctx: TranslationContext, scale: Value, zero: Value, *inputs: Value, axis: int) -> Value:
    """The inputs are a tensor, a scale and a zero point per part."""
    if len(inputs) % 3 or not inputs:
        raise OpError(f"it has {counted(len(inputs), 'input')} to concatenate, expected three for each tensor")
    levels = [dequantized(ctx, *inputs[i : i + 3]) for i in range(0, len(inputs), 3)]
    return quantized(ctx, ctx.emit("Concat", *levels, axis=axis), scale, zero, ctx.element(zero))


@translates("QLinearWhere", domain=COM_MICROSOFT)
def qlinear_where(
    ctx: TranslationContext, condition: Value, x: Value, x_scale: Value, x_zero: Value, y: Value, y_scale: Value,
    y_zero: Value, scale: Value, zero: Value,
) -> Value:  # fmt: skip
    chosen = ctx.emit("Select", condition, dequantized(ctx, x, x_scale, x_zero), dequantized(ctx, y, y_scale, y_zero))
    return quantized(ctx, chosen, scale, zero, ctx.element(zero))


@translates("QGemm", domain=COM_MICROSOFT)
def qgemm(
    ctx: TranslationContext, x: Value, x_scale: Value, x_zero: Value, y: Value, y_scale: Value, y_zero: Value,
    bias: Value | None = None, scale: Value | None = None, zero: Value | None = None, *, alpha: float = 1.0,
    transA: int = 0, transB: int = 0,
) -> Value:  # fmt: skip
    """The bias is quantized with the product of both scales and alpha. Without a scale the result is a float."""
    left = ctx.transpose(x, [1, 0]) if transA else x
    right = ctx.transpose(y, [1, 0]) if transB else y
    sums = ctx.added(matmul_integer(ctx, left, right, x_zero, y_zero), bias)
    product_scale = ctx.emit("Multiply", x_scale, y_scale)
    if alpha != 1.0:
        product_scale = ctx.emit("Multiply", product_scale, ctx.constant(alpha, product_scale))
    result = ctx.emit("Multiply", ctx.convert(sums, F32), product_scale)
    return result if scale is None else _requantized(ctx, result, scale, zero, ctx.element(x))


@translates("MatMulIntegerToFloat", domain=COM_MICROSOFT)
def matmul_integer_to_float(
    ctx: TranslationContext, x: Value, y: Value, x_scale: Value, y_scale: Value, x_zero: Value | None = None,
    y_zero: Value | None = None, bias: Value | None = None,
) -> Value:  # fmt: skip
    sums = ctx.convert(matmul_integer(ctx, x, y, x_zero, y_zero), ctx.element(x_scale))
    return ctx.added(ctx.emit("Multiply", sums, ctx.emit("Multiply", x_scale, y_scale)), bias)


@translates("DynamicQuantizeMatMul", domain=COM_MICROSOFT)
def dynamic_quantize_matmul(
    ctx: TranslationContext, x: Value, y: Value, y_scale: Value, y_zero: Value | None = None, bias: Value | None = None
) -> Value:
    levels, scale, zero = dynamic_quantize_linear(ctx, x)
    return matmul_integer_to_float(ctx, levels, y, scale, y_scale, zero, y_zero, bias)


@translates("MatMulNBits", domain=COM_MICROSOFT)
def matmul_n_bits(
    ctx: TranslationContext, x: Value, y: Value, scales: Value, zero_points: Value | None = None,
    g_idx: Value | None = None, bias: Value | None = None, *, K: int, N: int, bits: int = 4, block_size: int,
    accuracy_level: int = 0, weight_prepacked: int = 0,
) -> Value:  # fmt: skip
    """Weights (N, blocks, block) of 2, 4 or 8 bits. A constant stays packed: IR's u2, u4 and u8 have its layout.

    ``g_idx`` has the block whose scale and zero point each column of the weights has, in place of its own block. Beside
    it ONNX Runtime 1.32 takes u8 zero points of 4 bits for 8, and computes weights of 2 bits otherwise.
    """
    check_convertible(bits in (2, 4, 8) and not weight_prepacked, f"weights of {bits} bits, or prepacked,")
    check(min(K, N, block_size) >= 1, f"K is {K}, N {N} and block_size {block_size}, expected positive numbers")
    blocks = -(-K // block_size)
    kind = ctx.element(x)
    unscaled = ctx.convert(packed_bits(ctx, y, element(f"u{bits}"), (N, blocks, block_size)), kind)
    zero = ctx.constant(2.0 ** (bits - 1), kind)
    if zero_points is not None:
        is_packed = ctx.element(zero_points) is U8
        points = packed_rows(ctx, zero_points, bits, (N, blocks), kind) if is_packed else zero_points
        zero = ctx.convert(ctx.reshape(points, [N, blocks, 1]), kind)
    scale = ctx.convert(ctx.reshape(scales, [N, blocks, 1]), kind)
    if g_idx is not None:
        unscaled = ctx.reshape(unscaled, [N, blocks * block_size, 1])
        groups = _column_groups(ctx, g_idx, K, blocks, block_size)
        scale = ctx.emit("Gather", scale, groups, 1)
        zero = zero if zero_points is None else ctx.emit("Gather", zero, groups, 1)
    level = ctx.emit("Multiply", ctx.emit("Subtract", unscaled, zero), scale)
    return product_with_blocks(ctx, x, ctx.reshape(level, [N, blocks * block_size]), K, bias)


def product_with_blocks(ctx: TranslationContext, x: Value, rows: Value, columns: int, bias: Value | None) -> Value:
    """x @ rows^T + bias, without the values after this number of columns, which fill the last block of each row."""
    rows = rows if ctx.sizes(rows)[1] == columns else ctx.slice(rows, 0, columns, 1)
    return ctx.added(ctx.emit("MatMul", x, ctx.convert(rows, ctx.element(x)), transpose_b=True), bias)


def _column_groups(ctx: TranslationContext, g_idx: Value, columns: int, blocks: int, block_size: int) -> Value:
    """The block of each column of the weights, also of the columns that fill the last block.

    Raises:
        OpError: there are other numbers of columns, or a known index is not that of a block.
    """
    size, padded = ctx.sizes(g_idx, "g_idx")[0], blocks * block_size
    if isinstance(size, int) and size not in (columns, padded):
        raise OpError(f"g_idx has {size} elements, expected {columns} or {padded}")
    known = ctx.ints_if_known(g_idx)
    if known and not 0 <= min(known) <= max(known) < blocks:
        raise OpError(f"g_idx has values from {min(known)} to {max(known)}, expected 0 to {blocks - 1}")
    used = ctx.slice(g_idx, 0, columns, 0)
    return ctx.emit("Pad", used, [0], [padded - columns], ctx.constant(0, g_idx), pad_mode="constant")


def packed_bits(ctx: TranslationContext, value: Value, kind: Element, shape: tuple[int, ...]) -> Value:
    """Bytes as values of fewer bits, lowest bits first: packed if the bytes are a constant, else computed as u8."""
    check(ctx.element(value) is U8, f"the packed values are {ctx.fact(value)}, expected u8")
    constant = value.node.constant
    if constant is None:
        column = Expression(ctx, ctx.reshape(value, [math.prod(shape) * kind.bits // 8, 1]))
        shifts = Expression(ctx, ctx.constant(np.arange(0, 8, kind.bits), U8))
        return ctx.reshape((column >> shifts).masked(kind.bits).value, shape)
    check(constant.size * 8 == math.prod(shape) * kind.bits, f"{constant.size} bytes are not {kind}{list(shape)}")
    return ctx.builder.raw_constant(Constant(kind, shape, constant.fetch, constant.size), value.node.name)


def packed_rows(ctx: TranslationContext, value: Value, bits: int, shape: tuple[int, ...], wide: Element = U8) -> Value:
    """``packed_bits`` of rows of whole bytes; values of partly used bytes have the type ``wide``."""
    padded = -(-shape[-1] * bits // 8) * 8 // bits
    found = packed_bits(ctx, value, element(f"u{bits}"), (*shape[:-1], padded))
    return found if padded == shape[-1] else ctx.slice(ctx.convert(found, wide), 0, shape[-1], len(shape) - 1)


# The values of FP4 of bitsandbytes whose sign is positive, by code; NF4 is IR's nf4.
_FP4 = (0.0, 5.208333333e-03, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25)


@translates("MatMulBnb4", domain=COM_MICROSOFT)
def matmul_bnb4(
    ctx: TranslationContext, x: Value, y: Value, absmax: Value, *, K: int, N: int, block_size: int, quant_type: int,
    training_mode: int = 0, transB: int = 1,
) -> Value:  # fmt: skip
    """Weights (N, K) of 4 bits, the first in the upper half of a byte, times one value per block of them.

    Source: ONNX Runtime's ``blockwise_quant_block_bnb4.h``; with ``transB`` 0 its product is not defined.
    """
    check_convertible(transB == 1, f"transB {transB}")
    if min(K, N, block_size) < 1 or quant_type not in (0, 1):
        raise OpError(f"K is {K}, N {N}, block_size {block_size} and quant_type {quant_type}")
    count, blocks = N * K, -(-N * K // block_size)
    table = NormalFloat4().values if quant_type else np.outer([1, -1], _FP4).ravel()
    halves = (Expression(ctx, ctx.reshape(y, [-1, 1])) >> Expression(ctx, ctx.constant([4, 0], U8))).masked(4)
    codes = ctx.reshape(halves.value, [-1])
    flat = ctx.gather(ctx.constant(table, x), ctx.convert(codes, I32), 0)
    size = ctx.sizes(flat)[0]
    if isinstance(size, int) and size != 2 * -(-count // 2):
        raise OpError(f"the packed weights {ctx.fact(y)} are not {N} x {K} values of 4 bits")
    # Values beyond the last weight do not matter.
    flat = ctx.emit("Pad", flat, [0], [blocks * block_size], ctx.constant(0, x), pad_mode="constant")
    flat = ctx.slice(flat, 0, blocks * block_size, 0)
    scaled = ctx.emit("Multiply", ctx.reshape(flat, [blocks, block_size]), ctx.reshape(absmax, [blocks, 1]))
    weights = ctx.slice(ctx.reshape(scaled, [-1]), 0, count, 0)
    return ctx.emit("MatMul", x, ctx.reshape(weights, [N, K]), transpose_b=True)


@translates("NhwcMaxPool", domain=COM_MICROSOFT)
def nhwc_max_pool(ctx: TranslationContext, x: Value, *, given: PoolAttributes) -> Value:
    """The maximum of quantized values, channels last; no scale is needed."""
    return ctx.channels_last(max_pool(ctx, ctx.channels_first(x), given=given)[0])


@translates("MatMulInteger16", domain=COM_MICROSOFT)
def matmul_integer_16(ctx: TranslationContext, x: Value, y: Value) -> Value:
    """Sums of products of 16-bit values, exact in f64, as 32-bit integers."""
    kind = U32 if ctx.element(x).kind == ctx.element(y).kind == "unsigned" else I32
    return ctx.convert(ctx.emit("MatMul", ctx.convert(x, F64), ctx.convert(y, F64)), kind)


@translates("GatherBlockQuantized", domain=COM_MICROSOFT)
def gather_block_quantized(
    ctx: TranslationContext, data: Value, indices: Value, scales: Value, zero_points: Value | None = None, *,
    bits: int = 4, block_size: int = 128, gather_axis: int = 0, quantize_axis: int = 1,
) -> Value:  # fmt: skip
    """Slices of data with a scale per block of an axis; a byte packs several values of the last axis."""
    rank = ctx.rank(data)
    first, normal_quantize_axis = ctx.axis(gather_axis, rank), ctx.axis(quantize_axis, rank)
    if bits not in (2, 4, 8) or block_size < 1:
        raise OpError(f"bits is {bits}, expected 2, 4 or 8, and block_size {block_size}, expected 1 or more")
    check(first != normal_quantize_axis, f"gather_axis and quantize_axis are both {first}")
    default_zero = 0.0
    if ctx.element(data) is U8:
        default_zero = 2.0 ** (bits - 1)
    if ctx.element(data) is U8 and bits < 8:
        *leading, last = ctx.static(data, "packed data")
        data = packed_rows(ctx, data, bits, (*leading, last * 8 // bits))
        if zero_points is not None:
            zero_points = packed_rows(ctx, zero_points, bits, ctx.static(scales, "the scales"))
    block_axis = normal_quantize_axis if normal_quantize_axis < first else normal_quantize_axis + ctx.rank(indices) - 1
    block = block_indices(ctx, data, normal_quantize_axis, block_size)

    def gathered(part: Value) -> Value:
        chosen = ctx.gather_as(part, indices, first, ctx.element(scales))
        return chosen if part is data else ctx.gather(chosen, block, block_axis)

    zero = ctx.constant(default_zero, scales) if zero_points is None else gathered(zero_points)
    return ctx.emit("Multiply", ctx.emit("Subtract", gathered(data), zero), gathered(scales))
