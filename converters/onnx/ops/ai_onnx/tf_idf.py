"""Counts of n-grams."""

from __future__ import annotations

from typing import Literal

import numpy as np

from converters.onnx.algorithms.expression import Expression, arange
from converters.onnx.context import TranslationContext
from converters.onnx.limits import check_unrolled
from converters.onnx.ops.ai_onnx.text import strings
from converters.onnx.registry import translates
from irexec.dtypes.elements import F32, I64
from irexec.errors import OpError
from irexec.ir.graph import Value
from irexec.messages import counted


@translates("TfIdfVectorizer", since=9)
def tf_idf_vectorizer(
    ctx: TranslationContext, x: Value, *, max_gram_length: int, max_skip_count: int, min_gram_length: int,
    mode: Literal["TF", "IDF", "TFIDF"], ngram_counts: list[int], ngram_indexes: list[int],
    pool_int64s: list[int] | None = None, pool_strings: list[str] | None = None, weights: list[float] | None = None,
) -> Value:  # fmt: skip
    """Counts of n-grams whose elements may be separated by skips. Source: ONNX TfIdfVectorizer-9 and its reference."""
    if (pool_int64s is None) == (pool_strings is None):
        raise OpError("either pool_int64s or pool_strings must be given")
    if pool_strings is None:
        pool, wide = pool_int64s or [], ctx.convert(x, I64)
    else:
        words = list(dict.fromkeys(pool_strings))
        indices = {word: i for i, word in enumerate(words)}
        pool = [indices[word] for word in pool_strings]
        wide = ctx.emit("StringLookup", x, strings(ctx, words))
    flat = ctx.rank(x) < 2
    rows = ctx.emit("Reshape", wide, [1, -1], special_zero=False) if flat else wide
    counts, columns = [], []
    first = 0
    for length, grams in enumerate(_grams(pool, ngram_counts), 1):
        if len(grams) and min_gram_length <= length <= max_gram_length:
            counts.append(_counted(ctx, rows, grams, max_skip_count if length > 1 else 0))
            columns += ngram_indexes[first : first + len(grams)]
        first += len(grams)
    if first != len(ngram_indexes) or any(index < 0 for index in ngram_indexes):
        raise OpError(f"ngram_indexes has {len(ngram_indexes)} indices for {first} n-grams, or negative ones")
    width = max(ngram_indexes, default=-1) + 1
    total = ctx.full(
        ctx.constant(0.0), ctx.emit("Concat", ctx.unsqueeze(ctx.size(rows, 0), [0]), ctx.constant([width]), axis=0)
    )
    if counts:
        joined = ctx.emit("Concat", *counts, axis=1)
        positions = ctx.full(ctx.constant([columns]), ctx.shape_of(joined))
        total = ctx.emit(
            "ScatterElementsUpdate", total, positions, joined, ctx.constant(1), reduction="sum", use_init_val=True
        )
    result = _weighted(Expression(ctx, total), mode, weights, width)
    return ctx.emit("Squeeze", result.value, [0]) if flat else result.value


def _grams(pool: list[int], starts: list[int]) -> list[np.ndarray]:
    """The n-grams of length 1, 2, ...; ``starts`` is the index in the pool where each length begins."""
    stops = [*starts[1:], len(pool)]
    if len(stops) != len(starts) or any(
        not 0 <= start <= end <= len(pool) for start, end in zip(starts, stops, strict=True)
    ):
        raise OpError(f"ngram_counts is {list(starts)} for a pool of {len(pool)}")
    lengths = [(end - start) // length for length, (start, end) in enumerate(zip(starts, stops, strict=True), 1)]
    return [
        np.array(pool[start : start + count * length], np.int64).reshape(count, length)
        for length, (start, count) in enumerate(zip(starts, lengths, strict=True), 1)
    ]


def _counted(ctx: TranslationContext, rows: Value, grams: np.ndarray, max_skips: int) -> Value:
    """The count of each n-gram in each row, (rows, n-grams)."""
    size, length, max_distance = ctx.sizes(rows)[1], grams.shape[1], max_skips + 1
    if isinstance(size, int) and length > 1:
        # A row may be too short for n-grams with such skips.
        max_distance = min(max_distance, (size - 1) // (length - 1))
    check_unrolled(max(max_distance, 0), "the distances between the elements of an n-gram")
    total = _counted_at_distance(ctx, rows, grams, 1)
    for distance in range(2, max_distance + 1):
        total = ctx.emit("Add", total, _counted_at_distance(ctx, rows, grams, distance))
    return total


def _counted_at_distance(ctx: TranslationContext, rows: Value, grams: np.ndarray, distance: int) -> Value:
    """The count of n-grams whose elements are ``distance`` apart."""
    length = grams.shape[1]
    count = (Expression(ctx, ctx.size(rows, 1)) - distance * (length - 1)).maximum(0)
    positions = arange(ctx, 0, count, I64).column() + Expression(ctx, ctx.constant(np.arange(length) * distance))
    found = ctx.unsqueeze(ctx.emit("Gather", rows, positions.value, ctx.constant(1)), [2])
    equal = ctx.emit("ReduceLogicalAnd", ctx.emit("Equal", found, ctx.constant(grams)), [3], keep_dims=False)
    return ctx.emit("ReduceSum", ctx.convert(equal, F32), [1], keep_dims=False)


def _weighted(counts: Expression, mode: str, weights: list[float] | None, width: int) -> Expression:
    """The counts times one weight per column; 1 unless given."""
    terms = counts if mode != "IDF" else (counts > 0).to(F32)
    if mode == "TF" or not weights:
        return terms
    if len(weights) < width:
        raise OpError(f"there are {counted(len(weights), 'weight')} for {width} columns")
    return terms * Expression(counts.ctx, counts.ctx.constant(np.array(weights[:width], np.float32)))
