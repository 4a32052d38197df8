"""Tables and amounts as plain text, for what Python prints."""

from __future__ import annotations

from collections.abc import Collection, Sequence

_LONGEST = 40


def aligned(headers: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """The lines of a table; long cells are cut at the end, and columns that are empty in every row are left out.

    Args:
        right: the columns whose cells are aligned to the right.
    """
    shown = [[_cut(cell) for cell in row] for row in rows]
    used = [i for i in range(len(headers)) if any(row[i] for row in shown)]
    widths = {i: max(len(line[i]) for line in [headers, *shown]) for i in used}
    return [
        "  ".join(f"{line[i]:>{widths[i]}}" if i in right else f"{line[i]:<{widths[i]}}" for i in used).rstrip()
        for line in [headers, *shown]
    ]


def _cut(cell: str) -> str:
    return cell if len(cell) <= _LONGEST else f"{cell[: _LONGEST - 3]}..."


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
