"""Linear attention and state spaces, as LinearAttention of com.microsoft, which ONNX Runtime computes on processors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.graph import Tensor
from converters.ir_to_onnx.registry import composed, inexpressible
from irexec.dtypes.elements import F32

EXTENSION = "extension"


@composed("GatedDeltaNet", since=EXTENSION)
def gated_delta_net(
    ctx: ExportContext, query: Tensor, key: Tensor, value: Tensor, recurrent_state: Tensor, gate: Tensor, beta: Tensor,
    *, fuse_qk_l2norm: bool, q_l2_norm_eps: float, k_l2_norm_eps: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    """LinearAttention of com.microsoft, after the norms of queries and keys."""
    heads, width = (value.require_known(axis, "the values") for axis in (2, 3))
    groups, size = (query.require_known(axis, "the queries") for axis in (2, 3))
    pairs = (query, q_l2_norm_eps), (key, k_l2_norm_eps)
    vectors = [_normalized(ctx, x, epsilon) if fuse_qk_l2norm else x for x, epsilon in pairs]
    flat = [ctx.reshape(_repeated(ctx, x, groups, heads), [0, 0, heads * size]) for x in vectors]
    scale = 1 / math.sqrt(max(size, 1))
    y, state = _linear_attention(
        ctx, *flat, ctx.reshape(value, [0, 0, heads * width]), recurrent_state, gate, beta, heads=heads, scale=scale,
        update_rule="gated_delta",
    )  # fmt: skip
    return ctx.cast(ctx.reshape(y, [0, 0, heads, width]), value.element), ctx.cast(state, value.element)


@composed("SelectiveSSM", since=EXTENSION)
def selective_ssm(
    ctx: ExportContext, a: Tensor, dt: Tensor, b: Tensor, x: Tensor, c: Tensor, recurrent_state: Tensor
) -> tuple[Tensor, ...]:
    """LinearAttention of com.microsoft: keys dt * b, values x, queries c and decays a * dt."""
    heads, width = (x.require_known(axis, "x") for axis in (2, 3))
    groups, size = (b.require_known(axis, "b") for axis in (2, 3))
    steps = ctx.cast(dt, F32)
    decay = ctx.emit("Mul", ctx.cast(a, F32), steps)
    keys = ctx.emit("Mul", ctx.unsqueeze(steps, 3), _repeated(ctx, ctx.cast(b, F32), groups, heads))
    parts = (_repeated(ctx, c, groups, heads), size), (keys, size), (x, width)
    flat = [ctx.reshape(part, [0, 0, heads * of]) for part, of in parts]
    state = ctx.transpose(recurrent_state, (0, 1, 3, 2))
    y, last = _linear_attention(ctx, *flat, state, decay, None, heads=heads, scale=1.0, update_rule="gated")
    return ctx.cast(ctx.reshape(y, [0, 0, heads, width]), x.element), ctx.cast(
        ctx.transpose(last, (0, 1, 3, 2)), x.element
    )


def _linear_attention(
    ctx: ExportContext, *inputs: Tensor | None, heads: int, scale: float, update_rule: str
) -> tuple[Tensor, ...]:
    wide = [None if x is None else ctx.cast(x, F32) for x in inputs]
    attributes: dict[str, Any] = {"q_num_heads": heads, "kv_num_heads": heads, "scale": scale}
    return ctx.emit_all("LinearAttention", 2, *wide, domain="com.microsoft", update_rule=update_rule, **attributes)


def _normalized(ctx: ExportContext, x: Tensor, epsilon: float) -> Tensor:
    """Vectors along the last axis divided by the root of their sum of squares plus epsilon."""
    wide = ctx.cast(x, F32)
    squares = ctx.reduce("ReduceSumSquare", wide, [3], keep=True)
    return ctx.emit("Div", wide, ctx.emit("Sqrt", ctx.emit("Add", squares, ctx.scalar(epsilon, wide))))


def _repeated(ctx: ExportContext, x: Tensor, groups: int, heads: int) -> Tensor:
    """(batch, time, groups, size) with each group for the neighbouring heads that share it."""
    index = np.arange(heads) // max(heads // max(groups, 1), 1)
    return x if groups == heads else ctx.emit("Gather", x, ctx.constant(index), axis=2)


inexpressible(
    "PagedAttentionExtension", since=EXTENSION,
    reason="the caches are written in place, and PagedAttention of com.microsoft has kernels for GPUs alone",
)  # fmt: skip
inexpressible(
    "PagedCausalConv1D", "PagedGatedDeltaNet", "PagedSelectiveSSM", since=EXTENSION,
    reason="the states are written in place, in rows of a table",
)  # fmt: skip
