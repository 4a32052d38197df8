"""com.microsoft: products and convolutions fused with scaling, transposition, sums and activations.

Source: onnxruntime ``docs/ContribOperators.md``.
"""

from __future__ import annotations

from dataclasses import dataclass

from converters.onnx.algorithms.windows import WindowAttributes
from converters.onnx.context import TranslationContext
from converters.onnx.ops.ai_onnx.convolution import conv
from converters.onnx.ops.ai_onnx.linear_algebra import gemm
from converters.onnx.ops.com_microsoft.elementwise import fast_gelu, fused_activation
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.ir.graph import Value


@dataclass(frozen=True, kw_only=True)
class ProductAttributes:
    """The attributes of fused matrix products."""

    alpha: float = 1.0
    transA: int = 0
    transB: int = 0
    transBatchA: int = 0
    transBatchB: int = 0


@dataclass(frozen=True, kw_only=True)
class ActivationAttributes:
    """The attributes of an activation that is fused into a matrix product."""

    activation: str = ""
    activation_alpha: float = 0.0
    activation_beta: float = 0.0
    activation_gamma: float = 0.0

    def apply(self, ctx: TranslationContext, x: Value) -> Value:
        """The activation of ``x``."""
        alpha, beta = self.activation_alpha, self.activation_beta
        parameters = {"LeakyRelu": [alpha], "HardSigmoid": [alpha, beta], "Clip": [alpha, beta]}
        return fused_activation(ctx, x, self.activation, parameters.get(self.activation))


@translates("FusedMatMul", "TransposeMatMul", domain=COM_MICROSOFT)
def fused_matmul(ctx: TranslationContext, x: Value, y: Value, *, given: ProductAttributes) -> Value:
    """With transBatch the axis of rows (with trans: of columns) precedes the axes of the batch."""
    batches = ((x, given.transBatchA), (y, given.transBatchB))
    sides = [_batch_first(ctx, side) if batch else side for side, batch in batches]
    # Vectors are not transposed.
    first, second = (
        bool(t) and ctx.rank(side) > 1 for side, t in zip(sides, (given.transA, given.transB), strict=True)
    )
    product = ctx.emit("MatMul", *sides, transpose_a=first, transpose_b=second)
    return product if given.alpha == 1.0 else ctx.emit("Multiply", product, ctx.constant(given.alpha, product))


def _batch_first(ctx: TranslationContext, x: Value) -> Value:
    """(rows, batch..., columns) transposed to (batch..., rows, columns)."""
    rank = ctx.rank(x)
    return ctx.transpose(x, [*range(1, rank - 1), 0, rank - 1]) if rank > 2 else x


@translates("FusedMatMulActivation", domain=COM_MICROSOFT)
def fused_matmul_activation(
    ctx: TranslationContext, x: Value, y: Value, *, given: ProductAttributes, fused: ActivationAttributes,
    activation_axis: int = -1,
) -> Value:  # fmt: skip
    product = fused_matmul(ctx, x, y, given=given)
    if fused.activation == "Softmax":
        return ctx.emit("Softmax", product, axis=ctx.axis(activation_axis, product))
    return fused.apply(ctx, product)


@translates("FusedGemm", domain=COM_MICROSOFT)
def fused_gemm(
    ctx: TranslationContext, x: Value, y: Value, z: Value | None = None, *, fused: ActivationAttributes,
    alpha: float = 1.0, beta: float = 1.0, transA: int = 0, transB: int = 0,
) -> Value:  # fmt: skip
    return fused.apply(ctx, gemm(ctx, x, y, z, alpha=alpha, beta=beta, transA=transA, transB=transB))


@translates("GemmFastGelu", domain=COM_MICROSOFT)
def gemm_fast_gelu(ctx: TranslationContext, x: Value, w: Value, bias: Value | None = None) -> Value:
    return fast_gelu(ctx, ctx.emit("MatMul", x, w), bias)


@translates("FusedConv", domain=COM_MICROSOFT)
def fused_conv(
    ctx: TranslationContext, x: Value, w: Value, bias: Value | None = None, z: Value | None = None, *,
    activation: str = "", activation_params: list[float] | None = None, group: int = 1, given: WindowAttributes,
) -> Value:  # fmt: skip
    """The activation of a convolution plus bias plus Z."""
    y = conv(ctx, x, w, bias, group=group, given=given)
    return fused_activation(ctx, y if z is None else ctx.emit("Add", y, z), activation, activation_params)
