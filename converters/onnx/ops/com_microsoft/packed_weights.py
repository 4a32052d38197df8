"""com.microsoft: products with, and rows of, matrices in the blocks of GGUF, and weights with adapters of low rank.

Layouts of the blocks: the CPU kernel of GatherPacked in ONNX Runtime 1.32, which tests compare each of them with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, cast

import numpy as np

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import Matrix, TranslationContext
from converters.onnx.graphs import check_convertible
from converters.onnx.ops.com_microsoft.quantization import matmul_n_bits
from converters.onnx.registry import COM_MICROSOFT, translates
from converters.onnx.tensors import element_of
from irexec.dtypes.elements import F32, I8, I64
from irexec.errors import OpError, check
from irexec.ir.graph import Value

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
