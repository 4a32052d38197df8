"""Strings split by a pattern, and special tokens split off."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Literal

import numpy as np

from irexec.dtypes.elements import BOOLEAN
from irexec.errors import check
from irexec.ir.dims import ANY, meet_shapes
from irexec.ir.facts import Fact
from irexec.plugins import operation
from irexec.schema.opdef import Tensor
from irexec.tokenizers.normalization import check_text
from irexec.tokenizers.packed import Bytes, Offsets, ragged_string_facts, raw_bytes, row_offsets, rows, text, unpack
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
        return _limited(_split(string, pattern, mode, invert), max_splits, len(string))

    results = _in_rows(ragged_begins, ragged_ends, begins, ends, chars, skips, split)
    return results[: 5 if skips is None else 6]


def _of_split(inputs: Sequence[Tensor]) -> tuple[Tensor | None, Tensor, Sequence[Tensor]]:
    """Skips, pattern, and begins, ends and chars of the strings that stay whole."""
    skips = inputs[0] if len(inputs) == 2 else None
    return skips, inputs[len(inputs) == 2], inputs[1:] if len(inputs) == 4 else ()


@regex_split.shape_rule
def _regex_split_facts(
    ragged_begins: Fact,
    ragged_ends: Fact,
    begins: Fact,
    ends: Fact,
    chars: Fact,
    *skips_and_pattern: Fact,
    max_splits: int,
) -> tuple[Fact, ...]:
    check(len(skips_and_pattern) in (1, 2, 4), f"has {5 + len(skips_and_pattern)} inputs, expected 6, 7 or 9")
    check(max_splits == -1 or max_splits > 0, f"max_splits is {max_splits}, expected -1 or more than 0")
    check_text(skips_and_pattern[len(skips_and_pattern) == 2], "the pattern")
    outputs = _split_facts(ragged_begins, ragged_ends, begins, ends, chars)
    return outputs if len(skips_and_pattern) == 2 else outputs[:5]


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


def _limited(parts: Iterable[tuple[int, int]], maximum: int, size: int) -> list[Piece]:
    """The parts; that at index ``maximum`` reaches to the end of the string."""
    return [(begin, size if i == maximum else end, False) for i, (begin, end) in enumerate(parts)]


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
def _special_tokens_split_facts(
    ragged_begins: Fact, ragged_ends: Fact, begins: Fact, ends: Fact, chars: Fact, *skips_and_pattern: Fact
) -> tuple[Fact, ...]:
    check(len(skips_and_pattern) in (1, 2), f"has {5 + len(skips_and_pattern)} inputs, expected 6 or 7")
    check_text(skips_and_pattern[-1], "the pattern")
    return _split_facts(ragged_begins, ragged_ends, begins, ends, chars)


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
