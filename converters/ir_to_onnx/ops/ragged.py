"""Strings, ragged tensors and rows that are pooled by bag or segment.

Rows of a table that are pooled by bag or segment: EmbeddingBag, EmbeddingSegmentsSum, SegmentMax;
SparseFillEmptyRows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.graph import Tensor
from converters.ir_to_onnx.ops.generation import as_i64
from converters.ir_to_onnx.ops.roi import largest
from converters.ir_to_onnx.registry import composed, exact, inexpressible
from irexec.dtypes.elements import BF16, BOOLEAN, F16, F32, F64, I32, I64, STRING, Element, lowest
from irexec.errors import check

_EXTENSION = "extension"


@exact("RaggedTensorPack", since=_EXTENSION)
def ragged_tensor_pack(ctx: ExportContext, begins: Tensor, ends: Tensor, data: Tensor) -> Tensor:
    """Identity."""
    return ctx.emit("Identity", data)


def _range(ctx: ExportContext, count: Tensor) -> Tensor:
    """The numbers below a count, i64."""
    return ctx.emit("Range", ctx.constant(0), ctx.reshape(as_i64(ctx, count), []), ctx.constant(1))


@composed("RaggedToDense", since=_EXTENSION)
def ragged_to_dense(
    ctx: ExportContext, begins: Tensor, ends: Tensor, data: Tensor, size: Tensor, default: Tensor,
    right: Tensor | None = None, *, pad_right: bool, m_pad_max_length: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Gather of the elements of each row, and of the default, which is put after the data, for the others."""
    width, first = ctx.reshape(as_i64(ctx, size), []), ctx.unsqueeze(as_i64(ctx, begins), -1)
    number, length = _range(ctx, size), width
    if not m_pad_max_length:
        length = ctx.emit("Min", ctx.emit("Sub", ctx.unsqueeze(as_i64(ctx, ends), -1), first), width)
    moved = ctx.emit("Sub", number, ctx.emit("Sub", width, length))
    at_left = ctx.emit("Less", number, ctx.emit("Max", length, ctx.constant(0)))
    at_right = ctx.emit("GreaterOrEqual", moved, ctx.constant(0))
    if right is not None:
        flag = ctx.reshape(right, [])
        place, is_own = ctx.where(flag, number, moved), _either(ctx, flag, at_left, at_right)
    else:
        place, is_own = (number, at_left) if pad_right else (moved, at_right)
    rest = ctx.slice(ctx.shape_of(data), 1, None, 0)
    row = ctx.emit("Expand", ctx.reshape(default, []), ctx.concat(ctx.ints(1), rest))
    index = ctx.where(is_own, ctx.emit("Add", first, place), ctx.slice(ctx.emit("Shape", data), 0, 1, 0))
    dense = ctx.emit("Gather", ctx.concat(data, row), index, axis=0)
    inner = data.require_rank("the data") - 1
    mask = ctx.where(is_own, ctx.constant(1), ctx.emit("Mul", index, ctx.constant(0)))
    if inner:
        mask = ctx.unsqueeze(mask, *(-1 - i for i in range(inner)))
    whole = ctx.emit("Expand", mask, ctx.emit("Shape", dense))
    return dense, ctx.emit("Equal", whole, ctx.constant(1))


def _either(ctx: ExportContext, condition: Tensor, then: Tensor, otherwise: Tensor) -> Tensor:
    """``then`` or ``otherwise``, booleans: Where of booleans is not in every runtime."""
    first = ctx.emit("And", condition, then)
    return ctx.emit("Or", first, ctx.emit("And", ctx.emit("Not", condition), otherwise))


@composed("RaggedToSparse", since=_EXTENSION)
def ragged_to_sparse(ctx: ExportContext, begins: Tensor, ends: Tensor) -> Tensor:
    """NonZero of a matrix that is true where a row has an element."""
    lengths = ctx.reshape(ctx.emit("Sub", as_i64(ctx, ends), as_i64(ctx, begins)), [-1])
    is_element = ctx.emit("Less", _range(ctx, largest(ctx, lengths)), ctx.unsqueeze(lengths, 1))
    return ctx.transpose(ctx.emit("NonZero", is_element), [1, 0])


@composed("RaggedToRagged", since=_EXTENSION)
def ragged_to_ragged(ctx: ExportContext, row_ids: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    """The number of row ids below each row, and up to it: Less or LessOrEqual, Cast, ReduceSum."""
    row, ids = ctx.unsqueeze(_range(ctx, size), 1), as_i64(ctx, row_ids)
    begins, ends = (
        ctx.reduce("ReduceSum", ctx.cast(ctx.emit(type, ids, row), I64), [1]) for type in ("Less", "LessOrEqual")
    )
    return begins, ends


@composed("FuzeRagged", since=_EXTENSION)
def fuze_ragged(
    ctx: ExportContext, ragged_begins: Tensor, ragged_ends: Tensor, begins: Tensor, ends: Tensor
) -> tuple[Tensor, Tensor]:
    """Gather of the begin of the first string of each row, and of the end of its last one."""
    first, after = as_i64(ctx, ragged_begins), as_i64(ctx, ragged_ends)
    last = ctx.where(ctx.emit("Greater", after, first), ctx.emit("Sub", after, ctx.constant(1)), after)
    return ctx.emit("Gather", begins, first, axis=0), ctx.emit("Gather", ends, last, axis=0)


@composed("CombineSegments", since=_EXTENSION)
def combine_segments(ctx: ExportContext, *inputs: Tensor) -> tuple[Tensor, ...]:
    """NonZero of a tensor that is true where a row of a segment has an element, and Gather of its places in all
    values."""
    tensors, ids = inputs[:-1], ctx.reshape(inputs[-1], [-1])
    starts = [ctx.reshape(as_i64(ctx, x), [-1]) for x in tensors[0::3]]
    lengths = [
        ctx.emit("Sub", ctx.reshape(as_i64(ctx, end), [-1]), start)
        for end, start in zip(tensors[1::3], starts, strict=True)
    ]
    rows = ctx.emit("Max", *(ctx.emit("Shape", start) for start in starts))
    values = ctx.concat(*tensors[2::3])
    firsts, before = [], ctx.ints(0)
    for start, data in zip(starts, tensors[2::3], strict=True):
        firsts.append(ctx.emit("Add", start, before))
        before = ctx.emit("Add", before, ctx.emit("Shape", data))
    first, length = (
        ctx.concat(*(ctx.unsqueeze(ctx.emit("Expand", x, rows), 1) for x in parts), axis=1)
        for parts in (firsts, lengths)
    )
    is_element = ctx.emit("Less", _range(ctx, largest(ctx, length)), ctx.unsqueeze(length, 2))
    places = ctx.emit("NonZero", is_element)
    pairs, number = ctx.transpose(ctx.slice(places, 0, 2, 0), [1, 0]), ctx.squeeze(ctx.slice(places, 2, 3, 0), 0)
    joined = ctx.emit("Gather", values, ctx.emit("Add", ctx.emit("GatherND", first, pairs), number), axis=0)
    of_segment = ctx.emit("Gather", ids, ctx.squeeze(ctx.slice(places, 1, 2, 0), 0), axis=0)
    total = ctx.reduce("ReduceSum", length, [1])
    ends = ctx.emit("CumSum", total, ctx.constant(0))
    shape = next((x for x in reversed(tensors[0::3]) if x.require_rank("the begins")), tensors[0])
    begins, ends = (ctx.emit("Reshape", x, ctx.emit("Shape", shape)) for x in (ctx.emit("Sub", ends, total), ends))
    return begins, ends, joined, ctx.emit("Identity", begins), ctx.emit("Identity", ends), of_segment


@composed("Truncate", since=_EXTENSION)
def truncate(ctx: ExportContext, *inputs: Tensor, m_num_inputs: int) -> tuple[Tensor, ...]:
    """Begins or ends moved by Min, and for pairs of rows by Where; of a constant side and mode."""
    *tensors, limit, side, mode = inputs
    maximum = ctx.reshape(as_i64(ctx, limit), [])
    ragged = [tuple(as_i64(ctx, x) for x in tensors[i : i + 2]) for i in range(0, len(tensors), 3)]
    lengths = [ctx.emit("Sub", ends, begins) for begins, ends in ragged]
    if len(lengths) == 1:
        kept = [ctx.emit("Min", lengths[0], maximum)]
    else:
        kept = _kept(ctx, lengths, maximum, bytes(mode.require_value("the mode")).decode())
    at_right = bytes(side.require_value("the side")).decode() == "right"
    results: list[Tensor] = []
    for (begins, ends), length, values in zip(ragged, kept, tensors[2::3], strict=True):
        offsets = (begins, ctx.emit("Add", begins, length)) if at_right else (ctx.emit("Sub", ends, length), ends)
        results += [*offsets, ctx.emit("Identity", values)]
    return tuple(results)


def _kept(ctx: ExportContext, lengths: Sequence[Tensor], maximum: Tensor, mode: str) -> list[Tensor]:
    """The lengths that are kept of pairs of rows."""
    first, second = lengths
    too_long = ctx.emit("Greater", ctx.emit("Add", first, second), maximum)
    if mode != "longest_first":
        index = 0 if mode == "only_first" else 1
        cut = ctx.where(too_long, ctx.emit("Min", lengths[index], maximum), lengths[index])
        return [cut, second] if index == 0 else [first, cut]
    odd, small = (ctx.emit(type, maximum, ctx.constant(2)) for type in ("Mod", "Div"))
    large = ctx.emit("Add", small, odd)
    is_long = ctx.emit("GreaterOrEqual", first, large)
    other_is_long = ctx.emit("Greater", second, small)
    cut_first = ctx.emit("And", is_long, ctx.emit("Not", other_is_long))
    cut_second = ctx.emit("And", ctx.emit("Not", is_long), other_is_long)
    is_longer = ctx.cast(ctx.emit("GreaterOrEqual", first, second), I64)
    halves = [
        ctx.emit("Add", small, ctx.emit("Mul", odd, part))
        for part in (is_longer, ctx.emit("Sub", ctx.constant(1), is_longer))
    ]
    rests = [ctx.emit("Sub", maximum, length) for length in (second, first)]
    of_first = ctx.where(cut_first, rests[0], ctx.where(cut_second, first, halves[0]))
    of_second = ctx.where(cut_second, rests[1], ctx.where(cut_first, second, halves[1]))
    return [ctx.where(too_long, of, length) for of, length in zip((of_first, of_second), lengths, strict=True)]


def _rows(ctx: ExportContext, table: Tensor, indices: Tensor, weights: Tensor | None) -> Tensor:
    rows = ctx.emit("Gather", table, as_i64(ctx, indices), axis=0)
    if weights is None:
        return rows
    rank = table.require_rank("the table")
    count = weights.require_rank("the weights")
    return ctx.emit("Mul", rows, ctx.unsqueeze(weights, *range(count, count + rank - 1)) if rank > 1 else weights)


@composed("EmbeddingBagPackedSum")
def embedding_bag_packed_sum(
    ctx: ExportContext, table: Tensor, indices: Tensor, weights: Tensor | None = None
) -> Tensor:
    """Gather, Mul by weights, ReduceSum."""
    return _packed(ctx, table, indices, weights, "sum")


@composed("EmbeddingBagPacked")
def embedding_bag_packed(
    ctx: ExportContext, table: Tensor, indices: Tensor, weights: Tensor | None = None, *, reduction: str
) -> Tensor:
    """Gather, Mul by weights, ReduceSum; the mean by Div."""
    return _packed(ctx, table, indices, weights, reduction)


def _packed(ctx: ExportContext, table: Tensor, indices: Tensor, weights: Tensor | None, reduction: str) -> Tensor:
    sums = ctx.reduce("ReduceSum", _summable(ctx, _rows(ctx, table, indices, weights)), [1])
    if reduction == "mean":
        count = ctx.emit("Max", ctx.slice(ctx.shape_of(indices), 1, 2, 0), ctx.ints(1))
        sums = ctx.emit("Div", sums, ctx.cast(count, sums.element))
    return ctx.cast(sums, table.element)


def _summable(ctx: ExportContext, rows: Tensor) -> Tensor:
    """Rows in a type that ONNX Runtime sums in."""
    if rows.element in (F32, F64, I32, I64):
        return rows
    return ctx.cast(rows, F32 if rows.element in (F16, BF16) else I64)


@composed("EmbeddingBagOffsetsSum")
def embedding_bag_offsets_sum(
    ctx: ExportContext, table: Tensor, indices: Tensor, offsets: Tensor, default_index: Tensor | None = None,
    weights: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The bag of each index by comparison with the offsets, Gather, ScatterND that adds; Where for empty bags."""
    return _by_offsets(ctx, table, indices, offsets, default_index, weights, "sum")


@composed("EmbeddingBagOffsets")
def embedding_bag_offsets(
    ctx: ExportContext, table: Tensor, indices: Tensor, offsets: Tensor, default_index: Tensor | None = None,
    weights: Tensor | None = None, *, reduction: str,
) -> Tensor:  # fmt: skip
    """The bag of each index by comparison with the offsets, Gather, ScatterND that adds, Div; Where for empty bags."""
    return _by_offsets(ctx, table, indices, offsets, default_index, weights, reduction)


def _by_offsets(
    ctx: ExportContext, table: Tensor, indices: Tensor, offsets: Tensor, default_index: Tensor | None,
    weights: Tensor | None, reduction: str,
) -> Tensor:  # fmt: skip
    offsets = as_i64(ctx, offsets)
    count = ctx.reshape(ctx.shape_of(indices), [])
    number = ctx.emit("Range", ctx.constant(0), count, ctx.constant(1))
    begun = ctx.emit("LessOrEqual", ctx.unsqueeze(offsets, 0), ctx.unsqueeze(number, 1))
    bags = ctx.emit("Sub", ctx.reduce("ReduceSum", ctx.cast(begun, I64), [1]), ctx.constant(1))
    rows = _rows(ctx, table, indices, weights)
    return _pooled(ctx, table, rows, bags, ctx.shape_of(offsets), default_index, reduction)


@composed("EmbeddingSegmentsSum")
def embedding_segments_sum(
    ctx: ExportContext, table: Tensor, indices: Tensor, segment_ids: Tensor, num_segments: Tensor,
    default_index: Tensor | None = None, weights: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Gather, ScatterND that adds; Where for empty segments."""
    count = ctx.reshape(as_i64(ctx, num_segments), [1])
    rows = _rows(ctx, table, indices, weights)
    return _pooled(ctx, table, rows, as_i64(ctx, segment_ids), count, default_index, "sum")


def _scattered(
    ctx: ExportContext, rows: Tensor, groups: Tensor, count: Tensor, first: float, reduction: str
) -> tuple[Tensor, Tensor]:
    """The reduction of the rows of each of ``count`` groups, and how many there are, both with a last group for rows
    of no group."""
    check(ctx.opset >= (16 if reduction == "add" else 18), f"ONNX's ScatterND of opset {ctx.opset} does not reduce")
    last = ctx.reshape(count, [])
    is_in = ctx.emit("And", ctx.emit("GreaterOrEqual", groups, ctx.constant(0)), ctx.emit("Less", groups, last))
    places = ctx.unsqueeze(ctx.where(is_in, groups, last), 1)
    total = ctx.emit("Add", count, ctx.ints(1))
    shape = ctx.concat(total, ctx.slice(ctx.emit("Shape", rows), 1, None, 0))
    start = ctx.emit("Expand", ctx.scalar(first, rows), shape)
    ones = ctx.emit("Expand", ctx.constant(1), ctx.emit("Shape", groups))
    counts = ctx.emit("ScatterND", ctx.emit("Expand", ctx.constant(0), total), places, ones, reduction="add")
    return ctx.emit("ScatterND", start, places, rows, reduction=reduction), counts


def _pooled(
    ctx: ExportContext, table: Tensor, rows: Tensor, bags: Tensor, count: Tensor, default_index: Tensor | None,
    reduction: str,
) -> Tensor:  # fmt: skip
    rank = table.require_rank("the table")
    sums, counts = _scattered(ctx, _summable(ctx, rows), bags, count, 0, "add")
    counts = ctx.unsqueeze(counts, *range(1, rank)) if rank > 1 else counts
    if reduction == "mean":
        sums = ctx.emit("Div", sums, ctx.cast(ctx.emit("Max", counts, ctx.constant(1)), sums.element))
    zero = ctx.scalar(0, sums)
    empty = zero
    if default_index is not None:
        index = ctx.reshape(as_i64(ctx, default_index), [])
        row = ctx.emit("Gather", table, ctx.emit("Max", index, ctx.constant(0)), axis=0)
        empty = ctx.where(ctx.emit("Less", index, ctx.constant(0)), zero, ctx.cast(row, sums.element))
    found = ctx.where(ctx.emit("Greater", counts, ctx.constant(0)), sums, empty)
    return ctx.cast(ctx.emit("Slice", found, ctx.ints(0), count, ctx.ints(0)), table.element)


@composed("SegmentMax")
def segment_max(
    ctx: ExportContext, data: Tensor, segment_ids: Tensor, num_segments: Tensor | None = None, *, fill_mode: str
) -> Tensor:
    """ScatterND that takes the maximum; Where for empty segments."""
    ids, rank = as_i64(ctx, segment_ids), data.require_rank("the data")
    if num_segments is None:
        count = ctx.emit("Add", ctx.slice(ids, -1, None, 0), ctx.ints(1))
    else:
        count = ctx.reshape(as_i64(ctx, num_segments), [1])
    wide = _summable(ctx, data)
    first = -np.inf if wide.element.is_float else float(np.iinfo(wide.element.carrier).min)
    maxima, counts = _scattered(ctx, wide, ids, count, first, "max")
    counts = ctx.unsqueeze(counts, *range(1, rank)) if rank > 1 else counts
    fill = ctx.constant(0 if fill_mode == "zero" else lowest(data.element), data.element)
    found = ctx.where(ctx.emit("Greater", counts, ctx.constant(0)), ctx.cast(maxima, data.element), fill)
    return ctx.emit("Slice", found, ctx.ints(0), count, ctx.ints(0))


@composed("SparseFillEmptyRows")
def sparse_fill_empty_rows(
    ctx: ExportContext, values: Tensor, dense_shape: Tensor, indices: Tensor, default_value: Tensor
) -> tuple[Tensor, ...]:
    """The rows without elements by ScatterElements and NonZero, Concat, and TopK of the positions."""
    sizes, given = as_i64(ctx, dense_shape), as_i64(ctx, indices)
    rows, columns = ctx.slice(sizes, 0, 1, 0), ctx.slice(sizes, 1, 2, 0)
    given_rows = ctx.squeeze(ctx.slice(given, 0, 1, 1), 1)
    zeros = ctx.emit("Expand", ctx.constant(0), ctx.emit("Shape", given_rows))
    flags = ctx.emit("ScatterElements", ctx.emit("Expand", ctx.constant(1), rows), given_rows, zeros, axis=0)
    filling = ctx.emit("Pad", ctx.transpose(ctx.emit("NonZero", flags), [1, 0]), ctx.ints(0, 0, 0, 1))
    together = ctx.emit("Concat", given, filling, axis=0)
    count = ctx.slice(ctx.emit("Shape", filling), 0, 1, 0)
    default = ctx.emit("Expand", ctx.reshape(default_value, [1]), count)
    # In row-major order; TopK takes the first of equal ones.
    widths = ctx.concat(ctx.emit("Max", columns, ctx.ints(1)), ctx.ints(1))
    keys = ctx.reduce("ReduceSum", ctx.emit("Mul", together, widths), [1])
    _, order = ctx.emit_all("TopK", 2, keys, ctx.emit("Shape", keys), axis=0, largest=0)
    all_values = ctx.emit("Gather", ctx.emit("Concat", values, default, axis=0), order, axis=0)
    return ctx.emit("Gather", together, order, axis=0), all_values, ctx.cast(flags, BOOLEAN)


@exact("StringConcat", since="irexec")
def string_concat(ctx: ExportContext, a: Tensor, b: Tensor) -> Tensor:
    """StringConcat."""
    return ctx.emit("StringConcat", a, b)


def text_of(tensor: Tensor, what: str) -> str:
    """The text of a constant string."""
    return str(tensor.require_value(what).reshape(-1)[0])


@exact("StringSplit", since="irexec")
def string_split(ctx: ExportContext, data: Tensor, delimiter: Tensor, *, maxsplit: int) -> tuple[Tensor, ...]:
    """StringSplit of a constant delimiter."""
    limit = None if maxsplit < 0 else maxsplit
    return ctx.emit_all("StringSplit", 2, data, delimiter=text_of(delimiter, "the delimiter"), maxsplit=limit)


@exact("RegexFullMatch", since="irexec")
def regex_full_match(ctx: ExportContext, data: Tensor, pattern: Tensor) -> Tensor:
    """RegexFullMatch of a constant pattern."""
    return ctx.emit("RegexFullMatch", data, pattern=text_of(pattern, "the pattern"))


@exact("StringNormalizer", since="irexec")
def string_normalizer(
    ctx: ExportContext, data: Tensor, stopwords: Tensor, *, case_change_action: str, is_case_sensitive: bool
) -> Tensor:
    """StringNormalizer of constant stopwords."""
    words = [str(word) for word in stopwords.require_value("the list of stopwords").ravel().tolist()]
    return ctx.emit(
        "StringNormalizer", data, case_change_action=case_change_action, is_case_sensitive=int(is_case_sensitive),
        stopwords=words or None,
    )  # fmt: skip


@exact("StringLookup", since="irexec")
def string_lookup(ctx: ExportContext, data: Tensor, keys: Tensor) -> Tensor:
    """LabelEncoder of ai.onnx.ml, of constant keys."""
    words = [str(word) for word in keys.require_value("the list of keys").ravel().tolist()]
    first = {word: i for i, word in reversed(list(enumerate(words)))}
    if not first:
        return ctx.emit("Expand", ctx.constant(-1), ctx.shape_of(data))
    return ctx.emit(
        "LabelEncoder", data, domain="ai.onnx.ml", element=I64, keys_strings=list(first),
        values_int64s=[*first.values()], default_int64=-1,
    )  # fmt: skip


@exact("StringToNumber", since="irexec")
def string_to_number(ctx: ExportContext, data: Tensor, *, destination_type: Element) -> Tensor:
    """Cast."""
    return ctx.cast(data, destination_type)


@exact("AsString", since="irexec")
def as_string(ctx: ExportContext, data: Tensor) -> Tensor:
    """Cast."""
    return ctx.cast(data, STRING)


@exact("StringTokenizer", since="irexec")
def string_tokenizer(
    ctx: ExportContext, data: Tensor, patterns: Tensor, pad_value: Tensor, *, mode: str, mark: bool, min_length: int
) -> Tensor:
    """Tokenizer of com.microsoft, of constant patterns: ONNX Runtime's own operator."""
    words = [str(word) for word in patterns.require_value("the list of patterns").ravel().tolist()]
    check(mode != "tokens" or len(words) == 1, "the expression of a token is one")
    options = {"tokenexp": words[0]} if mode == "tokens" else {"separators": words if mode == "separators" else [""]}
    return ctx.emit(
        "Tokenizer", data, domain="com.microsoft", mark=int(mark), mincharnum=min_length,
        pad_value=text_of(pad_value, "the padding"), **options,
    )  # fmt: skip


_BYTES = "ONNX has no operators on the bytes of strings"
_TOKENS = "a step of OpenVINO's tokenizers, which works on ragged tensors of bytes: ONNX has neither"
inexpressible("StringTensorPack", "StringTensorUnpack", reason=_BYTES, since=15)
inexpressible("StringTensorPack", "StringTensorUnpack", reason=_BYTES, since="extension")
inexpressible(
    "BPETokenizer", "ByteFallback", "BytesToChars", "CaseFold", "CharsMapNormalization", "CharsToBytes",
    "EqualStr", "NormalizeUnicode", "RegexNormalization", "RegexSplit", "SentencepieceDetokenizer",
    "SentencepieceStreamDetokenizer", "SentencepieceTokenizer", "SpecialTokensSplit", "StringToHashBucket",
    "TrieTokenizer", "UTF8Validate", "UnigramTokenizer", "VocabDecoder", "VocabEncoder", "WordpieceTokenizer",
    reason=_TOKENS, since="extension",
)  # fmt: skip
