"""Bars and curves of characters, for terminals with block elements and for those that have ASCII only."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

_PARTS = " ▏▎▍▌▋▊▉█"
_HEIGHTS = " ▁▂▃▄▅▆▇█"
_LEVELS = " .:-=+*#@"
SHADE = "░"
BLOCKS = f"{_PARTS}{_HEIGHTS}{SHADE}"
"""Every character that is not ASCII; a file that cannot hold them gets ``ascii=True``."""


def bar(part: float, width: int, *, ascii: bool = False, shade: bool = False) -> str:
    """A bar that fills a part, 0 to 1, of ``width`` columns; a part above 0 can be seen.

    Args:
        shade: a lighter bar, of whole columns.
    """
    eighths = round(min(1.0, max(0.0, part)) * width * 8)
    if part > 0:
        eighths = max(1, eighths)
    if ascii or shade:
        return ("." if ascii and shade else "#" if ascii else SHADE) * -(-eighths // 8)
    return _PARTS[8] * (eighths // 8) + _PARTS[eighths % 8].strip()


def curve(values: Sequence[float], width: int, *, ascii: bool = False) -> str:
    """Values over time as one line of at most ``width`` characters; each shows the largest of its values."""
    highest, levels = max(values, default=0), _LEVELS if ascii else _HEIGHTS
    if highest <= 0:
        return " " * min(width, len(values))
    columns = min(width, len(values))
    starts = [i * len(values) // columns for i in range(columns + 1)]
    largest = [max(values[first:last]) for first, last in pairwise(starts)]
    # A value above 0 can be seen.
    return "".join(levels[max(round(value / highest * 8), 1 if value > 0 else 0)] for value in largest)
