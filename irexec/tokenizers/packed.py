"""Tensors of texts: packed strings, ragged rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import starmap
from typing import Annotated, Any

import numpy as np

from irexec.dtypes.elements import BOOLEAN, I32, U8
from irexec.errors import OpError, check
from irexec.ir.dims import ANY, PartialShape, Shape, Size, meet_shapes
from irexec.ir.facts import Fact
from irexec.plugins import operation
from irexec.reference.indexing import as_indices
from irexec.reference.limits import Growth, check_memory, check_time
from irexec.schema.opdef import ONE_ELEMENT, VECTOR, AnyTensor, BooleanTensor, IntegerTensor, Rank, Tensor, element_set
from irexec.schema.shape_rules import unify_elements

Offsets = Annotated[np.ndarray, element_set("i32", I32)]
Bytes = Annotated[np.ndarray, element_set("u8", U8), VECTOR]
Flags = Annotated[np.ndarray, element_set("boolean", BOOLEAN)]
Number = Annotated[np.ndarray, element_set("i32", I32), ONE_ELEMENT]

Packed = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Begins, ends and chars."""
StringFacts = tuple[Fact, Fact, Fact]
RaggedStringFacts = tuple[Fact, Fact, Fact, Fact, Fact]


def unpack(begins: np.ndarray, ends: np.ndarray, chars: np.ndarray) -> list[bytes]:
    """The bytes of each string.

    Raises:
        OpError: an offset is outside of chars, or an end is before its begin.
    """
    check_offsets(begins, ends, len(chars), "chars")
    # The same bytes can be those of any number of strings.
    check_memory((_total(begins, ends),), chars.dtype, "the bytes of the strings")
    text = chars.tobytes()
    spans = zip(begins.ravel().tolist(), ends.ravel().tolist(), strict=True)
    return [text[begin:end] for begin, end in spans]


def _total(begins: np.ndarray, ends: np.ndarray) -> int:
    """Number of elements between begins and ends."""
    return int(ends.sum(dtype=np.int64) - begins.sum(dtype=np.int64))


def check_offsets(begins: np.ndarray, ends: np.ndarray, size: int, of: str) -> None:
    """Raise OpError unless begins and ends have the same shape and are offsets into ``size`` elements."""
    check(begins.shape == ends.shape, f"begins have shape {list(begins.shape)}, ends {list(ends.shape)}")
    inside = (begins >= 0) & (begins <= ends) & (ends <= size)
    if not inside.all():
        at = int(np.argmin(inside.ravel()))
        begin, end = int(begins.ravel()[at]), int(ends.ravel()[at])
        raise OpError(f"string {at} is from {begin} to {end}, outside of {size} elements of {of}")


def pack(strings: Sequence[bytes], shape: Sequence[int]) -> Packed:
    """Begins, ends and chars of strings, one after the other."""
    ends = np.cumsum([len(string) for string in strings], dtype=np.int64)
    check(not len(ends) or int(ends[-1]) < 1 << 31, "the strings have more than 2 GiB of bytes")
    # Joined, and copied for NumPy.
    check_memory((2, *ends[-1:].tolist()), np.dtype(np.uint8), "the bytes of the strings")
    begins = np.concatenate([np.zeros(1, np.int64), ends])[: len(strings)]
    chars = np.frombuffer(b"".join(strings), np.uint8).copy()
    return begins.astype(np.int32).reshape(shape), ends.astype(np.int32).reshape(shape), chars


def converted(
    begins: np.ndarray, ends: np.ndarray, chars: np.ndarray, skips: np.ndarray | None, convert: Callable[[bytes], bytes]
) -> Packed:
    """Each string converted; those that ``skips`` marks stay as they are. The same string is converted once."""
    strings = unpack(begins, ends, chars)
    skipped = [False] * len(strings) if skips is None else skips.ravel().tolist()
    check(len(skipped) == len(strings), f"there are {len(skipped)} skips for {len(strings)} strings")
    known: dict[bytes, bytes] = {}
    growth = Growth("the bytes of the strings")
    for i, (string, skip) in enumerate(zip(strings, skipped, strict=True)):
        if not skip:
            if string not in known:
                check_time()
                known[string] = convert(string)
                growth.add(len(known[string]))
            strings[i] = known[string]
    return pack(strings, begins.shape)


def converted_with_flags(
    begins: np.ndarray, ends: np.ndarray, chars: np.ndarray, skips: np.ndarray | None, convert: Callable[[bytes], bytes]
) -> tuple[np.ndarray, ...]:
    """The strings of ``converted``, and a copy of ``skips`` if there are any."""
    return *converted(begins, ends, chars, skips, convert), *(() if skips is None else (skips.copy(),))


def converted_facts(begins: Fact, ends: Fact, chars: Fact) -> StringFacts:
    """The shape rule of operations that convert each string."""
    return string_facts(meet_shapes(begins.shape, ends.shape))


def rows(ragged_begins: np.ndarray, ragged_ends: np.ndarray, size: int) -> list[range]:
    """The indices of each row of a ragged tensor.

    Raises:
        OpError: a row is outside of the ``size`` elements of the flat tensor.
    """
    check_offsets(ragged_begins, ragged_ends, size, "the flat tensor")
    # Rows may overlap.
    check_memory((_total(ragged_begins, ragged_ends),), np.dtype(np.int64), "the elements of the rows")
    return list(starmap(range, zip(ragged_begins.ravel().tolist(), ragged_ends.ravel().tolist(), strict=True)))


def row_offsets(counts: Sequence[int], shape: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Begins and ends of rows of these lengths, one after the other."""
    ends = np.cumsum(np.asarray(counts, np.int64), dtype=np.int64).astype(np.int32).reshape(shape)
    return (ends - np.asarray(counts, np.int32).reshape(shape)).astype(np.int32), ends


def text(raw: bytes) -> str:
    """The characters of UTF-8; bytes that are none become surrogates, which ``raw_bytes`` turns back."""
    return raw.decode("utf-8", "surrogateescape")


def raw_bytes(text: str) -> bytes:
    """The UTF-8 of characters, see ``text``."""
    return text.encode("utf-8", "surrogateescape")


def string_facts(shape: Shape | None) -> StringFacts:
    """Facts of strings of this shape."""
    return Fact(I32, shape), Fact(I32, shape), Fact(U8, (ANY,))


def ragged_string_facts(shape: Shape | None) -> RaggedStringFacts:
    """Facts of a ragged tensor of strings with rows of this shape."""
    return Fact(I32, shape), Fact(I32, shape), Fact(I32, (ANY,)), Fact(I32, (ANY,)), Fact(U8, (ANY,))


def ragged_facts(shape: Shape | None) -> StringFacts:
    """Facts of a ragged tensor of token ids with rows of this shape."""
    return Fact(I32, shape), Fact(I32, shape), Fact(I32, (ANY,))


Values = Annotated[Tensor, Rank(1)]
MODES = ("only_first", "only_second", "longest_first")


@operation("RaggedTensorPack", domain="extension", view=True)
def ragged_tensor_pack(begins: Offsets, ends: Offsets, data: AnyTensor) -> np.ndarray:
    """The flat tensor of a ragged tensor; begins and ends are dropped."""
    return data


@ragged_tensor_pack.shape_rule
def _ragged_tensor_pack_facts(begins: Fact, ends: Fact, data: Fact) -> Fact:
    return Fact(data.element, data.shape)


@operation("RaggedToDense", domain="extension")
def ragged_to_dense(
    begins: Offsets,
    ends: Offsets,
    data: Annotated[Tensor, Rank(1, None)],
    size: Annotated[IntegerTensor, ONE_ELEMENT],
    default: Annotated[Tensor, ONE_ELEMENT],
    right: Annotated[BooleanTensor, ONE_ELEMENT] | None = None,
    *,
    pad_right: bool = True,
    m_pad_max_length: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Rows padded with ``default``, or cut, to ``size``; and a mask, which is true where the elements are those of a
    row. ``right`` takes precedence over ``pad_right``.

    With ``m_pad_max_length`` OpenVINO reads ``size`` elements from the begin of each row, whatever its end is.
    """
    width = int(np.asarray(size).ravel()[0])
    check(width >= 0, f"size is {width}, expected 0 or more")
    if m_pad_max_length:
        ends = begins + width
    check_offsets(begins, ends, len(data), "data")
    at_right = pad_right if right is None else bool(np.asarray(right).ravel()[0])
    shape = (begins.size, width, *data.shape[1:])
    check_memory(shape, data.dtype, "the padded rows")
    dense = np.full(shape, np.asarray(default).ravel()[0], data.dtype)
    mask = np.zeros(shape, np.bool_)
    for i, (begin, end) in enumerate(zip(begins.ravel().tolist(), ends.ravel().tolist(), strict=True)):
        length = min(end - begin, width)
        place = slice(length) if at_right else slice(width - length, width)
        dense[i, place] = data[begin : begin + length]
        mask[i, place] = True
    whole = (*begins.shape, width, *data.shape[1:])
    return dense.reshape(whole), mask.reshape(whole)


@ragged_to_dense.shape_rule
def _ragged_to_dense_facts(
    begins: Fact, ends: Fact, data: Fact, size: Fact, default: Fact, right: Fact | None = None
) -> tuple[Fact, Fact]:
    unify_elements(data, default)
    outer = meet_shapes(begins.shape, ends.shape)
    width = size.scalar("size")
    check(width is None or width >= 0, f"size is {width}, expected 0 or more")
    shape: PartialShape = None
    if outer is not None and data.shape is not None:
        shape = (*outer, ANY if width is None else width, *data.shape[1:])
    return Fact(data.element, shape), Fact(BOOLEAN, shape)


@operation("RaggedToSparse", domain="extension")
def ragged_to_sparse(begins: Offsets, ends: Offsets) -> np.ndarray:
    """The row and the column of each element."""
    check(bool((ends >= begins).all()), "an end is before its begin")
    lengths = as_indices((ends.astype(np.int64) - begins).ravel())
    check_memory((int(lengths.sum()), 4), np.dtype(np.int64), "the rows and columns of the elements")
    row = np.repeat(np.arange(lengths.size), lengths)
    column = np.arange(row.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.stack([row, column], axis=1).astype(np.int32)


@ragged_to_sparse.shape_rule
def _ragged_to_sparse_facts(begins: Fact, ends: Fact) -> Fact:
    meet_shapes(begins.shape, ends.shape)
    return Fact(I32, (ANY, 2))


@operation("RaggedToRagged", domain="extension")
def ragged_to_ragged(row_ids: Annotated[Offsets, VECTOR], size: Number) -> tuple[np.ndarray, np.ndarray]:
    """Begins and ends of ``size`` rows; ``row_ids`` has the row of each element, in ascending order."""
    check(bool((row_ids >= 0).all()), "a row id is negative")
    check(bool((np.diff(row_ids) >= 0).all()), "row ids are not in ascending order")
    check_memory((_size(size), 4), np.dtype(np.int64), "the begins and ends of the rows")
    numbers = np.arange(_size(size))
    begins, ends = np.searchsorted(row_ids, numbers, "left"), np.searchsorted(row_ids, numbers, "right")
    return begins.astype(np.int32), ends.astype(np.int32)


@ragged_to_ragged.shape_rule
def _ragged_to_ragged_facts(row_ids: Fact, size: Fact) -> tuple[Fact, Fact]:
    known = size.known
    rows: Size = ANY if known is None else _size(known)
    return Fact(I32, (rows,)), Fact(I32, (rows,))


def _size(size: np.ndarray) -> int:
    number = int(np.asarray(size).ravel()[0])
    check(number >= 0, f"size is {number}, expected 0 or more")
    return number


@operation("FuzeRagged", domain="extension")
def fuze_ragged(
    ragged_begins: Offsets, ragged_ends: Offsets, begins: Annotated[Offsets, VECTOR], ends: Annotated[Offsets, VECTOR]
) -> tuple[np.ndarray, np.ndarray]:
    """Begin and end of each row as one string: those of its first and of its last string."""
    check_offsets(ragged_begins, ragged_ends, len(begins), "begins")
    check(len(begins) == len(ends), f"there are {len(begins)} begins and {len(ends)} ends")
    last = np.where(ragged_ends > ragged_begins, ragged_ends - 1, ragged_ends)
    check(not last.size or int(last.max()) < len(ends), "the last row is empty, so that it has no begin and end")
    return begins[ragged_begins], ends[last]


@fuze_ragged.shape_rule
def _fuze_ragged_facts(ragged_begins: Fact, ragged_ends: Fact, begins: Fact, ends: Fact) -> tuple[Fact, Fact]:
    shape = meet_shapes(ragged_begins.shape, ragged_ends.shape)
    meet_shapes(begins.shape, ends.shape)
    return Fact(I32, shape), Fact(I32, shape)


@operation("CombineSegments", domain="extension")
def combine_segments(
    *inputs: Tensor,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows of several ragged tensors joined, and the id of the tensor of each element.

    Inputs are begins, ends and values of each ragged tensor, then one id for each. A tensor of one row is broadcast.
    """
    segments, ids = _segments(inputs), inputs[-1].ravel()
    check(len(ids) == len(segments), f"there are {len(ids)} ids for {len(segments)} ragged tensors")
    shape = next((begins.shape for begins, _, _ in reversed(segments) if begins.ndim), ())
    number = max(begins.size for begins, _, _ in segments)
    check(int(np.prod(shape)) == number, f"rows have shape {list(shape)}, a ragged tensor has {number} rows")
    pieces = [_pieces(*segment, number) for segment in segments]
    joined = [piece for row in zip(*pieces, strict=True) for piece in row]
    lengths = np.array([len(piece) for piece in joined], np.intp).reshape(number, len(segments))
    check_memory((int(lengths.sum()), 2), np.dtype(np.int64), "the joined rows")
    values = np.concatenate([segments[0][2][:0], *joined])
    begins, ends = row_offsets(lengths.sum(axis=1).tolist(), shape)
    return begins, ends, values, begins.copy(), ends.copy(), np.repeat(np.tile(ids, number), lengths.ravel())


@combine_segments.shape_rule
def _combine_segments_facts(*inputs: Fact) -> tuple[Fact, Fact, Fact, Fact, Fact, Fact]:
    shape: PartialShape = ()
    for begins, ends, values in _segments(inputs):
        for fact in (begins, ends):
            check(fact.element in (None, I32), f"begins and ends have element type {fact.element}, expected i32")
        check(values.rank in (None, 1), f"values have rank {values.rank}, expected 1")
        # Ends of one element may have an axis that begins lack: those of pairs of texts do.
        rows = begins.shape
        if rows is None or shape is None:
            shape = None
        elif rows:
            shape = meet_shapes(shape or None, rows)
    element = unify_elements(*inputs[2:-1:3])
    offsets, ids = Fact(I32, shape), Fact(inputs[-1].element, (ANY,))
    return offsets, offsets, Fact(element, (ANY,)), offsets, offsets, ids


def _segments(inputs: Sequence[Any]) -> list[tuple[Any, Any, Any]]:
    check(len(inputs) > 3 and len(inputs) % 3 == 1, f"has {len(inputs)} inputs, expected three for each tensor and ids")
    return list(zip(inputs[0:-1:3], inputs[1:-1:3], inputs[2:-1:3], strict=True))


def _pieces(begins: np.ndarray, ends: np.ndarray, values: np.ndarray, number: int) -> list[np.ndarray]:
    """The values of each of ``number`` rows."""
    check_offsets(begins.ravel(), ends.ravel(), len(values), "values")
    found = [values[b:e] for b, e in zip(begins.ravel().tolist(), ends.ravel().tolist(), strict=True)]
    check_memory((number,), np.dtype(object), "the joined rows")
    check(len(found) in (1, number), f"a ragged tensor has {len(found)} rows, another {number}")
    return found if len(found) == number else found * number


@operation("Truncate", domain="extension")
def truncate(*inputs: Tensor, m_num_inputs: int = 0) -> tuple[np.ndarray, ...]:
    """Rows of one or two ragged tensors cut so that a row, or a pair of rows, has at most ``max_length`` elements.

    Inputs are begins, ends and values of each ragged tensor, then max_length, the side that is cut ("left" or "right")
    and the mode ("only_first", "only_second" or "longest_first") as UTF-8. The mode counts for pairs alone.
    """
    *tensors, limit, side_bytes, mode_bytes = inputs
    maximum, side, mode = int(limit.ravel()[0]), bytes(side_bytes).decode(), bytes(mode_bytes).decode()
    check(side in ("left", "right"), f"the side is {side!r}, expected 'left' or 'right'")
    check(mode in MODES, f"the mode is {mode!r}, expected one of {', '.join(MODES)}")
    ragged = _ragged_inputs(tensors)
    check(len({begins.shape for begins, _, _ in ragged}) == 1, "the two ragged tensors have different rows")
    lengths = [ends - begins for begins, ends, _ in ragged]
    kept = [np.minimum(lengths[0], maximum)] if len(ragged) == 1 else _kept(lengths[0], lengths[1], maximum, mode)
    results: list[np.ndarray] = []
    for (begins, ends, values), length in zip(ragged, kept, strict=True):
        if side == "right":
            results += [begins.copy(), (begins + length).astype(np.int32), values.copy()]
        else:
            results += [(ends - length).astype(np.int32), ends.copy(), values.copy()]
    return tuple(results)


@truncate.shape_rule
def _truncate_facts(*inputs: Fact) -> tuple[Fact, ...]:
    check(len(inputs) in (6, 9), f"has {len(inputs)} inputs, expected 6 or 9")
    ragged = _ragged_inputs(inputs[:-3])
    expected = (("max_length", I32, 0), ("side", U8, 1), ("mode", U8, 1))
    for fact, (name, element, rank) in zip(inputs[-3:], expected, strict=True):
        check(fact.element in (None, element), f"{name} has element type {fact.element}, expected {element}")
        check(fact.rank in (None, rank), f"{name} has rank {fact.rank}, expected {rank}")
    facts: list[Fact] = []
    for begins, ends, values in ragged:
        rows = meet_shapes(begins.shape, ends.shape)
        facts += [Fact(I32, rows), Fact(I32, rows), Fact(values.element, values.shape)]
    return tuple(facts)


def _ragged_inputs(inputs: Sequence[Any]) -> list[tuple[Any, Any, Any]]:
    return list(zip(inputs[0::3], inputs[1::3], inputs[2::3], strict=True))


def _kept(first: np.ndarray, second: np.ndarray, maximum: int, mode: str) -> list[np.ndarray]:
    """The lengths that are kept of pairs of rows."""
    too_long = first + second > maximum
    if mode == "only_first":
        return [np.where(too_long, np.minimum(first, maximum), first), second]
    if mode == "only_second":
        return [first, np.where(too_long, np.minimum(second, maximum), second)]
    small, large, odd = maximum // 2, maximum // 2 + maximum % 2, maximum % 2
    cut_first = (first >= large) & (second <= small)
    cut_second = (first < large) & (second > small)
    of_first = np.where(cut_first, maximum - second, np.where(cut_second, first, small + odd * (first >= second)))
    of_second = np.where(cut_second, maximum - first, np.where(cut_first, second, small + odd * (first < second)))
    return [np.where(too_long, of_first, first), np.where(too_long, of_second, second)]
