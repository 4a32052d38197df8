"""com.microsoft: mixtures of experts, computed densely: every expert on every token, with weight 0 unless chosen.

Source: onnxruntime ``docs/ContribOperators.md``, and ``contrib_ops/cpu/moe`` for the activations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal, cast

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import TranslationContext
from converters.onnx.ops.ai_onnx.quantization import block_indices
from converters.onnx.ops.com_microsoft.quantization import packed_bits
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.dtypes.elements import F32, element
from irexec.errors import ConversionError, OpError
from irexec.ir.dims import may_equal
from irexec.ir.graph import Value
from irexec.schema.opdef import Rank

Matrix = Annotated[Value, Rank(2)]
Matrices = Annotated[Value, Rank(3)]
_SIMPLE: dict[str, Callable[[Expression], Expression]] = {
    "relu": lambda x: x.maximum(0),
    "relu2": lambda x: x.maximum(0) * x.maximum(0),
    "gelu": lambda x: Expression(x.ctx, x.ctx.emit("Gelu", x.value, approximation_mode="tanh")),
    "silu": lambda x: Expression(x.ctx, x.ctx.emit("Swish", x.value)),
    "identity": lambda x: x,
}


@dataclass(frozen=True, kw_only=True)
class ExpertAttributes:
    """The attributes that MoE and QMoE share."""

    k: int = 1
    activation_type: Literal["relu", "relu2", "gelu", "silu", "identity", "swiglu", "geglu"] = "relu"
    activation_alpha: float = 1.0
    activation_beta: float = 0.0
    normalize_routing_weights: int = 0
    swiglu_fusion: int = 0
    swiglu_limit: float | None = None
    swiglu_limit_after_activation: int = 0
    use_sparse_mixer: int = 0

    @property
    def is_gated(self) -> bool:
        """Whether the first product has the gate and the values of a gated activation."""
        return self.activation_type in ("swiglu", "geglu")

    def activated(self, ctx: TranslationContext, first: Value, third: Value | None) -> Value:
        """The activation of (experts, tokens, size); the gate and the values may be interleaved in its last axis.

        Raises:
            OpError: swiglu_fusion contradicts the inputs.
        """
        if not self.is_gated:
            y = _SIMPLE[self.activation_type](Expression(ctx, first))
            return (y if third is None else y * Expression(ctx, third)).value
        if (third is None) != (self.swiglu_fusion in (1, 2)):
            raise OpError(f"swiglu_fusion is {self.swiglu_fusion} {'without' if third is None else 'with'} fc3 weights")
        if third is None:
            axis = 3 if self.swiglu_fusion == 1 else 2
            pairs = ctx.emit("Reshape", first, [0, 0, -1, 2], special_zero=True) if axis == 3 else first
            first, third = ctx.emit("Split", pairs, ctx.constant(axis), num_splits=2)
            if axis == 3:
                first, third = (ctx.emit("Squeeze", part, [3]) for part in (first, third))
        gate, values = Expression(ctx, first), Expression(ctx, cast("Value", third))
        if self.activation_type == "geglu":
            return (_SIMPLE["gelu"](gate) * values).value
        limit, late = self.swiglu_limit, self.swiglu_limit_after_activation
        if limit is not None:
            values = values.minimum(limit).maximum(-limit)
            gate = gate if late else gate.minimum(limit)
        alpha = ctx.constant(self.activation_alpha, first)
        swish = Expression(ctx, ctx.emit("Swish", gate.value, alpha))
        if limit is not None and late:
            swish = swish.minimum(limit)
        return (swish * (values + self.activation_beta if self.activation_beta else values)).value


@dataclass(frozen=True)
class _Projection:
    """The weights (experts, outputs, inputs) of a product and its bias (experts, outputs)."""

    weights: Value
    bias: Value | None

    def of(self, ctx: TranslationContext, x: Value) -> Value:
        """The product with (1 or experts, tokens, inputs)."""
        weights = ctx.convert(self.weights, ctx.element(x))
        y: Value = ctx.emit("MatMul", x, weights, transpose_a=False, transpose_b=True)
        return y if self.bias is None else ctx.emit("Add", y, ctx.unsqueeze(self.bias, [1]))


@translates("MoE", domain=COM_MICROSOFT)
def moe(
    ctx: TranslationContext, x: Annotated[Value, Rank(2, 3)], router_probs: Matrix, fc1: Matrices,
    fc1_bias: Matrix | None, fc2: Matrices, fc2_bias: Matrix | None = None, fc3: Matrices | None = None,
    fc3_bias: Matrix | None = None, *, given: ExpertAttributes,
) -> Value:  # fmt: skip
    """The experts with the ``k`` largest logits, weighted by the softmax of all logits."""
    third = None if fc3 is None else _Projection(fc3, fc3_bias)
    return _mixed(ctx, x, router_probs, None, [_Projection(fc1, fc1_bias), _Projection(fc2, fc2_bias)], third, given)


def _mixed(
    ctx: TranslationContext, x: Value, logits: Value, mixing: Value | None, products: list[_Projection],
    third: _Projection | None, given: ExpertAttributes,
) -> Value:  # fmt: skip
    """The sum of the outputs of the chosen experts. ``mixing`` has their weights in place of a softmax."""
    if given.use_sparse_mixer:
        raise ConversionError("use_sparse_mixer 1 cannot be converted", unsupported=True)
    count = ctx.sizes(logits)[1]
    if given.k < 1 or (isinstance(count, int) and given.k > count):
        raise OpError(f"k is {given.k}, expected 1 to the number of experts, {count}")
    for projection in (*products, *(() if third is None else (third,))):
        have = ctx.sizes(projection.weights, "the expert weights")[0]
        if not may_equal(count, have):
            raise OpError(f"the router has {count} experts, the weights of a layer have {have}")
    tokens = x if ctx.rank(x) == 2 else ctx.emit("Reshape", x, [-1, _width(ctx, x)], special_zero=False)
    # OpenVINO's CPU plugin does not broadcast one sample to constant weights of several.
    experts = ctx.unsqueeze(ctx.size(products[0].weights, 0), [0])
    row = ctx.emit("Tile", ctx.unsqueeze(tokens, [0]), ctx.emit("Concat", experts, [1, 1], axis=0))
    hidden = given.activated(ctx, products[0].of(ctx, row), None if third is None else third.of(ctx, row))
    outputs = Expression(ctx, products[1].of(ctx, hidden))
    weights = Expression(ctx, ctx.transpose(_routing(ctx, logits, mixing, given), [1, 0])).unsqueeze(2)
    y = ctx.emit("ReduceSum", (outputs * weights.to(ctx.element(x))).value, [0], keep_dims=False)
    return y if ctx.rank(x) == 2 else ctx.emit("Reshape", y, ctx.shape_of(x), special_zero=False)


def _width(ctx: TranslationContext, x: Value) -> int:
    width = ctx.sizes(x)[-1]
    if not isinstance(width, int):
        raise OpError(f"the last size of {ctx.fact(x)} is not known")
    return width


def _routing(ctx: TranslationContext, logits: Value, mixing: Value | None, given: ExpertAttributes) -> Value:
    """The weight of each expert for each token, (tokens, experts) in f32; 0 for those that are not chosen."""
    wide = ctx.convert(logits, F32)
    scores = ctx.emit("Softmax", wide, axis=1) if mixing is None else ctx.convert(mixing, F32)
    _, chosen = ctx.emit("TopK", wide, given.k, axis=1, mode="max", sort="value", stable=True, index_element_type="i64")
    weights = Expression(ctx, ctx.emit("GatherElements", scores, chosen, axis=1))
    if given.normalize_routing_weights:
        weights = weights / weights.sum(1)
    zeros = ctx.full(ctx.constant(0.0), ctx.shape_of(logits))
    return cast("Value", ctx.emit("ScatterElementsUpdate", zeros, chosen, weights.value, ctx.constant(1), version=3))


@translates("QMoE", domain=COM_MICROSOFT)
def qmoe(
    ctx: TranslationContext, x: Annotated[Value, Rank(2, 3)], router_probs: Matrix, fc1: Matrices,
    fc1_scales: Value | None, fc1_bias: Matrix | None, fc2: Matrices, fc2_scales: Value | None = None,
    fc2_bias: Matrix | None = None, fc3: Matrices | None = None, fc3_scales: Value | None = None,
    fc3_bias: Matrix | None = None, fc1_zeros: Value | None = None, fc2_zeros: Value | None = None,
    fc3_zeros: Value | None = None, router_weights: Matrix | None = None, fc1_global: Value | None = None,
    fc2_global: Value | None = None, fc1_act: Value | None = None, fc2_act: Value | None = None,
    fc1_act_block: Value | None = None, fc2_act_block: Value | None = None, *, given: ExpertAttributes,
    expert_weight_bits: int = 4, fc1_expert_weight_bits: int | None = None, fc2_expert_weight_bits: int | None = None,
    fc3_expert_weight_bits: int | None = None, block_size: int = 0, quant_type: str = "int", accuracy_level: int = 0,
    weights_prepacked: int = -1,
) -> Value:  # fmt: skip
    """MoE with weights of 2, 4 or 8 bits, one scale per row or per block of a row, or of f8e4m3, one per square block.

    Without ``normalize_routing_weights`` and router_weights, ONNX Runtime's CPU kernel normalizes the weights of the
    chosen experts all the same; here they are those of MoE.
    """
    if quant_type not in ("int", "fp8"):
        raise ConversionError(f"quant_type {quant_type!r} cannot be converted", unsupported=True)
    if weights_prepacked == 1:
        raise ConversionError("weights_prepacked 1 cannot be converted", unsupported=True)
    projections: list[_Projection] = []
    for weights, scales, zeros, bias, own, whole in (
        (fc1, fc1_scales, fc1_zeros, fc1_bias, fc1_expert_weight_bits, fc1_global),
        (fc2, fc2_scales, fc2_zeros, fc2_bias, fc2_expert_weight_bits, fc2_global),
        (fc3, fc3_scales, fc3_zeros, fc3_bias, fc3_expert_weight_bits, None),
    ):
        if weights is None:
            continue
        if quant_type == "fp8":
            projections.append(_Projection(_of_floats(ctx, weights, scales, whole, block_size), bias))
            continue
        bits = expert_weight_bits if own is None else own
        if bits not in (2, 4, 8):
            raise ConversionError(f"expert_weight_bits {bits} cannot be converted", unsupported=True)
        if scales is None:
            raise OpError("quantized expert weights need their scales")
        projections.append(_Projection(_dequantized(ctx, weights, scales, zeros, bits, block_size), bias))
    third = projections[2] if len(projections) == 3 else None
    return _mixed(ctx, x, router_probs, router_weights, projections[:2], third, given)


def _dequantized(
    ctx: TranslationContext, weights: Value, scales: Value, zeros: Value | None, bits: int, block_size: int
) -> Value:
    """Weights (experts, outputs, inputs) in the type of the scales; a constant stays packed.

    Raises:
        OpError: a block does not divide the inputs.
    """
    experts, rows, last = ctx.static(weights, "the expert weights")
    columns = last * 8 // bits
    size = block_size if block_size > 0 else columns
    if not size or columns % size:
        raise OpError(f"block_size {block_size} does not divide {columns} inputs of the expert weights")
    kind, packed, blocks = ctx.element(scales), element(f"u{bits}"), columns // size
    levels = ctx.convert(packed_bits(ctx, weights, packed, (experts, rows, blocks, size)), kind)
    zero = ctx.constant(2.0 ** (bits - 1), kind)
    if zeros is not None:
        zero = _zero_points(ctx, zeros, bits, (experts, rows, blocks), block_size > 0)
        zero = ctx.convert(zero, kind)
    scale = ctx.reshape(scales, [experts, rows, blocks, 1])
    values = ctx.emit("Multiply", ctx.emit("Subtract", levels, zero), scale)
    return cast("Value", ctx.emit("Reshape", values, [experts, rows, columns], special_zero=False))


def _of_floats(
    ctx: TranslationContext, weights: Value, scales: Value | None, whole: Value | None, block_size: int
) -> Value:
    """Weights of f8e4m3 in f32, times one scale per square block, or one per expert without a block size."""
    wide = ctx.convert(weights, F32)
    scale = scales if block_size > 0 else whole
    if scale is None:
        raise OpError("quant_type 'fp8' needs scales per block with block_size, global scales without")
    scale = ctx.convert(scale, F32)
    if block_size <= 0:
        return cast("Value", ctx.emit("Multiply", wide, ctx.unsqueeze(scale, [1, 2])))
    for axis in (1, 2):
        scale = ctx.emit("Gather", scale, block_indices(ctx, weights, axis, block_size), ctx.constant(axis))
    return cast("Value", ctx.emit("Multiply", wide, scale))


def _zero_points(
    ctx: TranslationContext, zeros: Value, bits: int, shape: tuple[int, int, int], by_block: bool
) -> Value:
    """Packed zero points as (experts, outputs, blocks, 1): rows of whole bytes, per output or per expert."""
    experts, rows, blocks = shape
    count = blocks if by_block else rows
    padded = -(-count * bits // 8) * 8 // bits
    lines = [experts, rows, padded] if by_block else [experts, padded]
    levels = packed_bits(ctx, zeros, element(f"u{bits}"), tuple(lines))
    if padded != count:
        levels = ctx.emit("Slice", levels, [0], [count], [1], [len(lines) - 1])
    return ctx.reshape(levels, [experts, rows, blocks, 1])
