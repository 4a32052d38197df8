"""Sequences of several lengths, packed one after the other without padding."""

from __future__ import annotations

from converters.onnx.algorithms.expression import Expression, arange, positions
from converters.onnx.context import TranslationContext
from irexec.dtypes.elements import I64
from irexec.errors import check
from irexec.ir.graph import Value


def check_captured(count: int, capture_count: Value | None) -> None:
    """Raise OpError unless 0 to 8 states are to be captured, with ``capture_count`` if there are any."""
    is_sound = (capture_count is None) == (count == 0) and 0 <= count <= 8
    check(is_sound, f"state_update_capacity is {count}, and capture_count must agree with it")


class Sequences:
    """Packed sequences of tokens.

    Attributes:
        starts, lengths: of each sequence, (batch).
        owner: the sequence of each token, (tokens).
        local: the position of each token in its sequence, (tokens).
    """

    def __init__(self, ctx: TranslationContext, tokens: Value, bounds: Value) -> None:
        """``bounds`` is (batch + 1): the first token of each sequence, and the number of tokens; anything else is an
        error."""
        self.ctx, self.tokens = ctx, tokens
        given, count = Expression(ctx, ctx.convert(bounds, I64)), ctx.unsqueeze(ctx.size(tokens, 0), [0])
        before = ctx.slice(given.value, 0, -2, 0)
        low = Expression(ctx, ctx.emit("Concat", [0], before, count, axis=0))
        first = positions(ctx, given.value, 0).equals(0)
        high = first.select(0, Expression(ctx, count))
        wide = given.checked("sequences in order", given >= low, given <= high).value
        self.starts = Expression(ctx, ctx.slice(wide, 0, -1, 0))
        ends = Expression(ctx, ctx.slice(wide, 1, None, 0))
        self.lengths = ends - self.starts
        index = positions(ctx, tokens, 0)
        ended = (ends.unsqueeze(0) <= index.column()).to(I64)
        last = Expression(ctx, ctx.size(ends.value, 0)) - 1
        self.owner = Expression(ctx, ctx.emit("ReduceSum", ended.value, [1], keep_dims=False)).minimum(last)
        self.local = index - self.of_owner(self.starts)

    def of_owner(self, values: Expression) -> Expression:
        """The value of the sequence of each token."""
        return Expression(self.ctx, self.ctx.gather(values.value, self.owner.value, 0))

    def rows(self, x: Value, index: Expression) -> Expression:
        """Rows of data with one row per token; indices out of range are those of the first or last row."""
        last = Expression(self.ctx, self.ctx.size(x, 0)) - 1
        inside = index.maximum(0).minimum(last)
        return Expression(self.ctx, self.ctx.gather(x, inside.value, 0))

    def longest(self) -> Expression:
        return Expression(self.ctx, self.ctx.emit("ReduceMax", self.lengths.value, [0], keep_dims=False))

    def padded(self, x: Value, length: Expression) -> Value:
        """(tokens, ...) as (batch, length, ...); what follows a sequence is not defined."""
        steps = arange(self.ctx, 0, length)
        return self.rows(x, self.starts.column() + steps).value

    def packed(self, x: Value, length: Expression) -> Value:
        """(batch, length, ...) as (tokens, ...)."""
        ctx = self.ctx
        rest = ctx.slice(ctx.shape_of(x), 2, None, 0)
        flat = ctx.emit("Reshape", x, ctx.emit("Concat", [-1], rest, axis=0), special_zero=False)
        index = self.owner * length + self.local
        return ctx.gather(flat, index.value, 0)

    def at(self, x: Value, local: Expression, states: Value, length: int) -> Expression:
        """Rows of (tokens, channels) at positions of the sequence of each token; negative ones are in states (batch,
        length, channels)."""
        fresh = self.rows(x, self.of_owner(self.starts) + local)
        if not length:
            return fresh
        old = self.rows(self._flat(states), self.owner * length + (local + length).maximum(0))
        return (local >= 0).column().select(fresh, old)

    def of_each(self, x: Value, local: Expression, states: Value, length: int) -> Expression:
        """Rows of (tokens, channels) at positions (batch, count) of each sequence, as (batch, count, channels)."""
        fresh = self.rows(x, self.starts.column() + local)
        if not length:
            return fresh
        # OpenVINO's CPU plugin reads beyond a single sample in Gather with batch_dims.
        sample = positions(self.ctx, states, 0).column() * length
        old = self.rows(self._flat(states), sample + (local + length).maximum(0).minimum(length - 1))
        return (local >= 0).unsqueeze(2).select(fresh, old)

    def _flat(self, states: Value) -> Value:
        width = self.ctx.static_size(states, -1, "the states")
        return self.ctx.reshape(states, [-1, width])
