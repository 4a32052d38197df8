"""Pairs found from the results backwards, by running layers of B with tensors of A.

Equal values show the pairs in front of a fault. All values after the fault differ: two tensors are a pair if the next
layers of B compute A's next tensor from A's tensor. Results are certain pairs, and each new pair leads to others in
front of it, up to the layer at fault.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from irexec.ir.graph import Node, Value
from irexec.tools.compare.isolate import Isolated
from irexec.tools.compare.observe import Facts, Observed
from irexec.tools.compare.open_sides import OpenSides
from irexec.tools.compare.pairs import VALUES, TensorPair
from irexec.tools.compare.rows import Rows, arranged, is_varied, noisy, positions
from irexec.tools.compare.sides import ModelSide, computed_from_shapes

REASON = VALUES[1]
_CANDIDATES = 6
"""Maximum number of tensors of A that are tried for one of B, nearest first."""
_LAYERS = 8
"""Maximum number of layers of A between a known tensor and its candidates."""
_EXPANSIONS = 4
"""Maximum number of layers of B without a counterpart that run together."""
_OPEN = 2
"""Maximum number of tensors of B that are paired by one trial."""
_TRIALS = 600
"""Maximum number of trials."""
_SPATIAL = 2
"""Number of axes with sizes that a pad or stride changes."""


@dataclass(frozen=True)
class Target:
    """A known pair, and a part of B in front of it.

    Attributes:
        a, b: the pair.
        open: inputs of the part without a known partner.
        inside: other tensors inside the part.
    """

    a: Value
    b: Value
    open: tuple[Value, ...]
    inside: frozenset[Value] = frozenset()


Trial = tuple[Target, tuple[Value, ...]]
"""A target, and a tensor of A for each of its open tensors."""


class Backwards:
    """A search for pairs, from the results towards the inputs.

    Args:
        context: the comparison.
        rows: its rows.
        facts: facts of the values of A, and of the values of B.
        known: values of B with the right partner.
    """

    def __init__(self, context: OpenSides, rows: Rows, facts: tuple[Facts, Facts], known: Set[Value]) -> None:
        self._context, self._rows = context, rows
        self._facts_a, self._facts_b = facts
        self._partners = {value: context.pairs.by_b[value] for value in known if value in context.pairs.by_b}
        self._agreeing = {one.value for one in rows.found if one.row.agreement.agrees}
        self._computed = computed_from_shapes(context.b.model)
        self._position_a = positions(context.a.order if isinstance(context.a, ModelSide) else ())
        self._position_b = positions(context.b.order)
        self._left = _TRIALS

    def pairs(self) -> list[TensorPair]:
        """Pairs that are new or were only guessed."""
        waiting = [
            target for value in self._partners if value not in self._agreeing and (target := self._target(value))
        ]
        found: dict[Value, Value] = {}
        while waiting and self._left > 0:
            answers = self._tried(waiting)
            again: list[Target] = []
            for target in waiting:
                chosen = answers.get(target)
                if chosen is None:
                    again += self._expanded(target)
                    continue
                for value, partner in zip(target.open, chosen, strict=True):
                    if value not in self._partners:
                        self._partners[value] = found[value] = partner
                        more = self._target(value)
                        again += [more] if more is not None else []
            waiting = again
        return [TensorPair(partner, value, REASON) for value, partner in found.items()]

    def _target(self, value: Value) -> Target | None:
        """The target of a value with a known partner; None if its layer has bodies, inputs with known partners alone,
        or many other inputs.

        Inputs may be slices of one tensor: the part in front of the value then includes them.
        """
        opened: tuple[Value, ...] = (value,)
        inside: set[Value] = set()
        for _ in range(_EXPANSIONS):
            if any(one.node.bodies or one.node.type in ("Parameter", "ReadValue") for one in opened):
                return None
            inside.update(opened)
            opened = tuple(dict.fromkeys(source for one in opened for source in self._open(one.node)))
            if len(opened) <= _OPEN:
                break
        if not 0 < len(opened) <= _OPEN:
            return None
        return Target(self._partners[value], value, opened, frozenset(inside - {value}))

    def _open(self, node: Node) -> Iterator[Value]:
        """Inputs of a layer without a known partner, but for those that B computes from constants or shapes alone."""
        for value in dict.fromkeys(node.inputs):
            if value is None or value.node.constant is not None or value.node in self._computed:
                continue
            if value.node.type != "Parameter" and value not in self._partners:
                yield value

    def _expanded(self, target: Target) -> Iterator[Target]:
        """The same target with a larger part, if its inputs have no counterpart."""
        if len(target.inside) >= _EXPANSIONS:
            return
        for value in target.open:
            if value.node.bodies or value.node.type == "ReadValue":
                continue
            opened = tuple(dict.fromkeys([*(one for one in target.open if one is not value), *self._open(value.node)]))
            if 0 < len(opened) <= _OPEN:
                yield Target(target.a, target.b, opened, target.inside | {value})
                return

    def _candidates(self, target: Target, value: Value) -> list[Value]:
        """Tensors of A in front of a target that may be the partner of a tensor of B: those of layers of the same type
        first, then the nearest.

        A layer may give A's tensor from several tensors of A, as a normalization does from what it has normalized.
        """
        wanted = _type_and_shape(value, self._facts_b)
        mine, theirs = _type_and_shape(target.a, self._facts_a), _type_and_shape(target.b, self._facts_b)
        if wanted is None:
            return []
        # Another pad changes the sizes of all later tensors.
        is_resized = mine is not None and theirs is not None and not _fit(mine, theirs, is_resized=False)
        taken = {one for other, one in self._partners.items() if other in self._agreeing}
        found: list[Value] = []
        seen, layer = {target.a}, [target.a]
        for _ in range(_LAYERS):
            sources = [source for one in layer for source in one.node.inputs if source is not None]
            layer = [one for one in dict.fromkeys(sources) if one not in seen and one.node.type != "Parameter"]
            seen.update(layer)
            for one in layer:
                own = _type_and_shape(one, self._facts_a)
                if one not in taken and own is not None and _fit(own, wanted, is_resized=is_resized):
                    found.append(one)
        return sorted(found, key=lambda one: one.node.type != value.node.type)[:_CANDIDATES]

    def _tried(self, targets: Sequence[Target]) -> dict[Target, tuple[Value, ...]]:
        """Tensors of A that reproduce targets, by target."""
        trials: list[Trial] = []
        for target in targets:
            choices = itertools.product(*(self._candidates(target, value) for value in target.open))
            likely = sorted(choices, key=lambda chosen: self._unlikeliness(target.open, chosen))
            trials += [(target, chosen) for chosen in likely[:_CANDIDATES]]
        found: dict[Target, tuple[Value, ...]] = {}
        for batch in _disjoint(trials):
            batch = [trial for trial in batch if trial[0] not in found]
            if not batch or self._left <= 0:
                continue
            self._left -= len(batch)
            reproduced = self._reproduced(batch)
            found |= {target: chosen for target, chosen in batch if target in reproduced}
        return found

    def _unlikeliness(self, values: Sequence[Value], partners: Sequence[Value]) -> tuple[int, int]:
        """Sort key of partners: layers of other types, and tensors of B that depend on each other otherwise than in A.

        A sum is the same with its operands exchanged, but the operand of a residual sum that was there first is so in
        both models.
        """
        pairs = list(zip(values, partners, strict=True))
        crossed = sum(
            depends(one, other, self._position_b) is not depends(partner, its, self._position_a)
            for (one, partner), (other, its) in itertools.permutations(pairs, 2)
        )
        return crossed, sum(one.node.type != partner.node.type for one, partner in pairs)

    def _reproduced(self, batch: Sequence[Trial]) -> set[Target]:
        """The targets with A's values, of a batch with one value for each tensor of B."""
        sources: dict[Value, Value | str] = dict(self._partners)
        inside: set[Value] = set()
        for target, chosen in batch:
            sources |= zip(target.open, chosen, strict=True)
            inside |= target.inside
        inside |= self._rows.unreadable
        sources = {value: one for value, one in sources.items() if value not in inside}
        shapes = {
            value: fact.static_shape
            for value in sources
            if (fact := self._facts_b.get(value)) is not None and fact.is_static
        }
        tried = {value for target, _ in batch for value in target.open}
        orders = {value: order for value, order in self._context.pairs.orders.items() if value not in tried}
        isolated = Isolated(self._context.b, sources, self._context.options, shapes, orders)
        pairs = isolated.chosen([TensorPair(target.a, target.b, REASON) for target, _ in batch], [])
        given = self._context.observed_a([*isolated.needed(pairs), *(pair.a for pair in pairs)])
        found = self._agreeing_of(batch, isolated, given, given)
        for i in range(_OPEN):
            # Keys that a mask outweighs, or a summand that is small: any tensor in their place gives the same.
            asked = [trial for trial in batch if trial[0] in found and i < len(trial[1])]
            noise: dict[Value | str, list[np.ndarray]] = {
                chosen[i]: [noisy(array) for array in given.arrays[chosen[i]]] for _, chosen in asked
            }
            other = Observed()
            other.arrays, other.failures = given.arrays | noise, given.failures
            found -= self._agreeing_of(asked, isolated, other, given)
        return found

    def _agreeing_of(
        self, batch: Sequence[Trial], isolated: Isolated, given: Observed, expected: Observed
    ) -> set[Target]:
        """The targets that have the expected values, computed from given ones."""
        pairs = isolated.chosen([TensorPair(target.a, target.b, REASON) for target, _ in batch], [])
        computed = isolated.observed_each(pairs, given, "irexec", len(self._context.inputs.b))
        return {
            target
            for target, _ in batch
            if target.b in computed.arrays and self._agrees(target, expected, computed.arrays[target.b])
        }

    def _agrees(self, target: Target, given: Observed, arrays: Sequence[np.ndarray]) -> bool:
        expected = given.arrays.get(target.a)
        order = self._context.pairs.orders.get(target.b, ())
        return expected is not None and all(
            is_varied(theirs)
            and self._rows.agreement(target.a, target.b, arranged(theirs, mine.shape, order), mine).agrees
            for mine, theirs in zip(arrays, expected, strict=True)
        )


def depends(value: Value, source: Value, position: Mapping[Node, int]) -> bool:
    """Whether a tensor is computed from another one, in a graph with these positions of its layers."""
    waiting, seen = [value.node], {value.node}
    while waiting:
        for one in waiting.pop().inputs:
            if one is source:
                return True
            if one is not None and one.node not in seen and position[one.node] > position[source.node]:
                seen.add(one.node)
                waiting.append(one.node)
    return False


def _disjoint(trials: Sequence[Trial]) -> Iterator[list[Trial]]:
    """Batches of trials, with one partner for each tensor of B, and without a tensor that is both computed and
    given."""
    waiting = list(trials)
    while waiting:
        chosen: dict[Value, Value] = {}
        inside: set[Value] = set()
        targets: set[Value] = set()
        batch: list[Trial] = []
        later: list[Trial] = []
        for target, partners in waiting:
            own: Mapping[Value, Value] = dict(zip(target.open, partners, strict=True))
            is_free = target.b not in targets and inside.isdisjoint(own) and target.inside.isdisjoint(chosen)
            if is_free and all(chosen.get(value, one) is one for value, one in own.items()):
                chosen |= own
                inside |= target.inside
                targets.add(target.b)
                batch.append((target, partners))
            else:
                later.append((target, partners))
        yield batch
        waiting = later


_TypeAndShape = tuple[bool, tuple[int, ...]]


def _type_and_shape(value: Value, facts: Facts) -> _TypeAndShape | None:
    """Whether a value is floating-point, and its shape; None if unknown."""
    fact = facts.get(value)
    if fact is None or fact.element is None or not fact.is_static:
        return None
    return fact.element.is_float, fact.static_shape


def _fit(one: _TypeAndShape, other: _TypeAndShape, *, is_resized: bool) -> bool:
    """Whether two tensors may be a pair: as many elements or, if sizes changed, as many axes with at most two other
    sizes."""
    if one[0] is not other[0]:
        return False
    if math.prod(one[1]) == math.prod(other[1]):
        return True
    changed = sum(mine != theirs for mine, theirs in zip(one[1], other[1], strict=False))
    return is_resized and len(one[1]) == len(other[1]) and changed <= _SPATIAL
