"""Text for people: one line of a readable length, without characters that a terminal would obey or that would hide
others."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SENTENCE = 2_000
_WORD = 300
# Characters of a longer text that are examined; names in a file may have any length.
_SCANNED = 100_000

INVISIBLE = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
"""In a pattern of characters: DEL and C1 control characters, separators of lines, marks of the direction of writing,
surrogates."""

OBEYED = f"\x00-\x1f{INVISIBLE}"
"""The same with all control characters: what is never shown as it is."""

_OBEYED = re.compile(f"[{OBEYED}]")


class _Silent:
    """A function that takes anything and does nothing; signatures show it by its name."""

    def __call__(self, *values: object) -> None: ...

    def __repr__(self) -> str:
        return "silent"


silent = _Silent()
"""The listener of a function whose caller hears nothing of notes or progress."""


def visible(text: str) -> str:
    """The text with escapes, such as ``\\x1b``, for control characters, line breaks, marks of direction and
    surrogates."""
    # Printable characters are kept, and most texts have no others.
    return text if text.isprintable() else _OBEYED.sub(lambda found: ascii(found[0])[1:-1], text)


def cut(text: str, limit: int) -> str:
    """The text, with ``...`` in its middle if it has more than ``limit`` characters."""
    if len(text) <= limit:
        return text
    tail = limit // 3
    return f"{text[: limit - tail - 3]}...{text[-tail:]}"


_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def is_address(path: str) -> bool:
    """True for an address such as ``s3://bucket/x``, which Python would take for a local folder ``s3:``."""
    return _ADDRESS.match(path) is not None


_PLURALS = {"axis": "axes", "body": "bodies", "branch": "branches", "class": "classes", "entry": "entries"}


def counted(count: int, what: str) -> str:
    """A number of things: "1 layer", "2,000 layers", "2 fixed axes"."""
    if count != 1:
        *before, noun = what.split(" ")
        what = " ".join([*before, _PLURALS.get(noun, f"{noun}s")])
    return f"{count:,} {what}"


def amount(size: float) -> str:
    """Bytes in the largest unit that leaves at least 1: "820 bytes", "1.2 MB"."""
    for unit, factor in (("EB", 1e18), ("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        # Below that, three digits show 1000 of the next smaller unit.
        if size >= 0.9995 * factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size:.0f} bytes"


def metric(count: float | None) -> str:
    """A count in at most three digits and a unit: "820", "1.2 k", "4.09 G"; empty for None."""
    if count is None:
        return ""
    for unit, factor in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= 0.9995 * factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:.0f}"


def listed(texts: Sequence[str], limit: int) -> str:
    """The first few texts, ``limit`` of them, and how many more there are: "a, b and 2 more"."""
    more = f" and {len(texts) - limit:,} more" if len(texts) > limit else ""
    return f"{', '.join(texts[:limit])}{more}"


def alternatives(texts: Sequence[str]) -> str:
    """Texts of which one is meant: "a", "a or b", "a, b or c"."""
    return " or ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))


def sentence(text: str) -> str:
    """The text of a message in one visible line: long words, which are names, are cut in their middle, and so is a long
    text."""
    text = cut(text, _SCANNED)
    if "\n" in text or "\r" in text:
        lines = text.replace("\r", "\n").split("\n")
        text = " ".join(line.strip() for line in lines if line.strip())
    text = visible(text)
    if len(text) > _WORD:
        text = " ".join(cut(word, _WORD) for word in text.split(" "))
    return cut(text, _SENTENCE)
