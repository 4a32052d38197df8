"""Names that are given to what has none of its own, or not one to itself."""

from __future__ import annotations

from collections.abc import Iterable

from irexec.ir.graph import Value


def free_name(wanted: str, taken: set[str]) -> str:
    """``wanted`` or, where that is taken, ``wanted_1``, ``wanted_2`` and so on; from then on it is taken."""
    name, count = wanted, 0
    while name in taken:
        count += 1
        name = f"{wanted}_{count}"
    taken.add(name)
    return name


def unique_names(values: Iterable[Value]) -> dict[str, Value]:
    """Values by names, no two of them the same: the first tensor name, else ``layer`` or ``layer:index``, else ``id:index``."""
    found: dict[str, Value] = {}
    for value in values:
        name = next((name for name in (value.name, value.label) if name not in found), f"{value.node.id}:{value.index}")
        found[name] = value
    return found
