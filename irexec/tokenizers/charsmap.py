"""Normalization as SentencePiece does it: the longest rule at each position, and the treatment of spaces.

A precompiled charsmap is a double array, as darts-clone makes it, and the replacements that its values point to.
Source: Normalizer of google/sentencepiece.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from irexec.errors import check
from irexec.reference.limits import Growth, check_time
from irexec.tokenizers.packed import raw_bytes, text

SPACE, ESCAPED = " ", "\u2581"
REPLACEMENT = "\ufffd"


class Rules(Protocol):
    """Replacements of characters and of sequences of them."""

    def match(self, string: str, at: int) -> tuple[str, int] | None:
        """The replacement of the longest sequence at a position and its number of characters; None if none has one."""


def _pieces(string: str, rules: Rules) -> Iterator[str]:
    """The replacements of a text, one after the other; a byte that is not UTF-8 becomes U+FFFD."""
    at, growth = 0, Growth("the normalized string")
    while at < len(string):
        if not at & 0xFFF:
            check_time()
        found = rules.match(string, at)
        if found is None:
            yield REPLACEMENT if "\udc80" <= string[at] <= "\udcff" else string[at]
            at += 1
        else:
            growth.add(len(found[0]))
            yield found[0]
            at += found[1]


@dataclass(frozen=True)
class Spaces:
    """The treatment of spaces: see the attributes of CharsMapNormalization."""

    add_dummy_prefix: bool = False
    remove_extra_whitespaces: bool = False
    escape_whitespaces: bool = False


def normalized(raw: bytes, rules: Rules, spaces: Spaces) -> bytes:
    """The normalized string."""
    if not raw:
        return raw
    pieces = _pieces(text(raw), rules)
    whole = _without_extra(pieces) if spaces.remove_extra_whitespaces else "".join(pieces)
    if whole is None:
        return b""
    if spaces.add_dummy_prefix:
        whole = SPACE + whole
    if spaces.escape_whitespaces:
        whole = whole.replace(SPACE, ESCAPED)
    if spaces.remove_extra_whitespaces:
        whole = whole.rstrip(ESCAPED if spaces.escape_whitespaces else SPACE)
    return raw_bytes(whole)


def _without_extra(pieces: Iterator[str]) -> str | None:
    """The pieces without spaces that follow a space or begin the text; None if all of them are one space."""
    kept, after_space, only_spaces = [], True, True
    for piece in pieces:
        only_spaces = only_spaces and piece == SPACE
        rest = piece.lstrip(SPACE) if after_space else piece
        if rest:
            kept.append(rest)
            after_space = rest.endswith(SPACE)
    return None if only_spaces else "".join(kept)


@functools.lru_cache(maxsize=8)
def precompiled(blob: bytes) -> Rules:
    """The rules of a precompiled charsmap.

    Raises:
        OpError: the bytes are not those of a charsmap.
    """
    size = int.from_bytes(blob[:4], "little")
    check(0 < size < len(blob) - 3 and size % 4 == 0, "the charsmap is not valid: its size is wrong")
    return _DoubleArray(np.frombuffer(blob[4 : 4 + size], "<u4").tolist(), blob[4 + size :])


class _DoubleArray:
    """A trie of bytes.

    A unit has the label of the byte that leads to it (bits 0 to 7), whether a value follows (bit 8), the factor (bit 9)
    and the offset (bits 10 to 30) of its children; a unit with bit 31 is a value.
    """

    def __init__(self, units: list[int], texts: bytes) -> None:
        self._units, self._texts = units, texts
        self._first: dict[str, int] = {}
        self._known: dict[int, str] = {}

    def match(self, string: str, at: int) -> tuple[str, int] | None:
        """See Rules."""
        node = self._first.get(string[at])
        if node is None:
            node = self._first[string[at]] = self._walked(0, string[at])
        found, end = None, at + 1
        while node >= 0:
            value = self._value(node)
            if value is not None:
                found = value, end - at
            if end == len(string):
                break
            node = self._walked(node, string[end])
            end += 1
        return found

    def _walked(self, node: int, char: str) -> int:
        """The unit after the bytes of a character; -1 if there is none."""
        for byte in raw_bytes(char):
            node = self._base(node) ^ byte
            # The unit of the byte 0 is that of a value.
            if node >= len(self._units) or self._units[node] & 0x800000FF != byte or not byte:
                return -1
        return node

    def _base(self, node: int) -> int:
        unit = self._units[node]
        return node ^ (unit >> 10 << ((unit & 1 << 9) >> 6))

    def _value(self, node: int) -> str | None:
        """The replacement of the bytes that lead to a unit."""
        if not self._units[node] >> 8 & 1:
            return None
        if node not in self._known:
            self._known[node] = self._replacement(self._base(node))
        return self._known[node]

    def _replacement(self, leaf: int) -> str:
        check(leaf < len(self._units), "the charsmap is not valid: a value is outside of its double array")
        begin = self._units[leaf] & 0x7FFFFFFF
        end = self._texts.find(b"\0", begin)
        check(end >= 0, "the charsmap is not valid: a replacement is outside of its texts")
        return text(self._texts[begin:end])
