"""The line of every tag that starts an element, in the order of a file."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

_MARKUP = re.compile(rb"<(?:!--.*?--|\?.*?\?|!\[CDATA\[.*?\]\]|([^/!?]))", re.DOTALL)
_PROLOG = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^<>]*\?>)?")
_PIECE = 1 << 20
_LESS, _SLASH, _NEW_LINE = b"</\n"


def tag_lines(data: bytes) -> Iterator[int]:
    """Lines, counted from 1.

    In well-formed XML "<" begins markup, except in comments, processing instructions and CDATA: without these, tags are
    found by NumPy, which is ten times as fast as by a regular expression.
    """
    prolog = _PROLOG.match(data)
    first = prolog.end() if prolog else 0
    if data.find(b"<!", first) >= 0 or data.find(b"<?", first) >= 0:
        return _by_expression(data)
    return _by_bytes(data, first)


def _by_bytes(data: bytes, first: int) -> Iterator[int]:
    all_bytes = np.frombuffer(data, np.uint8)
    line = 1 + data.count(b"\n", 0, first)
    for start in range(first, len(data), _PIECE):
        piece = all_bytes[start : start + _PIECE]
        after = all_bytes[start + 1 : start + _PIECE + 1]
        tags = np.flatnonzero(piece == _LESS)
        tags = tags[tags < after.size]
        tags = tags[after[tags] != _SLASH]
        breaks = np.flatnonzero(piece == _NEW_LINE)
        yield from (np.searchsorted(breaks, tags) + line).tolist()
        line += breaks.size


def _by_expression(data: bytes) -> Iterator[int]:
    line, seen = 1, 0
    for found in _MARKUP.finditer(data):
        if found[1] is not None:
            line += data.count(b"\n", seen, found.start())
            seen = found.start()
            yield line
