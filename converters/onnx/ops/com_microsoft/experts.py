"""com.microsoft: mixtures of experts, computed densely: every expert on every token, with weight 0 unless chosen.

Source: onnxruntime ``docs/ContribOperators.md``, and ``contrib_ops/cpu/moe`` for the activations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import Matrix, Tensor3, TranslationContext, required
from converters.onnx.graphs import check_convertible
from converters.onnx.ops.ai_onnx.quantization import block_indices
from converters.onnx.ops.com_microsoft.quantization import packed_bits, packed_rows
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.dtypes.elements import F32, element
from irexec.errors import OpError, check
from irexec.ir.dims import may_equal
from irexec.ir.graph import Value
from irexec.schema.opdef import Rank

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
            if self.swiglu_fusion == 1:
                pairs = ctx.emit("Reshape", first, [0, 0, -1, 2], special_zero=True)
                first, third = ctx.unstacked(pairs, 3, 2)
            else:
                first, third = ctx.split(first, 2, 2)
        gate, values = Expression(ctx, first), Expression(ctx, third)
        if self.activation_type == "geglu":
            return (_SIMPLE["gelu"](gate) * values).value
        limit, late = self.swiglu_limit, self.swiglu_limit_after_activation
        if limit is not None:
            values = values.minimum(limit).maximum(-limit)
            gate = gate if late else gate.minimum(limit)
        swish = Expression(ctx, ctx.emit("Swish", gate.value, ctx.constant(self.activation_alpha, first)))
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
        bias = None if self.bias is None else ctx.unsqueeze(self.bias, [1])
        return ctx.added(ctx.emit("MatMul", x, weights, transpose_b=True), bias)


@translates("MoE", domain=COM_MICROSOFT)
def moe(
    ctx: TranslationContext, x: Annotated[Value, Rank(2, 3)], router_probs: Matrix, fc1: Tensor3,
    fc1_bias: Matrix | None, fc2: Tensor3, fc2_bias: Matrix | None = None, fc3: Tensor3 | None = None,
    fc3_bias: Matrix | None = None, *, given: ExpertAttributes,
) -> Value:  # fmt: skip
    """The experts with the ``k`` largest logits, weighted by the softmax of all logits."""
    parts = ((fc1, fc1_bias), (fc2, fc2_bias), (fc3, fc3_bias))
    projections = [_Projection(weights, bias) for weights, bias in parts if weights is not None]
    return _mixed(ctx, x, router_probs, None, projections, given)


def _mixed(
    ctx: TranslationContext, x: Value, logits: Value, mixing: Value | None, projections: list[_Projection],
    given: ExpertAttributes,
) -> Value:  # fmt: skip
    """The sum of the outputs of the chosen experts. ``mixing`` has their weights in place of a softmax."""
    first, second, *third = projections
    check_convertible(not given.use_sparse_mixer, "use_sparse_mixer 1")
    count = ctx.sizes(logits)[1]
    if given.k < 1 or (isinstance(count, int) and given.k > count):
        raise OpError(f"k is {given.k}, expected 1 to the number of experts, {count}")
    for projection in projections:
        have = ctx.sizes(projection.weights, "the expert weights")[0]
        check(may_equal(count, have), f"the router has {count} experts, the weights of a layer have {have}")
    tokens = x if ctx.rank(x) == 2 else ctx.reshape(x, [-1, ctx.static_size(x, -1, "the data")])
    # OpenVINO's CPU plugin does not broadcast one sample to constant weights of several.
    experts = ctx.unsqueeze(ctx.size(first.weights, 0), [0])
    row = ctx.emit("Tile", ctx.unsqueeze(tokens, [0]), ctx.emit("Concat", experts, [1, 1], axis=0))
    hidden = given.activated(ctx, first.of(ctx, row), third[0].of(ctx, row) if third else None)
    outputs = Expression(ctx, second.of(ctx, hidden))
    weights = Expression(ctx, ctx.transpose(_routing(ctx, logits, mixing, given), [1, 0])).unsqueeze(2)
    y = (outputs * weights.to(ctx.element(x))).sum(0, keep=False).value
    return y if ctx.rank(x) == 2 else ctx.reshape_as(y, x)


def _routing(ctx: TranslationContext, logits: Value, mixing: Value | None, given: ExpertAttributes) -> Value:
    """The weight of each expert for each token, (tokens, experts) in f32; 0 for those that are not chosen."""
    wide = ctx.convert(logits, F32)
    scores = ctx.emit("Softmax", wide, axis=1) if mixing is None else ctx.convert(mixing, F32)
    _, chosen = ctx.emit("TopK", wide, given.k, axis=1, mode="max", sort="value", stable=True, index_element_type="i64")
    weights = Expression(ctx, ctx.emit("GatherElements", scores, chosen, axis=1))
    if given.normalize_routing_weights:
        weights = weights / weights.sum(1)
    zeros = ctx.full(ctx.constant(0.0), ctx.shape_of(logits))
    return ctx.emit("ScatterElementsUpdate", zeros, chosen, weights.value, ctx.constant(1), version=3)


@translates("QMoE", domain=COM_MICROSOFT)
def qmoe(
    ctx: TranslationContext, x: Annotated[Value, Rank(2, 3)], router_probs: Matrix, fc1: Tensor3,
    fc1_scales: Value | None, fc1_bias: Matrix | None, fc2: Tensor3, fc2_scales: Value | None = None,
    fc2_bias: Matrix | None = None, fc3: Tensor3 | None = None, fc3_scales: Value | None = None,
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
    check_convertible(quant_type in ("int", "fp8"), f"quant_type {quant_type!r}")
    check_convertible(weights_prepacked != 1, "weights_prepacked 1")
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
        check_convertible(bits in (2, 4, 8), f"expert_weight_bits {bits}")
        scales = required(scales, "quantized expert weights need their scales")
        projections.append(_Projection(_dequantized(ctx, weights, scales, zeros, bits, block_size), bias))
    return _mixed(ctx, x, router_probs, router_weights, projections, given)


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
    kind, blocks = ctx.element(scales), columns // size
    levels = ctx.convert(packed_bits(ctx, weights, element(f"u{bits}"), (experts, rows, blocks, size)), kind)
    zero = ctx.constant(2.0 ** (bits - 1), kind)
    if zeros is not None:
        # Rows of whole bytes: per output, or per expert.
        points = packed_rows(ctx, zeros, bits, (experts, rows, blocks) if block_size > 0 else (experts, rows))
        zero = ctx.convert(ctx.reshape(points, [experts, rows, blocks, 1]), kind)
    scale = ctx.reshape(scales, [experts, rows, blocks, 1])
    values = ctx.emit("Multiply", ctx.emit("Subtract", levels, zero), scale)
    return ctx.reshape(values, [experts, rows, columns])


def _of_floats(
    ctx: TranslationContext, weights: Value, scales: Value | None, whole: Value | None, block_size: int
) -> Value:
    """Weights of f8e4m3 in f32, times one scale per square block, or one per expert without a block size."""
    text = "quant_type 'fp8' needs scales per block with block_size, global scales without"
    scale = ctx.convert(required(scales if block_size > 0 else whole, text), F32)
    if block_size <= 0:
        scale = ctx.unsqueeze(scale, [1, 2])
    else:
        for axis in (1, 2):
            scale = ctx.gather(scale, block_indices(ctx, weights, axis, block_size), axis)
    return ctx.emit("Multiply", ctx.convert(weights, F32), scale)
