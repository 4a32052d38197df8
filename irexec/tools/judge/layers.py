"""Each layer beside its interval, from the inputs that the runtime itself had: an early error blames no later layer."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

import numpy as np

from irexec.analysis.model import Model
from irexec.bounds import Arithmetic, Interval, graph_bounds
from irexec.bounds.algebra import Algebra
from irexec.ir.constants import constant_value
from irexec.ir.facts import Fact
from irexec.ir.graph import Node, Value
from irexec.schema.moves import MOVES
from irexec.tools.compare.isolate import Isolated
from irexec.tools.compare.observe import Observed
from irexec.tools.compare.pairs import TensorPair
from irexec.tools.compare.rows import layer as compared_layer
from irexec.tools.compare.sides import ModelSide
from irexec.tools.judge.judgement import JudgedLayer, State
from irexec.tools.judge.opponent import Opponent, Tensors

ROUGH = 4
"""Further roundings of fused layers, and the difference from observed tensors that they make."""


class Layers:
    """The layers of one model in one runtime.

    Args:
        opponent: the runtime.
        side: the model.
        facts: of its values.
        arithmetic: the arithmetic of the runtime.
    """

    def __init__(
        self, opponent: Opponent, side: ModelSide, facts: Mapping[Value, Fact], arithmetic: Arithmetic
    ) -> None:
        self._opponent, self._side, self._facts, self._arithmetic = opponent, side, facts, arithmetic
        self.model: Model = side.model

    def beside_all(self, given: Tensors, values: Sequence[Value]) -> list[JudgedLayer]:
        """Values beside their intervals, in their order; ``given``: observed tensors and inputs."""
        return [self.beside(value, given, given[value]) for value in values]

    def region(self, value: Value, given: Container[Value]) -> list[Node]:
        """The layers from which a value is computed, up to observed tensors, in topological order."""
        nodes, waiting = {value.node}, [value.node]
        while waiting:
            for source in waiting.pop().inputs:
                known = source is None or source in given or source.node.constant is not None
                if source is not None and not known and source.node not in nodes:
                    nodes.add(source.node)
                    waiting.append(source.node)
        return [node for node in self._side.order if node in nodes]

    def bound(self, value: Value, given: Tensors, rough: bool = False) -> tuple[Interval | str, list[Node]]:
        """The interval of a value, or why there is none, and its region; ``rough``: see ``beside``."""
        nodes = self.region(value, given)
        read = {source for node in nodes for source in node.inputs if source is not None}
        # Inner tensors of the region may be known: other outputs of its layers.
        sources = {source: self._held(source, given[source], rough) for source in read if source in given}
        for source in read:
            if source.node.constant is not None:
                sources[source] = Interval.certain(constant_value(source.node.constant))
        computed = [node for node in nodes if node.type not in MOVES and node.constant is None]
        roundings = ROUGH if len(computed) > 1 else 0
        found = graph_bounds(nodes, sources, self._facts, self._arithmetic, roundings)[value]
        return (found if isinstance(found, Interval) else found.reason), nodes

    def beside(self, value: Value, given: Tensors, actual: np.ndarray, rough: bool = False) -> JudgedLayer:
        """A tensor beside the interval of its layer, which is computed from the given tensors.

        Args:
            value: the tensor.
            given: the tensors that its region reads.
            actual: the array that the runtime gives for it.
            rough: whether the given tensors have the error of a few roundings, since fused layers have others.
        """
        layer = compared_layer(value)
        bound, nodes = self.bound(value, given, rough)
        names = tuple(node.name for node in nodes if node is not value.node)
        if isinstance(bound, str):
            return JudgedLayer(layer, "no bound", elements=actual.size, reason=bound, region=names)
        if bound.exact.shape != actual.shape:
            return self._of_another_shape(value, bound, actual, names)
        outside = bound.outside(actual)
        count = int(np.count_nonzero(outside))
        made = JudgedLayer(
            layer, "outside" if count else "inside", count, actual.size, region=names, codes=bound.codes,
            free=int(np.count_nonzero(bound.is_anything)),
        )  # fmt: skip
        return with_worst(made, bound, actual) if count else made

    def free(self, value: Value, given: Tensors) -> np.ndarray:
        """Mask of the elements of a value that may be anything."""
        bound, _ = self.bound(value, given)
        return bound.is_anything if isinstance(bound, Interval) else np.zeros(given[value].shape, bool)

    def _of_another_shape(
        self, value: Value, bound: Interval, actual: np.ndarray, names: tuple[str, ...]
    ) -> JudgedLayer:
        """A shape that inference knows is demanded; a shape that follows from values is not judged."""
        fact = self._facts.get(value)
        text = f"shape {list(actual.shape)}, expected {list(bound.exact.shape)}"
        is_known = fact is not None and fact.is_static and tuple(fact.static_shape) == bound.exact.shape
        state: State = "outside" if is_known else "no bound"
        return JudgedLayer(compared_layer(value), state, actual.size, actual.size, reason=text, region=names)

    def earlier(self, values: Sequence[Value], given: Tensors) -> dict[Value, np.ndarray] | None:
        """The tensors without those that the regions of values read; None if these are all inputs of the model."""
        nodes = {node for value in values for node in self.region(value, given)}
        read = {source for node in nodes for source in node.inputs if source is not None and source in given}
        dropped = {source for source in read if source.node.type not in ("Parameter", "ReadValue")}
        if not dropped:
            return None
        return {other: array for other, array in given.items() if other not in dropped}

    def _held(self, value: Value, array: np.ndarray, rough: bool) -> Interval:
        """The interval of an observed tensor; inputs and integers are exact."""
        one = Interval.certain(array)
        if not rough or value.node.type == "Parameter" or one.exact.dtype.kind != "f":
            return one
        return Algebra(self._arithmetic).rounded(one, ROUGH)

    def alone(self, values: Sequence[Value], given: Tensors, runtime: str | None = None) -> dict[Value, np.ndarray]:
        """The values of layers that run alone in the runtime with the given tensors; those that it runs."""
        name = runtime or self._opponent.options.runtime
        if runtime is None and self._opponent.runtime is None:
            return {}
        isolated = Isolated(self._side, {source: source for source in given}, self._opponent.options.running)
        seen = Observed()
        seen.arrays = {source: [array] for source, array in given.items()}
        pairs = isolated.chosen([TensorPair(value, value, "same model") for value in values], [])
        found = isolated.observed_each(pairs, seen, name, 1).arrays
        return {value: found[value][0] for value in values if value in found}


def with_worst(one: JudgedLayer, bound: Interval, actual: np.ndarray) -> JudgedLayer:
    """A judgement with the element that is farthest outside of its interval."""
    position = np.unravel_index(int(np.argmax(bound.excess(actual))), actual.shape)
    low, high, value = (_number(array, position) for array in (bound.low, bound.high, actual))
    return replace(one, value=value, low=low, high=high, position=tuple(map(int, position)))


def _number(array: np.ndarray, position: tuple[np.intp, ...]) -> float | None:
    """An element as a number; None for a string."""
    return None if array.dtype.kind in "OSU" else float(array[position])
