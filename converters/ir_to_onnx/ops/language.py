"""Linear attention and state spaces, normalization by the root mean square, rotary position embeddings.

Linear attention is that of com.microsoft, which ONNX Runtime computes on processors.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.graph import Tensor
from converters.ir_to_onnx.registry import composed, inexpressible
from irexec.dtypes.elements import F32, Element
from irexec.errors import check
from irexec.ir.dims import Size
from irexec.schema.rotary import RotaryAttributes

EXTENSION, INNER = "extension", "ie_internal_opset"


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


@composed("RMS", since=INNER)
def rms(
    ctx: ExportContext, data: Tensor, scale: Tensor | None = None, *, epsilon: float, output_type: Element | None,
    elementwise_affine: bool,
) -> Tensor:  # fmt: skip
    """x / Sqrt(mean of squares + epsilon) * scale in f32; RMSNormalization from opset 23 on if scale is a vector."""
    x = ctx.cast(data, F32)
    factor = None if scale is None else ctx.cast(scale, F32)
    if factor is not None and factor.rank == 1 and factor.shape != (1,) and ctx.has("RMSNormalization"):
        found = ctx.emit("RMSNormalization", x, factor, axis=-1, epsilon=epsilon)
    else:
        mean = ctx.reduce("ReduceMean", ctx.emit("Mul", x, x), [-1], keep=True)
        found = ctx.emit("Div", x, ctx.emit("Sqrt", ctx.emit("Add", mean, ctx.scalar(epsilon, x))))
        found = found if factor is None else ctx.emit("Mul", found, factor)
    return ctx.cast(found, output_type or data.element)


@composed("RoPE", since=INNER)
def rope(
    ctx: ExportContext, data: Tensor, cos: Tensor, sin: Tensor, positions: Tensor | None = None, *,
    attributes: RotaryAttributes,
) -> Tensor:  # fmt: skip
    """Slices, products and sums, for halves of a head; other pairs are refused."""
    a = attributes
    check(
        not (a.config_is_interleaved or a.config_is_chatglm or a.config_is_qwen or positions is not None),
        "only halves of a head at the positions of the tables are written",
    )
    check(data.shape is not None and cos.shape is not None, "the ranks of data and of the tables are not known")
    assert data.shape is not None and cos.shape is not None
    tokens, is_cut = data.shape[1 if a.config_input_trans0213 else 2], a.config_slice_stop > a.config_slice_start
    size = a.config_slice_stop - a.config_slice_start if is_cut else data.shape[3]
    x = ctx.cast(data, F32)
    x = ctx.slice(x, a.config_slice_start, a.config_slice_stop, 3) if is_cut else x
    x = ctx.transpose(x, (0, 2, 1, 3)) if a.config_input_trans0213 else x
    count, half = a.config_rotary_ndims, a.config_rotary_ndims // 2
    first, second = ctx.slice(x, 0, half, 3), ctx.slice(x, half, count, 3)
    partner = ctx.concat(ctx.emit("Neg", second), first, axis=3)
    cosines, sines = (_of_tokens(ctx, ctx.cast(table, F32), x, tokens) for table in (cos, sin))
    turned = ctx.emit("Mul", ctx.slice(x, 0, count, 3), cosines)
    found = ctx.emit("Add", turned, ctx.emit("Mul", partner, sines))
    whole = found if size == count else ctx.concat(found, ctx.slice(x, count, None, 3), axis=3)
    return ctx.cast(whole, data.element)


def _of_tokens(ctx: ExportContext, table: Tensor, x: Tensor, tokens: Size) -> Tensor:
    """The rows of a table for the tokens of x; a table of one row stays as it is."""
    axis = table.require_rank("the tables") - 2
    if table.shape is not None and isinstance(tokens, int) and table.shape[axis] in (1, tokens):
        return table
    return ctx.emit("Slice", table, ctx.ints(0), ctx.slice(ctx.shape_of(x), 2, 3, 0), ctx.ints(axis))
