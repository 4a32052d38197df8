"""Unicode: classes of characters and normal forms; and normalization as SentencePiece does it.

The rules are those that SentencePiece builds from a Unicode library: a rule for each character that changes, and for
the composed forms a rule for each sequence whose composition the shorter rules do not find. A longer sequence is
composed in parts, and marks are not sorted: the results are not always those of ``unicodedata.normalize``. A
precompiled charsmap is a double array, as darts-clone makes it, and the replacements that its values point to. Sources:
Builder and Normalizer of google/sentencepiece.
"""

from __future__ import annotations

import functools
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Literal, Protocol

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
            leaf = self._base(node)
            check(leaf < len(self._units), "the charsmap is not valid: a value is outside of its double array")
            begin = self._units[leaf] & 0x7FFFFFFF
            end = self._texts.find(b"\0", begin)
            check(end >= 0, "the charsmap is not valid: a replacement is outside of its texts")
            self._known[node] = text(self._texts[begin:end])
        return self._known[node]


Ranges = tuple[tuple[int, int], ...]
"""First and last code points of the ranges of a set, in ascending order."""

HORIZONTAL: Ranges = (
    (0x9, 0x9), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x180E, 0x180E), (0x2000, 0x200A), (0x202F, 0x202F),
    (0x205F, 0x205F), (0x3000, 0x3000),
)  # fmt: skip
VERTICAL: Ranges = ((0xA, 0xD), (0x85, 0x85), (0x2028, 0x2029))
# Script extensions of Unicode 17.
HAN: Ranges = (
    (0xB7, 0xB7), (0x2E80, 0x2E99), (0x2E9B, 0x2EF3), (0x2F00, 0x2FD5), (0x2FF0, 0x2FFF), (0x3001, 0x3003),
    (0x3005, 0x3011), (0x3013, 0x301F), (0x3021, 0x302D), (0x3030, 0x3030), (0x3037, 0x303F), (0x30FB, 0x30FB),
    (0x3190, 0x319F), (0x31C0, 0x31E5), (0x31EF, 0x31EF), (0x3220, 0x3247), (0x3280, 0x32B0), (0x32C0, 0x32CB),
    (0x32FF, 0x32FF), (0x3358, 0x3370), (0x337B, 0x337F), (0x33E0, 0x33FE), (0x3400, 0x4DBF), (0x4E00, 0x9FFF),
    (0xA700, 0xA707), (0xF900, 0xFA6D), (0xFA70, 0xFAD9), (0xFE45, 0xFE46), (0xFF61, 0xFF65), (0x16FE2, 0x16FE3),
    (0x16FF0, 0x16FF6), (0x1D360, 0x1D371), (0x1F250, 0x1F251), (0x20000, 0x2A6DF), (0x2A700, 0x2B81D),
    (0x2B820, 0x2CEAD), (0x2CEB0, 0x2EBE0), (0x2EBF0, 0x2EE5D), (0x2F800, 0x2FA1D), (0x30000, 0x3134A),
    (0x31350, 0x33479),
)  # fmt: skip


@functools.cache
def of_property(name: str) -> Ranges:
    """The code points of ``\\p{name}``: a general category, a group of them such as L, or Han.

    Raises:
        OpError: the property is not known.
    """
    if name in ("Han", "script=Han", "Script=Han"):
        return HAN
    if name in ("Any", "L&"):
        return ((0, sys.maxunicode),) if name == "Any" else union(map(of_property, ("Lu", "Ll", "Lt")))
    known = _categories()
    members = [category for category in known if name in (category, category[0])]
    check(bool(members), f"the property {name!r} of a pattern is not supported (general categories and Han are)")
    return union(known[category] for category in members)


@functools.cache
def of_escape(letter: str) -> Ranges:
    """The code points of an escape such as ``\\s``; of ``\\S`` those of the complement."""
    if letter.isupper():
        return complement(of_escape(letter.lower()))
    if letter == "d":
        return of_property("Nd")
    if letter == "w":
        return union(map(of_property, ("L", "N", "Mn", "Pc")))
    return {"h": HORIZONTAL, "v": VERTICAL, "s": union([HORIZONTAL, VERTICAL])}[letter]


def union(sets: Iterable[Ranges]) -> Ranges:
    """The ranges of several sets, joined where they touch."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(part for ranges in sets for part in ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return tuple(found)


def complement(ranges: Ranges) -> Ranges:
    """All other code points."""
    starts = [0, *(last + 1 for _, last in ranges)]
    ends = [*(first - 1 for first, _ in ranges), sys.maxunicode]
    return tuple((first, last) for first, last in zip(starts, ends, strict=True) if first <= last)


@functools.cache
def new_characters() -> frozenset[str]:
    """The characters that Unicode 14 does not have."""
    return frozenset(chr(code) for (first, last), _ in _changes() for code in range(first, last + 1))


@functools.cache
def _changes() -> tuple[tuple[tuple[int, int], str], ...]:
    """Ranges of code points, and the category that each has since Unicode 14."""
    lines = (resources.files("irexec.tokenizers") / "categories.txt").read_text("utf-8").splitlines()
    rows = (line.split() for line in lines if not line.startswith("#"))
    return tuple(((int(first, 16), int(last, 16)), name) for first, last, name in rows)


@functools.cache
def _categories() -> Mapping[str, Ranges]:
    """The code points of each general category."""
    names = [unicodedata.category(chr(code)) for code in range(sys.maxunicode + 1)]
    for (first, last), name in _changes():
        names[first : last + 1] = [name] * (last + 1 - first)
    found: dict[str, list[tuple[int, int]]] = {}
    start = 0
    for code in range(1, len(names) + 1):
        if code == len(names) or names[code] != names[start]:
            found.setdefault(names[start], []).append((start, code - 1))
            start = code
    return {name: tuple(ranges) for name, ranges in found.items()}


_KEPT = 200_000
"""Number of sequences whose rules are kept."""
_NAMES: dict[str, Literal["NFC", "NFD", "NFKC", "NFKD"]] = {"nfc": "NFC", "nfd": "NFD", "nfkc": "NFKC", "nfkd": "NFKD"}


def form_rules(form: str, case_fold: bool) -> Rules:
    """The rules of a normal form, or of "identity", with or without case folding.

    Raises:
        OpError: there are none.
    """
    name = form.lower()
    known = name in _NAMES or (name == "identity" and case_fold)
    check(known, f"the normalization form {form!r} with case_fold={case_fold} is not supported")
    return _form(name, case_fold)


@dataclass
class _Form:
    """The rules of one form.

    Attributes:
        known: the rule of each sequence that was asked for.
    """

    form: str
    case_fold: bool
    known: dict[str, str | None] = field(default_factory=dict)

    def match(self, string: str, at: int) -> tuple[str, int] | None:
        """See Rules."""
        for length in range(min(self._longest(string[at]), len(string) - at), 0, -1):
            found = self.rule(string[at : at + length])
            if found is not None:
                return found, length
        return None

    def _longest(self, char: str) -> int:
        """The number of characters of the longest sequence that begins with a character."""
        if not self.form.endswith("c"):
            return 1
        single = _decomposed(self.form, char)
        return _longest(self.form).get(single, 1) if len(single) == 1 else 1

    def rule(self, sequence: str) -> str | None:
        """The replacement of a sequence; None if it has none."""
        found = self.known.get(sequence, "")
        # No replacement is empty.
        if found == "":
            found = self._single(sequence) if len(sequence) == 1 else self._sequence(sequence)
            if len(self.known) < _KEPT:
                self.known[sequence] = found
        return found

    def _single(self, char: str) -> str | None:
        changed = char if self.form == "identity" else _normalized(self.form, char)
        folded = _folded(changed) if self.case_fold else changed
        return folded if changed != char or folded != char else None

    def _sequence(self, sequence: str) -> str | None:
        composed = _composed(self.form, sequence)
        if composed is None or self._by_shorter(sequence, fold=False) == composed:
            return None
        folded = _folded(composed) if self.case_fold else composed
        return None if self._by_shorter(sequence, fold=self.case_fold) == folded else folded

    def _by_shorter(self, sequence: str, fold: bool) -> str:
        """The sequence by the rules of all shorter ones."""
        rules = _form(self.form, fold)
        parts, at = [], 0
        while at < len(sequence):
            for length in range(min(len(sequence) - 1, len(sequence) - at), 0, -1):
                found = rules.rule(sequence[at : at + length])
                if found is not None:
                    break
            parts.append(sequence[at] if found is None else found)
            at += length
        return "".join(parts)


_form = functools.cache(_Form)


def _composed(form: str, sequence: str) -> str | None:
    """The composition of a sequence that some character decomposes to; None if there is none."""
    singles = [_decomposed(form, char) for char in sequence]
    if any(len(single) != 1 for single in singles):
        return None
    whole = "".join(singles)
    if whole not in _decompositions(form):
        return None
    composed = unicodedata.normalize("NFC", whole)
    return None if composed in (whole, sequence) else composed


def _decomposed(form: str, char: str) -> str:
    return _normalized("nfd" if form == "nfc" else "nfkd", char)


def _normalized(form: str, char: str) -> str:
    """A normal form of Unicode 14, whatever version Python has."""
    return char if char in new_characters() else unicodedata.normalize(_NAMES[form], char)


@functools.cache
def _decompositions(form: str) -> frozenset[str]:
    """The decompositions of all characters that have more than one character."""
    codes = (code for code in range(1, sys.maxunicode + 1) if unicodedata.decomposition(chr(code)))
    syllables = range(0xAC00, 0xD7A4)
    return frozenset(d for code in (*codes, *syllables) if len(d := _decomposed(form, chr(code))) > 1)


@functools.cache
def _longest(form: str) -> dict[str, int]:
    """The number of characters of the longest decomposition that begins with a character."""
    found: dict[str, int] = {}
    for sequence in _decompositions(form):
        found[sequence[0]] = max(found.get(sequence[0], 0), len(sequence))
    return found


def _folded(string: str) -> str:
    return "".join(map(_folded_character, string))


@functools.lru_cache(maxsize=4096)
def _folded_character(char: str) -> str:
    """Simple case folding of Unicode 14, which has one character for each."""
    if char in new_characters():
        return char
    full = char.casefold()
    if len(full) == 1:
        return full
    lower = char.lower()
    return lower if len(lower) == 1 else char
