"""Linear attention: a state of keys and values per head, which a loop over time decays and updates in f32."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from converters.onnx.algorithms.attention import repeat_heads
from converters.onnx.algorithms.expression import Expression
from converters.onnx.body_builder import BodyBuilder, IterationResult, IterationSlice, build_loop
from converters.onnx.context import TranslationContext
from irexec.dtypes.elements import F32
from irexec.errors import OpError, check
from irexec.ir.graph import Value

UpdateRule = Literal["linear", "gated", "delta", "gated_delta"]
# By update rule: whether ``decay`` multiplies the state, and whether only a difference, times ``beta``, is added.
_RULES = {"linear": (False, False), "gated": (True, False), "delta": (False, True), "gated_delta": (True, True)}


@dataclass(frozen=True)
class Tokens:
    """The inputs of all steps in f32; the second axis is time.

    Attributes:
        query: rows of the query heads that share a state, (batch, time, heads, group, key size).
        key: columns, (batch, time, heads, key size, 1).
        value: rows, (batch, time, heads, 1, value size).
        decay: factors of the state, (batch, time, heads, key size or 1, 1).
        beta: update rates, (batch, time, heads or 1, 1, 1).
        active: whether a step changes the state, (batch, time, 1, 1, 1); None for always.
    """

    query: Value
    key: Value
    value: Value
    decay: Value | None = None
    beta: Value | None = None
    active: Value | None = None


@dataclass(frozen=True)
class Recurrence:
    """Results of the loop.

    Attributes:
        read: (batch, time, heads, group, value size).
        last: the last state, (batch, heads, key size, value size).
        states: the state after each step, (time, batch, heads, key size, value size); None unless wanted.
        added: the rows that each step adds times its key, (batch, time, heads, 1, value size); None unless wanted.
    """

    read: Value
    last: Value
    states: Value | None = None
    added: Value | None = None


def needed(rule: str, decay: Value | None, beta: Value | None) -> tuple[Value | None, Value | None]:
    """The inputs that the rule reads.

    Raises:
        OpError: one of them is missing.
    """
    pair = []
    for used, given, what in zip(_RULES[rule], (decay, beta), ("decay", "beta"), strict=True):
        if used and given is None:
            raise OpError(f"update_rule {rule} needs {what}, which is not given")
        pair.append(given if used else None)
    return pair[0], pair[1]


def recurrence(
    ctx: TranslationContext, tokens: Tokens, initial: Value, factor: float, *, with_states: bool = False,
    with_added: bool = False,
) -> Recurrence:  # fmt: skip
    """Loop over time: decay, read what the state knows of the key, add the rest of the value, read the query."""
    names = [name for name in ("query", "key", "value", "decay", "beta", "active") if getattr(tokens, name) is not None]

    def iteration(builder: BodyBuilder, states: list[Value], parts: list[Value]) -> IterationResult:
        inner = builder.inner
        now = {
            name: Expression(inner, inner.emit("Squeeze", part, [1])) for name, part in zip(names, parts, strict=True)
        }
        state = Expression(inner, states[0])
        decayed = state * now["decay"] if "decay" in now else state
        added = now["value"]
        if "beta" in now:
            known = inner.emit("MatMul", now["key"].value, decayed.value, transpose_a=True)
            added = (added - Expression(inner, known)) * now["beta"]
        new = decayed + now["key"] * added
        if "active" in now:
            new = now["active"].select(new, state)
        slices = [(inner.unsqueeze((now["query"] @ new * factor).value, [1]), IterationSlice(1))]
        if with_states:
            slices.append((inner.unsqueeze(new.value, [0]), IterationSlice(0)))
        if with_added:
            slices.append((inner.unsqueeze(added.value, [1]), IterationSlice(1)))
        return IterationResult([new.value], slices)

    sliced = [(getattr(tokens, name), IterationSlice(1)) for name in names]
    last, read, *others = build_loop(ctx, [initial], sliced, iteration)
    states = others.pop(0) if with_states else None
    return Recurrence(read, last, states, others[0] if with_added else None)


def packed_linear_attention(
    ctx: TranslationContext, query: Value, key: Value, value: Value, past_state: Value | None, decay: Value | None,
    beta: Value | None, heads: tuple[int, int], scale: float, rule: UpdateRule, *, with_states: bool = False,
) -> tuple[Value, Value, Value | None]:  # fmt: skip
    """Linear attention of data with packed heads, (batch, time, heads * size).

    Args:
        ctx, query, key, value, past_state, decay, beta: the inputs; the past state has no axis of a window.
        heads: the numbers of query heads and of key heads, of which one is a multiple of the other.
        scale: the factor of the output; 0 is one over the root of the size of a query head.
        rule: the update rule.
        with_states: whether the state after each step is wanted.

    Returns:
        The output in the type of the query, the last state in f32, and the states.

    Raises:
        OpError: a size is not known, or an input of the rule is missing.
    """
    decay, beta = needed(rule, decay, beta)
    queries, keys = heads
    key_size, value_size = ctx.static_size(query, -1, "query") // queries, ctx.static_size(value, -1, "value") // keys
    check(key_size >= 1, f"the queries {ctx.fact(query)} have no elements for {queries} heads")
    stored = ctx.static_size(key, -1, "key") // key_size
    if stored < 1 or keys % stored:
        raise OpError(f"the keys {ctx.fact(key)} have {stored} heads of {key_size}, expected a divisor of {keys}")
    # Several states may read the same key or query head.
    columns = repeat_heads_of_tokens(ctx, split_last(ctx, key, [stored, key_size, 1]), keys)
    rows = split_last(ctx, query, [min(queries, keys), max(queries // keys, 1), key_size])
    tokens = Tokens(
        repeat_heads_of_tokens(ctx, rows, keys), columns, split_last(ctx, value, [keys, 1, value_size]),
        None if decay is None else ctx.emit("Exp", split_last(ctx, decay, [keys, -1, 1])),
        None if beta is None else split_last(ctx, beta, [-1, 1, 1]),
    )  # fmt: skip
    if past_state is None:
        batch = ctx.reshape(ctx.size(query, 0), [1])
        sizes = ctx.emit("Concat", batch, ctx.constant([keys, key_size, value_size]), axis=0)
        initial = ctx.full(ctx.constant(0.0), sizes)
    else:
        initial = ctx.convert(past_state, F32)
    done = recurrence(ctx, tokens, initial, scale or 1 / math.sqrt(key_size), with_states=with_states)
    flat = ctx.emit("Reshape", done.read, [0, 0, max(queries, keys) * value_size], special_zero=True)
    return ctx.convert(flat, ctx.element(query)), done.last, done.states


def repeat_heads_of_tokens(ctx: TranslationContext, x: Value, count: int) -> Value:
    """(batch, time, heads, ...), each head repeated until there are ``count``."""
    if ctx.sizes(x)[2] == count:
        return x
    order = [0, 2, 1, *range(3, ctx.rank(x))]
    return ctx.transpose(repeat_heads(ctx, ctx.transpose(x, order), count), order)


def split_last(ctx: TranslationContext, x: Value, sizes: Sequence[int]) -> Value:
    """(batch, time, channels) in f32, with the last axis split into several."""
    return ctx.emit("Reshape", ctx.convert(x, F32), [0, 0, *sizes], special_zero=True)
