"""com.microsoft: gated activations and norms, and the mixing of several residual streams, in f32.

Source: onnxruntime ``docs/ContribOperators.md``.
"""

from __future__ import annotations

from typing import Annotated, Literal, cast

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import TranslationContext
from converters.onnx.ops.ai_onnx.normalization import rms_normalization
from converters.onnx.ops.com_microsoft.fused import group_norm
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.dtypes.elements import BF16, F32
from irexec.errors import ConversionError, OpError
from irexec.ir.graph import Value
from irexec.schema.opdef import Rank


def _wide(ctx: TranslationContext, x: Value) -> Expression:
    return Expression(ctx, ctx.convert(x, F32))


@translates("GatedRMSNorm", domain=COM_MICROSOFT)
def gated_rms_norm(
    ctx: TranslationContext, x: Value, scale: Annotated[Value, Rank(1)], gate: Value, *, epsilon: float = 1e-5,
    activation: Literal["silu", "swish", "sigmoid"] = "silu",
) -> Value:  # fmt: skip
    """The RMS normalization of each group of the last axis, as long as the scale, times the activation of the gate."""
    size = ctx.static(scale, "the scale")[0]
    grouped = ctx.emit("Reshape", x, [*[0] * (ctx.rank(x) - 1), -1, size], special_zero=True)
    normal = rms_normalization(ctx, ctx.convert(grouped, F32), ctx.convert(scale, F32), epsilon=epsilon)
    flat = ctx.emit("Reshape", normal, ctx.shape_of(x), special_zero=False)
    kind = "Sigmoid" if activation == "sigmoid" else "Swish"
    gated = Expression(ctx, flat) * Expression(ctx, ctx.emit(kind, ctx.convert(gate, F32)))
    return gated.to(ctx.element(x)).value


@translates("BranchwiseRMSNorm", domain=COM_MICROSOFT)
def branchwise_rms_norm(
    ctx: TranslationContext, x: Value, scale: Value | None = None, *, num_branches: int = 0, epsilon: float = 1e-5
) -> Value:
    """The RMS normalization of each branch, (..., branches, size) or (..., branches * size)."""
    streams = _streams(ctx, x, num_branches)
    one = ctx.constant(1.0)
    normal = rms_normalization(ctx, streams.value, one, epsilon=epsilon)
    if scale is not None:
        normal = (Expression(ctx, normal) * _feature_scale(ctx, scale, streams.value)).value
    return _like(ctx, normal, x)


def _feature_scale(ctx: TranslationContext, scale: Value, streams: Value) -> Expression:
    """A scale (branches * size), (branches, size) or (size) that broadcasts to (..., branches, size)."""
    size = ctx.sizes(streams)[-1]
    if ctx.rank(scale) == 1 and ctx.sizes(scale)[0] != size:
        scale = ctx.emit("Reshape", scale, [-1, _known(ctx, streams)], special_zero=False)
    return _wide(ctx, scale)


def _known(ctx: TranslationContext, x: Value) -> int:
    size = ctx.sizes(x)[-1]
    if not isinstance(size, int):
        raise OpError(f"the last size of {ctx.fact(x)} is not known")
    return size


def _streams(ctx: TranslationContext, x: Value, branches: int) -> Expression:
    """(..., branches, size) in f32; ``branches`` is 0 for data that has the axis."""
    if branches:
        x = ctx.emit("Reshape", x, [*[0] * (ctx.rank(x) - 1), branches, -1], special_zero=True)
    return _wide(ctx, x)


def _like(ctx: TranslationContext, y: Value, x: Value) -> Value:
    """The result in the shape and type of the data."""
    flat = y if ctx.rank(y) == ctx.rank(x) else ctx.emit("Reshape", y, ctx.shape_of(x), special_zero=False)
    return ctx.convert(flat, ctx.element(x))


def _mix(ctx: TranslationContext, mix: Value, streams: Expression) -> Expression:
    """Gates (..., branches), (..., branches, 1 or size) or (..., branches * size) that broadcast to the streams."""
    rank = ctx.rank(streams.value)
    if ctx.rank(mix) == rank:
        return _wide(ctx, mix)
    if ctx.sizes(mix)[-1] == ctx.sizes(streams.value)[-2]:
        return _wide(ctx, mix).unsqueeze(rank - 1)
    return Expression(ctx, ctx.emit("Reshape", ctx.convert(mix, F32), ctx.shape_of(streams.value), special_zero=False))


@translates("HyperConnectionPreMix", domain=COM_MICROSOFT)
def hyper_connection_pre_mix(
    ctx: TranslationContext, streams: Value, pre_mix: Value, *, num_branches: int = 0, reduction_scale: float = 1.0
) -> Value:
    """The sum of the streams, each times its gate."""
    parts = _streams(ctx, streams, num_branches)
    summed = ctx.emit("ReduceSum", (parts * _mix(ctx, pre_mix, parts)).value, [-2], keep_dims=False)
    return (Expression(ctx, summed) * reduction_scale).to(ctx.element(streams)).value


@translates("HyperConnectionPostMix", domain=COM_MICROSOFT)
def hyper_connection_post_mix(
    ctx: TranslationContext, streams: Value, block_output: Value, post_mix: Value, stream_mix: Value | None = None, *,
    num_branches: int = 0,
) -> Value:  # fmt: skip
    """The streams, mixed by a matrix (from, to), plus the output of a block times a gate per stream."""
    parts = _streams(ctx, streams, num_branches)
    mixed = parts
    if stream_mix is not None:
        product = ctx.emit("MatMul", ctx.convert(stream_mix, F32), parts.value, transpose_a=True)
        mixed = Expression(ctx, product)
    output = _wide(ctx, block_output).unsqueeze(ctx.rank(parts.value) - 2)
    return _like(ctx, (mixed + _mix(ctx, post_mix, parts) * output).value, streams)


@translates("EngramGate", domain=COM_MICROSOFT)
def engram_gate(
    ctx: TranslationContext, key: Value, query: Value, value: Value, key_norm_scale: Value, query_norm_scale: Value,
    conv_norm_scale: Value | None = None, *, epsilon: float = 1e-5,
) -> tuple[Value | None, ...]:  # fmt: skip
    """sigmoid(sign(dot) * sqrt(max(abs(dot), 1e-6))) * value, with dot of normalized keys and queries."""
    parts = [
        Expression(ctx, rms_normalization(ctx, ctx.convert(x, F32), ctx.convert(scale, F32), epsilon=epsilon))
        for x, scale in ((key, key_norm_scale), (query, query_norm_scale))
    ]
    dot = (parts[0] * parts[1]).sum(-1) / float(_known(ctx, key)) ** 0.5
    sign = Expression(ctx, ctx.emit("Sign", dot.value))
    gate = Expression(ctx, ctx.emit("Sigmoid", (sign * abs(dot).maximum(1e-6).sqrt()).value))
    gated = gate * _wide(ctx, value).unsqueeze(2)
    kind, normed = ctx.element(value), None
    if conv_norm_scale is not None:
        scale = ctx.convert(conv_norm_scale, F32)
        normed = ctx.convert(rms_normalization(ctx, gated.value, scale, epsilon=epsilon), kind)
    return gated.to(kind).value, normed


@translates("GatedAdd", domain=COM_MICROSOFT)
def gated_add(
    ctx: TranslationContext, x: Value, y: Value, gate: Value, gate_weight: Annotated[Value, Rank(2)] | None = None
) -> Value:
    """x + y * gate; with a weight the gate is the sigmoid of a product, rounded to bf16."""
    if gate_weight is not None:
        product = ctx.emit("MatMul", ctx.convert(gate, F32), ctx.convert(gate_weight, F32))
        rounded = ctx.convert(ctx.convert(product, BF16), F32)
        gate = ctx.convert(ctx.convert(ctx.emit("Sigmoid", rounded), BF16), ctx.element(x))
    return (Expression(ctx, x) + Expression(ctx, y) * Expression(ctx, gate)).value


@translates("ScaledSiLU", domain=COM_MICROSOFT)
def scaled_silu(ctx: TranslationContext, x: Value, scale: Value | None = None, *, alpha: float = 1.0) -> Value:
    """z * sigmoid(z) with z = scale * x, both factors and the product rounded to the type."""
    kind = ctx.element(x)
    factor: Expression | float = alpha if scale is None else _wide(ctx, ctx.reshape(scale, ()))
    z = (_wide(ctx, x) * factor).to(kind)
    return (z * Expression(ctx, ctx.emit("Sigmoid", ctx.convert(z.value, F32))).to(kind)).value


@translates("SwiGLU", domain=COM_MICROSOFT)
def swi_glu(
    ctx: TranslationContext, gate: Value, up: Value | None = None, *, limit: float = 0.0, activation_alpha: float = 1.0,
    activation_beta: float = 0.0, round_activation: int = 0,
) -> Value:  # fmt: skip
    """min(gate, limit) * sigmoid(alpha * gate) * (clamp(up) + beta); without ``up`` the gate has both halves."""
    kind = ctx.element(gate)
    if up is None:
        gate, up = ctx.emit("Split", gate, ctx.constant(ctx.rank(gate) - 1), num_splits=2)
    left, right = _wide(ctx, gate), _wide(ctx, cast("Value", up))
    if limit > 0:
        left, right = left.minimum(limit), right.minimum(limit).maximum(-limit)
    swish = Expression(ctx, ctx.emit("Swish", left.value, ctx.constant(activation_alpha)))
    if round_activation:
        swish = swish.to(kind).to(F32)
    return (swish * (right + activation_beta if activation_beta else right)).to(kind).value


@translates("RouterGateUpProj", domain=COM_MICROSOFT)
def router_gate_up_proj(
    ctx: TranslationContext, x: Value, w: Annotated[Value, Rank(2)], *, router_size: int, limit: float = 0.0,
    activation: Literal["swiglu"] = "swiglu", activation_alpha: float = 1.0, activation_beta: float = 0.0,
) -> tuple[Value, ...]:  # fmt: skip
    """The first columns of a product, and the SwiGLU of the others."""
    product = ctx.emit("MatMul", x, w)
    router, halves = ctx.emit("VariadicSplit", product, ctx.constant(ctx.rank(product) - 1), [router_size, -1])
    alphas = {"activation_alpha": activation_alpha, "activation_beta": activation_beta}
    return router, swi_glu(ctx, halves, None, limit=limit, **alphas)


@translates("SkipGroupNorm", domain=COM_MICROSOFT)
def skip_group_norm(
    ctx: TranslationContext, x: Annotated[Value, Rank(4)], gamma: Value, beta: Value,
    skip: Annotated[Value, Rank(2, 4)], bias: Annotated[Value, Rank(1)] | None = None, *, activation: int, groups: int,
    channels_last: int = 1, epsilon: float = 1e-5,
) -> tuple[Value, ...]:  # fmt: skip
    """GroupNorm of x + skip + bias, and the sum; a skip (batch, channels) is the same for all pixels."""
    if ctx.rank(skip) == 3:
        raise OpError(f"skip is {ctx.fact(skip)}, expected rank 2 or 4")
    if ctx.rank(skip) == 2:
        skip = ctx.unsqueeze(skip, [1, 2] if channels_last else [2, 3])
    total = ctx.emit("Add", x, skip)
    if bias is not None:
        total = ctx.emit("Add", total, bias if channels_last else ctx.along_channels(bias, 4))
    attributes = {"activation": activation, "groups": groups, "channels_last": channels_last, "epsilon": epsilon}
    return group_norm(ctx, total, gamma, beta, **attributes), total


@translates("MoEGroupRouter", domain=COM_MICROSOFT)
def moe_group_router(
    ctx: TranslationContext, logits: Value, expert_bias: Annotated[Value, Rank(1)],
    projection_weight: Annotated[Value, Rank(2)] | None = None, *, top_k: int, n_group: int = 1, topk_group: int = 1,
    group_topk: int = 2, router_sentinel: float = -10000.0,
) -> tuple[Value | None, ...]:  # fmt: skip
    """Logarithms of the sigmoids of the chosen experts, of the groups with the largest sums of their best experts."""
    kind = ctx.element(logits)
    if projection_weight is not None:
        weight = ctx.convert(projection_weight, F32)
        logits = ctx.emit("MatMul", ctx.convert(logits, F32), weight, transpose_a=False, transpose_b=True)
    experts = ctx.static(expert_bias, "expert_bias")[0]
    flat = ctx.emit("Reshape", ctx.convert(logits, F32), [-1, experts], special_zero=False)
    scores = Expression(ctx, ctx.emit("Sigmoid", flat))
    biased = scores + _wide(ctx, expert_bias)
    if ctx.needs_output(1) or ctx.needs_output(2):
        if ctx.needs_output(0):
            raise ConversionError("router_probs beside selection_scores cannot be converted", unsupported=True)
        return None, biased.value, scores.value
    if n_group < 1 or experts % n_group or not 1 <= topk_group <= n_group or not 1 <= top_k <= experts:
        raise OpError(f"{experts} experts, top_k {top_k}, n_group {n_group} and topk_group {topk_group} do not fit")
    grouped = ctx.reshape(biased.value, [-1, n_group, experts // n_group])
    best, _ = _top(ctx, grouped, min(group_topk, experts // n_group), 2)
    sums = ctx.emit("ReduceSum", best, [2], keep_dims=False)
    _, chosen = _top(ctx, sums, topk_group, 1)
    kept = _marked(ctx, sums, chosen, 1.0).unsqueeze(2) > 0
    low = Expression(ctx, ctx.constant(float("-inf")))
    candidates = ctx.emit("Reshape", kept.select(Expression(ctx, grouped), low).value, [0, -1], special_zero=True)
    _, selected = _top(ctx, candidates, top_k, 1)
    is_selected = _marked(ctx, candidates, selected, 1.0) > 0
    logs = scores.maximum(1e-20).log()
    return is_selected.select(logs, Expression(ctx, ctx.constant(router_sentinel))).to(kind).value, None, None


def _top(ctx: TranslationContext, x: Value, count: int, axis: int) -> tuple[Value, Value]:
    return cast(
        "tuple[Value, Value]",
        ctx.emit("TopK", x, count, axis=axis, mode="max", sort="value", stable=True, index_element_type="i64"),
    )


def _marked(ctx: TranslationContext, like: Value, index: Value, mark: float) -> Expression:
    """Zeros of a shape (rows, columns) with ``mark`` at the indices of each row."""
    zeros, marks = (ctx.full(ctx.constant(value), ctx.shape_of(x)) for value, x in ((0.0, like), (mark, index)))
    return Expression(ctx, ctx.emit("ScatterElementsUpdate", zeros, index, marks, ctx.constant(1), version=3))
