"""Attention to keys and values in blocks of a cache, as OpenVINO's ``paged_attention_transformation`` writes it.

Names of sizes: T tokens of all sequences, H heads of the query, K heads of keys and values, S size of a head of keys, V
of one of values, P blocks of a cache, B tokens of a block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from irexec.dtypes.elements import I32, I64, U8, round_to
from irexec.errors import check
from irexec.ir.dims import ANY, Size, count, may_equal, shape_text
from irexec.ir.facts import Fact
from irexec.reference.products import softmax_with_sink
from irexec.schema.attributes import NOT_KEPT, Caches, ElementTypes
from irexec.schema.opdef import FLOAT, INTEGER, ONE_ELEMENT, FloatTensor, FloatVector, Rank, element_set
from irexec.schema.registry import op
from irexec.schema.shape_rules import labelled_sizes, sizes_of, unify_elements

Rows = Annotated[FloatTensor, Rank(2)]
Cache = Annotated[FloatTensor, Rank(4)]
_INDEX = element_set("i32 or i64", I32, I64)
Indices = Annotated[np.ndarray, _INDEX, Rank(1)]
IndicesOrMatrix = Annotated[np.ndarray, _INDEX, Rank(1, 2)]
Number = Annotated[np.ndarray, INTEGER, ONE_ELEMENT]
Real = Annotated[np.ndarray, FLOAT, ONE_ELEMENT]
Bytes = Annotated[np.ndarray, element_set("u8", U8), Rank(1)]


@dataclass(frozen=True)
class Span:
    """The part of one sequence in a run.

    Attributes:
        index: of the sequence.
        tokens: its rows among the tokens of the run.
        past: number of its tokens in earlier runs.
        blocks: its blocks, in order.
    """

    index: int
    tokens: slice
    past: int
    blocks: np.ndarray

    @property
    def new(self) -> int:
        """Number of its tokens in this run."""
        return int(self.tokens.stop - self.tokens.start)

    def rows(self, needed: int, size: int) -> np.ndarray:
        """The rows, in a cache of ``size`` blocks, of its first ``needed`` blocks; OpError if one of them is
        missing or out of range."""
        blocks = self.blocks[:needed]
        check(len(blocks) == needed, f"sequence {self.index} needs {needed} blocks, block_indices has {len(blocks)}")
        wrong = blocks[(blocks < 0) | (blocks >= size)]
        check(
            not wrong.size,
            f"block {wrong[0] if wrong.size else 0} of sequence {self.index} is out of range for {size} blocks",
        )
        return blocks


def spans(
    tokens: int, past: np.ndarray, begins: np.ndarray, blocks: np.ndarray, block_begins: np.ndarray
) -> Iterator[Span]:
    """The sequences of a run of ``tokens`` tokens; OpError for offsets that do not ascend, and for a negative past."""
    sequences = len(past)
    for name, offsets, end in (
        ("subsequence_begins", begins, tokens),
        ("block_indices_begins", block_begins, len(blocks)),
    ):
        is_sound = (
            len(offsets) == sequences + 1 and offsets[0] == 0 and offsets[-1] == end and (np.diff(offsets) >= 0).all()
        )
        expected = f"expected {sequences + 1} numbers that ascend from 0 to {end}"
        check(bool(is_sound), f"{name} is {offsets[:8].tolist()}, {expected}")
    check(not sequences or past.min() >= 0, f"past_lens has {past.min(initial=0)}, expected 0 or more")
    for i in range(sequences):
        own = slice(int(begins[i]), int(begins[i + 1]))
        yield Span(i, own, int(past[i]), blocks[int(block_begins[i]) : int(block_begins[i + 1])])


@op(
    "PagedAttentionExtension", since="extension", unread=True, stateful=True, tolerance=1e-5,
    caches=("key_cache", "value_cache"),
)  # fmt: skip
def paged_attention_extension(
    query: Rows, key: Rows, value: Rows, key_cache: Cache, value_cache: Cache, past_lens: Indices,
    subsequence_begins: Indices, block_indices: Indices, block_indices_begins: Indices, scale: Real,
    sliding_window: Number, alibi_slopes: FloatVector, max_context_len: Number,
    score_aggregation_window: Annotated[np.ndarray, INTEGER, Rank(0, 1)], rotated_block_indices: Indices,
    rotation_deltas: IndicesOrMatrix, rotation_trig_lut: Annotated[FloatTensor, Rank(1, 2)],
    xattention_threshold: Annotated[FloatTensor, Rank(0, 1)], xattention_block_size: Number, xattention_stride: Number,
    sinks: Annotated[FloatTensor, Rank(1, 4)], adaptive_rkv_start_size: Number, adaptive_rkv_evictable_sizes: Indices,
    adaptive_rkv_diversity_block_set_indices: Indices, adaptive_rkv_diversity_block_set_indices_begins: Indices,
    token_type_ids: IndicesOrMatrix | None = None, qq_bias: Bytes | None = None, qq_bias_begins: Indices | None = None,
    *, write_kv_cache: bool = True, caches: Caches = NOT_KEPT, elements: ElementTypes = ElementTypes(),
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Attention of the tokens of each sequence to its keys and values, which are in blocks of a cache.

    Blocks of rotated_block_indices are rotated, then the keys and values of the tokens are written to their places. The
    caches given are those of the first run; a session keeps what was written, as OpenVINO does in the memory of the
    inputs. A token attends to itself and the tokens before it, at most sliding_window and max_context_len of them; a
    token of type 1 to all of its neighbours of type 1 too, and with qq_bias to the new tokens that its row has.

    Outputs: the attention (T, H * V); for each sequence the weights that its positions got from the last
    score_aggregation_window tokens, of all tokens where it is negative, of the last where it is empty; and an empty
    tensor, since the diversity of blocks is not computed, nor is xattention.
    Source: PagedAttentionExtension, and the CPU plugin of openvino 2026.4 for token types, qq_bias and an empty window.
    """
    heads, block, size = key_cache.shape[1:]
    runs = [*spans(len(query), past_lens, subsequence_begins, block_indices, block_indices_begins)]
    check_absent(runs, xattention_threshold, adaptive_rkv_evictable_sizes)
    dtype = np.result_type(query, np.float32)
    keys, values = caches.read("key_cache", key_cache), caches.read("value_cache", value_cache)
    kinds = [*elements[3:5]] or [None, None]
    mixed = np.zeros((len(query), query.shape[1] // max(size, 1) * value_cache.shape[3]), dtype)
    windows = np.broadcast_to(score_aggregation_window if score_aggregation_window.size else 1, past_lens.shape)
    received = []
    for span in runs:
        whole = span.past + span.new
        if not span.new:
            received.append(np.zeros(whole, dtype))
            continue
        rows = span.rows(-(-whole // max(block, 1)), len(keys))
        row, slot = rows[np.arange(whole) // max(block, 1)], np.arange(whole) % max(block, 1)
        _rotate(keys, rows, rotated_block_indices, rotation_deltas, rotation_trig_lut)
        if write_kv_cache:
            for cache, new, kind in ((keys, key, kinds[0]), (values, value, kinds[1])):
                parts = new[span.tokens].reshape(span.new, heads, cache.shape[3])
                cache[row[span.past :], :, slot[span.past :]] = parts if kind is None else round_to(kind, parts)
        queries = (
            query[span.tokens].reshape(span.new, query.shape[1] // max(size, 1), size).swapaxes(0, 1).astype(dtype)
        )
        group = len(queries) // max(heads, 1)
        k, v = (np.repeat(cache[row, :, slot].swapaxes(0, 1), group, 0).astype(dtype) for cache in (keys, values))
        bias = attention_bias(
            span, sliding_window, max_context_len, alibi_slopes.astype(dtype), token_type_ids, qq_bias, qq_bias_begins
        )
        scores = queries @ k.swapaxes(1, 2) * dtype.type(scale.reshape(())) + bias.astype(dtype)
        weights = softmax_with_sink(scores, sinks.reshape(-1, 1, 1).astype(dtype) if sinks.size else None)
        mixed[span.tokens] = (weights @ v).swapaxes(0, 1).reshape(span.new, mixed.shape[1])
        window = int(windows[span.index])
        received.append(weights[:, 0 if window < 0 else max(span.new - window, 0) :].sum((0, 1)))
    if write_kv_cache:
        caches.keep("key_cache", keys)
        caches.keep("value_cache", values)
    total = np.concatenate([*received, np.zeros(0, dtype)])
    return mixed.astype(query.dtype), total.astype(query.dtype), np.zeros(0, query.dtype)


@paged_attention_extension.shape_rule
def _paged_attention_shapes(
    query: Fact, key: Fact, value: Fact, key_cache: Fact, value_cache: Fact, past_lens: Fact, *others: Fact
) -> tuple[Fact, Fact, Fact]:
    element = unify_elements(query, key, value)
    sizes = labelled_sizes(
        "TQ TX TY PKBS PKBV", query=query, key=key, value=value, key_cache=key_cache, value_cache=value_cache
    )
    columns: Size = ANY
    heads, size, value_size = sizes["K"], sizes["S"], sizes["V"]
    if isinstance(heads, int) and isinstance(size, int) and isinstance(value_size, int):
        for name, found, expected in (("key", sizes["X"], heads * size), ("value", sizes["Y"], heads * value_size)):
            check(may_equal(found, expected), f"{name} has {found} columns, expected {expected}")
        if isinstance(sizes["Q"], int):
            of_heads = max(heads * size, 1)
            check(sizes["Q"] % of_heads == 0, f"query has {sizes['Q']} columns, expected a multiple of {of_heads}")
            columns = sizes["Q"] // max(size, 1) * value_size
    _check_counts(sizes, past_lens, others)
    known = past_lens.known
    total: Size = ANY
    if known is not None and isinstance(sizes["T"], int):
        total = sizes["T"] + int(known.sum())
    return Fact(element, (sizes["T"], columns)), Fact(element, (total,)), Fact(element, (0,))


def _check_counts(sizes: Mapping[str, Size], past_lens: Fact, others: Sequence[Fact]) -> None:
    """OpError for an input that is neither empty nor has an element for each head, token or sequence, or each rotated
    block."""
    named = {spec.name: fact for spec, fact in zip(paged_attention_extension.inputs[6:], others, strict=False)}
    columns, size = sizes["Q"], sizes["S"]
    heads = columns // max(size, 1) if isinstance(columns, int) and isinstance(size, int) else ANY
    (sequences,) = sizes_of(past_lens, 1, "past_lens")
    blocks = named["rotated_block_indices"].shape
    for name, expected in (
        ("alibi_slopes", heads),
        ("sinks", heads),
        ("token_type_ids", sizes["T"]),
        ("score_aggregation_window", sequences),
        ("qq_bias_begins", sequences + 1 if isinstance(sequences, int) else ANY),
    ):
        shape = named[name].shape if name in named else None
        if shape:
            elements = count(shape)
            is_sound = may_equal(elements, 0) or may_equal(elements, expected)
            check(is_sound, f"{name} has {elements} elements, expected {expected} or none")
    deltas, table = named["rotation_deltas"].shape, named["rotation_trig_lut"].shape
    if blocks and deltas and not may_equal(blocks[0], 0):
        widths = (1, sizes["B"]) if len(deltas) == 2 else (1,)
        is_sound = may_equal(deltas[0], blocks[0]) and any(may_equal(w, n) for w in deltas[1:] or (1,) for n in widths)
        check(
            is_sound, f"rotation_deltas has shape {shape_text(deltas)} for {blocks[0]} rotated blocks of {sizes['B']}"
        )
    if table and isinstance(size, int):
        numbers = table[-1] if len(table) == 2 else ANY
        check(
            may_equal(numbers, 0) or (may_equal(numbers, size) and size % 2 == 0),
            f"rotation_trig_lut has shape {shape_text(table)} for heads of {size}",
        )


def check_absent(runs: Sequence[Span], xattention: np.ndarray, evictable: np.ndarray) -> None:
    """OpError for a run whose blocks would be chosen by xattention or compared for eviction."""
    is_prefill = len(runs) == 1 and not runs[0].past and runs[0].new > 1
    check(
        not (is_prefill and xattention.size and xattention.min() > 0),
        f"xattention_threshold is {xattention.ravel()[:1].tolist()}, expected nothing: xattention is not computed",
    )
    check(
        not evictable.any(),
        f"adaptive_rkv_evictable_sizes is {evictable[:8].tolist()}, expected zeros: the diversity is not computed",
    )


def _rotate(keys: np.ndarray, rows: np.ndarray, rotated: np.ndarray, deltas: np.ndarray, table: np.ndarray) -> None:
    """Rotate the keys of the rotated blocks among ``rows`` in place, each token by its row of the table."""
    if not rotated.size or not table.size:
        return
    half = keys.shape[3] // 2
    wrong = rotated[(rotated < 0) | (rotated >= len(keys))]
    check(not wrong.size, f"rotated_block_indices has {wrong[:1].tolist()}, expected 0 to {len(keys) - 1}")
    check(table.size % keys.shape[3] == 0, f"rotation_trig_lut has {table.size} elements for heads of {keys.shape[3]}")
    angles, deltas = table.reshape(-1, 2 * half), deltas.reshape(len(rotated), -1)
    check(
        deltas.min() >= 0 and deltas.max() < len(angles),
        f"rotation_deltas has {deltas.min()} to {deltas.max()}, rotation_trig_lut has {len(angles)} rows",
    )
    for row, delta in zip(rotated, deltas, strict=True):
        if row in rows:
            cos, sin = (part.astype(keys.dtype) for part in np.split(angles[delta], 2, 1))
            a, b = keys[row, ..., :half].copy(), keys[row, ..., half:].copy()
            keys[row, ..., :half], keys[row, ..., half:] = a * cos - b * sin, a * sin + b * cos


def attention_bias(
    span: Span, sliding_window: np.ndarray, max_context_len: np.ndarray, slopes: np.ndarray,
    token_type_ids: np.ndarray | None, qq_bias: np.ndarray | None, qq_bias_begins: np.ndarray | None,
) -> np.ndarray:  # fmt: skip
    """The addend of the scores of a sequence, (1 or H, new tokens, tokens): -inf where a token does not attend."""
    at, to = np.arange(span.past, span.past + span.new)[:, None], np.arange(span.past + span.new)
    kept = to <= at
    for limit in (int(sliding_window.item()), int(max_context_len.item())):
        if limit > 0:
            kept &= to > at - limit
    if qq_bias is not None and qq_bias_begins is not None and qq_bias_begins.size:
        begin, end = (int(x) for x in qq_bias_begins[span.index : span.index + 2])
        expected = f"expected a span of {span.new * span.new} of the {len(qq_bias)} elements of qq_bias, or none"
        is_sound = 0 <= begin <= end <= len(qq_bias) and end - begin in (0, span.new * span.new)
        check(is_sound, f"qq_bias_begins is {begin} to {end} for sequence {span.index}, {expected}")
        if end > begin:
            kept[:, span.past :] = qq_bias[begin:end].reshape(span.new, span.new) != 0
    if token_type_ids is not None and token_type_ids.size:
        kinds = token_type_ids.ravel()[span.tokens] == 1
        group = np.cumsum(np.diff(kinds, prepend=False) != 0)
        kept[:, span.past :] |= kinds[:, None] & (group[:, None] == group)
    distances = slopes[:, None, None] * (to - at) if slopes.size else np.zeros((1, 1, 1), np.float32)
    return np.where(kept, distances, -np.inf)
