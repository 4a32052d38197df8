"""com.microsoft: GroupQueryAttention, with caches that grow, of fixed size, of a window, and of 8 or 4 bits.

Source: onnxruntime ``docs/ContribOperators.md``, and the CPU kernel of ONNX Runtime 1.32 for what it leaves open.
"""

from __future__ import annotations

from dataclasses import dataclass

from converters.onnx.algorithms.attention import (
    Heads,
    Mask,
    Scores,
    attend,
    inserted,
    join_heads,
    repeat_heads,
    rotate_by_tables,
    split_heads,
)
from converters.onnx.algorithms.expression import Expression, positions
from converters.onnx.context import Matrix, Tensor3, Tensor4, TranslationContext
from converters.onnx.graphs import check_convertible
from converters.onnx.ops.ai_onnx.normalization import rms_in_f32
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.dtypes.elements import F32, I8, I64, U8
from irexec.errors import OpError, check
from irexec.ir.dims import are_equal
from irexec.ir.graph import Value

_HIDDEN = 1 << 40
"""Position of an entry of a cache that no query sees."""


@dataclass(frozen=True, kw_only=True)
class CachedAttributes:
    """The attributes that GroupQueryAttention and PagedAttention share."""

    num_heads: int
    kv_num_heads: int
    scale: float = 0.0
    softcap: float = 0.0
    do_rotary: int = 0
    rotary_interleaved: int = 0
    local_window_size: int = -1
    qk_norm_epsilon: float = 1e-6
    k_quant_type: str = "NONE"
    v_quant_type: str = "NONE"


@dataclass(frozen=True, kw_only=True)
class GroupedAttributes(CachedAttributes):
    """The attributes of GroupQueryAttention."""

    smooth_softmax: int = -1
    kv_cache_bit_width: int = 0
    qk_output: int = 0
    causal: int = 1
    sliding_window_cache: int = 0
    q_norm_epsilon: float | None = None
    k_norm_epsilon: float | None = None

    def check(self) -> None:
        """Raise OpError for values that the operator does not define."""
        if self.num_heads < 1 or self.kv_num_heads < 1:
            raise OpError(f"num_heads is {self.num_heads} and kv_num_heads {self.kv_num_heads}, expected 1 or more")
        choices = {
            "causal": (0, 1), "qk_output": (0, 1, 2), "smooth_softmax": (-1, 0, 1), "sliding_window_cache": (0, 1),
            **dict.fromkeys(("k_quant_type", "v_quant_type"), ("NONE", "PER_TENSOR", "PER_CHANNEL")),
        }  # fmt: skip
        for name, accepted in choices.items():
            check(getattr(self, name) in accepted, f"{name} is {getattr(self, name)!r}, expected one of {accepted}")
        if not self.causal and (self.local_window_size > 0 or self.sliding_window_cache):
            raise OpError(f"local_window_size is {self.local_window_size}, which needs causal 1")
        if self.sliding_window_cache and self.local_window_size < 1:
            raise OpError("sliding_window_cache 1 needs a local_window_size of 1 or more")


@dataclass(frozen=True)
class _Lengths:
    """Numbers of tokens per sample, (batch): in the cache before, of the queries, and after; S is the padded length."""

    before: Expression
    count: Expression
    after: Expression


@translates("GroupQueryAttention", domain=COM_MICROSOFT)
def group_query_attention(
    ctx: TranslationContext, query: Tensor3, key: Tensor3 | None, value: Tensor3 | None, past_key: Tensor4 | None,
    past_value: Tensor4 | None, seqlens_k: Value, total_sequence_length: Value, cos_cache: Matrix | None = None,
    sin_cache: Matrix | None = None, position_ids: Value | None = None, attention_bias: Tensor4 | None = None,
    head_sink: Value | None = None, k_scale: Value | None = None, v_scale: Value | None = None,
    q_norm_weight: Value | None = None, k_norm_weight: Value | None = None, query_seqlens: Value | None = None, *,
    given: GroupedAttributes,
) -> tuple[Value | None, ...]:  # fmt: skip
    """Attention of new queries over the cache and the new keys, which follow the past ones of each sample.

    A first prompt, whose total length is the length of the queries, has no past; seqlens_k then has no effect, and of
    position_ids only the first element, from which the positions of all samples count. Query s is at position
    ``before + s``. Entries of the cache after the last token are not defined.

    A quantized cache holds ``clamp(round(x / scale))``, with 4 bits plus 8, the even element in the low half of a byte;
    attention reads the quantized values of new keys too. The norms of queries and keys are those of the document: no
    kernel of ONNX Runtime on the CPU has them.
    """
    given.check()
    parts = split_packed_heads(ctx, query, key, value, given.num_heads, given.kv_num_heads)
    epsilons = [given.qk_norm_epsilon if own is None else own for own in (given.q_norm_epsilon, given.k_norm_epsilon)]
    first, second = normalized_heads(ctx, parts, q_norm_weight, k_norm_weight, epsilons)
    total = Expression(ctx, ctx.scalar(ctx.convert(total_sequence_length, I64)))
    if past_key is not None and not given.sliding_window_cache:
        most = Expression(ctx, ctx.size(past_key, 2)) + Expression(ctx, ctx.size(first, 2))
        total = total.checked("total_sequence_length in range", total >= 1, total <= most)
    lengths = _lengths(ctx, first, seqlens_k, total, query_seqlens)
    if given.do_rotary:
        steps = positions(ctx, first, 2)
        places = lengths.before.column() + steps
        if position_ids is not None:
            places = Expression(ctx, position_ids)
        if position_ids is not None and query_seqlens is None:
            start = Expression(ctx, ctx.slice(ctx.reshape(position_ids, [-1]), 0, 1, 0))
            is_prompt = Expression(ctx, ctx.size(first, 2)).equals(total)
            places = is_prompt.select((start + steps).unsqueeze(0), places)
        if query_seqlens is not None:
            # Rows after the last token may be beyond the table.
            places = (steps < lengths.count.column()).select(places, 0)
        pair = (first, second)
        first, second = rotate_by_tables(ctx, pair, places, cos_cache, sin_cache, given.rotary_interleaved)
    caches = [
        _Cache.of(ctx, past, new, scale, kind, given)
        for past, new, scale, kind in (
            (past_key, second, k_scale, given.k_quant_type), (past_value, parts.value, v_scale, given.v_quant_type)
        )
    ]  # fmt: skip
    if given.sliding_window_cache:
        raws, presents, columns = _windowed(ctx, caches, lengths, given.local_window_size)
    else:
        raws = presents = [cache.extended(ctx, total, lengths.before) for cache in caches]
        columns = positions(ctx, raws[0], 2).unsqueeze(0)
    keys, values = (cache.read(ctx, raw, first) for cache, raw in zip(caches, raws, strict=True))
    mask = _mask(ctx, first, columns, lengths, given)
    if attention_bias is not None:
        mask.add(ctx, _columns_of(ctx, attention_bias, columns, keys, bool(given.sliding_window_cache)))
    heads = Heads(first, *(repeat_heads(ctx, x, given.num_heads, given.kv_num_heads) for x in (keys, values)))
    y, scores = _attention(ctx, heads, mask, head_sink, given)
    return join_heads(ctx, y), *presents, scores


def _attention(
    ctx: TranslationContext, heads: Heads, mask: Mask, head_sink: Value | None, given: GroupedAttributes
) -> tuple[Value, Value | None]:
    """The result, and the scores after softcap and masks (qk_output 1, 0 where hidden) or after softmax (2)."""
    sink = None
    if head_sink is not None:
        sink = ctx.reshape(head_sink, [1, given.num_heads, 1, 1])
    elif given.smooth_softmax == 1:
        sink = ctx.constant([[[[0.0]]] * given.num_heads], ctx.element(heads.query))
    if not ctx.needs_output(3):
        return attend(ctx, heads, mask, given.scale or None, sink=sink, softcap=given.softcap), None
    y, stages = Scores(ctx, heads, mask, given.scale or None, given.softcap, sink=sink).stages()
    if not given.qk_output:
        raise OpError("the fourth output needs a qk_output of 1 or 2")
    check_convertible(not given.sliding_window_cache, "qk_output with sliding_window_cache 1")
    scores = stages[given.qk_output + 1]
    if given.qk_output == 1 and mask.allowed is not None:
        scores = mask.allowed.select(Expression(ctx, scores), 0).value
    return y, scores


def split_packed_heads(
    ctx: TranslationContext, query: Value, key: Value | None, value: Value | None, num_heads: int, kv_num_heads: int
) -> Heads:
    """Queries, keys and values; all may be packed along the last axis of the queries."""
    counts = (num_heads, kv_num_heads, kv_num_heads)
    if key is None or value is None:
        size, rest = divmod(ctx.static_size(query, 2, "the queries"), sum(counts))
        if rest:
            raise OpError(f"the width of {ctx.fact(query)} cannot be split into {num_heads} + 2 * {kv_num_heads} heads")
        query, key, value = ctx.emit("VariadicSplit", query, ctx.constant(2), [count * size for count in counts])
    return Heads(*(split_heads(ctx, x, count) for x, count in zip((query, key, value), counts, strict=True)))


def normalized_heads(
    ctx: TranslationContext, heads: Heads, query: Value | None, key: Value | None, epsilons: list[float]
) -> list[Value]:
    """Queries and keys, each head divided by the root of its mean square and times the weights (size), if any."""
    check((query is None) == (key is None), "one of q_norm_weight and k_norm_weight is missing")
    return [
        x if weight is None else ctx.convert(rms_in_f32(ctx, x, weight, epsilon), ctx.element(x))
        for x, weight, epsilon in zip((heads.query, heads.key), (query, key), epsilons, strict=True)
    ]


def _lengths(
    ctx: TranslationContext, query: Value, seqlens_k: Value, total: Expression, query_seqlens: Value | None
) -> _Lengths:
    after = Expression(ctx, ctx.convert(ctx.reshape(seqlens_k, [-1]), I64)) + 1
    if query_seqlens is not None:
        count = Expression(ctx, ctx.convert(query_seqlens, I64))
        before = after - count
    else:
        count = Expression(ctx, ctx.size(query, 2))
        before = count.equals(total).select(0, after - count)
    return _Lengths(before.checked("seqlens_k in range", before >= 0), count, after)


@dataclass(frozen=True)
class _Cache:
    """A cache and its new entries, both as stored; ``bits`` is 0, 8 or 4."""

    past: Value | None
    new: Value
    scale: Value | None
    bits: int

    @staticmethod
    def of(
        ctx: TranslationContext, past: Value | None, new: Value, scale: Value | None, quantization: str,
        given: GroupedAttributes,
    ) -> _Cache:  # fmt: skip
        """The cache of keys or of values, with new entries in floats."""
        if quantization == "NONE":
            return _Cache(past, new, None, 0)
        if scale is None or past is None:
            raise OpError(f"k_quant_type or v_quant_type {quantization} needs the scale and the past of the cache")
        check(given.kv_cache_bit_width in (4, 8), f"kv_cache_bit_width is {given.kv_cache_bit_width}, expected 4 or 8")
        kind, bits = ctx.element(past), given.kv_cache_bit_width
        check_convertible(kind is (I8 if bits == 8 else U8), f"a cache of {kind} with kv_cache_bit_width {bits}")
        high = 2.0 ** (bits - 1)
        levels = (Expression(ctx, ctx.convert(new, F32)) / Expression(ctx, scale)).round_half_to_even()
        levels = levels.maximum(-high).minimum(high - 1)
        if kind is U8:
            pairs = ctx.emit("Reshape", (levels + high).value, [0, 0, 0, -1, 2], special_zero=True)
            low, upper = (Expression(ctx, part) for part in ctx.unstacked(pairs, 4, 2))
            levels = low + upper * 16
        return _Cache(past, levels.to(kind).value, scale, bits)

    def extended(self, ctx: TranslationContext, total: Expression, before: Expression) -> Value:
        """The cache with the new entries inserted; its length is the maximum of past and total length."""
        if self.past is None:
            return self.new
        size = Expression(ctx, ctx.size(self.past, 2))
        missing = (total - size).maximum(0).unsqueeze(0).value
        end = ctx.emit("Concat", ctx.constant([0, 0]), missing, ctx.constant([0]), axis=0)
        padded = ctx.emit("Pad", self.past, [0] * 4, end, ctx.constant(0, self.past), pad_mode="constant")
        return inserted(ctx, padded, self.new, before)

    def read(self, ctx: TranslationContext, raw: Value, like: Value) -> Value:
        """The floats that entries of the cache stand for, of the element type of ``like``."""
        if self.scale is None:
            return raw
        wide = Expression(ctx, ctx.convert(raw, F32))
        if self.bits == 4:
            upper = (wide / 16.0).floor()
            joined = ctx.stacked(((wide - upper * 16.0).value, upper.value), 4)
            wide = Expression(ctx, ctx.emit("Reshape", joined, [0, 0, 0, -1], special_zero=True)) - 8.0
        return (wide * Expression(ctx, self.scale)).to(ctx.element(like)).value


def _resident(total: Expression, capacity: Expression, window: int) -> Expression:
    """The number of tokens that a windowed cache holds after ``total`` of them."""
    dropped = capacity - (window - 1)
    return total - dropped * (((total - capacity).maximum(0) + dropped - 1) / dropped)


def _windowed(
    ctx: TranslationContext, caches: list[_Cache], lengths: _Lengths, window: int
) -> tuple[list[Value], list[Value], Expression]:
    """All entries, past and new; the new caches; and the position of each entry, (batch, entries)."""
    past, new = caches[0].past, caches[0].new
    if past is None or caches[1].past is None:
        raise OpError("sliding_window_cache 1 needs past_key and past_value")
    size = ctx.sizes(past)[2]
    if isinstance(size, int) and size < window:
        raise OpError(f"the cache {ctx.fact(past)} is smaller than local_window_size {window}")
    capacity = Expression(ctx, ctx.size(past, 2))
    before, after = lengths.before.column(), (lengths.before + lengths.count).column()
    held = _resident(before, capacity, window)
    slots = positions(ctx, past, 2).unsqueeze(0)
    old = (slots < held).select(before - held + slots, _HIDDEN)
    columns = ctx.emit("Concat", old.value, (before + positions(ctx, new, 2).unsqueeze(0)).value, axis=1)
    kept = after - _resident(after, capacity, window) + slots
    index = (kept < before).select(kept - before + held, kept - before + capacity)
    last = capacity + Expression(ctx, ctx.size(new, 2)) - 1
    raws = [ctx.emit("Concat", cache.past, cache.new, axis=2) for cache in caches]
    index = index.maximum(0).minimum(last)
    # OpenVINO's CPU plugin reads beyond a single sample with a single head in Gather with batch_dims.
    presents = [
        ctx.emit("GatherElements", raw, ctx.full(index.unsqueeze(1, 3).value, ctx.shape_of(past)), axis=2)
        for raw in raws
    ]
    return raws, presents, Expression(ctx, columns)


def _mask(
    ctx: TranslationContext, query: Value, columns: Expression, lengths: _Lengths, given: GroupedAttributes
) -> Mask:
    """The keys that a query sees: itself and those before it, within the window; all tokens without ``causal``."""
    places = columns.unsqueeze(1, 2)
    if not given.causal:
        return Mask(places < lengths.after.unsqueeze(1, 2, 3))
    own = lengths.before.unsqueeze(1, 2, 3) + positions(ctx, query, 2).column()
    seen = places <= own
    if given.local_window_size > 0:
        seen = seen & (places > own - given.local_window_size)
    return Mask(seen)


def _columns_of(ctx: TranslationContext, bias: Value, columns: Expression, keys: Value, windowed: bool) -> Value:
    """The columns of a bias that belong to the entries of the cache; zeros after the last token."""
    if windowed:
        last = Expression(ctx, ctx.size(bias, 3)) - 1
        index = columns.minimum(last).maximum(0).unsqueeze(1, 2)
        samples = ctx.emit("Concat", ctx.unsqueeze(ctx.size(index.value, 0), [0]), [1, 1, 1], axis=0)
        whole = ctx.emit("Broadcast", bias, samples, mode="bidirectional")
        rows = ctx.slice(ctx.shape_of(whole), 0, 3, 0)
        shape = ctx.emit("Concat", rows, ctx.unsqueeze(ctx.size(index.value, 3), [0]), axis=0)
        return ctx.emit("GatherElements", whole, ctx.full(index.value, shape), axis=3)
    if are_equal(ctx.sizes(bias, "attention_bias")[-1], ctx.sizes(keys)[2]):
        return bias
    missing = Expression(ctx, ctx.size(keys, 2)) - Expression(ctx, ctx.size(bias, 3))
    ends = ctx.emit("Concat", [0, 0, 0], missing.unsqueeze(0).value, axis=0)
    return ctx.emit("Pad", bias, [0] * 4, ends, ctx.constant(0, bias), pad_mode="constant")
