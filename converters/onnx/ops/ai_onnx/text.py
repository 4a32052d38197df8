"""Strings, which become operations of irexec, and counts of n-grams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from converters.onnx.algorithms.expression import Expression, arange
from converters.onnx.context import TranslationContext
from converters.onnx.graphs import check_unrolled
from converters.onnx.registry import translates
from irexec.dtypes.elements import F32, I64, STRING
from irexec.errors import ConversionError, OpError
from irexec.ir.graph import Value
from irexec.messages import counted


def strings(ctx: TranslationContext, values: list[str] | str) -> Value:
    """A constant of strings: a vector of a list, or a scalar."""
    return ctx.constant(np.array(values, object), STRING)


@translates("StringConcat", since=20)
def string_concat(ctx: TranslationContext, x: Value, y: Value) -> Value:
    return ctx.emit("StringConcat", x, y)


@translates("StringSplit", since=20)
def string_split(
    ctx: TranslationContext, x: Value, *, delimiter: str = "", maxsplit: int | None = None
) -> tuple[Value, ...]:
    limit = -1 if maxsplit is None else maxsplit
    return tuple(ctx.emit("StringSplit", x, strings(ctx, delimiter), maxsplit=limit))


@translates("RegexFullMatch", since=20)
def regex_full_match(ctx: TranslationContext, x: Value, *, pattern: str = "") -> Value:
    return ctx.emit("RegexFullMatch", x, strings(ctx, pattern))


@translates("StringNormalizer", since=10)
def string_normalizer(
    ctx: TranslationContext, x: Value, *, case_change_action: Literal["NONE", "LOWER", "UPPER"] = "NONE",
    is_case_sensitive: int = 0, locale: str = "", stopwords: list[str] | None = None,
) -> Value:  # fmt: skip
    """Case is changed as Unicode has it, whatever the locale."""
    return ctx.emit(
        "StringNormalizer", x, strings(ctx, stopwords or []), case_change_action=case_change_action,
        is_case_sensitive=bool(is_case_sensitive),
    )  # fmt: skip


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
    counts: list[Value] = []
    chosen: list[int] = []
    first = 0
    for length, grams in enumerate(_grams(pool, ngram_counts), 1):
        if len(grams) and min_gram_length <= length <= max_gram_length:
            counts.append(_counted(ctx, rows, grams, max_skip_count if length > 1 else 0))
            chosen += range(first, first + len(grams))
        first += len(grams)
    if first != len(ngram_indexes) or any(index < 0 for index in ngram_indexes):
        raise OpError(f"ngram_indexes has {len(ngram_indexes)} indices for {first} n-grams, or negative ones")
    if weights and len(weights) != first:
        raise OpError(f"there are {counted(len(weights), 'weight')} for {first} n-grams")
    columns = _Columns(ngram_indexes, weights or [1.0] * first, chosen)
    result = columns.filled(ctx, rows, counts, mode)
    return ctx.emit("Squeeze", result, [0]) if flat else result


@dataclass(frozen=True)
class _Columns:
    """The columns of the result.

    Attributes:
        indices, weights: column and weight of each n-gram.
        chosen: the n-grams that are counted.
    """

    indices: list[int]
    weights: list[float]
    chosen: list[int]

    def filled(self, ctx: TranslationContext, rows: Value, counts: list[Value], mode: str) -> Value:
        """The columns filled with counts of ``chosen``, (rows, n-grams). Several n-grams may have one column."""
        width = max(self.indices, default=-1) + 1
        shape = ctx.emit("Concat", ctx.unsqueeze(ctx.size(rows, 0), [0]), ctx.constant([width]), axis=0)
        total = ctx.full(ctx.constant(0.0), shape)
        if not counts:
            return total
        joined = Expression(ctx, ctx.emit("Concat", *counts, axis=1))
        if mode == "TFIDF":
            joined = joined * Expression(
                ctx, ctx.constant(np.array([self.weights[i] for i in self.chosen], np.float32))
            )
        positions = ctx.full(ctx.constant([[self.indices[i] for i in self.chosen]]), ctx.shape_of(joined.value))
        total = ctx.emit(
            "ScatterElementsUpdate", total, positions, joined.value, ctx.constant(1), reduction="sum", use_init_val=True
        )
        if mode != "IDF":
            return total
        return ((Expression(ctx, total) > 0).to(F32) * Expression(ctx, ctx.constant(self._of_columns(width)))).value

    def _of_columns(self, width: int) -> np.ndarray:
        """The weight of each column."""
        found: dict[int, float] = {}
        for i in self.chosen:
            if found.setdefault(self.indices[i], self.weights[i]) != self.weights[i]:
                text = f"mode IDF cannot be converted: n-grams of column {self.indices[i]} have different weights"
                raise ConversionError(text, unsupported=True)
        return np.array([found.get(column, 0.0) for column in range(width)], np.float32)


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
