"""Layers that bring the axes of A's tensors into another order, which later layers do not expect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irexec.ir.graph import Value
from irexec.tools.compare.rows import Ancestors

MOVES = ("Reshape", "Transpose", "Squeeze", "Unsqueeze")
"""Layers that move elements, or none."""


def reordering(sources: Sequence[Value], ancestors: Ancestors, orders: Mapping[Value, tuple[int, ...]]) -> list[Value]:
    """The tensors from which on A has another order of axes, up to some sources.

    Their layers move elements, or read tensors in A's order, such as a product with swapped operands.
    """
    found: dict[Value, None] = {}
    waiting, seen = [value for value in sources if value in orders], set(sources)
    while waiting:
        value = waiting.pop()
        reordered = [source for source in ancestors.of(value)[0] if source in orders]
        if value.node.type in MOVES or not reordered:
            found[value] = None
        waiting += [source for source in reordered if source not in seen]
        seen.update(reordered)
    return list(found)
