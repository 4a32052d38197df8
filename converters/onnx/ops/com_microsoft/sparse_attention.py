"""com.microsoft: attention over blocks of keys that a layout names.

Source: onnxruntime ``docs/ContribOperators.md``, and the CPU kernel of ONNX Runtime 1.32.
"""

from __future__ import annotations

from converters.onnx.algorithms.attention import (
    Heads,
    Mask,
    attend,
    inserted,
    join_heads,
    repeat_heads,
    rotate_by_tables,
    visible,
)
from converters.onnx.algorithms.expression import Expression, arange, positions
from converters.onnx.context import Matrix, Tensor3, Tensor4, TranslationContext, Vector
from converters.onnx.ops.com_microsoft.grouped_attention import split_packed_heads
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.dtypes.elements import I64
from irexec.errors import check
from irexec.ir.graph import Value


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
