"""The shapes of loops' states, remembered while the body around the loops is built again.

A body is built until the shapes of its states do not change, and with it the loops inside it. If each of those began
anew, the number of times that the innermost body is built would be exponential in the depth of the nest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from irexec.ir.dims import join_shapes
from irexec.ir.facts import Fact

# The names of the outputs of the loop's node; how many loops this node has made before in the same body.
_Key = tuple[tuple[str, ...], int]


class SettledStates:
    """What is remembered of a loop, and of the loops inside its body.

    Attributes:
        facts: of the states as they settled when the loop was last built; empty before.
    """

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self._inner: dict[_Key, SettledStates] = {}
        self._built: Counter[tuple[str, ...]] = Counter()

    def begin(self) -> None:
        """The body is built, perhaps again, from its first node on."""
        self._built.clear()

    def inner(self, outputs: Sequence[str]) -> SettledStates:
        """What is remembered of the next loop of the node with these outputs."""
        name = tuple(outputs)
        self._built[name] += 1
        return self._inner.setdefault((name, self._built[name]), SettledStates())

    def joined_with(self, initial: Sequence[Fact]) -> list[Fact]:
        """Facts that hold for the initial states and for the remembered ones."""
        before = self.facts
        if [(fact.element, fact.rank) for fact in before] != [(fact.element, fact.rank) for fact in initial]:
            return list(initial)
        return [Fact(now.element, join_shapes(now.shape, old.shape)) for now, old in zip(initial, before, strict=True)]
