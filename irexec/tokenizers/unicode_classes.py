"""Sets of code points that patterns name: general categories of Unicode 17, spaces, words, Han characters."""

from __future__ import annotations

import functools
import sys
import unicodedata
from collections.abc import Iterable, Mapping
from importlib import resources

from irexec.errors import check

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
