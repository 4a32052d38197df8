"""com.microsoft: operators on quantized data, computed in floats and quantized at the end.

Source: onnxruntime ``docs/ContribOperators.md``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from converters.onnx.context import Context
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


def _requantized(b: Context, x: Value, scale: Value, zero: Value | None, kind: Element) -> Value:
    return quantized(b, x, scale, zero, b.element(zero) if zero is not None else kind)


@translates("QuantizeLinear", domain=COM_MICROSOFT)
def runtime_quantize_linear(b: Context, x: Value, scale: Value, zero: Value | None = None, *, axis: int = 1) -> Value:
    return quantize_linear(b, x, scale, zero, axis=axis)


@translates("DequantizeLinear", domain=COM_MICROSOFT)
def runtime_dequantize_linear(b: Context, x: Value, scale: Value, zero: Value | None = None, *, axis: int = 1) -> Value:
    return dequantize_linear(b, x, scale, zero, axis=axis)


def _pair(operator: str, type: str) -> None:
    @translates(operator, domain=COM_MICROSOFT)
    def translate(
        b: Context, x: Value, x_scale: Value, x_zero: Value | None, y: Value, y_scale: Value, y_zero: Value | None, scale: Value,
        zero: Value | None = None,
    ) -> Value:  # fmt: skip
        result = b.emit(type, dequantized(b, x, x_scale, x_zero), dequantized(b, y, y_scale, y_zero))
        return _requantized(b, result, scale, zero, b.element(x))


_pair("QLinearAdd", "Add")
_pair("QLinearMul", "Multiply")


def _single(
    b: Context, parts: tuple[Value, Value, Value | None, Value, Value | None], emit: Callable[[Value], Value]
) -> Value:
    """``emit`` on one quantized tensor; ``parts``: tensor, scale and zero point, and those of the result."""
    x, x_scale, x_zero, scale, zero = parts
    return _requantized(b, emit(dequantized(b, x, x_scale, x_zero)), scale, zero, b.element(x))


@translates("QLinearSigmoid", domain=COM_MICROSOFT)
def qlinear_sigmoid(
    b: Context, x: Value, x_scale: Value, x_zero: Value | None, scale: Value, zero: Value | None = None
) -> Value:
    return _single(b, (x, x_scale, x_zero, scale, zero), lambda values: b.emit("Sigmoid", values))


@translates("QLinearLeakyRelu", domain=COM_MICROSOFT)
def qlinear_leaky_relu(
    b: Context,
    x: Value,
    x_scale: Value,
    x_zero: Value | None,
    scale: Value,
    zero: Value | None = None,
    *,
    alpha: float = 0.01,
) -> Value:
    return _single(b, (x, x_scale, x_zero, scale, zero), lambda values: leaky_relu(b, values, alpha=alpha))


@translates("QLinearSoftmax", domain=COM_MICROSOFT)
def qlinear_softmax(
    b: Context, x: Value, x_scale: Value, x_zero: Value | None, scale: Value, zero: Value, *, axis: int = -1, opset: int
) -> Value:
    """Softmax of opset 13 and later."""
    if opset < 13:
        raise ConversionError(f"the softmax of opset {opset} cannot be converted", unsupported=True)
    return _single(
        b, (x, x_scale, x_zero, scale, zero), lambda values: b.emit("Softmax", values, axis=b.axis(axis, values))
    )


def _channels_first(b: Context, x: Value, channels_last: int, emit: Callable[[Value], Value]) -> Value:
    return b.channels_last(emit(b.channels_first(x))) if channels_last else emit(x)


@translates("QLinearGlobalAveragePool", domain=COM_MICROSOFT)
def qlinear_global_average_pool(
    b: Context, x: Value, x_scale: Value, x_zero: Value, scale: Value, zero: Value, *, channels_last: int = 0
) -> Value:
    first = 1 if channels_last else 2
    axes = list(range(first, first + b.rank(x) - 2))
    return _single(
        b, (x, x_scale, x_zero, scale, zero), lambda values: b.emit("ReduceMean", values, axes, keep_dims=True)
    )


@translates("QLinearAveragePool", domain=COM_MICROSOFT)
def qlinear_average_pool(
    b: Context, x: Value, x_scale: Value, x_zero: Value | None, scale: Value, zero: Value | None = None, *, auto_pad: str = "NOTSET",
    ceil_mode: int = 0, channels_last: int = 0, count_include_pad: int = 0, kernel_shape: list[int], pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Value:  # fmt: skip
    def pooled(data: Value) -> Value:
        return average_pool(
            b, data, auto_pad=auto_pad, ceil_mode=ceil_mode, count_include_pad=count_include_pad, kernel_shape=kernel_shape, pads=pads,
            strides=strides,
        )  # fmt: skip

    return _single(
        b, (x, x_scale, x_zero, scale, zero), lambda values: _channels_first(b, values, channels_last, pooled)
    )


@translates("QLinearConcat", domain=COM_MICROSOFT)
def qlinear_concat(b: Context, scale: Value, zero: Value, *inputs: Value, axis: int) -> Value:
    """The inputs are a tensor, a scale and a zero point for each part."""
    if len(inputs) % 3 or not inputs:
        raise OpError(f"it has {counted(len(inputs), 'input')} to concatenate, expected three for each tensor")
    levels = [dequantized(b, *inputs[i : i + 3]) for i in range(0, len(inputs), 3)]
    return quantized(b, b.emit("Concat", *levels, axis=axis), scale, zero, b.element(zero))


@translates("QLinearWhere", domain=COM_MICROSOFT)
def qlinear_where(
    b: Context, condition: Value, x: Value, x_scale: Value, x_zero: Value, y: Value, y_scale: Value, y_zero: Value, scale: Value,
    zero: Value,
) -> Value:  # fmt: skip
    chosen = b.emit("Select", condition, dequantized(b, x, x_scale, x_zero), dequantized(b, y, y_scale, y_zero))
    return quantized(b, chosen, scale, zero, b.element(zero))


@translates("QLinearConv", domain=COM_MICROSOFT)
def runtime_qlinear_conv(
    b: Context, x: Value, x_scale: Value, x_zero: Value, w: Value, w_scale: Value, w_zero: Value, y_scale: Value, y_zero: Value,
    bias: Value | None = None, *, auto_pad: str = "NOTSET", channels_last: int = 0, dilations: list[int] | None = None, group: int = 1,
    kernel_shape: list[int] | None = None, pads: list[int] | None = None, strides: list[int] | None = None,
) -> Value:  # fmt: skip
    """ONNX's operator, whose data may be channels last."""

    def convolved(data: Value) -> Value:
        return qlinear_conv(
            b, data, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias, auto_pad=auto_pad, dilations=dilations, group=group,
            kernel_shape=kernel_shape, pads=pads, strides=strides,
        )  # fmt: skip

    return _channels_first(b, x, channels_last, convolved)


@translates("QGemm", domain=COM_MICROSOFT)
def qgemm(
    b: Context, x: Value, x_scale: Value, x_zero: Value, y: Value, y_scale: Value, y_zero: Value, bias: Value | None = None,
    scale: Value | None = None, zero: Value | None = None, *, alpha: float = 1.0, transA: int = 0, transB: int = 0,
) -> Value:  # fmt: skip
    """The bias is quantized with the product of both scales and alpha. Without a scale the result is in floats."""
    left = b.transpose(x, [1, 0]) if transA else x
    right = b.transpose(y, [1, 0]) if transB else y
    sums = matmul_integer(b, left, right, x_zero, y_zero)
    sums = sums if bias is None else b.emit("Add", sums, bias)
    product_scale = b.emit("Multiply", x_scale, y_scale)
    product_scale = (
        product_scale if alpha == 1.0 else b.emit("Multiply", product_scale, b.constant(alpha, product_scale))
    )
    result = b.emit("Multiply", b.convert(sums, F32), product_scale)
    return result if scale is None else _requantized(b, result, scale, zero, b.element(x))


@translates("MatMulIntegerToFloat", domain=COM_MICROSOFT)
def matmul_integer_to_float(
    b: Context, x: Value, y: Value, x_scale: Value, y_scale: Value, x_zero: Value | None = None, y_zero: Value | None = None,
    bias: Value | None = None,
) -> Value:  # fmt: skip
    sums = b.convert(matmul_integer(b, x, y, x_zero, y_zero), b.element(x_scale))
    result = b.emit("Multiply", sums, b.emit("Multiply", x_scale, y_scale))
    return result if bias is None else b.emit("Add", result, bias)


@translates("DynamicQuantizeMatMul", domain=COM_MICROSOFT)
def dynamic_quantize_matmul(
    b: Context, x: Value, y: Value, y_scale: Value, y_zero: Value | None = None, bias: Value | None = None
) -> Value:  # fmt: skip
    levels, scale, zero = dynamic_quantize_linear(b, x)
    return matmul_integer_to_float(b, levels, y, scale, y_scale, zero, y_zero, bias)


@translates("MatMulNBits", domain=COM_MICROSOFT)
def matmul_n_bits(
    b: Context, x: Value, y: Value, scales: Value, zero_points: Value | None = None, g_idx: Value | None = None,
    bias: Value | None = None, *, K: int, N: int, bits: int = 4, block_size: int, accuracy_level: int = 0, weight_prepacked: int = 0,
) -> Value:  # fmt: skip
    """Weights (N, blocks of K, block) of 2, 4 or 8 bits, which stay packed: IR's u2, u4 and u8 have the same layout."""
    if bits not in (2, 4, 8) or weight_prepacked:
        raise ConversionError(f"weights of {bits} bits, or prepacked, cannot be converted", unsupported=True)
    if min(K, N, block_size) < 1:
        raise OpError(f"K is {K}, N {N} and block_size {block_size}, expected positive numbers")
    blocks = -(-K // block_size)
    kind = b.element(x)
    unscaled = b.convert(_packed(b, y, element(f"u{bits}"), (N, blocks, block_size)), kind)
    zero = b.constant(2.0 ** (bits - 1), kind)
    if zero_points is not None:
        zero = _zero_points(b, zero_points, element(f"u{bits}"), N, blocks, kind)
    scale = b.convert(b.reshape(scales, [N, blocks, 1]), kind)
    if g_idx is not None:
        raise ConversionError("weights reordered by g_idx cannot be converted", unsupported=True)
    level = b.emit("Multiply", b.emit("Subtract", unscaled, zero), scale)
    weights = b.emit("Reshape", level, [N, blocks * block_size], special_zero=False)
    if blocks * block_size != K:
        weights = b.emit("Slice", weights, [0], [K], [1], [1])
    product = b.emit("MatMul", x, weights, transpose_a=False, transpose_b=True)
    return product if bias is None else b.emit("Add", product, bias)


def _packed(b: Context, value: Value, kind: Element, shape: tuple[int, ...]) -> Value:
    """The bytes of a constant as values of fewer bits; both have the lowest bits first."""
    constant = value.node.constant
    if constant is None or b.element(value) is not U8:
        raise ConversionError("packed weights that are not a constant cannot be converted", unsupported=True)
    count = 1
    for size in shape:
        count *= size
    if constant.size * 8 != count * kind.bits:
        raise OpError(f"{constant.size} bytes are not {kind}{list(shape)}")
    return b.builder.raw_constant(Constant(kind, shape, constant.fetch, constant.size), value.node.name)


def _zero_points(b: Context, zero_points: Value, kind: Element, rows: int, blocks: int, wide: Element) -> Value:
    """Zero points: floats, or packed with each row padded to whole bytes."""
    if b.element(zero_points) is not U8:
        return b.convert(b.reshape(zero_points, [rows, blocks, 1]), wide)
    per_byte = 8 // kind.bits
    padded = -(-blocks // per_byte) * per_byte
    found = b.convert(_packed(b, zero_points, kind, (rows, padded, 1)), wide)
    return found if padded == blocks else b.emit("Slice", found, [0], [blocks], [1], [1])


@translates("QLinearReduceMean", domain=COM_MICROSOFT)
def qlinear_reduce_mean(
    b: Context, x: Value, x_scale: Value, x_zero: Value | None, scale: Value, zero: Value | None = None, *, axes: list[int] | None = None,
    keepdims: int = 1,
) -> Value:  # fmt: skip
    """Over all axes by default."""
    normal_axes = list(range(b.rank(x))) if not axes else [b.axis(axis, x) for axis in axes]
    return _single(
        b,
        (x, x_scale, x_zero, scale, zero),
        lambda values: b.emit("ReduceMean", values, normal_axes, keep_dims=bool(keepdims)),
    )


@translates("NhwcMaxPool", domain=COM_MICROSOFT)
def nhwc_max_pool(
    b: Context, x: Value, *, auto_pad: str = "NOTSET", ceil_mode: int = 0, dilations: list[int] | None = None, kernel_shape: list[int],
    pads: list[int] | None = None, strides: list[int] | None = None,
) -> Value:  # fmt: skip
    """The maximum of quantized values, which need no scale; channels last."""

    def pooled(data: Value) -> Value:
        return max_pool(
            b,
            data,
            auto_pad=auto_pad,
            ceil_mode=ceil_mode,
            dilations=dilations,
            kernel_shape=kernel_shape,
            pads=pads,
            strides=strides,
        )[0]

    return _channels_first(b, x, 1, pooled)


@translates("MatMulInteger16", domain=COM_MICROSOFT)
def matmul_integer_16(b: Context, x: Value, y: Value) -> Value:
    """Products of 16-bit values, summed exactly in f64, in 32 bits."""
    kind = U32 if b.element(x).kind == b.element(y).kind == "unsigned" else I32
    return b.convert(b.emit("MatMul", b.convert(x, F64), b.convert(y, F64)), kind)


@translates("GatherBlockQuantized", domain=COM_MICROSOFT)
def gather_block_quantized(
    b: Context, data: Value, indices: Value, scales: Value, zero_points: Value | None = None, *, bits: int = 4, block_size: int = 128,
    gather_axis: int = 0, quantize_axis: int = 1,
) -> Value:  # fmt: skip
    """Slices of data with a scale per block of an axis; a byte holds several values of the last axis."""
    rank = b.rank(data)
    first, normal_quantize_axis = b.axis(gather_axis, rank), b.axis(quantize_axis, rank)
    if bits not in (2, 4, 8) or block_size < 1:
        raise OpError(f"bits is {bits}, expected 2, 4 or 8, and block_size {block_size}, expected 1 or more")
    if first == normal_quantize_axis:
        raise OpError(f"gather_axis and quantize_axis are both {first}")
    default_zero = 0.0
    if b.element(data) is U8:
        default_zero = 2.0 ** (bits - 1)
        data = _unpacked(b, data, bits)
        zero_points = None if zero_points is None else _unpacked(b, zero_points, bits, b.static(scales, "the scales"))
    size = b.static(data, "the data")[normal_quantize_axis]
    block_axis = normal_quantize_axis if normal_quantize_axis < first else normal_quantize_axis + b.rank(indices) - 1
    check_generated((size,), I64, "the indices of blocks")
    block = b.constant(np.arange(size) // block_size)

    def gathered(part: Value) -> Value:
        chosen = b.convert(b.emit("Gather", part, indices, b.constant(first)), b.element(scales))
        return chosen if part is data else b.emit("Gather", chosen, block, b.constant(block_axis))

    zero = b.constant(default_zero, scales) if zero_points is None else gathered(zero_points)
    return b.emit("Multiply", b.emit("Subtract", gathered(data), zero), gathered(scales))


def _unpacked(b: Context, data: Value, bits: int, shape: tuple[int, ...] | None = None) -> Value:
    """Bytes as values of ``bits`` along the last axis, whose last byte may be partly used."""
    if bits == 8:
        return data
    *leading, last = b.static(data, "packed data")
    whole = _packed(b, data, element(f"u{bits}"), (*leading, last * 8 // bits))
    if shape is None or shape[-1] == last * 8 // bits:
        return whole
    return b.emit("Slice", b.convert(whole, U8), [0], [shape[-1]], [1], [len(leading)])
