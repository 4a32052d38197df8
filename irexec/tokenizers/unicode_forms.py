"""The Unicode normal forms and case folding as rules of SentencePiece.

The rules are those that SentencePiece builds from a Unicode library: a rule for each character that changes, and for
the composed forms a rule for each sequence whose composition the shorter rules do not find. A longer sequence is
composed in parts, and marks are not sorted: the results are not always those of ``unicodedata.normalize``. Source:
Builder of google/sentencepiece.
"""

from __future__ import annotations

import functools
import sys
import unicodedata
from dataclasses import dataclass, field
from typing import Literal

from irexec.errors import check
from irexec.tokenizers.charsmap import Rules
from irexec.tokenizers.unicode_classes import new_characters

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


@functools.cache
def _form(name: str, case_fold: bool) -> _Form:
    return _Form(name, case_fold)


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
        if composed is None:
            return None
        if self._by_shorter(sequence, fold=False) == composed:
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
