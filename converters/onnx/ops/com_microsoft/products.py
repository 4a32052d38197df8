"""com.microsoft: products with weights of few bits that ONNX Runtime has fused with norms and activations, or packed.

Source: onnxruntime ``docs/ContribOperators.md``.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import Matrix, TranslationContext, Vector
from converters.onnx.graphs import check_convertible
from converters.onnx.ops.ai_onnx.normalization import rms_normalization
from converters.onnx.ops.ai_onnx.quantization import block_indices
from converters.onnx.ops.com_microsoft.quantization import matmul_n_bits, packed_bits, product_with_blocks
from converters.onnx.registry import COM_MICROSOFT, translates
from converters.onnx.tensors import element_of
from irexec.dtypes.elements import F8E4M3, F32, I32, element
from irexec.errors import OpError, check
from irexec.ir.graph import Value


def _normalized(
    ctx: TranslationContext, x: Value, skip: Value | None, scale: Value | None, epsilon: float
) -> tuple[Value, Value]:
    """The RMS normalization of x + skip, and the sum; the data alone without a scale."""
    total = ctx.added(x, skip)
    return total if scale is None else rms_normalization(ctx, total, scale, epsilon=epsilon), total


@translates("MatMulNBitsMlp", domain=COM_MICROSOFT)
def matmul_n_bits_mlp(
    ctx: TranslationContext, x: Value, skip: Value | None, norm_scale: Vector | None, gate: Value, gate_scales: Value,
    gate_bias: Vector | None, up: Value, up_scales: Value, up_bias: Vector | None = None, *, activation: str, K: int,
    N: int, block_size: int, bits: int = 4, accuracy_level: int = 0, epsilon: float = 1e-5,
) -> tuple[Value, ...]:  # fmt: skip
    """activation(x @ gate) * (x @ up), of data that may be normalized first; the second output is x + skip."""
    check_convertible(activation == "silu", f"activation {activation!r}")
    normal, total = _normalized(ctx, x, skip, norm_scale, epsilon)
    given = {"K": K, "N": N, "bits": bits, "block_size": block_size}
    first = matmul_n_bits(ctx, normal, gate, gate_scales, None, None, gate_bias, **given)
    second = matmul_n_bits(ctx, normal, up, up_scales, None, None, up_bias, **given)
    return ctx.emit("Multiply", ctx.emit("Swish", first), second), total


@translates("MatMulNBitsQkv", domain=COM_MICROSOFT)
def matmul_n_bits_qkv(
    ctx: TranslationContext, x: Value, skip: Value | None, norm_scale: Vector, q: Value, q_scales: Value,
    q_bias: Vector | None, k: Value, k_scales: Value, k_bias: Vector | None, v: Value, v_scales: Value,
    v_bias: Vector | None = None, *, K: int, Nq: int, Nkv: int, block_size: int, bits: int = 4, accuracy_level: int = 0,
    epsilon: float = 1e-6,
) -> tuple[Value, ...]:  # fmt: skip
    """Three products of the normalized data; the fourth output is x + skip."""
    normal, total = _normalized(ctx, x, skip, norm_scale, epsilon)
    parts = ((q, q_scales, q_bias, Nq), (k, k_scales, k_bias, Nkv), (v, v_scales, v_bias, Nkv))
    given: dict[str, int] = {"K": K, "bits": bits, "block_size": block_size}
    return *(matmul_n_bits(ctx, normal, w, by, None, None, bias, N=n, **given) for w, by, bias, n in parts), total


@translates("MatMulBlockQuantizedFp8Weight", domain=COM_MICROSOFT)
def matmul_fp8_weight(
    ctx: TranslationContext, x: Value, y: Matrix, y_scale: Matrix, x_scale: Value | None = None,
    bias: Vector | None = None, *, block_size: int = 128,
) -> Value:  # fmt: skip
    """A product with (N, K) of f8e4m3, a scale per block of a row; with x_scale the data is rounded to f8e4m3 too."""
    check(block_size >= 1, f"block_size is {block_size}, expected 1 or more")
    scales = ctx.gather(y_scale, block_indices(ctx, y, 1, block_size), 1)
    weights = ctx.emit("Multiply", ctx.convert(y, F32), scales)
    data = Expression(ctx, ctx.convert(x, F32))
    if x_scale is not None:
        scale = Expression(ctx, ctx.scalar(x_scale))
        data = (data / scale).minimum(448.0).maximum(-448.0).to(F8E4M3).to(F32) * scale
    bias = bias if bias is None else ctx.convert(bias, F32)
    return ctx.convert(ctx.added(ctx.emit("MatMul", data.value, weights, transpose_b=True), bias), ctx.element(x))


@translates("MatMulBlockQuantizedFp4Weight", domain=COM_MICROSOFT)
def matmul_fp4_weight(
    ctx: TranslationContext, x: Value, y: Matrix, y_scale: Matrix, whole_scale: Value, x_scale: Value | None = None,
    bias: Vector | None = None, *, block_size: int = 16,
) -> Value:  # fmt: skip
    """A product with (N, K) of f4e2m1, two in a byte, a scale of f8e4m3 per block of a row and one for all.

    ``x_scale`` has no effect. The weights are rounded to the type of the data. Rows are split into whole blocks, since
    OpenVINO's CPU plugin multiplies f4e2m1 by a scale per element wrongly.
    """
    packed = ctx.known(y)
    if packed is None or y_scale.node.constant is None or block_size < 2 or block_size % 2:
        raise OpError(f"block_size is {block_size}, and the weights and their scales must be known")
    rows, half = ctx.static(y, "the packed weights")
    blocks = -(-2 * half // block_size)
    if 2 * half % block_size:
        y = ctx.constant(np.pad(packed, ((0, 0), (0, blocks * block_size // 2 - half))), y)
    weights = ctx.convert(packed_bits(ctx, y, element("f4e2m1"), (rows, blocks, block_size)), F32)
    scales = ctx.convert(packed_bits(ctx, y_scale, F8E4M3, (rows, blocks, 1)), F32)
    scaled = ctx.emit("Multiply", weights, ctx.emit("Multiply", scales, ctx.scalar(whole_scale)))
    return product_with_blocks(ctx, x, ctx.reshape(scaled, [rows, blocks * block_size]), 2 * half, bias)


@translates("GemmFloat8", domain=COM_MICROSOFT)
def gemm_float8(
    ctx: TranslationContext, x: Matrix, y: Matrix, bias: Value | None = None, x_scale: Value | None = None,
    y_scale: Value | None = None, scale: Value | None = None, *, alpha: float = 1.0, beta: float = 0.0, transA: int = 0,
    transB: int = 0, dtype: int = 1, activation: Literal["", "NONE", "RELU", "GELU"] = "NONE",
) -> Value:  # fmt: skip
    """activation(alpha * x @ y + beta * bias) in f32, of floats of 8 bits times their scales.

    The scale of the result is refused: the documents do not say whether it multiplies or divides.
    """
    check_convertible(scale is None, "scaleY")
    check_convertible(activation != "GELU", "activation 'GELU'")
    sides = [
        ctx.convert(side, F32) if by is None else ctx.emit("Multiply", ctx.convert(side, F32), ctx.scalar(by))
        for side, by in ((x, x_scale), (y, y_scale))
    ]
    product = ctx.emit("MatMul", *sides, transpose_a=bool(transA), transpose_b=bool(transB))
    result = Expression(ctx, product) * alpha if alpha != 1.0 else Expression(ctx, product)
    if bias is not None and beta:
        result = result + Expression(ctx, ctx.convert(bias, F32)) * beta
    if activation == "RELU":
        result = result.maximum(0)
    return ctx.convert(result.value, element_of(dtype))


@translates("MatMulFpQ4", domain=COM_MICROSOFT)
def matmul_fp_q4(ctx: TranslationContext, x: Value, blob: Vector, shape: Vector, *, blk_quant_type: int = 1) -> Value:
    """A product with (K, N) of 4 bits, packed column by column in blocks of 32.

    A block is its scale, with blk_quant_type 1 a byte of its zero point, and 16 bytes of values, the low halves before
    the high ones. ONNX Runtime reads blk_quant_type 2 of the document, blocks of 64, as if it were 1.
    """
    check_convertible(blk_quant_type in (0, 1), f"blk_quant_type {blk_quant_type}")
    data = ctx.array(blob, "the packed weights")
    sizes = ctx.ints(shape, "the shape of the weights")
    check(len(sizes) == 2 and min(sizes) >= 1, f"the shape of the weights is {list(sizes)}, expected 2 sizes")
    rows, columns = sizes
    block, header = 32, 4 + blk_quant_type
    blocks, width = -(-rows // block), header + block // 2
    if data.size != columns * blocks * width:
        raise OpError(f"{data.size} bytes are not {columns} columns of {blocks} blocks of {width} bytes")
    packed = np.ascontiguousarray(data, np.uint8).reshape(columns, blocks, width)
    scales = np.ascontiguousarray(packed[..., :4]).view(np.float32)
    zeros = packed[..., 4:5].astype(np.float32) if header == 5 else np.float32(8)
    halves = packed[..., header:]
    levels = np.concatenate([halves & 15, halves >> 4], -1)
    unscaled = ctx.convert(ctx.constant(levels, element("u4")), F32)
    centred = ctx.emit("Subtract", unscaled, ctx.constant(zeros, F32))
    weights = ctx.reshape(ctx.emit("Multiply", centred, ctx.constant(scales, F32)), [columns, blocks * block])
    return product_with_blocks(ctx, x, weights, rows, None)


@translates("MulInteger", domain=COM_MICROSOFT)
def mul_integer(
    ctx: TranslationContext, x: Value, x_zero: Value | None, y: Value, y_zero: Value | None = None
) -> Value:
    """The product of differences from zero points, in i32."""
    sides = [
        ctx.convert(side, I32) if zero is None else ctx.emit("Subtract", ctx.convert(side, I32), ctx.convert(zero, I32))
        for side, zero in ((x, x_zero), (y, y_zero))
    ]
    return ctx.emit("Multiply", *sides)


@translates("ReduceSumInteger", domain=COM_MICROSOFT)
def reduce_sum_integer(ctx: TranslationContext, x: Value, *, axes: list[int], keepdims: int) -> Value:
    """The sum in i32 or u32."""
    kind = element("u32") if ctx.element(x).kind == "unsigned" else I32
    return ctx.emit("ReduceSum", ctx.convert(x, kind), [ctx.axis(axis, x) for axis in axes], keep_dims=bool(keepdims))
