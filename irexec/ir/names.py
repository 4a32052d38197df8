"""Names that are given to what has none of its own, or not one to itself."""

from __future__ import annotations

from collections.abc import Iterable

from irexec.ir.graph import Value


class Names:
    """The names that are taken.

    Args:
        taken: names that are taken already.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        # The last number that was given to each name: thousands of layers may want the same one.
        self._counts: dict[str, int] = {}

    def free(self, wanted: str) -> str:
        """``wanted`` or, where that is taken, ``wanted_1``, ``wanted_2`` and so on; from then on it is taken."""
        name = wanted
        if wanted in self._taken:
            count = self._counts.get(wanted, 0) + 1
            while (name := f"{wanted}_{count}") in self._taken:
                count += 1
            self._counts[wanted] = count
        self._taken.add(name)
        return name

    def give_back(self, name: str) -> None:
        """The name may be given again."""
        self._taken.discard(name)
        wanted, _, number = name.rpartition("_")
        if number.isdecimal() and int(number) <= self._counts.get(wanted, 0):
            self._counts[wanted] = int(number) - 1


def unique_names(values: Iterable[Value]) -> dict[str, Value]:
    """Values by names, no two of them the same: the first tensor name, else ``layer`` or ``layer:index``, else
    ``id:index``."""
    found: dict[str, Value] = {}
    for value in values:
        name = next((name for name in (value.name, value.label) if name not in found), f"{value.node.id}:{value.index}")
        found[name] = value
    return found
