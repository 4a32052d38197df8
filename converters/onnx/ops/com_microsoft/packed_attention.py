"""com.microsoft: attention of packed sequences, over caches in pages, and over blocks of keys that a layout names.

Source: onnxruntime ``docs/ContribOperators.md`` and ``contrib_ops/cuda/bert``. On the CPU, ONNX Runtime 1.32 has a
kernel of SparseAttention alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from converters.onnx.algorithms.attention import (
    Heads,
    Mask,
    attend,
    inserted,
    join_heads,
    repeat_heads,
    rotate_by_tables,
    split_heads,
    visible,
)
from converters.onnx.algorithms.expression import Expression, arange, positions
from converters.onnx.algorithms.sequences import Sequences
from converters.onnx.context import Matrix, Tensor3, Tensor4, TranslationContext, Vector, required
from converters.onnx.graphs import check_convertible
from converters.onnx.ops.com_microsoft.grouped_attention import CachedAttributes, normalized_heads, split_packed_heads
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.dtypes.elements import I32, I64
from irexec.errors import OpError, check
from irexec.ir.graph import Value
from irexec.schema.opdef import Rank


@translates("PackedAttention", domain=COM_MICROSOFT)
def packed_attention(
    ctx: TranslationContext, x: Matrix, weights: Matrix, bias: Vector, token_offset: Matrix,
    cumulative_sequence_length: Vector, attention_bias: Tensor4 | None = None, *, num_heads: int,
    qkv_hidden_sizes: list[int] | None = None, scale: float = 0.0,
) -> Value:  # fmt: skip
    """Attention of each sequence over its own tokens; one product computes queries, keys and values."""
    projected = ctx.added(ctx.emit("MatMul", x, weights), bias)
    sizes = qkv_hidden_sizes or [ctx.static(weights, "the weights")[1] // 3] * 3
    parts = ctx.emit("VariadicSplit", projected, ctx.constant(1), sizes)
    return packed_multi_head_attention(
        ctx, *parts, None, token_offset, cumulative_sequence_length, attention_bias, num_heads=num_heads, scale=scale
    )


@translates("PackedMultiHeadAttention", domain=COM_MICROSOFT)
def packed_multi_head_attention(
    ctx: TranslationContext, query: Annotated[Value, Rank(2, 4)], key: Matrix | None, value: Matrix | None,
    bias: Vector | None, token_offset: Matrix, cumulative_sequence_length: Vector,
    attention_bias: Tensor4 | None = None, *, num_heads: int, mask_filter_value: float = -10000.0, scale: float = 0.0,
) -> Value:  # fmt: skip
    """Attention of each sequence over its own tokens; all three may be packed as (tokens, heads, 3, size).

    The sequences are padded to the length that token_offset, (batch, length), has.
    """
    if ctx.rank(query) == 4:
        parts = [ctx.emit("Reshape", part, [0, -1], special_zero=True) for part in ctx.unstacked(query, 2, 3)]
    elif key is None or value is None:
        raise OpError("the keys or values are missing, and the queries are not packed with them")
    else:
        parts = [query, key, value]
    if bias is not None:
        widths = [ctx.static_size(part, 1, "the queries, keys and values") for part in parts]
        pieces = ctx.emit("VariadicSplit", bias, ctx.constant(0), widths)
        parts = [ctx.emit("Add", part, piece) for part, piece in zip(parts, pieces, strict=True)]
    length = Expression(ctx, ctx.size(token_offset, 1))
    sequences = Sequences(ctx, parts[0], cumulative_sequence_length)
    padded = Heads(*(split_heads(ctx, sequences.padded(part, length), num_heads) for part in parts))
    mask = Mask(positions(ctx, padded.key, 2) < sequences.lengths.unsqueeze(1, 2, 3))
    mask.add(ctx, attention_bias)
    return sequences.packed(join_heads(ctx, attend(ctx, padded, mask, scale or None)), length)


@translates("RemovePadding", domain=COM_MICROSOFT)
def remove_padding(ctx: TranslationContext, x: Tensor3, counts: Vector) -> tuple[Value, ...]:
    """The tokens before each end; their offsets, then those of the padding; the bounds; and the maximum length."""
    wide, length = Expression(ctx, ctx.convert(counts, I64)), Expression(ctx, ctx.size(x, 1))
    wide = wide.checked("sequence_token_count in range", wide >= 0, wide <= length)
    used = positions(ctx, x, 1).unsqueeze(0) < wide.column()
    flags = ctx.reshape(used.value, [-1])
    tokens, rest = (
        ctx.reshape(ctx.emit("NonZero", each, output_type="i64"), [-1])
        for each in (flags, ctx.emit("LogicalNot", flags))
    )
    every = ctx.emit("Concat", tokens, rest, axis=0)
    offsets = ctx.reshape_as(every, used.value)
    rows = ctx.reshape(x, [-1, ctx.static_size(x, 2, "the data")])
    sums = ctx.emit("CumSum", wide.value, ctx.constant(0), exclusive=False, reverse=False)
    longest = ctx.emit("ReduceMax", wide.value, [0], keep_dims=True)
    return (
        ctx.gather(rows, tokens, 0),
        *(ctx.convert(part, I32) for part in (offsets, ctx.emit("Concat", [0], sums, axis=0), longest)),
    )


@translates("RestorePadding", domain=COM_MICROSOFT)
def restore_padding(ctx: TranslationContext, x: Matrix, token_offset: Matrix) -> Value:
    """Tokens at their offsets, zeros elsewhere."""
    size = ctx.size(x, 0)
    flat = ctx.reshape(ctx.convert(token_offset, I64), [-1])
    used = ctx.slice(flat, 0, ctx.unsqueeze(size, [0]), 0)
    width = ctx.unsqueeze(ctx.size(x, 1), [0])
    zeros = ctx.full(ctx.constant(0, x), ctx.emit("Concat", ctx.shape_of(flat), width, axis=0))
    rows = ctx.emit("ScatterUpdate", zeros, used, x, ctx.constant(0))
    shape = ctx.emit("Concat", ctx.shape_of(token_offset), width, axis=0)
    return ctx.emit("Reshape", rows, shape, special_zero=False)


@dataclass(frozen=True, kw_only=True)
class PagedAttributes(CachedAttributes):
    """The attributes of PagedAttention."""

    rotary_offset: int = 0
    is_causal: int = 1
    kv_cache_layout: str = "SEPARATE"
    v_head_size: int = 0
    k_cache_dtype: str = ""
    v_cache_dtype: str = ""

    def check(self) -> None:
        """Raise ConversionError for values that are not converted."""
        for name, default in (
            ("kv_cache_layout", "SEPARATE"), ("k_quant_type", "NONE"), ("v_quant_type", "NONE"), ("rotary_offset", 0),
        ):  # fmt: skip
            check_convertible(getattr(self, name) == default, f"{name} {getattr(self, name)!r}")


@translates("PagedAttention", domain=COM_MICROSOFT)
def paged_attention(
    ctx: TranslationContext, query: Matrix, key: Matrix | None, value: Matrix | None, key_cache: Tensor4,
    value_cache: Tensor4 | None, cumulative_sequence_length: Vector, past_seqlens: Vector, block_table: Matrix,
    cos_cache: Matrix | None = None, sin_cache: Matrix | None = None, slot_mapping: Vector | None = None,
    head_sink: Vector | None = None, q_norm_weight: Vector | None = None, k_norm_weight: Vector | None = None,
    k_scale: Value | None = None, v_scale: Value | None = None, attention_metadata: Value | None = None, *,
    given: PagedAttributes,
) -> tuple[Value, ...]:  # fmt: skip
    """Attention of packed tokens over pages (blocks, block size, heads, size), which the new keys and values enter.

    A token is at position past + local of its sequence, in page ``position // block size`` of its row of block_table.
    Tokens of slot -1, or whose page does not exist, are not stored; keys of such pages are hidden. Lengths beyond
    block_table, and slots that do not exist, are errors, in place of the zeros of ONNX Runtime's CUDA kernel.
    """
    given.check()
    value_cache = required(value_cache, "value_cache is missing")
    q, (k, v) = ctx.unsqueeze(query, [0]), (None if x is None else ctx.unsqueeze(x, [0]) for x in (key, value))
    heads = split_packed_heads(ctx, q, k, v, given.num_heads, given.kv_num_heads)
    sequences = Sequences(ctx, query, cumulative_sequence_length)
    pages = _Pages(ctx, key_cache, Expression(ctx, ctx.convert(block_table, I64)))
    past = Expression(ctx, ctx.convert(past_seqlens, I64))
    past = past.checked("past_seqlens in range", past >= 0, past + sequences.lengths <= pages.capacity())
    place = sequences.of_owner(past) + sequences.local
    first, second = normalized_heads(ctx, heads, q_norm_weight, k_norm_weight, [given.qk_norm_epsilon] * 2)
    if given.do_rotary:
        pair, places = (first, second), place.unsqueeze(0)
        first, second = rotate_by_tables(ctx, pair, places, cos_cache, sin_cache, given.rotary_interleaved)
    slots = pages.slot(sequences.owner, place)
    if slot_mapping is not None:
        slots = Expression(ctx, ctx.convert(slot_mapping, I64))
        slots = slots.checked("slot_mapping in range", slots >= -1, slots < pages.count)
    caches = [pages.stored(cache, new, slots) for cache, new in ((key_cache, second), (value_cache, heads.value))]
    length = sequences.longest()
    queries = ctx.transpose(sequences.padded(_tokens(ctx, first), length), [0, 2, 1, 3])
    used = pages.mapped() & (arange(ctx, 0, pages.capacity()).unsqueeze(0) < (past + sequences.lengths).column())
    keys, values = (repeat_heads(ctx, pages.read(cache, used), given.num_heads) for cache in caches)
    own = past.unsqueeze(1, 2, 3) + arange(ctx, 0, length).column()
    columns = positions(ctx, keys, 2)
    limit = own if given.is_causal else (past + sequences.lengths - 1).unsqueeze(1, 2, 3)
    seen = (columns <= limit) & used.unsqueeze(1, 2)
    if given.local_window_size > 0:
        seen = seen & (columns > own - given.local_window_size)
    heads, mask = Heads(queries, keys, values), Mask(seen, sees=False)
    sink = None if head_sink is None else ctx.reshape(head_sink, [1, given.num_heads, 1, 1])
    y = attend(ctx, heads, mask, given.scale or None, sink=sink, softcap=given.softcap)
    return sequences.packed(join_heads(ctx, y), length), *caches


def _tokens(ctx: TranslationContext, x: Value) -> Value:
    """(1, heads, tokens, size) as (tokens, heads, size)."""
    return ctx.emit("Squeeze", ctx.transpose(x, [0, 2, 1, 3]), [0])


class _Pages:
    """Caches in pages, (blocks, block size, heads, size), and the pages of each sequence, (batch, pages)."""

    def __init__(self, ctx: TranslationContext, cache: Value, table: Expression) -> None:
        self.ctx, self.table = ctx, table
        self.sizes = [ctx.static_size(cache, axis, "the cache") for axis in (2, 3)]
        self.block = Expression(ctx, ctx.size(cache, 1))
        self.count = Expression(ctx, ctx.size(cache, 0)) * self.block

    def capacity(self) -> Expression:
        """The number of entries of a row of the table."""
        return Expression(self.ctx, self.ctx.size(self.table.value, 1)) * self.block

    def slot(self, owner: Expression, place: Expression) -> Expression:
        """The slot of each token; the number of slots or more if its page does not exist."""
        pages = Expression(self.ctx, self.ctx.size(self.table.value, 1))
        flat = self.ctx.reshape(self.table.value, [-1])
        index = owner * pages + (place / self.block).minimum(pages - 1)
        page = Expression(self.ctx, self.ctx.gather(flat, index.value, 0))
        page = (place / self.block < pages).select(page, -1)
        return (page >= 0).select(page * self.block + place.modulo(self.block), -1)

    def stored(self, cache: Value, new: Value, slots: Expression) -> Value:
        """The cache with new entries (1, heads, tokens, size); slots that do not exist are left out."""
        ctx = self.ctx
        flat = ctx.reshape(cache, [-1, *self.sizes])
        # Entries without a slot go to one more row, which is cut off.
        padded = ctx.emit("Pad", flat, [0, 0, 0], [1, 0, 0], ctx.constant(0, cache), pad_mode="constant")
        index = ((slots >= 0) & (slots < self.count)).select(slots, self.count)
        updated = ctx.emit("ScatterUpdate", padded, index.value, _tokens(ctx, new), ctx.constant(0))
        kept = ctx.slice(updated, 0, -1, 0)
        return ctx.reshape_as(kept, cache)

    def read(self, cache: Value, used: Expression) -> Value:
        """The pages of each sequence, (batch, heads, pages * block size, size); zeros for entries that are not used."""
        ctx = self.ctx
        blocks = Expression(ctx, ctx.size(cache, 0))
        index = self.table.maximum(0).minimum(blocks - 1)
        pages = ctx.gather(cache, index.value, 0)
        joined = ctx.emit("Reshape", pages, [0, -1, *self.sizes], special_zero=True)
        kept = used.unsqueeze(2, 3).select(Expression(ctx, joined), 0)
        return ctx.transpose(kept.value, [0, 2, 1, 3])

    def mapped(self) -> Expression:
        """Whether the page of each entry exists, (batch, pages * block size)."""
        ctx, blocks = self.ctx, self.count / self.block
        exists = ((self.table >= 0) & (self.table < blocks)).unsqueeze(2)
        shape = ctx.emit("Concat", ctx.shape_of(self.table.value), self.block.unsqueeze(0).value, axis=0)
        spread = ctx.full(exists.value, shape)
        return Expression(ctx, ctx.emit("Reshape", spread, [0, -1], special_zero=True))


@translates("SparseAttention", domain=COM_MICROSOFT)
def sparse_attention(
    ctx: TranslationContext, query: Tensor3, key: Tensor3 | None, value: Tensor3 | None, past_key: Tensor4,
    past_value: Tensor4, block_row_indices: Matrix, block_col_indices: Matrix, total_sequence_length: Value,
    key_total_sequence_lengths: Vector, cos_cache: Matrix | None = None, sin_cache: Matrix | None = None, *,
    num_heads: int, kv_num_heads: int, sparse_block_size: int, scale: float = 0.0, do_rotary: int = 0,
    rotary_interleaved: int = 0,
) -> tuple[Value, ...]:  # fmt: skip
    """Causal attention over the blocks of keys that the block of a query sees; heads take the layouts in turn.

    A first prompt, whose total length is the length of the queries, has no past. For samples whose totals differ, ONNX
    Runtime's CPU kernel gives other results than for each sample alone; here they are those of each sample alone.
    """
    check(sparse_block_size >= 1, f"sparse_block_size is {sparse_block_size}, expected 1 or more")
    heads = split_packed_heads(ctx, query, key, value, num_heads, kv_num_heads)
    length = Expression(ctx, ctx.size(heads.query, 2))
    total = Expression(ctx, ctx.scalar(ctx.convert(total_sequence_length, I64)))
    totals = Expression(ctx, ctx.convert(key_total_sequence_lengths, I64))
    most = Expression(ctx, ctx.size(past_key, 2))
    totals = totals.checked("key_total_sequence_lengths in range", totals >= 1, (totals <= total) & (total <= most))
    before = length.equals(total).select(0, totals - length)
    before = before.checked("key_total_sequence_lengths in range", before >= 0)
    places = before.column() + positions(ctx, heads.query, 2)
    first, second = heads.query, heads.key
    if do_rotary:
        pair = (first, second)
        first, second = rotate_by_tables(ctx, pair, places, cos_cache, sin_cache, rotary_interleaved)
    caches = [inserted(ctx, past, new, before) for past, new in ((past_key, second), (past_value, heads.value))]
    blocks = _block_mask(ctx, block_row_indices, block_col_indices)
    rows = ctx.gather(blocks, (places / sparse_block_size).value, 1)
    columns = (positions(ctx, caches[0], 2) / sparse_block_size).minimum(Expression(ctx, ctx.size(blocks, 2)) - 1)
    by_layout = ctx.transpose(ctx.gather(rows, columns.value, 3), [1, 0, 2, 3])
    layouts = Expression(ctx, ctx.size(blocks, 0))
    turn = arange(ctx, 0, num_heads).modulo(layouts)
    is_listed = Expression(ctx, ctx.gather(by_layout, turn.value, 1)) > 0
    mask = Mask(is_listed & visible(ctx, first, caches[0], before), sees=False)
    keys, values = (repeat_heads(ctx, cache, num_heads, kv_num_heads) for cache in caches)
    return join_heads(ctx, attend(ctx, Heads(first, keys, values), mask, scale or None)), *caches


def _block_mask(ctx: TranslationContext, rows: Value, columns: Value) -> Value:
    """1 for each block, (layouts, blocks, blocks), in compressed rows (layouts, blocks + 1) and (layouts, entries)."""
    bounds, index = (Expression(ctx, ctx.convert(part, I64)) for part in (rows, columns))
    count, most = Expression(ctx, ctx.size(rows, 1)) - 1, Expression(ctx, ctx.size(columns, 1))
    before = Expression(ctx, ctx.emit("Pad", bounds.value, [0, 1], [0, -1], ctx.constant(0), pad_mode="constant"))
    high = positions(ctx, rows, 1).equals(0).select(0, most)
    bounds = bounds.checked("block_row_indices in order", bounds >= before, bounds <= high)
    entries = positions(ctx, columns, 1)
    ends = Expression(ctx, ctx.slice(bounds.value, 1, None, 1)).unsqueeze(1)
    passed = (ends <= entries.unsqueeze(0, 2)).to(I64)
    row = passed.sum(2, keep=False)
    # Entries after the last one go to a place that is cut off.
    used = row < count
    index = index.checked("block_col_indices in range", ~used | ((index >= 0) & (index < count)))
    place = used.select(row * count + index, count * count)
    layouts = ctx.unsqueeze(ctx.size(rows, 0), [0])
    area = (count * count + 1).unsqueeze(0).value
    zeros = ctx.full(ctx.constant(0), ctx.emit("Concat", layouts, area, axis=0))
    ones = ctx.full(ctx.constant(1), ctx.shape_of(place.value))
    marked = ctx.emit("ScatterElementsUpdate", zeros, place.value, ones, ctx.constant(1), version=3)
    kept = ctx.slice(marked, 0, -1, 1)
    side = count.unsqueeze(0).value
    mask: Value = ctx.emit("Reshape", kept, ctx.emit("Concat", layouts, side, side, axis=0), special_zero=False)
    return mask
