"""com.microsoft: matrix products fused with scaling, transposition and activations.

Source: onnxruntime ``docs/ContribOperators.md``.
"""

from __future__ import annotations

from converters.onnx.context import TranslationContext
from converters.onnx.ops.ai_onnx.matmul import gemm_7
from converters.onnx.ops.com_microsoft.activation import fast_gelu, fused_activation
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.ir.graph import Value


@translates("FusedMatMul", "TransposeMatMul", domain=COM_MICROSOFT)
def fused_matmul(
    ctx: TranslationContext,
    x: Value,
    y: Value,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> Value:
    """With transBatch the axis of rows (with trans: of columns) precedes the axes of the batch."""
    sides = [_batch_first(ctx, side) if batch else side for side, batch in ((x, transBatchA), (y, transBatchB))]
    # Vectors are not transposed.
    transposed = [bool(trans) and ctx.rank(side) > 1 for side, trans in zip(sides, (transA, transB), strict=True)]
    product = ctx.emit("MatMul", *sides, transpose_a=transposed[0], transpose_b=transposed[1])
    return product if alpha == 1.0 else ctx.emit("Multiply", product, ctx.constant(alpha, product))


def _batch_first(ctx: TranslationContext, x: Value) -> Value:
    """(rows, batch..., columns) transposed to (batch..., rows, columns)."""
    rank = ctx.rank(x)
    return ctx.transpose(x, [*range(1, rank - 1), 0, rank - 1]) if rank > 2 else x


@translates("FusedMatMulActivation", domain=COM_MICROSOFT)
def fused_matmul_activation(
    ctx: TranslationContext, x: Value, y: Value, *, activation: str, activation_alpha: float = 0.0,
    activation_beta: float = 0.0, activation_gamma: float = 0.0, activation_axis: int = -1, alpha: float = 1.0,
    transA: int = 0, transB: int = 0, transBatchA: int = 0, transBatchB: int = 0,
) -> Value:  # fmt: skip
    product = fused_matmul(
        ctx, x, y, alpha=alpha, transA=transA, transB=transB, transBatchA=transBatchA, transBatchB=transBatchB
    )
    if activation == "Softmax":
        return ctx.emit("Softmax", product, axis=ctx.axis(activation_axis, product))
    return _activated(ctx, product, activation, activation_alpha, activation_beta)


@translates("FusedGemm", domain=COM_MICROSOFT)
def fused_gemm(
    ctx: TranslationContext, x: Value, y: Value, z: Value | None = None, *, activation: str = "",
    activation_alpha: float = 0.0, activation_beta: float = 0.0, activation_gamma: float = 0.0, alpha: float = 1.0,
    beta: float = 1.0, transA: int = 0, transB: int = 0,
) -> Value:  # fmt: skip
    sums = gemm_7(ctx, x, y, z, alpha=alpha, beta=beta, transA=transA, transB=transB)
    return _activated(ctx, sums, activation, activation_alpha, activation_beta)


def _activated(ctx: TranslationContext, x: Value, name: str, alpha: float, beta: float) -> Value:
    parameters = {"LeakyRelu": [alpha], "HardSigmoid": [alpha, beta], "Clip": [alpha, beta]}
    return fused_activation(ctx, x, name, parameters.get(name))


@translates("GemmFastGelu", domain=COM_MICROSOFT)
def gemm_fast_gelu(ctx: TranslationContext, x: Value, w: Value, bias: Value | None = None) -> Value:
    return fast_gelu(ctx, ctx.emit("MatMul", x, w), bias)
