"""com.microsoft: operators on quantized data, computed in floats and quantized at the end.

Source: onnxruntime ``docs/ContribOperators.md``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from converters.onnx.context import TranslationContext
from converters.onnx.limits import check_generated
from converters.onnx.ops.ai_onnx.activation import leaky_relu
from converters.onnx.ops.ai_onnx.pooling import average_pool, max_pool
from converters.onnx.ops.ai_onnx.quantization import (
    dequantize_linear,
    dequantized,
    dynamic_quantize_linear,
    matmul_integer,
    qlinear_conv,
    quantize_linear,
    quantized,
)
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.dtypes.elements import F32, F64, I32, I64, U8, U32, Element, element
from irexec.errors import ConversionError, OpError
from irexec.ir.constants import Constant
from irexec.ir.graph import Value
from irexec.messages import counted


def _requantized(ctx: TranslationContext, x: Value, scale: Value, zero: Value | None, kind: Element) -> Value:
    return quantized(ctx, x, scale, zero, ctx.element(zero) if zero is not None else kind)


@translates("QuantizeLinear", domain=COM_MICROSOFT)
def runtime_quantize_linear(
    ctx: TranslationContext, x: Value, scale: Value, zero: Value | None = None, *, axis: int = 1
) -> Value:
    return quantize_linear(ctx, x, scale, zero, axis=axis)


@translates("DequantizeLinear", domain=COM_MICROSOFT)
def runtime_dequantize_linear(
    ctx: TranslationContext, x: Value, scale: Value, zero: Value | None = None, *, axis: int = 1
) -> Value:
    return dequantize_linear(ctx, x, scale, zero, axis=axis)


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


def _single(
    ctx: TranslationContext,
    parts: tuple[Value, Value, Value | None, Value, Value | None],
    emit: Callable[[Value], Value],
) -> Value:
    """``emit`` on one quantized tensor. ``parts``: tensor, scale and zero point; scale and zero point of the result."""
    x, x_scale, x_zero, scale, zero = parts
    return _requantized(ctx, emit(dequantized(ctx, x, x_scale, x_zero)), scale, zero, ctx.element(x))


@translates("QLinearSigmoid", domain=COM_MICROSOFT)
def qlinear_sigmoid(
    ctx: TranslationContext, x: Value, x_scale: Value, x_zero: Value | None, scale: Value, zero: Value | None = None
) -> Value:
    return _single(ctx, (x, x_scale, x_zero, scale, zero), lambda values: ctx.emit("Sigmoid", values))


@translates("QLinearLeakyRelu", domain=COM_MICROSOFT)
def qlinear_leaky_relu(
    ctx: TranslationContext,
    x: Value,
    x_scale: Value,
    x_zero: Value | None,
    scale: Value,
    zero: Value | None = None,
    *,
    alpha: float = 0.01,
) -> Value:
    return _single(ctx, (x, x_scale, x_zero, scale, zero), lambda values: leaky_relu(ctx, values, alpha=alpha))


@translates("QLinearSoftmax", domain=COM_MICROSOFT)
def qlinear_softmax(
    ctx: TranslationContext,
    x: Value,
    x_scale: Value,
    x_zero: Value | None,
    scale: Value,
    zero: Value,
    *,
    axis: int = -1,
    opset: int,
) -> Value:
    """Softmax of opset 13 and later."""
    if opset < 13:
        raise ConversionError(f"the softmax of opset {opset} cannot be converted", unsupported=True)
    return _single(
        ctx, (x, x_scale, x_zero, scale, zero), lambda values: ctx.emit("Softmax", values, axis=ctx.axis(axis, values))
    )


def _channels_first(ctx: TranslationContext, x: Value, channels_last: int, emit: Callable[[Value], Value]) -> Value:
    return ctx.channels_last(emit(ctx.channels_first(x))) if channels_last else emit(x)


@translates("QLinearGlobalAveragePool", domain=COM_MICROSOFT)
def qlinear_global_average_pool(
    ctx: TranslationContext,
    x: Value,
    x_scale: Value,
    x_zero: Value,
    scale: Value,
    zero: Value,
    *,
    channels_last: int = 0,
) -> Value:
    first = 1 if channels_last else 2
    axes = list(range(first, first + ctx.rank(x) - 2))
    return _single(
        ctx, (x, x_scale, x_zero, scale, zero), lambda values: ctx.emit("ReduceMean", values, axes, keep_dims=True)
    )


@translates("QLinearAveragePool", domain=COM_MICROSOFT)
def qlinear_average_pool(
    ctx: TranslationContext, x: Value, x_scale: Value, x_zero: Value | None, scale: Value, zero: Value | None = None, *,
    auto_pad: str = "NOTSET", ceil_mode: int = 0, channels_last: int = 0, count_include_pad: int = 0,
    kernel_shape: list[int], pads: list[int] | None = None, strides: list[int] | None = None,
) -> Value:  # fmt: skip
    def pooled(data: Value) -> Value:
        return average_pool(
            ctx, data, auto_pad=auto_pad, ceil_mode=ceil_mode, count_include_pad=count_include_pad, kernel_shape=kernel_shape, pads=pads,
            strides=strides,
        )  # fmt: skip

    return _single(
        ctx, (x, x_scale, x_zero, scale, zero), lambda values: _channels_first(ctx, values, channels_last, pooled)
    )


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


@translates("QLinearConv", domain=COM_MICROSOFT)
def runtime_qlinear_conv(
    ctx: TranslationContext, x: Value, x_scale: Value, x_zero: Value, w: Value, w_scale: Value, w_zero: Value,
    y_scale: Value, y_zero: Value, bias: Value | None = None, *, auto_pad: str = "NOTSET", channels_last: int = 0,
    dilations: list[int] | None = None, group: int = 1, kernel_shape: list[int] | None = None,
    pads: list[int] | None = None, strides: list[int] | None = None,
) -> Value:  # fmt: skip
    """ONNX's operator; the data may be channels last."""

    def convolved(data: Value) -> Value:
        return qlinear_conv(
            ctx, data, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias, auto_pad=auto_pad, dilations=dilations, group=group,
            kernel_shape=kernel_shape, pads=pads, strides=strides,
        )  # fmt: skip

    return _channels_first(ctx, x, channels_last, convolved)


@translates("QGemm", domain=COM_MICROSOFT)
def qgemm(
    ctx: TranslationContext, x: Value, x_scale: Value, x_zero: Value, y: Value, y_scale: Value, y_zero: Value,
    bias: Value | None = None, scale: Value | None = None, zero: Value | None = None, *, alpha: float = 1.0,
    transA: int = 0, transB: int = 0,
) -> Value:  # fmt: skip
    """The bias is quantized with the product of both scales and alpha. Without a scale the result is a float."""
    left = ctx.transpose(x, [1, 0]) if transA else x
    right = ctx.transpose(y, [1, 0]) if transB else y
    sums = matmul_integer(ctx, left, right, x_zero, y_zero)
    sums = sums if bias is None else ctx.emit("Add", sums, bias)
    product_scale = ctx.emit("Multiply", x_scale, y_scale)
    product_scale = (
        product_scale if alpha == 1.0 else ctx.emit("Multiply", product_scale, ctx.constant(alpha, product_scale))
    )
    result = ctx.emit("Multiply", ctx.convert(sums, F32), product_scale)
    return result if scale is None else _requantized(ctx, result, scale, zero, ctx.element(x))


@translates("MatMulIntegerToFloat", domain=COM_MICROSOFT)
def matmul_integer_to_float(
    ctx: TranslationContext, x: Value, y: Value, x_scale: Value, y_scale: Value, x_zero: Value | None = None,
    y_zero: Value | None = None, bias: Value | None = None,
) -> Value:  # fmt: skip
    sums = ctx.convert(matmul_integer(ctx, x, y, x_zero, y_zero), ctx.element(x_scale))
    result = ctx.emit("Multiply", sums, ctx.emit("Multiply", x_scale, y_scale))
    return result if bias is None else ctx.emit("Add", result, bias)


@translates("DynamicQuantizeMatMul", domain=COM_MICROSOFT)
def dynamic_quantize_matmul(
    ctx: TranslationContext, x: Value, y: Value, y_scale: Value, y_zero: Value | None = None, bias: Value | None = None,
) -> Value:  # fmt: skip
    levels, scale, zero = dynamic_quantize_linear(ctx, x)
    return matmul_integer_to_float(ctx, levels, y, scale, y_scale, zero, y_zero, bias)


@translates("MatMulNBits", domain=COM_MICROSOFT)
def matmul_n_bits(
    ctx: TranslationContext, x: Value, y: Value, scales: Value, zero_points: Value | None = None,
    g_idx: Value | None = None, bias: Value | None = None, *, K: int, N: int, bits: int = 4, block_size: int,
    accuracy_level: int = 0, weight_prepacked: int = 0,
) -> Value:  # fmt: skip
    """Weights (N, blocks of K, block) of 2, 4 or 8 bits stay packed: IR's u2, u4 and u8 have the same layout."""
    if bits not in (2, 4, 8) or weight_prepacked:
        raise ConversionError(f"weights of {bits} bits, or prepacked, cannot be converted", unsupported=True)
    if min(K, N, block_size) < 1:
        raise OpError(f"K is {K}, N {N} and block_size {block_size}, expected positive numbers")
    blocks = -(-K // block_size)
    kind = ctx.element(x)
    unscaled = ctx.convert(_packed(ctx, y, element(f"u{bits}"), (N, blocks, block_size)), kind)
    zero = ctx.constant(2.0 ** (bits - 1), kind)
    if zero_points is not None:
        zero = _zero_points(ctx, zero_points, element(f"u{bits}"), N, blocks, kind)
    scale = ctx.convert(ctx.reshape(scales, [N, blocks, 1]), kind)
    if g_idx is not None:
        raise ConversionError("weights reordered by g_idx cannot be converted", unsupported=True)
    level = ctx.emit("Multiply", ctx.emit("Subtract", unscaled, zero), scale)
    weights = ctx.emit("Reshape", level, [N, blocks * block_size], special_zero=False)
    if blocks * block_size != K:
        weights = ctx.emit("Slice", weights, [0], [K], [1], [1])
    product = ctx.emit("MatMul", x, weights, transpose_a=False, transpose_b=True)
    return product if bias is None else ctx.emit("Add", product, bias)


def _packed(ctx: TranslationContext, value: Value, kind: Element, shape: tuple[int, ...]) -> Value:
    """The bytes of a constant as values of fewer bits, lowest bits first."""
    constant = value.node.constant
    if constant is None or ctx.element(value) is not U8:
        raise ConversionError("packed weights that are not a constant cannot be converted", unsupported=True)
    count = 1
    for size in shape:
        count *= size
    if constant.size * 8 != count * kind.bits:
        raise OpError(f"{constant.size} bytes are not {kind}{list(shape)}")
    return ctx.builder.raw_constant(Constant(kind, shape, constant.fetch, constant.size), value.node.name)


def _zero_points(
    ctx: TranslationContext, zero_points: Value, kind: Element, rows: int, blocks: int, wide: Element
) -> Value:
    """Zero points: floats, or packed in rows of whole bytes."""
    if ctx.element(zero_points) is not U8:
        return ctx.convert(ctx.reshape(zero_points, [rows, blocks, 1]), wide)
    per_byte = 8 // kind.bits
    padded = -(-blocks // per_byte) * per_byte
    found = ctx.convert(_packed(ctx, zero_points, kind, (rows, padded, 1)), wide)
    return found if padded == blocks else ctx.emit("Slice", found, [0], [blocks], [1], [1])


@translates("QLinearReduceMean", domain=COM_MICROSOFT)
def qlinear_reduce_mean(
    ctx: TranslationContext, x: Value, x_scale: Value, x_zero: Value | None, scale: Value, zero: Value | None = None, *,
    axes: list[int] | None = None, keepdims: int = 1,
) -> Value:  # fmt: skip
    """The mean over the axes; over all axes by default."""
    normal_axes = list(range(ctx.rank(x))) if not axes else [ctx.axis(axis, x) for axis in axes]
    return _single(
        ctx,
        (x, x_scale, x_zero, scale, zero),
        lambda values: ctx.emit("ReduceMean", values, normal_axes, keep_dims=bool(keepdims)),
    )


@translates("NhwcMaxPool", domain=COM_MICROSOFT)
def nhwc_max_pool(
    ctx: TranslationContext, x: Value, *, auto_pad: str = "NOTSET", ceil_mode: int = 0,
    dilations: list[int] | None = None, kernel_shape: list[int], pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Value:  # fmt: skip
    """The maximum of quantized values, channels last; no scale is needed."""

    def pooled(data: Value) -> Value:
        return max_pool(
            ctx,
            data,
            auto_pad=auto_pad,
            ceil_mode=ceil_mode,
            dilations=dilations,
            kernel_shape=kernel_shape,
            pads=pads,
            strides=strides,
        )[0]

    return _channels_first(ctx, x, 1, pooled)


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
    if first == normal_quantize_axis:
        raise OpError(f"gather_axis and quantize_axis are both {first}")
    default_zero = 0.0
    if ctx.element(data) is U8:
        default_zero = 2.0 ** (bits - 1)
        data = _unpacked(ctx, data, bits)
        zero_points = (
            None if zero_points is None else _unpacked(ctx, zero_points, bits, ctx.static(scales, "the scales"))
        )
    size = ctx.static(data, "the data")[normal_quantize_axis]
    block_axis = normal_quantize_axis if normal_quantize_axis < first else normal_quantize_axis + ctx.rank(indices) - 1
    check_generated((size,), I64, "the indices of blocks")
    block = ctx.constant(np.arange(size) // block_size)

    def gathered(part: Value) -> Value:
        chosen = ctx.convert(ctx.emit("Gather", part, indices, ctx.constant(first)), ctx.element(scales))
        return chosen if part is data else ctx.emit("Gather", chosen, block, ctx.constant(block_axis))

    zero = ctx.constant(default_zero, scales) if zero_points is None else gathered(zero_points)
    return ctx.emit("Multiply", ctx.emit("Subtract", gathered(data), zero), gathered(scales))


def _unpacked(ctx: TranslationContext, data: Value, bits: int, shape: tuple[int, ...] | None = None) -> Value:
    """Bytes as values of ``bits`` bits along the last axis; its last byte may be partly used."""
    if bits == 8:
        return data
    *leading, last = ctx.static(data, "packed data")
    whole = _packed(ctx, data, element(f"u{bits}"), (*leading, last * 8 // bits))
    if shape is None or shape[-1] == last * 8 // bits:
        return whole
    return ctx.emit("Slice", ctx.convert(whole, U8), [0], [shape[-1]], [1], [len(leading)])
