"""Texts: string tensors packed from bytes, and operations that OpenVINO does not have."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Literal

import numpy as np

from irexec.dtypes.codecs import encoded, string_offsets
from irexec.dtypes.elements import BOOLEAN, I32, I64, STRING, U8, Element, lowest
from irexec.errors import OpError, check
from irexec.ir.dims import ANY, PartialShape, Size, high, low, may_equal, meet_shapes, span
from irexec.ir.facts import Fact
from irexec.reference.limits import Growth, check_memory
from irexec.reference.regular_expressions import regular_expression
from irexec.schema.attributes import Positive
from irexec.schema.opdef import (
    BOOLEAN_TYPE,
    NUMERIC,
    ONE_ELEMENT,
    VECTOR,
    IntegerTensor,
    Rank,
    StringTensor,
    element_set,
)
from irexec.schema.registry import op
from irexec.schema.shape_rules import broadcast, unify_elements

Bytes = Annotated[np.ndarray, element_set("u8", U8), VECTOR]


@op("StringTensorPack", since=15)
def string_tensor_pack_15(begins: IntegerTensor, ends: IntegerTensor, symbols: Bytes) -> np.ndarray:
    """Strings decoded from UTF-8: string i is the bytes of ``symbols`` from begins[i] to ends[i].

    Bytes that are not UTF-8 become U+FFFD, as in OpenVINO's Python API. Source: StringTensorPack-15.
    """
    inside = (begins >= 0) & (begins <= ends) & (ends <= len(symbols))
    check(bool(inside.all()), f"begins and ends are not ascending within the {len(symbols)} bytes of symbols")
    # Strings may overlap: a few bytes can be the characters of any number of them.
    check_memory(
        (int((ends.astype(np.int64) - begins.astype(np.int64)).sum()),), symbols.dtype, "the text of the strings"
    )
    text = symbols.tobytes()
    strings = np.empty(begins.size, object)
    spans = zip(begins.ravel().tolist(), ends.ravel().tolist(), strict=True)
    strings[:] = [text[begin:end].decode("utf-8", "replace") for begin, end in spans]
    return strings.reshape(begins.shape)


@string_tensor_pack_15.shape_rule
def _string_tensor_pack_15_facts(begins: Fact, ends: Fact, symbols: Fact) -> Fact:
    unify_elements(begins, ends)
    count = None if not symbols.shape else high(symbols.shape[0])
    for name, offsets in (("begins", begins.known), ("ends", ends.known)):
        if offsets is not None and offsets.size and offsets.dtype != object:
            check(int(offsets.min()) >= 0, f"{name} has {offsets.min()}, expected offsets of 0 and more")
            check(
                count is None or int(offsets.max()) <= count, f"{name} has {offsets.max()}, symbols has {count} bytes"
            )
    return Fact(STRING, meet_shapes(begins.shape, ends.shape))


@op("StringTensorUnpack", since=15)
def string_tensor_unpack_15(data: StringTensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The offsets at which the UTF-8 bytes of each string begin and end (i32), and the bytes of all strings (u8).

    Source: StringTensorUnpack-15.
    """
    strings = encoded(data)
    total = sum(map(len, strings))
    check(total < 1 << 31, "the strings have more than 2 GiB of bytes")
    # Joined, and copied for NumPy.
    check_memory((2, total), np.dtype(np.uint8), "the bytes of the strings")
    ends = np.cumsum([len(string) for string in strings], dtype=np.int32).reshape(data.shape)
    lengths = np.array([len(string) for string in strings], np.int32).reshape(data.shape)
    return (ends - lengths).astype(np.int32), ends, np.frombuffer(b"".join(strings), np.uint8).copy()


@string_tensor_unpack_15.shape_rule
def _string_tensor_unpack_15_facts(data: Fact) -> tuple[Fact, Fact, Fact]:
    strings = data.known
    empty = data.shape is not None and 0 in data.shape
    size: Size = 0 if empty else ANY if strings is None else sum(map(len, encoded(strings)))
    return Fact(I32, data.shape), Fact(I32, data.shape), Fact(U8, (size,))


# Tokenizers of OpenVINO before 2024.5 have these operations in their own namespace.
@op("StringTensorPack", since="extension")
def string_tensor_pack_extension(
    begins: IntegerTensor, ends: IntegerTensor, symbols: Bytes, *, mode: Literal["begins_ends"] = "begins_ends"
) -> np.ndarray:
    """Strings decoded from UTF-8, as in StringTensorPack-15."""
    return string_tensor_pack_15(begins, ends, symbols)


string_tensor_pack_extension.shape_rule(_string_tensor_pack_15_facts)


@op("StringTensorUnpack", since="extension")
def string_tensor_unpack_extension(
    data: Annotated[np.ndarray, element_set("string or u8", STRING, U8)], *,
    mode: Literal["begins_ends"] = "begins_ends",
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """The offsets and the UTF-8 bytes of strings, as in StringTensorUnpack-15, or of a vector of u8.

    That vector is the number of strings, 0, the offset of the end of each (i32) and the bytes of all.
    """
    if data.dtype != np.uint8:
        return string_tensor_unpack_15(data)
    check(data.ndim == 1 and data.size >= 4, f"packed strings of shape {list(data.shape)} have no number of strings")
    packed = np.ascontiguousarray(data)
    count = int(packed[:4].view("<i4")[0])
    start = 8 + 4 * count
    check(count >= 0 and (count == 0 or start <= data.size), f"{data.size} bytes do not hold {count} strings")
    begins, ends = string_offsets(packed, count, data.size - start) if count else (np.zeros(0), np.zeros(0))
    text = packed[start : start + int(ends[-1])] if count else packed[:0]
    return begins.astype(np.int32), ends.astype(np.int32), text.copy()


@string_tensor_unpack_extension.shape_rule
def _string_tensor_unpack_extension_facts(data: Fact) -> tuple[Fact, Fact, Fact]:
    if data.element is not U8:
        return _string_tensor_unpack_15_facts(data)
    check(data.rank in (None, 1), f"packed strings are {data}, expected a vector")
    return Fact(I32, (ANY,)), Fact(I32, (ANY,)), Fact(U8, (ANY,))


Strings = Annotated[StringTensor, VECTOR]
String = Annotated[StringTensor, ONE_ELEMENT]
Number = Annotated[np.ndarray, element_set("a numeric type or boolean", *NUMERIC.elements, *BOOLEAN_TYPE.elements)]
Case = Literal["NONE", "LOWER", "UPPER"]
TokenizerMode = Literal["separators", "tokens", "characters"]

_OF_PART = 64
"""Bytes of a short string of Python."""
_BEGIN, _END = "\x02", "\x03"


def _array(values: list[str], shape: tuple[int, ...]) -> np.ndarray:
    found = np.empty(len(values), object)
    found[:] = values
    return found.reshape(shape)


@op("StringConcat", since="irexec")
def string_concat(a: StringTensor, b: StringTensor) -> np.ndarray:
    """Each string of ``a`` followed by that of ``b``; the shapes are broadcast as NumPy does. Source: ONNX
    StringConcat-20."""
    lengths = [np.array([len(text) for text in one.ravel().tolist()], np.int64).reshape(one.shape) for one in (a, b)]
    total = int(np.add(*lengths).sum())
    check_memory((total,), np.dtype(np.uint8), "the joined strings")
    return np.asarray(np.asarray(a, object) + np.asarray(b, object), object)


@string_concat.shape_rule
def _string_concat_facts(a: Fact, b: Fact) -> Fact:
    return Fact(STRING, broadcast([a.shape, b.shape]))


@op("StringSplit", since="irexec")
def string_split(data: StringTensor, delimiter: String, *, maxsplit: int = -1) -> tuple[np.ndarray, np.ndarray]:
    """Strings split at a delimiter, padded with empty strings along a new last axis, and the number of parts of each
    (i64).

    An empty delimiter stands for any whitespace, which is dropped at both ends. At most ``maxsplit`` splits are made of
    a string; a negative number has no limit. Source: ONNX StringSplit-20 and its reference.
    """
    parts = _parts(data, delimiter, maxsplit)
    width = max(map(len, parts), default=0)
    check_memory((len(parts), width), np.dtype(object), "the parts of the strings")
    padded = [text for row in parts for text in (*row, *[""] * (width - len(row)))]
    counts = np.array([len(row) for row in parts], np.int64).reshape(data.shape)
    return _array(padded, (*data.shape, width)), counts


def _parts(data: np.ndarray, delimiter: np.ndarray, maxsplit: int) -> list[list[str]]:
    separator = str(delimiter.reshape(())) or None
    growth = Growth("the parts of the strings")
    for text in data.ravel().tolist():
        growth.add(_OF_PART * (text.count(separator) if separator else len(text) // 2))
    return [text.split(separator, max(maxsplit, -1)) for text in data.ravel().tolist()]


@string_split.shape_rule
def _string_split_facts(data: Fact, delimiter: Fact, *, maxsplit: int) -> tuple[Fact, Fact]:
    width: Size = ANY if maxsplit < 0 else span(0, maxsplit + 1)
    if data.shape is not None and 0 in data.shape:
        width = 0
    elif data.known is not None and delimiter.known is not None:
        width = max(map(len, _parts(data.known, delimiter.known, maxsplit)), default=0)
    return Fact(STRING, None if data.shape is None else (*data.shape, width)), Fact(I64, data.shape)


@op("RegexFullMatch", since="irexec")
def regex_full_match(data: StringTensor, pattern: String) -> np.ndarray:
    """Whether each whole string matches a regular expression in the syntax of RE2. Source: ONNX RegexFullMatch-20."""
    expression = regular_expression(str(pattern.reshape(())))
    return np.array([expression.matches(text) for text in data.ravel().tolist()], np.bool_).reshape(data.shape)


@regex_full_match.shape_rule
def _regex_full_match_facts(data: Fact, pattern: Fact) -> Fact:
    return Fact(BOOLEAN, data.shape)


@op("StringNormalizer", since="irexec")
def string_normalizer(
    data: Annotated[StringTensor, Rank(1, 2)], stopwords: Strings, *, case_change_action: Case = "NONE",
    is_case_sensitive: bool = False,
) -> np.ndarray:  # fmt: skip
    """The strings of a vector, or of a matrix of one row, that are not among ``stopwords``, in upper or lower case.

    Without any string left the result is one empty string. Strings are compared before their case is changed if
    ``is_case_sensitive``, else after; characters of which the other case is several characters stay. Source: ONNX
    StringNormalizer-10 and ONNX Runtime.
    """
    check(data.ndim == 1 or data.shape[0] == 1, f"data has the shape {list(data.shape)}, expected one row")
    found = _normalized(data, stopwords, case_change_action, is_case_sensitive) or [""]
    return _array(found, (1, len(found)) if data.ndim == 2 else (len(found),))


def _normalized(data: np.ndarray, stopwords: np.ndarray, case: Case, is_case_sensitive: bool) -> list[str]:
    compared = "NONE" if is_case_sensitive else "LOWER" if case == "NONE" else case
    dropped = {_changed(word, compared) for word in stopwords.tolist()}
    kept = [text for text in data.ravel().tolist() if _changed(text, compared) not in dropped]
    return [_changed(text, case) for text in kept]


def _changed(text: str, case: str) -> str:
    """A string in another case, character by character."""
    if case == "NONE":
        return text
    changed = (one.upper() if case == "UPPER" else one.lower() for one in text)
    return "".join(other if len(other) == 1 else one for one, other in zip(text, changed, strict=True))


@string_normalizer.shape_rule
def _string_normalizer_facts(data: Fact, stopwords: Fact, *, case_change_action: Case, is_case_sensitive: bool) -> Fact:
    if data.shape is None:
        return Fact(STRING, None)
    check(len(data.shape) == 1 or may_equal(data.shape[0], 1), f"data has {data.shape[0]} rows, expected 1")
    if data.known is not None and stopwords.known is not None:
        left = _normalized(data.known, stopwords.known, case_change_action, is_case_sensitive)
        size: Size = max(1, len(left))
    else:
        most = high(data.shape[-1])
        minimum = low(data.shape[-1]) if stopwords.shape == (0,) else 1
        size = span(max(1, minimum), None if most is None else max(1, most))
    return Fact(STRING, (size,) if len(data.shape) == 1 else (1, size))


@op("StringLookup", since="irexec")
def string_lookup(data: StringTensor, keys: Strings) -> np.ndarray:
    """The index of each string in ``keys`` (i64), of the first of equal ones; -1 if it is not among them."""
    indices = {key: i for i, key in reversed(list(enumerate(keys.tolist())))}
    return np.array([indices.get(text, -1) for text in data.ravel().tolist()], np.int64).reshape(data.shape)


@string_lookup.shape_rule
def _string_lookup_facts(data: Fact, keys: Fact) -> Fact:
    return Fact(I64, data.shape)


@op("StringToNumber", since="irexec")
def string_to_number(data: StringTensor, *, destination_type: Element) -> np.ndarray:
    """Numbers parsed from decimal texts, which may have an exponent, or be nan, inf or infinity, in any case.

    A boolean is parsed from an integer: whether it is not 0. Source: ONNX Cast-13.
    """
    texts = data.ravel().tolist()
    if destination_type.is_float:
        values: list[float] = [_number(text, float, "number") for text in texts]
    else:
        values = [_number(text, int, "integer") for text in texts]
    if destination_type.is_integer:
        first = int(lowest(destination_type))
        outside = [value for value in values if not first <= value < first + (1 << destination_type.bits)]
        check(not outside, f"{outside[0] if outside else 0} is out of range for {destination_type}")
    if destination_type.kind == "boolean":
        values = [value != 0 for value in values]
    with np.errstate(over="ignore"):
        return np.array(values, destination_type.carrier).reshape(data.shape)


def _number(text: str, parse: type[int] | type[float], what: str) -> float:
    try:
        if "_" in text or not text.isascii():
            raise ValueError
        return parse(text)
    except ValueError:
        raise OpError(f"{text[:40]!r} is not a{'n' * (what == 'integer')} {what}") from None


@string_to_number.shape_rule
def _string_to_number_facts(data: Fact, *, destination_type: Element) -> Fact:
    check(destination_type.kind != "string", "destination_type is string, expected a numeric type or boolean")
    return Fact(destination_type, data.shape)


@op("AsString", since="irexec")
def as_string(data: Number) -> np.ndarray:
    """Numbers as decimal texts: integers with all digits, floats with up to 8, NaN, INF, -INF; booleans as 1 and 0.

    Source: ONNX Cast-13 and ONNX Runtime.
    """
    return _array([_text(value) for value in data.ravel().tolist()], data.shape)


def _text(value: float) -> str:
    if not isinstance(value, float):
        return str(int(value))
    if math.isnan(value):
        return "NaN"
    return f"{value:.8g}".upper() if math.isinf(value) else f"{value:.8g}"


@as_string.shape_rule
def _as_string_facts(data: Fact) -> Fact:
    return Fact(STRING, data.shape)


@op("StringTokenizer", since="irexec")
def string_tokenizer(
    data: Annotated[StringTensor, Rank(1, 2)], patterns: Strings, pad_value: String, *, mode: TokenizerMode,
    mark: bool = False, min_length: Positive = 1,
) -> np.ndarray:  # fmt: skip
    """The tokens of each string along a new last axis, padded with ``pad_value``.

    ``patterns`` are regular expressions of RE2, whose longest matches count: separators, which split one after another;
    the expression of a token; none for tokens of one character. Tokens of fewer characters than ``min_length`` are
    dropped. ``mark`` puts the characters 2 and 3 around the tokens of a string, unless no string has tokens. Source:
    ONNX Runtime, Tokenizer of com.microsoft.
    """
    rows = _tokens(data, patterns, mode, mark, min_length)
    width = max(map(len, rows), default=0)
    check_memory((len(rows), width), np.dtype(object), "the tokens of the strings")
    padding = str(pad_value.reshape(()))
    padded = [token for row in rows for token in (*row, *[padding] * (width - len(row)))]
    return _array(padded, (*data.shape, width))


def _tokens(data: np.ndarray, patterns: np.ndarray, mode: TokenizerMode, mark: bool, minimum: int) -> list[list[str]]:
    split = [
        [token for token in _split(text, patterns.tolist(), mode) if len(token) >= minimum]
        for text in data.ravel().tolist()
    ]
    return [[_BEGIN, *row, _END] for row in split] if mark and any(split) else split


def _split(text: str, patterns: list[str], mode: TokenizerMode) -> list[str]:
    if mode == "characters":
        check_memory((len(text),), np.dtype(object), "the tokens of the strings")
        return list(text)
    if mode == "tokens":
        return [text[start:end] for one in patterns for start, end in regular_expression(one).find_all(text)]
    parts = [text]
    for separator in patterns:
        parts = [piece for part in parts for piece in _between(part, separator)]
    return parts


def _between(text: str, separator: str) -> Iterator[str]:
    """The parts of a text between matches."""
    begin = 0
    for start, end in regular_expression(separator).find_all(text):
        yield text[begin:start]
        begin = end
    yield text[begin:]


@string_tokenizer.shape_rule
def _string_tokenizer_facts(
    data: Fact, patterns: Fact, pad_value: Fact, *, mode: TokenizerMode, mark: bool, min_length: int
) -> Fact:
    shape: PartialShape = data.shape
    if shape is None:
        return Fact(STRING, None)
    width: Size = 0 if 0 in shape else ANY
    if width != 0 and data.known is not None and patterns.known is not None:
        width = max(map(len, _tokens(data.known, patterns.known, mode, mark, min_length)), default=0)
    return Fact(STRING, (*shape, width))
