"""Strings split by a pattern or at special tokens, compared, hashed, and translated to and from ids of a vocabulary.

Source of the hash: farmhashna::Hash64 of google/farmhash.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Annotated, Literal

import numpy as np

from irexec.dtypes.elements import BOOLEAN, I32, I64
from irexec.errors import check
from irexec.ir.dims import ANY, Size, count, is_static, meet_shapes
from irexec.ir.facts import Fact
from irexec.plugins import operation
from irexec.schema.attributes import Positive
from irexec.schema.opdef import ONE_ELEMENT, VECTOR, IndexTensor, Rank, Tensor
from irexec.schema.shape_rules import unify_elements
from irexec.tokenizers.normalization import check_text
from irexec.tokenizers.packed import (
    Bytes,
    Offsets,
    RaggedStringFacts,
    pack,
    ragged_string_facts,
    raw_bytes,
    row_offsets,
    rows,
    text,
    unpack,
)
from irexec.tokenizers.patterns import Pattern, compile_pattern

Behaviour = Literal["remove", "isolate", "contiguous", "mergedwithprevious", "mergedwithnext"]
Piece = tuple[int, int, bool]
"""Begin and end of a part of a string in bytes, and whether it is a special token."""


@operation("RegexSplit", domain="extension")
def regex_split(
    ragged_begins: Offsets,
    ragged_ends: Offsets,
    begins: Offsets,
    ends: Offsets,
    chars: Bytes,
    *skips_and_pattern: Tensor,
    behaviour: Behaviour = "remove",
    invert: bool = False,
    max_splits: int = -1,
) -> tuple[np.ndarray, ...]:
    """Strings split at the matches of a pattern, in the same rows.

    The matches are removed, isolated, or merged with the part before or after them; "contiguous" isolates runs of
    matches. With ``invert`` the parts between matches are treated so. The pattern is the sixth input. Skips before it
    mark strings that stay whole; three inputs after it are strings that stay whole. After ``max_splits`` parts the next
    part is the rest of the string. OpenVINO returns one row for a batch of which every string is empty.
    """
    skips, raw, whole = _of_split(skips_and_pattern)
    source = bytes(raw)
    if behaviour == "contiguous" and not source.endswith(b"+"):
        source = b"(" + source + b")+"
    pattern, kept = compile_pattern(source), frozenset(unpack(*whole)) if len(whole) == 3 else frozenset()
    mode = "isolate" if behaviour == "contiguous" else behaviour

    @functools.cache
    def split(string: bytes) -> Sequence[Piece]:
        if string in kept:
            return [(0, len(string), False)]
        # The part at index ``max_splits`` reaches to the end of the string.
        parts = enumerate(_split(string, pattern, mode, invert))
        return [(begin, len(string) if i == max_splits else end, False) for i, (begin, end) in parts]

    results = _in_rows(ragged_begins, ragged_ends, begins, ends, chars, skips, split)
    return results[: 5 if skips is None else 6]


def _of_split(inputs: Sequence[Tensor]) -> tuple[Tensor | None, Tensor, Sequence[Tensor]]:
    """Skips, pattern, and begins, ends and chars of the strings that stay whole."""
    skips = inputs[0] if len(inputs) == 2 else None
    return skips, inputs[len(inputs) == 2], inputs[1:] if len(inputs) == 4 else ()


@regex_split.shape_rule
def _regex_split_facts(*inputs: Fact, max_splits: int) -> tuple[Fact, ...]:
    has_skips = len(inputs) == 7
    check(len(inputs) in (6, 7, 9), f"has {len(inputs)} inputs, expected 6, 7 or 9")
    check(max_splits == -1 or max_splits > 0, f"max_splits is {max_splits}, expected -1 or more than 0")
    check_text(inputs[6 if has_skips else 5], "the pattern")
    return _split_facts(*inputs[:5])[: 6 if has_skips else 5]


def _split_facts(ragged_begins: Fact, ragged_ends: Fact, begins: Fact, ends: Fact, chars: Fact) -> tuple[Fact, ...]:
    meet_shapes(begins.shape, ends.shape)
    rows = ragged_string_facts(meet_shapes(ragged_begins.shape, ragged_ends.shape))
    return *rows[:4], Fact(chars.element, chars.shape), Fact(BOOLEAN, (ANY,))


def _split(string: bytes, pattern: Pattern, mode: str, invert: bool) -> Iterator[tuple[int, int]]:
    """The parts of a string by the behaviour, as OpenVINO forms them: of adjacent delimiters "mergedwithprevious" puts
    the part before them into each, and "mergedwithnext" keeps the last one alone."""
    pending, is_delimiter = -1, True
    for begin, end, is_match in _parts(string, pattern):
        is_delimiter = is_match != invert
        if mode == "isolate" or (mode == "remove" and not is_delimiter):
            yield begin, end
        elif mode == "mergedwithprevious" and (is_delimiter or end == len(string)):
            yield (max(0, pending) if is_delimiter else begin), end
        elif mode == "mergedwithnext" and not is_delimiter:
            yield (begin if pending < 0 else pending), end
        if (mode == "mergedwithnext" and is_delimiter) or (mode == "mergedwithprevious" and not is_delimiter):
            pending = begin
    if mode == "mergedwithnext" and is_delimiter and not invert:
        yield max(0, pending), len(string)


def _parts(string: bytes, pattern: Pattern) -> Iterator[tuple[int, int, bool]]:
    """The matches of a pattern and the parts between them; an empty match ends the search."""
    whole, at, offset = text(string), 0, 0
    is_ascii = string.isascii()
    for match in pattern.matches(whole):
        start, end = match.span()
        if start == end:
            break
        begin = start if is_ascii else offset + len(raw_bytes(whole[at:start]))
        if start > at:
            yield offset, begin, False
        at, offset = end, end if is_ascii else begin + len(raw_bytes(whole[start:end]))
        yield begin, offset, True
    if offset < len(string):
        yield offset, len(string), False


def _in_rows(
    ragged_begins: np.ndarray,
    ragged_ends: np.ndarray,
    begins: np.ndarray,
    ends: np.ndarray,
    chars: np.ndarray,
    skips: np.ndarray | None,
    split: Callable[[bytes], Sequence[Piece]],
) -> tuple[np.ndarray, ...]:
    """Each row with the parts of its strings, and whether each part is skipped."""
    strings = unpack(begins, ends, chars)
    skipped = [False] * len(strings) if skips is None else skips.ravel().tolist()
    check(len(skipped) == len(strings), f"there are {len(skipped)} skips for {len(strings)} strings")
    offsets, counts = begins.ravel().tolist(), []
    pieces: list[Piece] = []
    for row in rows(ragged_begins, ragged_ends, len(strings)):
        before = len(pieces)
        for i in row:
            found = [(0, len(strings[i]), True)] if skipped[i] else split(strings[i])
            pieces.extend((offsets[i] + begin, offsets[i] + end, skip) for begin, end, skip in found)
        counts.append(len(pieces) - before)
    table = np.array(pieces, np.int64).reshape(-1, 3)
    outer = row_offsets(counts, ragged_begins.shape)
    return (
        *outer,
        table[:, 0].astype(np.int32),
        table[:, 1].astype(np.int32),
        chars.copy(),
        table[:, 2].astype(np.bool_),
    )


@operation("SpecialTokensSplit", domain="extension")
def special_tokens_split(
    ragged_begins: Offsets,
    ragged_ends: Offsets,
    begins: Offsets,
    ends: Offsets,
    chars: Bytes,
    *skips_and_pattern: Tensor,
) -> tuple[np.ndarray, ...]:
    """Special tokens split off, in the same rows, and a mask that is true for them.

    A special token is the group of a match of the pattern, the last input; the rest of the match is left out. Strings
    that ``skips``, the input before it, marks stay whole.
    """
    *skips, raw = skips_and_pattern
    pattern = compile_pattern(bytes(raw))

    @functools.cache
    def split(string: bytes) -> Sequence[Piece]:
        return list(_special(string, pattern))

    return _in_rows(ragged_begins, ragged_ends, begins, ends, chars, skips[0] if skips else None, split)


@special_tokens_split.shape_rule
def _special_tokens_split_facts(*inputs: Fact) -> tuple[Fact, ...]:
    check(len(inputs) in (6, 7), f"has {len(inputs)} inputs, expected 6 or 7")
    check_text(inputs[-1], "the pattern")
    return _split_facts(*inputs[:5])


def _special(string: bytes, pattern: Pattern) -> Iterator[Piece]:
    """The special tokens of a string, and the parts between matches."""
    whole, at, offset = text(string), 0, 0
    groups = sorted(chain.from_iterable(pattern.groups[1:]))
    for match in pattern.matches(whole):
        if match.start() == match.end():
            break
        spans = [match.span(group) for group in groups if match.end(group) > match.start(group)]
        start, end = spans[-1] if spans else match.span()
        parts = ((at, match.start()), (match.start(), start), (start, end), (end, match.end()))
        before, left, token, right = (len(raw_bytes(whole[a:b])) for a, b in parts)
        if before:
            yield offset, offset + before, False
        begin = offset + before + left
        yield begin, begin + token, True
        at, offset = match.end(), begin + token + right
    if offset < len(string):
        yield offset, len(string), False


@operation("EqualStr", domain="extension")
def equal_str(
    begins: Offsets, ends: Offsets, chars: Bytes, other_begins: Offsets, other_ends: Offsets, other_chars: Bytes
) -> np.ndarray:
    """1 where two strings are equal, else 0. Where a tensor has fewer strings, its first one is compared."""
    first, second = unpack(begins, ends, chars), unpack(other_begins, other_ends, other_chars)
    number = max(len(first), len(second)) if first and second else 0
    first += first[:1] * (number - len(first))
    second += second[:1] * (number - len(second))
    return np.array([a == b for a, b in zip(first[:number], second[:number], strict=True)], np.int32)


@equal_str.shape_rule
def _equal_str_facts(*inputs: Fact) -> Fact:
    begins, ends, _, other_begins, other_ends, _ = inputs
    shapes = meet_shapes(begins.shape, ends.shape), meet_shapes(other_begins.shape, other_ends.shape)
    sizes = [ANY if shape is None else count(shape) for shape in shapes]
    if any(size == 0 for size in sizes):
        return Fact(I32, (0,))
    known = all(isinstance(size, int) for size in sizes)
    return Fact(I32, (max(size for size in sizes if isinstance(size, int)) if known else ANY,))


MASK = (1 << 64) - 1
K0, K1, K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F


def fingerprint(data: bytes) -> int:
    """The hash of bytes: 64 bits, without sign."""
    if len(data) <= 16:
        return _up_to_16(data)
    if len(data) <= 32:
        return _ends(data, K1)[2]
    return _up_to_64(data) if len(data) <= 64 else _long(data)


def _fetch(data: bytes, at: int, size: int = 8) -> int:
    at += len(data) if at < 0 else 0
    return int.from_bytes(data[at : at + size], "little")


def _rotate(value: int, shift: int) -> int:
    value &= MASK
    return (value >> shift | value << (64 - shift)) & MASK


def _mix(value: int) -> int:
    value &= MASK
    return value ^ value >> 47


def _pair(u: int, v: int, multiplier: int) -> int:
    a = _mix((u ^ v) * multiplier)
    return _mix((v ^ a) * multiplier) * multiplier & MASK


def _up_to_16(data: bytes) -> int:
    size = len(data)
    multiplier = K2 + 2 * size
    if size >= 8:
        a, b = _fetch(data, 0) + K2 & MASK, _fetch(data, -8)
        c = _rotate(b, 37) * multiplier + a & MASK
        return _pair(c, (_rotate(a, 25) + b) * multiplier & MASK, multiplier)
    if size >= 4:
        return _pair(size + (_fetch(data, 0, 4) << 3), _fetch(data, -4, 4), multiplier)
    if not size:
        return K2
    y, z = data[0] + (data[size // 2] << 8), size + (data[-1] << 2)
    return _mix(y * K2 & MASK ^ z * K0 & MASK) * K2 & MASK


def _ends(data: bytes, factor: int) -> tuple[int, int, int]:
    """The first number, and two hashes of the first and the last 16 bytes."""
    multiplier = K2 + 2 * len(data)
    a, b = _fetch(data, 0) * factor & MASK, _fetch(data, 8)
    c, d = _fetch(data, -8) * multiplier & MASK, _fetch(data, -16) * K2 & MASK
    first = _rotate(a + b, 43) + _rotate(c, 30) + d & MASK
    return a, first, _pair(first, a + _rotate(b + K2, 18) + c & MASK, multiplier)


def _up_to_64(data: bytes) -> int:
    multiplier = K2 + 2 * len(data)
    a, y, z = _ends(data, K2)
    e, f = _fetch(data, 16) * multiplier & MASK, _fetch(data, 24)
    g, h = (y + _fetch(data, -32)) * multiplier & MASK, (z + _fetch(data, -24)) * multiplier & MASK
    return _pair(_rotate(e + f, 43) + _rotate(g, 30) + h & MASK, e + _rotate(f + a, 18) + g & MASK, multiplier)


def _weak(data: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    """Two hashes of 32 bytes and two seeds."""
    w, x, y, z = (_fetch(data, at + offset) for offset in (0, 8, 16, 24))
    a = a + w & MASK
    b = _rotate(b + a + z, 21)
    c = a
    a = a + x + y & MASK
    return a + z & MASK, b + _rotate(a, 44) + c & MASK


def _long(data: bytes) -> int:
    x, y = 81, 81 * K1 + 113 & MASK
    z = _mix(y * K2 + 113) * K2 & MASK
    v = w = (0, 0)
    x = x * K2 + _fetch(data, 0) & MASK
    for at in range(0, (len(data) - 1) // 64 * 64, 64):
        x, y, z, v, w = _round(data, at, (x, y, z), v, w, K1)
    multiplier = K1 + ((z & 0xFF) << 1)
    first = w[0] + ((len(data) - 1) & 63)
    v = (v[0] + first & MASK, v[1])
    w = (first + v[0] & MASK, w[1])
    x, y, z, v, w = _round(data, len(data) - 64, (x, y, z), v, w, multiplier, 9)
    left = _pair(v[0], w[0], multiplier) + _mix(y) * K0 + z & MASK
    return _pair(left, _pair(v[1], w[1], multiplier) + x & MASK, multiplier)


def _round(
    data: bytes, at: int, state: tuple[int, int, int], v: tuple[int, int], w: tuple[int, int], by: int, weight: int = 1
) -> tuple[int, int, int, tuple[int, int], tuple[int, int]]:
    """One round of 64 bytes; ``weight`` multiplies what is taken from the hashes of the round before."""
    x, y, z = state
    x = _rotate(x + y + v[0] + _fetch(data, at + 8), 37) * by & MASK
    y = _rotate(y + v[1] + _fetch(data, at + 48), 42) * by & MASK
    x ^= w[1] * weight & MASK
    y = y + v[0] * weight + _fetch(data, at + 40) & MASK
    z = _rotate(z + w[0], 33) * by & MASK
    v = _weak(data, at, v[1] * by & MASK, x + w[0] & MASK)
    w = _weak(data, at + 32, z + w[1] & MASK, y + _fetch(data, at + 16) & MASK)
    return z, y, x, v, w


@operation("StringToHashBucket", domain="extension")
def string_to_hash_bucket(begins: Offsets, ends: Offsets, chars: Bytes, *, num_buckets: Positive) -> np.ndarray:
    """The FarmHash of each string modulo ``num_buckets``."""
    numbers = [fingerprint(string) % num_buckets for string in unpack(begins, ends, chars)]
    return np.array(numbers, np.int64).reshape(begins.shape)


@string_to_hash_bucket.shape_rule
def _string_to_hash_bucket_facts(begins: Fact, ends: Fact, chars: Fact) -> Fact:
    return Fact(I64, meet_shapes(begins.shape, ends.shape))


@operation("VocabEncoder", domain="extension")
def vocab_encoder(
    begins: Annotated[Offsets, VECTOR],
    ends: Annotated[Offsets, VECTOR],
    chars: Bytes,
    vocab_begins: Offsets,
    vocab_ends: Offsets,
    vocab_chars: Bytes,
    values: Annotated[IndexTensor, VECTOR],
    default: Annotated[IndexTensor, ONE_ELEMENT],
) -> np.ndarray:
    """The value of each string in a vocabulary, or ``default``; of equal keys the first counts."""
    keys = unpack(vocab_begins, vocab_ends, vocab_chars)
    check(len(keys) == len(values), f"the vocabulary has {len(keys)} keys and {len(values)} values")
    ids = dict(zip(reversed(keys), reversed(values.tolist()), strict=True))
    other = int(np.asarray(default).ravel()[0])
    return np.array([ids.get(string, other) for string in unpack(begins, ends, chars)], values.dtype)


@vocab_encoder.shape_rule
def _vocab_encoder_facts(*inputs: Fact) -> Fact:
    begins, ends, _, vocab_begins, vocab_ends, _, values, default = inputs
    shape = meet_shapes(begins.shape, ends.shape)
    meet_shapes(meet_shapes(vocab_begins.shape, vocab_ends.shape), values.shape)
    return Fact(unify_elements(values, default), (ANY,) if shape is None else shape)


@operation("VocabDecoder", domain="extension")
def vocab_decoder(
    ids: Annotated[Offsets, Rank(2)],
    vocab_begins: Offsets,
    vocab_ends: Offsets,
    vocab_chars: Bytes,
    skipped: Annotated[Offsets, VECTOR] | None = None,
    *,
    skip_tokens: tuple[int, ...] = (),
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The string of each token id; ids that are not in the vocabulary, or are skipped, have empty strings.

    ``skipped`` takes precedence over ``skip_tokens``. A row without ids has one empty string.
    """
    tokens = unpack(vocab_begins, vocab_ends, vocab_chars)
    for token in skip_tokens if skipped is None else skipped.tolist():
        if 0 <= token < len(tokens):
            tokens[token] = b""
    batch, length = ids.shape
    if not length:
        ids, length = np.full((batch, 1), -1, np.int32), 1
    strings = [tokens[token] if 0 <= token < len(tokens) else b"" for token in ids.ravel().tolist()]
    begins, ends = row_offsets([length] * batch, (batch,))
    return begins, ends, *pack(strings, (batch * length,))


@vocab_decoder.shape_rule
def _vocab_decoder_facts(
    ids: Fact, vocab_begins: Fact, vocab_ends: Fact, vocab_chars: Fact, skipped: Fact | None = None
) -> RaggedStringFacts:
    meet_shapes(vocab_begins.shape, vocab_ends.shape)
    batch: Size = ANY if ids.shape is None else ids.shape[0]
    number: Size = ANY
    if is_static(ids.shape):
        number = ids.shape[0] * max(1, ids.shape[1])
    rows, strings = Fact(I32, (batch,)), Fact(I32, (number,))
    return rows, rows, strings, strings, Fact(vocab_chars.element, (ANY,))
