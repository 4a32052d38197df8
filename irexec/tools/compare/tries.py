"""The same comparison with other inputs, since some do not show a fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from irexec.tools.compare.comparison import Comparison


def tried(first: Comparison, again: Callable[[int], Comparison], tries: int) -> Comparison:
    """The first comparison that finds a fault; if none does, the first of all, with what is blind in each of them.

    Args:
        first: the comparison with the inputs that were asked for.
        again: the comparison with random inputs, from 1 on.
        tries: their number.
    """
    if tries == 1 or not first.agrees:
        return first
    blind = {row.b for row in first.blind}
    for number in range(1, tries):
        found = again(number)
        if not found.agrees:
            note = f"found with other inputs: those of try {number + 1} of {tries}, which are random"
            return replace(found, notes=(note, *found.notes))
        blind &= {row.b for row in found.blind}
    rows = tuple(replace(row, is_blind=row.b in blind) for row in first.rows)
    return replace(first, rows=rows, notes=(*first.notes, f"{tries} tries agree, all but the first with random inputs"))
