"""Values of ONNX other than tensors, and shapes of the states of loops, remembered while a body is built again.

IR has tensors only: other values must be resolved when a model is converted. A body is built repeatedly until the
shapes of its states settle, and the loops inside it with it. If inner loops did not start from their settled shapes,
the innermost body would be built exponentially often in the nesting depth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from irexec.ir.dims import join_shapes
from irexec.ir.facts import Fact
from irexec.ir.graph import Value


@dataclass(frozen=True)
class TensorSequence:
    """A sequence of tensors, each a value of its own."""

    items: tuple[Value, ...]


@dataclass(frozen=True)
class EmptyOptional:
    """An optional without an element. An optional with an element is represented by that element."""


@dataclass(frozen=True)
class LoopSequence:
    """A sequence that a loop appends to, as seen in the loop's body: the tensors that this iteration has appended."""

    added: tuple[Value, ...] = ()


@dataclass(frozen=True)
class StackedSequence:
    """A sequence after the loop that appended to it: the tensors ``first``, then the rows of ``rest``."""

    first: tuple[Value, ...]
    rest: Value


@dataclass(frozen=True)
class ScoresByLabel:
    """A sequence of maps, one for each row of ``scores``: the score of each label, in the order of the last axis."""

    labels: tuple[str, ...]
    scores: Value


OnnxValue = Value | TensorSequence | EmptyOptional | LoopSequence | StackedSequence | ScoresByLabel


# The output names of the loop's node, and the number of loops that this node has built in the same body.
_Key = tuple[tuple[str, ...], int]


class SettledStates:
    """The settled states of a loop and of the loops inside its body.

    Attributes:
        facts: facts of the states when the loop was last built; empty before.
    """

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self._inner: dict[_Key, SettledStates] = {}
        self._built: Counter[tuple[str, ...]] = Counter()

    def begin(self) -> None:
        """Begin to build the body, perhaps again."""
        self._built.clear()

    def inner(self, outputs: Sequence[str]) -> SettledStates:
        """The settled states of the next loop of the node with these outputs."""
        name = tuple(outputs)
        self._built[name] += 1
        return self._inner.setdefault((name, self._built[name]), SettledStates())

    def joined_with(self, initial: Sequence[Fact]) -> list[Fact]:
        """Facts that hold for the initial and for the settled states."""
        before = self.facts
        if [(fact.element, fact.rank) for fact in before] != [(fact.element, fact.rank) for fact in initial]:
            return list(initial)
        return [Fact(now.element, join_shapes(now.shape, old.shape)) for now, old in zip(initial, before, strict=True)]
