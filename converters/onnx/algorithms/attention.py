"""Attention: heads, rotary embedding, masks, and the weighted sum of values."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from converters.onnx.algorithms.expression import Expression, arange, positions
from converters.onnx.context import TranslationContext, required
from converters.onnx.graphs import check_generated
from irexec.dtypes.elements import BOOLEAN, F32, I64, Element
from irexec.errors import OpError, check
from irexec.ir.dims import Size
from irexec.ir.graph import Value


@dataclass(frozen=True)
class Heads:
    """Queries, keys and values, (batch, heads, length, size), with equal numbers of heads."""

    query: Value
    key: Value
    value: Value


@dataclass
class Mask:
    """The keys that each query sees: a boolean mask, and a bias added to the scores. Either may be missing.

    Attributes:
        sees: whether every query certainly sees a key.
    """

    allowed: Expression | None = None
    bias: Value | None = None
    sees: bool = True

    def restrict(self, allowed: Expression, *, sees: bool = False) -> None:
        """Hide keys. ``sees`` states that every query still sees a key if this is the only mask."""
        self.sees = self.sees and sees and self.allowed is None
        self.allowed = allowed if self.allowed is None else self.allowed & allowed

    def add(self, ctx: TranslationContext, bias: Value | None, *, finite: bool = False) -> None:
        """Add a bias, if there is one. ``finite`` states that none of its values is -inf."""
        if bias is None:
            return
        self.sees = self.sees and finite
        self.bias = bias if self.bias is None else ctx.emit("Add", self.bias, bias)

    def apply(self, ctx: TranslationContext, mask: Value) -> None:
        """Apply a mask of ONNX: booleans or a bias."""
        if ctx.element(mask) is BOOLEAN:
            self.restrict(Expression(ctx, mask))
        else:
            self.add(ctx, mask)

    def merged(self, ctx: TranslationContext, kind: Element) -> Value | None:
        """The mask as one input of IR's operation; None without a mask."""
        if self.bias is None:
            return None if self.allowed is None else self.allowed.value
        if self.allowed is None:
            return ctx.convert(self.bias, kind)
        return self.allowed.select(
            Expression(ctx, ctx.convert(self.bias, kind)), Expression(ctx, ctx.constant(float("-inf"), kind))
        ).value


def split_heads(ctx: TranslationContext, x: Value, heads: int) -> Value:
    """(batch, length, heads * size) to (batch, heads, length, size)."""
    width = ctx.sizes(x)[2]
    if heads < 1 or (isinstance(width, int) and width % heads):
        raise OpError(f"the width of {ctx.fact(x)} cannot be split into {heads} heads")
    size = width // heads if isinstance(width, int) else -1
    return ctx.transpose(ctx.emit("Reshape", x, [0, 0, heads, size], special_zero=True), [0, 2, 1, 3])


def join_heads(ctx: TranslationContext, x: Value) -> Value:
    """(batch, heads, length, size) to (batch, length, heads * size)."""
    shape = ctx.sizes(x)
    heads, size = shape[1], shape[3]
    width = heads * size if isinstance(heads, int) and isinstance(size, int) else -1
    return ctx.emit("Reshape", ctx.transpose(x, [0, 2, 1, 3]), [0, 0, width], special_zero=True)


def rotate(ctx: TranslationContext, x: Value, tables: list[Value], interleaved: int, width: int) -> Value:
    """The first ``width`` elements of each head rotated; a width of 0 is all.

    The tables have the cosines and the sines of the angles, (batch, length, width / 2).
    """
    size = ctx.sizes(x)[3]
    if isinstance(size, int):
        width = width or size
        check(width <= size and width % 2 == 0, f"{width} elements of a head of {size} cannot be rotated")
    rotated, rest = (x, None) if width in (0, size) else ctx.emit("VariadicSplit", x, ctx.constant(3), [width, -1])
    if interleaved:
        pairs = ctx.emit("Reshape", rotated, [0, 0, 0, -1, 2], special_zero=True)
        halves = ctx.unstacked(pairs, 4, 2)
    else:
        halves = ctx.split(rotated, 3, 2)
    first, second = (Expression(ctx, half) for half in halves)
    c, s = (Expression(ctx, ctx.unsqueeze(cache, [1])) for cache in tables)
    results = [(first * c - second * s).value, (first * s + second * c).value]
    if interleaved:
        y = ctx.emit("Reshape", ctx.stacked(results, 4), [0, 0, 0, -1], special_zero=True)
    else:
        y = ctx.emit("Concat", *results, axis=3)
    return y if rest is None else ctx.emit("Concat", y, rest, axis=3)


def angles(ctx: TranslationContext, places: Expression, *caches: Value) -> list[Value]:
    """The rows of tables of cosines and sines at these positions; a position that they do not have is an error."""
    inside = places.checked("positions in range", places >= 0, places < Expression(ctx, ctx.size(caches[0], 0)))
    return [ctx.gather(cache, inside.value, 0) for cache in caches]


def rotate_either(
    ctx: TranslationContext, x: Value, tables: list[Value], heads: int, interleaved: int, width: int,
    scale: float = 1.0,
) -> Value:  # fmt: skip
    """``rotate`` by tables of cosines and sines, then times the scale; the data may lack the axis of heads.

    (batch, length, channels) have this number of ``heads``; if it is 0, a head is as long as its angles are for.
    """
    if flat := ctx.rank(x) == 3:
        if not heads:
            heads = ctx.static_size(x, 2, "the data") // max(2 * ctx.static_size(tables[0], -1, "the angles"), 1)
        x = split_heads(ctx, x, heads)
    y = rotate(ctx, x, tables, interleaved, width)
    y = y if scale == 1.0 else ctx.emit("Multiply", y, ctx.constant(scale, y))
    return join_heads(ctx, y) if flat else y


def rotate_by_tables(
    ctx: TranslationContext, pair: tuple[Value, Value], places: Expression, cos: Value | None, sin: Value | None,
    interleaved: int,
) -> list[Value]:  # fmt: skip
    """Queries and keys rotated by the angles of their positions, as many elements as the tables are for."""
    cos, sin = (required(table, "do_rotary needs cos_cache and sin_cache") for table in (cos, sin))
    tables, width = angles(ctx, places, cos, sin), 2 * ctx.static_size(cos, 1, "cos_cache")
    return [rotate(ctx, x, tables, interleaved, width) for x in pair]


def repeat_heads(
    ctx: TranslationContext, x: Value, heads: Size, have: Size | None = None, like: Value | None = None
) -> Value:
    """Keys or values with each head repeated for the query heads that share it.

    Args:
        ctx: the context.
        x: (batch, heads, length, size).
        heads: the number of query heads.
        have: the number of heads of x, if it is not known from the shape.
        like: the queries, whose number of heads is read at run time.

    Raises:
        OpError: the number of query heads is not a multiple of the heads of x, or is not known.
    """
    have = ctx.sizes(x)[1] if have is None else have
    if isinstance(heads, int) and isinstance(have, int):
        check(have >= 1 and heads % have == 0, f"{heads} query heads cannot share the heads of {ctx.fact(x)}")
        check_generated((heads,), I64, "the indices of shared heads")
        return x if have == heads else ctx.gather(x, ctx.constant(np.arange(heads) // max(heads // have, 1)), 1)
    if like is None:
        raise OpError(f"the number of heads of {ctx.fact(x)} is not known")
    count = ctx.size(like, 1)
    share = ctx.emit("Divide", count, ctx.size(x, 1))
    index = ctx.emit("Divide", arange(ctx, 0, Expression(ctx, count)).value, share)
    return ctx.gather(x, index, 1)


def with_past(ctx: TranslationContext, past: Value | None, x: Value) -> Value:
    return x if past is None else ctx.emit("Concat", past, x, axis=2)


def inserted(ctx: TranslationContext, cache: Value, new: Value, before: Expression) -> Value:
    """A cache, (batch, heads, entries, size), with new entries from position ``before``, a scalar or per sample."""
    if ctx.rank(before.value) == 1:
        before = before.unsqueeze(1, 2, 3)
    position = before + positions(ctx, new, 2).unsqueeze(0, 1, 3)
    index = ctx.full(position.value, ctx.shape_of(new))
    return ctx.emit("ScatterElementsUpdate", cache, index, new, ctx.constant(2), version=3)


def visible(
    ctx: TranslationContext, query: Value, key: Value, offset: Expression | None, before: int = -1, after: int = 0
) -> Expression:
    """Whether query i sees key j: i + offset - before <= j <= i + offset + after; -1 means unbounded.

    ``offset`` is a scalar, or one value per sample; the result is (length, keys), or (batch, 1, length, keys).
    """
    rows, columns = (positions(ctx, x, 2) for x in (query, key))
    position = rows.column()
    if offset is not None:
        if ctx.rank(offset.value) == 1:
            offset = offset.unsqueeze(1, 2, 3)
        position = position + offset
    if after < 0:
        return columns >= position - before
    near = columns <= (position + after if after else position)
    return near if before < 0 else near & (columns >= position - before)


def attend(
    ctx: TranslationContext, heads: Heads, mask: Mask, scale: float | None, causal: bool = False,
    sink: Value | None = None, softcap: float = 0.0,
) -> Value:  # fmt: skip
    """IR's attention, with 0 in place of NaN for a query without keys.

    Args:
        ctx, heads, mask, scale: the attention.
        causal: query i sees keys up to i.
        sink: one more score of each head, (1, heads, 1, 1), which adds to the sum of softmax and has no value.
        softcap: the limit of the scores, which IR's attention lacks; 0 for none.
    """
    if softcap:
        return Scores(ctx, heads, mask, scale, softcap, sink=sink).stages()[0]
    kind = ctx.element(heads.query)
    merged = mask.merged(ctx, kind)
    if scale is None and sink is not None:
        scale = ctx.static_size(heads.query, 3, "the queries") ** -0.5
    factor = None if scale is None else ctx.constant(scale, kind)
    if factor is not None and merged is None:
        merged = ctx.constant(0, kind)
    sinks = () if sink is None else (sink,)
    y = ctx.emit(
        "ScaledDotProductAttention", heads.query, heads.key, heads.value, merged, factor, *sinks, causal=causal
    )
    without_keys = None if sink is not None else _rows_without_keys(ctx, mask, kind)
    return y if without_keys is None else without_keys.select(0, Expression(ctx, y)).value


def _rows_without_keys(ctx: TranslationContext, mask: Mask, kind: Element) -> Expression | None:
    """True for rows of the scores without a key; None if every row certainly has one."""
    known = ctx.known(mask.bias)
    if mask.sees or (
        mask.allowed is None and known is not None and bool((known.max(-1, initial=-np.inf) > -np.inf).all())
    ):
        return None
    merged = mask.merged(ctx, kind)
    if merged is None:
        return None
    if ctx.rank(merged) < 2:
        merged = (
            ctx.unsqueeze(merged, [0] * (2 - ctx.rank(merged))) if ctx.rank(merged) else ctx.unsqueeze(merged, [0, 1])
        )
    if ctx.element(merged) is BOOLEAN:
        seen = ctx.known(merged)
        if seen is not None and bool(seen.any(-1).all()):
            return None
        return ~Expression(ctx, ctx.emit("ReduceLogicalOr", merged, [-1], keep_dims=True))
    return Expression(ctx, ctx.emit("ReduceMax", merged, [-1], keep_dims=True)).equals(float("-inf"))


@dataclass(frozen=True)
class Scores:
    """Attention in single operations, for intermediate results and for options that IR's operation lacks."""

    ctx: TranslationContext
    heads: Heads
    mask: Mask
    scale: float | None
    softcap: float = 0.0
    precision: Element | None = None
    sink: Value | None = None

    def stages(self) -> tuple[Value, list[Value]]:
        """The result, and a list: scores, scores after softcap, scores after softcap and mask, weights."""
        ctx, kind = self.ctx, self.ctx.element(self.heads.query)
        scores = Expression(ctx, ctx.emit("MatMul", *self._scaled(kind), transpose_a=False, transpose_b=True))
        capped = (scores / self.softcap).tanh() * self.softcap if self.softcap else scores
        merged, without_keys = self.mask.merged(ctx, kind), _rows_without_keys(ctx, self.mask, kind)
        masked = capped
        if merged is not None:
            added = Expression(ctx, merged)
            low = Expression(ctx, ctx.constant(float("-inf"), kind))
            masked = added.select(capped, low) if ctx.element(merged) is BOOLEAN else capped + added
        weights = Expression(ctx, self._softmax(ctx.convert(masked.value, self.precision or kind)))
        if without_keys is not None:
            weights = without_keys.select(0, weights)
        weights = weights.to(kind)
        y = ctx.emit("MatMul", weights.value, self.heads.value)
        return y, [scores.value, capped.value, masked.value, weights.value]

    def _softmax(self, scores: Value) -> Value:
        """Softmax over the keys; the sink, (1, heads, 1, 1), is one more score, whose weight is left out."""
        ctx = self.ctx
        if self.sink is None:
            return ctx.emit("Softmax", scores, axis=-1)
        rows = ctx.slice(ctx.shape_of(scores), 0, 3, 0)
        column = ctx.full(ctx.convert(self.sink, ctx.element(scores)), ctx.emit("Concat", rows, [1], axis=0))
        weights = ctx.emit("Softmax", ctx.emit("Concat", scores, column, axis=3), axis=3)
        return ctx.slice(weights, 0, -1, 3)

    def _scaled(self, kind: Element) -> tuple[Value, Value]:
        """Queries and keys, each times the square root of the scale; the queries take a negative sign."""
        ctx, sign = self.ctx, 1.0
        if self.scale is not None:
            factor, sign = Expression(ctx, ctx.constant(abs(self.scale) ** 0.5, kind)), math.copysign(1.0, self.scale)
        else:
            size = ctx.sizes(self.heads.query)[3]
            if isinstance(size, int):
                factor = Expression(ctx, ctx.constant(size**-0.25 if size else 1.0, kind))
            else:
                factor = (Expression(ctx, ctx.size(self.heads.query, 3)).to(F32) ** -0.25).to(kind)
        queries = Expression(ctx, self.heads.query) * factor
        return (queries if sign > 0 else -queries).value, (Expression(ctx, self.heads.key) * factor).value
