"""com.microsoft: gated activations and norms, and the mixing of several residual streams, in f32.

Source: onnxruntime ``docs/ContribOperators.md``.
"""

from __future__ import annotations

from typing import Annotated, Literal

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import Matrix, Tensor4, TranslationContext, Vector
from converters.onnx.graphs import check_convertible
from converters.onnx.ops.ai_onnx.normalization import rms_in_f32
from converters.onnx.ops.com_microsoft.fused import group_norm
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.dtypes.elements import BF16, F32
from irexec.errors import OpError, check
from irexec.ir.graph import Value
from irexec.schema.opdef import Rank


def _wide(ctx: TranslationContext, x: Value) -> Expression:
    return Expression(ctx, ctx.convert(x, F32))


@translates("GatedRMSNorm", domain=COM_MICROSOFT)
def gated_rms_norm(
    ctx: TranslationContext, x: Value, scale: Vector, gate: Value, *, epsilon: float = 1e-5,
    activation: Literal["silu", "swish", "sigmoid"] = "silu",
) -> Value:  # fmt: skip
    """The RMS normalization of each group of the last axis, as long as the scale, times the activation of the gate."""
    size = ctx.static(scale, "the scale")[0]
    grouped = ctx.emit("Reshape", x, [*[0] * (ctx.rank(x) - 1), -1, size], special_zero=True)
    flat = ctx.reshape_as(rms_in_f32(ctx, grouped, scale, epsilon), x)
    kind = "Sigmoid" if activation == "sigmoid" else "Swish"
    gated = Expression(ctx, flat) * Expression(ctx, ctx.emit(kind, ctx.convert(gate, F32)))
    return gated.to(ctx.element(x)).value


@translates("BranchwiseRMSNorm", domain=COM_MICROSOFT)
def branchwise_rms_norm(
    ctx: TranslationContext, x: Value, scale: Value | None = None, *, num_branches: int = 0, epsilon: float = 1e-5
) -> Value:
    """The RMS normalization of each branch, (..., branches, size) or (..., branches * size).

    The scale is (branches * size), (branches, size) or (size).
    """
    streams = _streams(ctx, x, num_branches).value
    if scale is not None and ctx.rank(scale) == 1 and ctx.sizes(scale)[0] != ctx.sizes(streams)[-1]:
        scale = ctx.reshape(scale, [-1, ctx.static_size(streams, -1, "the data")])
    return _like(ctx, rms_in_f32(ctx, streams, ctx.constant(1.0) if scale is None else scale, epsilon), x)


def _streams(ctx: TranslationContext, x: Value, branches: int) -> Expression:
    """(..., branches, size) in f32; ``branches`` is 0 for data that has the axis."""
    if branches:
        x = ctx.emit("Reshape", x, [*[0] * (ctx.rank(x) - 1), branches, -1], special_zero=True)
    return _wide(ctx, x)


def _like(ctx: TranslationContext, y: Value, x: Value) -> Value:
    """The result in the shape and type of the data."""
    flat = y if ctx.rank(y) == ctx.rank(x) else ctx.reshape_as(y, x)
    return ctx.convert(flat, ctx.element(x))


def _mix(ctx: TranslationContext, mix: Value, streams: Expression) -> Expression:
    """Gates (..., branches), (..., branches, 1 or size) or (..., branches * size) that broadcast to the streams."""
    rank = ctx.rank(streams.value)
    if ctx.rank(mix) == rank:
        return _wide(ctx, mix)
    if ctx.sizes(mix)[-1] == ctx.sizes(streams.value)[-2]:
        return _wide(ctx, mix).unsqueeze(rank - 1)
    # One gate of each branch, or one of each value: both broadcast.
    branches = ctx.static_size(streams.value, -2, "the streams")
    split = ctx.emit("Reshape", ctx.convert(mix, F32), [*[0] * (rank - 2), branches, -1], special_zero=True)
    return Expression(ctx, split)


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
    mixed = parts = _streams(ctx, streams, num_branches)
    if stream_mix is not None:
        mixed = Expression(ctx, ctx.emit("MatMul", ctx.convert(stream_mix, F32), parts.value, transpose_a=True))
    output = _wide(ctx, block_output).unsqueeze(ctx.rank(parts.value) - 2)
    return _like(ctx, (mixed + _mix(ctx, post_mix, parts) * output).value, streams)


@translates("EngramGate", domain=COM_MICROSOFT)
def engram_gate(
    ctx: TranslationContext, key: Value, query: Value, value: Value, key_norm_scale: Value, query_norm_scale: Value,
    conv_norm_scale: Value | None = None, *, epsilon: float = 1e-5,
) -> tuple[Value | None, ...]:  # fmt: skip
    """sigmoid(sign(dot) * sqrt(max(abs(dot), 1e-6))) * value, with dot of normalized keys and queries."""
    pairs = ((key, key_norm_scale), (query, query_norm_scale))
    keys, queries = (Expression(ctx, rms_in_f32(ctx, x, scale, epsilon)) for x, scale in pairs)
    dot = (keys * queries).sum(-1) / float(ctx.static_size(key, -1, "the keys")) ** 0.5
    sign = Expression(ctx, ctx.emit("Sign", dot.value))
    gated = (sign * abs(dot).maximum(1e-6).sqrt()).sigmoid() * _wide(ctx, value).unsqueeze(2)
    kind, normed = ctx.element(value), None
    if conv_norm_scale is not None:
        normed = ctx.convert(rms_in_f32(ctx, gated.value, conv_norm_scale, epsilon), kind)
    return gated.to(kind).value, normed


@translates("GatedAdd", domain=COM_MICROSOFT)
def gated_add(ctx: TranslationContext, x: Value, y: Value, gate: Value, gate_weight: Matrix | None = None) -> Value:
    """x + y * gate; with a weight the gate is the sigmoid of a product, rounded to bf16."""
    if gate_weight is not None:
        product = _wide(ctx, gate) @ _wide(ctx, gate_weight)
        gate = product.to(BF16).to(F32).sigmoid().to(BF16).to(ctx.element(x)).value
    return (Expression(ctx, x) + Expression(ctx, y) * Expression(ctx, gate)).value


@translates("ScaledSiLU", domain=COM_MICROSOFT)
def scaled_silu(ctx: TranslationContext, x: Value, scale: Value | None = None, *, alpha: float = 1.0) -> Value:
    """z * sigmoid(z) with z = scale * x, both factors and the product rounded to the type."""
    kind = ctx.element(x)
    factor: Expression | float = alpha if scale is None else _wide(ctx, ctx.reshape(scale, ()))
    z = (_wide(ctx, x) * factor).to(kind)
    return (z * z.to(F32).sigmoid().to(kind)).value


@translates("SwiGLU", domain=COM_MICROSOFT)
def swi_glu(
    ctx: TranslationContext, gate: Value, up: Value | None = None, *, limit: float = 0.0, activation_alpha: float = 1.0,
    activation_beta: float = 0.0, round_activation: int = 0,
) -> Value:  # fmt: skip
    """min(gate, limit) * sigmoid(alpha * gate) * (clamp(up) + beta); without ``up`` the gate has both halves."""
    kind = ctx.element(gate)
    if up is None:
        gate, up = ctx.split(gate, ctx.rank(gate) - 1, 2)
    left, right = _wide(ctx, gate), _wide(ctx, up)
    if limit > 0:
        left, right = left.minimum(limit), right.minimum(limit).maximum(-limit)
    swish = Expression(ctx, ctx.emit("Swish", left.value, ctx.constant(activation_alpha)))
    if round_activation:
        swish = swish.to(kind).to(F32)
    return (swish * (right + activation_beta if activation_beta else right)).to(kind).value


@translates("RouterGateUpProj", domain=COM_MICROSOFT)
def router_gate_up_proj(
    ctx: TranslationContext, x: Value, w: Matrix, *, router_size: int, limit: float = 0.0,
    activation: Literal["swiglu"] = "swiglu", activation_alpha: float = 1.0, activation_beta: float = 0.0,
) -> tuple[Value, ...]:  # fmt: skip
    """The first columns of a product, and the SwiGLU of the others."""
    product = ctx.emit("MatMul", x, w)
    router, halves = ctx.emit("VariadicSplit", product, ctx.constant(ctx.rank(product) - 1), [router_size, -1])
    return router, swi_glu(ctx, halves, limit=limit, activation_alpha=activation_alpha, activation_beta=activation_beta)


@translates("SkipGroupNorm", domain=COM_MICROSOFT)
def skip_group_norm(
    ctx: TranslationContext, x: Tensor4, gamma: Value, beta: Value, skip: Annotated[Value, Rank(2, 4)],
    bias: Vector | None = None, *, activation: int, groups: int, channels_last: int = 1, epsilon: float = 1e-5,
) -> tuple[Value, ...]:  # fmt: skip
    """GroupNorm of x + skip + bias, and the sum; a skip (batch, channels) is the same for all pixels."""
    check(ctx.rank(skip) != 3, f"skip is {ctx.fact(skip)}, expected rank 2 or 4")
    if ctx.rank(skip) == 2:
        skip = ctx.unsqueeze(skip, [1, 2] if channels_last else [2, 3])
    total = ctx.added(x, skip, bias if bias is None or channels_last else ctx.along_channels(bias, 4))
    attributes = {"activation": activation, "groups": groups, "channels_last": channels_last, "epsilon": epsilon}
    return group_norm(ctx, total, gamma, beta, **attributes), total


@translates("MoEGroupRouter", domain=COM_MICROSOFT)
def moe_group_router(
    ctx: TranslationContext, logits: Value, expert_bias: Vector, projection_weight: Matrix | None = None, *, top_k: int,
    n_group: int = 1, topk_group: int = 1, group_topk: int = 2, router_sentinel: float = -10000.0,
) -> tuple[Value | None, ...]:  # fmt: skip
    """Logarithms of the sigmoids of the chosen experts, of the groups with the largest sums of their best experts."""
    kind = ctx.element(logits)
    if projection_weight is not None:
        logits = ctx.emit("MatMul", ctx.convert(logits, F32), ctx.convert(projection_weight, F32), transpose_b=True)
    experts = ctx.static(expert_bias, "expert_bias")[0]
    scores = Expression(ctx, ctx.reshape(ctx.convert(logits, F32), [-1, experts])).sigmoid()
    biased = scores + _wide(ctx, expert_bias)
    if ctx.needs_output(1) or ctx.needs_output(2):
        check_convertible(not ctx.needs_output(0), "router_probs beside selection_scores")
        return None, biased.value, scores.value
    if n_group < 1 or experts % n_group or not 1 <= topk_group <= n_group or not 1 <= top_k <= experts:
        raise OpError(f"{experts} experts, top_k {top_k}, n_group {n_group} and topk_group {topk_group} do not fit")
    grouped = ctx.reshape(biased.value, [-1, n_group, experts // n_group])
    best, _ = _top(ctx, grouped, min(group_topk, experts // n_group), 2)
    sums = ctx.emit("ReduceSum", best, [2], keep_dims=False)
    _, chosen = _top(ctx, sums, topk_group, 1)
    kept = (_marked(ctx, sums, chosen).unsqueeze(2) > 0).select(Expression(ctx, grouped), float("-inf"))
    candidates = ctx.emit("Reshape", kept.value, [0, -1], special_zero=True)
    _, selected = _top(ctx, candidates, top_k, 1)
    logs = (_marked(ctx, candidates, selected) > 0).select(scores.maximum(1e-20).log(), router_sentinel)
    return logs.to(kind).value, None, None


def _top(ctx: TranslationContext, x: Value, count: int, axis: int) -> tuple[Value, Value]:
    return ctx.emit("TopK", x, count, axis=axis, mode="max", sort="value", stable=True, index_element_type="i64")


def _marked(ctx: TranslationContext, like: Value, index: Value) -> Expression:
    """Zeros of a shape (rows, columns), with ones at the indices of each row."""
    zeros, marks = (ctx.full(ctx.constant(value), ctx.shape_of(x)) for value, x in ((0.0, like), (1.0, index)))
    return Expression(ctx, ctx.emit("ScatterElementsUpdate", zeros, index, marks, ctx.constant(1), version=3))
