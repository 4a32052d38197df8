"""com.microsoft: products, convolutions and normalizations fused with other operators, an LSTM of quantized weights.

Source: onnxruntime ``docs/ContribOperators.md`` and ``core/providers/cpu/rnn``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from converters.onnx.algorithms.expression import Expression, positions
from converters.onnx.algorithms.recurrent_cells import functions_of, loop_over_time, lstm_cell
from converters.onnx.algorithms.windows import WindowAttributes
from converters.onnx.body_builder import BodyBuilder
from converters.onnx.context import Matrix, TranslationContext, Vector, required
from converters.onnx.ops.ai_onnx.linear_algebra import gemm
from converters.onnx.ops.ai_onnx.normalization import layer_normalization, rms_normalization
from converters.onnx.ops.ai_onnx.quantization import dequantized, dynamic_quantize_linear
from converters.onnx.ops.ai_onnx.recurrent import Tensor3, initial_state, zero_if_empty
from converters.onnx.ops.ai_onnx.windows import conv
from converters.onnx.ops.com_microsoft.elementwise import fast_gelu, fused_activation
from converters.onnx.ops.com_microsoft.quantization import matmul_integer_to_float
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.dtypes.elements import I32, I64
from irexec.errors import OpError
from irexec.ir.graph import Value
from irexec.schema.opdef import Rank


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
    return fused_activation(ctx, ctx.added(y, z), activation, activation_params)


@translates("SkipLayerNormalization", domain=COM_MICROSOFT)
def skip_layer_normalization(
    ctx: TranslationContext, x: Value, skip: Value, gamma: Value, beta: Value | None = None, bias: Value | None = None,
    *, epsilon: float = 1e-12,
) -> tuple[Value | None, ...]:  # fmt: skip
    """The layer normalization of x + skip + bias; the sum is the fourth output. The skip may lack the batch axis."""
    total = ctx.added(x, skip, bias)
    results = layer_normalization(ctx, total, gamma, beta, epsilon=epsilon)
    return (*results, total) if len(results) == 3 else (results[0], None, None, total)


@translates("SkipSimplifiedLayerNormalization", domain=COM_MICROSOFT)
def skip_simplified_layer_normalization(
    ctx: TranslationContext, x: Value, skip: Value, gamma: Value, bias: Value | None = None, *, epsilon: float = 1e-12
) -> tuple[Value | None, ...]:
    """The RMS normalization of x + skip + bias; the sum is the fourth output, and outputs 1 and 2 are absent."""
    total = ctx.added(x, skip, bias)
    return rms_normalization(ctx, total, gamma, epsilon=epsilon), None, None, total


@translates("EmbedLayerNormalization", domain=COM_MICROSOFT)
def embed_layer_normalization(
    ctx: TranslationContext, input_ids: Value, segment_ids: Value | None, word_embedding: Value,
    position_embedding: Value, segment_embedding: Value | None, gamma: Value, beta: Value, mask: Value | None = None,
    position_ids: Value | None = None, *, epsilon: float = 1e-12, mask_index_type: int = 0,
) -> tuple[Value, ...]:  # fmt: skip
    """The normalized sum of word, position and segment embeddings; the number of ones in each mask; and the sum."""
    if position_ids is None:
        position_ids = positions(ctx, input_ids, 1).unsqueeze(0).value
    total = ctx.added(ctx.gather(word_embedding, input_ids, 0), ctx.gather(position_embedding, position_ids, 0))
    if segment_embedding is not None:
        segment_ids = required(segment_ids, "segment_ids is missing, which segment_embedding needs")
        total = ctx.added(total, ctx.gather(segment_embedding, segment_ids, 0))
    y = layer_normalization(ctx, total, gamma, beta, epsilon=epsilon)[0]
    if mask is None:
        counted = ctx.full(ctx.constant(0, I32), ctx.unsqueeze(ctx.size(input_ids, 0), [0]))
    else:
        is_word = ctx.emit("Equal", mask, ctx.constant(1, mask))
        counted = ctx.emit("ReduceSum", ctx.convert(is_word, I32), [1], keep_dims=False)
    return y, counted, total


@translates("QEmbedLayerNormalization", domain=COM_MICROSOFT)
def q_embed_layer_normalization(
    ctx: TranslationContext, input_ids: Value, segment_ids: Value | None, word: Value, position: Value,
    segment: Value | None, gamma: Value, beta: Value, mask: Value | None, word_scale: Value, position_scale: Value,
    segment_scale: Value | None, gamma_scale: Value, beta_scale: Value, word_zero: Value, position_zero: Value,
    segment_zero: Value | None, gamma_zero: Value, beta_zero: Value, *, epsilon: float = 1e-12,
) -> tuple[Value, ...]:  # fmt: skip
    """EmbedLayerNormalization of quantized tables, which are dequantized."""
    parts = [
        None if x is None or scale is None else dequantized(ctx, x, scale, zero)
        for x, scale, zero in (
            (word, word_scale, word_zero), (position, position_scale, position_zero),
            (segment, segment_scale, segment_zero), (gamma, gamma_scale, gamma_zero), (beta, beta_scale, beta_zero),
        )
    ]  # fmt: skip
    y, counted, _ = embed_layer_normalization(ctx, input_ids, segment_ids, *parts, mask, epsilon=epsilon)
    return y, counted


@translates("GroupNorm", domain=COM_MICROSOFT)
def group_norm(
    ctx: TranslationContext, x: Value, gamma: Value, beta: Value, *, activation: int, channels_last: int = 1,
    epsilon: float = 1e-5, groups: int,
) -> Value:  # fmt: skip
    """Channels last by default; the activation is Swish."""
    data = ctx.channels_first(x) if channels_last else x
    kind = ctx.element(x)
    scale, bias = (ctx.convert(part, kind) for part in (gamma, beta))
    y = ctx.emit("GroupNormalization", data, scale, bias, num_groups=groups, epsilon=epsilon)
    y = ctx.emit("Swish", y) if activation else y
    return ctx.channels_last(y) if channels_last else y


Parameter = Annotated[Value, Rank(1, 2)]


@dataclass(frozen=True)
class Weights:
    """Quantized weights of one direction: levels (K, N), and scale and zero point, per tensor or per column."""

    levels: Value
    scale: Value
    zero: Value

    def product(self, ctx: TranslationContext, x: Value) -> Value:
        """The product with data that is quantized over its own range."""
        levels, scale, zero = dynamic_quantize_linear(ctx, x)
        return matmul_integer_to_float(ctx, levels, self.levels, scale, self.scale, zero, self.zero)

    def product_in_body(self, builder: BodyBuilder, hidden: Expression) -> Value:
        """The product inside a body."""
        inside = Weights(*(builder.captured(part) for part in (self.levels, self.scale, self.zero)))
        return inside.product(builder.inner, hidden.value)


@translates("DynamicQuantizeLSTM", domain=COM_MICROSOFT)
def dynamic_quantize_lstm(
    ctx: TranslationContext, x: Tensor3, w: Tensor3, r: Tensor3, bias: Matrix | None, sequence_lens: Vector | None,
    initial_h: Tensor3 | None, initial_c: Tensor3 | None, p: Matrix | None, w_scale: Parameter, w_zero: Parameter,
    r_scale: Parameter, r_zero: Parameter, *, activation_alpha: list[float] | None = None,
    activation_beta: list[float] | None = None, activations: list[str] | None = None, clip: float = 0.0,
    hidden_size: int | None = None, input_forget: int = 0,
    direction: Literal["forward", "reverse", "bidirectional"] = "forward",
) -> tuple[Value, ...]:  # fmt: skip
    """An LSTM with W (D, I, 4 * H) and R (D, H, 4 * H); data is quantized over its range, states in every step anew.

    ONNX Runtime with several threads may quantize the states of parts of a batch separately.
    """
    functions = functions_of(("Sigmoid", "Tanh", "Tanh"), direction, activations, activation_alpha, activation_beta)
    size = ctx.static(r, "R")[1] if hidden_size is None else hidden_size
    if size < 1 or ctx.static(r, "R") != (len(functions), size, 4 * size):
        raise OpError(f"R is {ctx.fact(r)}, expected [{len(functions)},{size},{4 * size}]")
    data = ctx.transpose(x, [1, 0, 2])
    states = [initial_state(ctx, state, data, len(functions), size, 0) for state in (initial_h, initial_c)]
    if sequence_lens is not None:
        # Data after the longest sequence does not count; every range includes 0.
        longest = ctx.emit("ReduceMax", ctx.convert(sequence_lens, I64), [0], keep_dims=False)
        counts = (positions(ctx, data, 1) < Expression(ctx, longest)).unsqueeze(0, 2)
        data = counts.select(Expression(ctx, data), 0).value
    results = []
    for i, chosen in enumerate(functions):
        of_input, of_state = (
            Weights(ctx.gather(levels, ctx.constant(i), 0), *(ctx.reshape(_row(ctx, part, i), [-1]) for part in of))
            for levels, of in ((w, (w_scale, w_zero)), (r, (r_scale, r_zero)))
        )
        if bias is None:
            summed = ctx.constant(np.zeros((1, 4 * size)), data)
        else:
            summed = ctx.added(*ctx.split(_row(ctx, bias, i), 1, 2))
        results.append(loop_over_time(
            ctx, lstm_cell, chosen, of_input.product(ctx, data), sequence_lens,
            ctx.unsqueeze(ctx.transpose(of_state.levels, [1, 0]), [0]), summed, None,
            None if p is None else _row(ctx, p, i), [_row(ctx, state, i, axis=1) for state in states],
            reverse=direction == "reverse" or i == 1, clip=clip, input_forget=bool(input_forget),
            recurrent=of_state.product_in_body,
        ))  # fmt: skip
    y, *last = (
        ctx.emit("Concat", *parts, axis=1) if len(parts) > 1 else parts[0] for parts in zip(*results, strict=True)
    )
    last_states = [ctx.transpose(zero_if_empty(ctx, state, sequence_lens), [1, 0, 2]) for state in last]
    return ctx.transpose(y, [2, 1, 0, 3]), *last_states


def _row(ctx: TranslationContext, value: Value, index: int, axis: int = 0) -> Value:
    """The part of one direction, whose axis is kept with size 1."""
    return ctx.gather(value, ctx.constant([index]), axis)
