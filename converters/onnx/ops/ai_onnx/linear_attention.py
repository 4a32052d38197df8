"""LinearAttention: every time step updates and reads a state per head."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from converters.onnx.algorithms.expression import Expression
from converters.onnx.body_builder import BodyBuilder, IterationResult, IterationSlice, build_loop
from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from irexec.dtypes.elements import F32
from irexec.errors import OpError
from irexec.ir.graph import Value

# By update rule: whether ``decay`` multiplies the state, and whether only a difference, times ``beta``, is added.
_RULES = {"linear": (False, False), "gated": (True, False), "delta": (False, True), "gated_delta": (True, True)}


@translates("LinearAttention", since=27)
def linear_attention(
    ctx: TranslationContext, query: Value, key: Value, value: Value, past_state: Value | None = None,
    decay: Value | None = None, beta: Value | None = None, *, q_num_heads: int, kv_num_heads: int, scale: float = 0.0,
    update_rule: Literal["linear", "gated", "delta", "gated_delta"] = "gated_delta", chunk_size: int = 64,
) -> tuple[Value, ...]:  # fmt: skip
    """A loop over time in f32; query heads share the state of their key head. ``chunk_size`` has no effect."""
    gated, delta = _rule(update_rule, decay, beta)
    if kv_num_heads < 1 or q_num_heads < 1 or q_num_heads % kv_num_heads:
        raise OpError(f"q_num_heads {q_num_heads} is not a multiple of kv_num_heads {kv_num_heads}")
    keys, values = (_last_size(ctx, x, what) // kv_num_heads for x, what in ((key, "key"), (value, "value")))
    if keys < 1:
        raise OpError(f"the keys {ctx.fact(key)} have no elements for {kv_num_heads} heads")
    factor = scale or 1 / math.sqrt(keys)
    # (B, T, H, ...): queries as rows of a group, keys as a column, values as a row.
    sliced = [
        _split_last(ctx, query, [kv_num_heads, q_num_heads // kv_num_heads, keys]), _split_last(ctx, key, [kv_num_heads,
        keys, 1]), _split_last(ctx, value, [kv_num_heads, 1, values]),
    ]  # fmt: skip
    if gated and decay is not None:
        sliced.append(ctx.emit("Exp", _split_last(ctx, decay, [kv_num_heads, -1, 1])))
    if delta and beta is not None:
        sliced.append(_split_last(ctx, beta, [-1, 1, 1]))

    def iteration(builder: BodyBuilder, states: list[Value], parts: list[Value]) -> IterationResult:
        inner = builder.inner
        now = [Expression(inner, inner.emit("Squeeze", part, [1])) for part in parts]
        state = _updated(Expression(inner, states[0]), now[1:], gated, delta)
        read = now[0] @ state * factor
        return IterationResult([state.value], [(inner.unsqueeze(read.value, [1]), IterationSlice(1))])

    initial = _initial(ctx, query, [kv_num_heads, keys, values]) if past_state is None else ctx.convert(past_state, F32)
    last, outputs = build_loop(ctx, [initial], [(part, IterationSlice(1)) for part in sliced], iteration)
    flat = ctx.emit("Reshape", outputs, [0, 0, q_num_heads * values], special_zero=True)
    return ctx.convert(flat, ctx.element(query)), ctx.convert(
        last, ctx.element(query if past_state is None else past_state)
    )


def _rule(name: str, decay: Value | None, beta: Value | None) -> tuple[bool, bool]:
    for needed, given, what in zip(_RULES[name], (decay, beta), ("decay", "beta"), strict=True):
        if needed and given is None:
            raise OpError(f"update_rule {name} needs {what}, which is not given")
    return _RULES[name]


def _last_size(ctx: TranslationContext, x: Value, what: str) -> int:
    size = ctx.sizes(x, what)[-1]
    if not isinstance(size, int):
        raise OpError(f"the last size of {what}, {ctx.fact(x)}, must be known when the model is converted")
    return size


def _split_last(ctx: TranslationContext, x: Value, sizes: Sequence[int]) -> Value:
    """(B, T, C) in f32, with the last axis split into several."""
    return ctx.emit("Reshape", ctx.convert(x, F32), [0, 0, *sizes], special_zero=True)


def _initial(ctx: TranslationContext, query: Value, sizes: Sequence[int]) -> Value:
    batch = ctx.reshape(ctx.size(query, 0), [1])
    return ctx.full(ctx.constant(0.0), ctx.emit("Concat", batch, ctx.constant(list(sizes)), axis=0))


def _updated(state: Expression, now: Sequence[Expression], gated: bool, delta: bool) -> Expression:
    """The state after a time step: the decayed state plus the outer product of key and value."""
    key, value, *rest = now
    if gated:
        state = state * rest[0]
    if delta:
        ctx = state.ctx
        known = Expression(ctx, ctx.emit("MatMul", key.value, state.value, transpose_a=True))
        value = (value - known) * rest[-1]
    return state + key * value
