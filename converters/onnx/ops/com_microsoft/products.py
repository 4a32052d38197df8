"""com.microsoft: products with weights of few bits that ONNX Runtime has fused with norms and activations, or packed.

Source: onnxruntime ``docs/ContribOperators.md``. Layouts of the blocks of GGUF: the CPU kernel of GatherPacked in ONNX
Runtime 1.32, which tests compare each of them with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, cast

import numpy as np

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import Matrix, TranslationContext, Vector
from converters.onnx.graphs import check_convertible
from converters.onnx.ops.ai_onnx.normalization import rms_normalization
from converters.onnx.ops.ai_onnx.quantization import block_indices
from converters.onnx.ops.com_microsoft.quantization import matmul_n_bits, packed_bits, product_with_blocks
from converters.onnx.registry import COM_MICROSOFT, translates
from converters.onnx.tensors import element_of
from irexec.dtypes.elements import F8E4M3, F32, I8, I32, I64, element
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


Levels = tuple[np.ndarray, np.ndarray, np.ndarray | None]
"""Integers (rows, groups, size), and for each group the factor and what is subtracted."""
_CURVE = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.int8)


def _half(blocks: np.ndarray, at: int) -> np.ndarray:
    """The f16 numbers at a byte of each block, as f32 (..., 1)."""
    return np.ascontiguousarray(blocks[..., at : at + 2]).view(np.float16).astype(np.float32)


def _nibbles(packed: np.ndarray) -> np.ndarray:
    """The low halves of bytes along the last axis, then the high ones."""
    return np.concatenate([packed & 15, packed >> 4], -1)


def _q4_0(blocks: np.ndarray) -> Levels:
    return _nibbles(blocks[..., 2:]).astype(np.int8) - np.int8(8), _half(blocks, 0), None


def _q5_0(blocks: np.ndarray) -> Levels:
    high = np.unpackbits(blocks[..., 2:6], axis=-1, bitorder="little")
    return (_nibbles(blocks[..., 6:]) | (high << 4)).astype(np.int8) - np.int8(16), _half(blocks, 0), None


def _q8_0(blocks: np.ndarray) -> Levels:
    return np.ascontiguousarray(blocks[..., 2:]).view(np.int8), _half(blocks, 0), None


def _q5_k(blocks: np.ndarray) -> Levels:
    """Eight groups of 32; six bits for each factor and for each number that is subtracted."""
    a, b, c = blocks[..., 4:8], blocks[..., 8:12], blocks[..., 12:16]
    factors = np.concatenate([a & 63, (c & 15) | (a >> 6 << 4)], -1)
    less = np.concatenate([b & 63, (c >> 4) | (b >> 6 << 4)], -1)
    low = _nibbles(blocks[..., 48:].reshape(*blocks.shape[:-1], 4, 32)).reshape(*blocks.shape[:-1], 8, 32)
    high = (blocks[..., None, 16:48] >> np.arange(8, dtype=np.uint8)[:, None]) & 1
    scales = _half(blocks, 0) * factors, _half(blocks, 2) * less
    return (low | (high << 4)).astype(np.int8), *(scale[..., None] for scale in scales)


def _q6_k(blocks: np.ndarray) -> Levels:
    """Sixteen groups of 16."""
    lead = blocks.shape[:-1]
    low = blocks[..., :128].reshape(*lead, 2, 2, 32)
    low = np.stack([low & 15, low >> 4], -3).reshape(*lead, 2, 4, 32)
    shifts = np.arange(0, 8, 2, dtype=np.uint8)[:, None]
    high = (blocks[..., 128:192].reshape(*lead, 2, 1, 32) >> shifts) & 3
    levels = (low | (high << 4)).astype(np.int8).reshape(*lead, 16, 16) - np.int8(32)
    factors = np.ascontiguousarray(blocks[..., 192:208]).view(np.int8)
    return levels, (_half(blocks, 208) * factors)[..., None], None


def _iq4_nl(blocks: np.ndarray) -> Levels:
    return _CURVE[_nibbles(blocks[..., 2:])], _half(blocks, 0), None


def _iq4_xs(blocks: np.ndarray) -> Levels:
    """Eight groups of 32; six bits for each factor."""
    high = np.ascontiguousarray(blocks[..., 2:4]).view(np.uint16) >> np.arange(0, 16, 2, dtype=np.uint16) & 3
    low = np.stack([blocks[..., 4:8] & 15, blocks[..., 4:8] >> 4], -1).reshape(*blocks.shape[:-1], 8)
    factors = _half(blocks, 0) * ((low | (high << 4)).astype(np.float32) - 32)
    levels = _CURVE[_nibbles(blocks[..., 8:].reshape(*blocks.shape[:-1], 8, 16))]
    return levels, factors[..., None], None


FORMATS: dict[int, tuple[int, int, Callable[[np.ndarray], Levels]]] = {
    2: (32, 18, _q4_0), 6: (32, 22, _q5_0), 8: (32, 34, _q8_0), 13: (256, 176, _q5_k), 14: (256, 210, _q6_k),
    20: (32, 18, _iq4_nl), 23: (256, 136, _iq4_xs),
}  # fmt: skip
"""Numbers and bytes of a block, and what its bytes mean, by GGUF's number of the format."""
_PLAIN = {0: 1, 1: 10, 30: 16}
"""ONNX's type of formats that are arrays."""


def _matrix(ctx: TranslationContext, data: Value, packed_type: int, columns: int) -> Value:
    """The matrix in f32, (rows, columns), of bytes (rows, bytes)."""
    packed = ctx.array(data, "the packed weights")
    rows = packed.shape[0]
    if packed_type in _PLAIN:
        kind = element_of(_PLAIN[packed_type])
        raw = np.ascontiguousarray(packed).view(np.uint32 if kind is F32 else np.uint16)
        wide = (raw.astype(np.uint32) << 16).view(np.float32) if packed_type == 30 else raw.view(kind.carrier)
        return ctx.convert(ctx.constant(wide.reshape(rows, columns), kind), F32)
    check_convertible(packed_type in FORMATS, f"packed_type {packed_type}")
    numbers, size, read = FORMATS[packed_type]
    if columns < 1 or columns % numbers or packed.shape[1] != columns // numbers * size:
        raise OpError(f"{packed.shape[1]} bytes of a row are not {columns} numbers in blocks of {numbers}")
    levels, factors, less = read(packed.reshape(rows, -1, size))
    groups = rows, -1, levels.shape[-1]
    integers = Expression(ctx, ctx.convert(ctx.constant(levels.reshape(groups), I8), F32))
    scaled = integers * Expression(ctx, ctx.constant(factors.reshape(rows, -1, 1).astype(np.float32)))
    if less is not None:
        scaled = scaled - Expression(ctx, ctx.constant(less.reshape(rows, -1, 1).astype(np.float32)))
    return ctx.reshape(scaled.value, [rows, columns])


@translates("GatherPacked", domain=COM_MICROSOFT)
def gather_packed(
    ctx: TranslationContext, data: Matrix, indices: Value, *, packed_type: int, K: int, output_dtype: int = 16
) -> Value:
    """Rows of a matrix in blocks; an index that it does not have is that of the first row, as in ONNX Runtime."""
    matrix, index = _matrix(ctx, data, packed_type, K), Expression(ctx, ctx.convert(indices, I64))
    exists = (index >= 0) & (index < Expression(ctx, ctx.size(matrix, 0)))
    inside = exists.select(index, 0)
    return ctx.convert(ctx.gather(matrix, inside.value, 0), element_of(output_dtype))


@translates("MatMulPacked", domain=COM_MICROSOFT)
def matmul_packed(
    ctx: TranslationContext, x: Value, weights: Matrix, global_scale: Value | None = None, *, packed_type: int, K: int,
    N: int, activation_type: Literal["none", "relu2", "relu_squared", "silu"] = "none",
) -> Value:  # fmt: skip
    """A product with (N, K) in blocks, whose numbers are rounded to the type of the data first."""
    check_convertible(global_scale is None, "global_scale, of NVFP4,")
    matrix = ctx.convert(_matrix(ctx, weights, packed_type, K), ctx.element(x))
    check(ctx.sizes(matrix)[0] == N, f"N is {N}, the weights have {ctx.sizes(matrix)[0]} rows")
    y = ctx.emit("MatMul", x, matrix, transpose_b=True)
    if activation_type == "silu":
        return ctx.emit("Swish", y)
    if activation_type == "none":
        return cast("Value", y)
    positive = ctx.emit("Relu", y)
    return ctx.emit("Multiply", positive, positive)


@translates("MatMulNBitsQLoRA", domain=COM_MICROSOFT)
def matmul_n_bits_qlora(
    ctx: TranslationContext, x: Value, weights: Value, scales: Value, lora_a: Value, lora_a_scales: Value,
    lora_b: Value, lora_b_scales: Value, *, K: int, N: int, bits: int = 4, block_size: int = 32, lora_bits: int = 4,
    lora_block_size: int = 32, accuracy_level: int = 0,
) -> Value:  # fmt: skip
    """MatMulNBits, plus two of them in a row whose inner size is small; an empty adapter adds nothing."""
    y = matmul_n_bits(ctx, x, weights, scales, None, None, None, K=K, N=N, bits=bits, block_size=block_size)
    rank, empty = ctx.static(lora_a, "lora_A")[0], ctx.static(lora_b, "lora_B")
    if not rank or 0 in empty:
        return y
    of = {"bits": lora_bits, "block_size": lora_block_size}
    down = matmul_n_bits(ctx, x, lora_a, lora_a_scales, None, None, None, K=K, N=rank, **of)
    up = matmul_n_bits(ctx, down, lora_b, lora_b_scales, None, None, None, K=rank, N=N, **of)
    return ctx.emit("Add", y, up)
