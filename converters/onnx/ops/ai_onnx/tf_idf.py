"""How often known runs of numbers stand in a sequence."""

from __future__ import annotations

import numpy as np

from converters.onnx.algorithms.expression import Expression, arange
from converters.onnx.context import Context
from converters.onnx.registry import translates
from irexec.dtypes.elements import F32, I64
from irexec.errors import ConversionError, OpError
from irexec.ir.graph import Value


@translates("TfIdfVectorizer", since=9)
def tf_idf_vectorizer(
    b: Context, x: Value, *, max_gram_length: int, max_skip_count: int, min_gram_length: int, mode: str, ngram_counts: list[int],
    ngram_indexes: list[int], pool_int64s: list[int] | None = None, pool_strings: list[str] | None = None,
    weights: list[float] | None = None,
) -> Value:  # fmt: skip
    """Runs of a length, with none or some numbers left out between theirs. Source: ONNX TfIdfVectorizer-9 and its reference."""
    if mode not in ("TF", "IDF", "TFIDF"):
        raise OpError(f"mode is {mode!r}, expected TF, IDF or TFIDF")
    if pool_int64s is None:
        raise ConversionError("runs of texts cannot be counted in IR", unsupported=True)
    flat = b.rank(x) < 2
    rows = b.emit("Reshape", b.convert(x, I64), [1, -1], special_zero=False) if flat else b.convert(x, I64)
    counts, columns = [], []
    first = 0
    for length, grams in enumerate(_grams(pool_int64s, ngram_counts), 1):
        if len(grams) and min_gram_length <= length <= max_gram_length:
            counts.append(_counted(b, rows, grams, max_skip_count if length > 1 else 0))
            columns += ngram_indexes[first : first + len(grams)]
        first += len(grams)
    width = max(ngram_indexes) + 1
    total = b.full(b.constant(0.0), b.emit("Concat", b.unsqueeze(b.size(rows, 0), [0]), b.constant([width]), axis=0))
    if counts:
        joined = b.emit("Concat", *counts, axis=1)
        places = b.full(b.constant([columns]), b.shape_of(joined))
        total = b.emit("ScatterElementsUpdate", total, places, joined, b.constant(1), reduction="sum", use_init_val=True)
    result = _weighted(Expression(b, total), mode, weights, width)
    return b.emit("Squeeze", result.value, [0]) if flat else result.value


def _grams(pool: list[int], starts: list[int]) -> list[np.ndarray]:
    """The runs of length 1, 2, ... from where each length starts in the pool."""
    ends = [*starts[1:], len(pool)]
    if any(not 0 <= start <= end <= len(pool) for start, end in zip(starts, ends, strict=True)):
        raise OpError(f"ngram_counts is {list(starts)} for a pool of {len(pool)}")
    lengths = [(end - start) // length for length, (start, end) in enumerate(zip(starts, ends, strict=True), 1)]
    return [
        np.array(pool[start : start + count * length], np.int64).reshape(count, length)
        for length, (start, count) in enumerate(zip(starts, lengths, strict=True), 1)
    ]


def _counted(b: Context, rows: Value, grams: np.ndarray, most_skipped: int) -> Value:
    """How often each run stands in each row, (rows, runs)."""
    size, length = b.sizes(rows)[1], grams.shape[1]
    total = _counted_apart(b, rows, grams, 1)
    for apart in range(2, most_skipped + 2):
        # A row may be too short for runs that far apart.
        if not isinstance(size, int) or apart * (length - 1) < size:
            total = b.emit("Add", total, _counted_apart(b, rows, grams, apart))
    return total


def _counted_apart(b: Context, rows: Value, grams: np.ndarray, apart: int) -> Value:
    """The runs whose numbers stand ``apart`` places from each other."""
    length = grams.shape[1]
    count = (Expression(b, b.size(rows, 1)) - apart * (length - 1)).maximum(0)
    places = arange(b, 0, count, I64).column() + Expression(b, b.constant(np.arange(length) * apart))
    found = b.unsqueeze(b.emit("Gather", rows, places.value, b.constant(1)), [2])
    equal = b.emit("ReduceLogicalAnd", b.emit("Equal", found, b.constant(grams)), [3], keep_dims=False)
    return b.emit("ReduceSum", b.convert(equal, F32), [1], keep_dims=False)


def _weighted(counts: Expression, mode: str, weights: list[float] | None, width: int) -> Expression:
    """Weights are those of the columns; without any they are 1."""
    kept = counts if mode != "IDF" else (counts > 0).to(F32)
    if mode == "TF" or not weights:
        return kept
    if len(weights) < width:
        raise OpError(f"there are {len(weights)} weights for {width} columns")
    return kept * Expression(counts.b, counts.b.constant(np.array(weights[:width], np.float32)))
