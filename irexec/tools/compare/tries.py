"""The same comparison with other inputs: some inputs show no fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from irexec.tools.compare.comparison import Comparison


def tried(first: Comparison, again: Callable[[int], Comparison], tries: int) -> Comparison:
    """The first comparison with a fault; without a fault the first of all, with the tensors that are blind in each.

    Args:
        first: the comparison with the inputs of the user.
        again: makes a comparison with random inputs, by its number from 1 on.
        tries: number of comparisons.
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
