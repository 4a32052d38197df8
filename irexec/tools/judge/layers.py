"""Each layer beside its interval, from the inputs that the runtime itself had: an early error blames no later layer.

A tensor outside of its interval is an accusation only if it is confirmed. A runtime may keep an inner tensor in a
higher precision than it returns: the layer after it then read other values than were observed. Therefore the layer runs
once more, alone and with the observed inputs, which then are exact; if it is inside, so do the layers before it
together with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from irexec.analysis.model import Model
from irexec.bounds import Arithmetic, Interval, graph_bounds
from irexec.errors import IrexecError, RunTimeoutError
from irexec.ir.constants import constant_value
from irexec.ir.facts import Fact
from irexec.ir.graph import Node, Value
from irexec.tools.compare.isolate import Isolated
from irexec.tools.compare.observe import Observed
from irexec.tools.compare.pairs import TensorPair
from irexec.tools.compare.rows import layer as compared_layer
from irexec.tools.compare.sides import ModelSide
from irexec.tools.judge.judgement import JudgedLayer, State
from irexec.tools.judge.opponent import Opponent, Tensors

_DEPTH = 3
"""Number of regions that are tried to confirm an accusation: the layer, with the layers before it, and once more."""
_CONFIRMED = 12
"""Number of tensors outside of their intervals that are run alone."""


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

    def judged(self, given: Tensors, values: Sequence[Value]) -> list[JudgedLayer]:
        """The judgements of values, in their order; ``given``: observed tensors and inputs."""
        found, tried = [], 0
        for value in values:
            one = self._beside(value, given, given[value])
            if one.state == "outside" and tried < _CONFIRMED:
                tried += 1
                one = self._confirmed(one, value, given)
            elif one.state == "outside":
                one = replace(one, state="unconfirmed", reason="too many others were tried before it")
            found.append(one)
        return found

    def region(self, value: Value, given: Tensors) -> list[Node]:
        """The layers from which a value is computed, up to observed tensors, in topological order."""
        nodes, waiting = {value.node}, [value.node]
        while waiting:
            for source in waiting.pop().inputs:
                known = source is None or source in given or source.node.constant is not None
                if source is not None and not known and source.node not in nodes:
                    nodes.add(source.node)
                    waiting.append(source.node)
        return [node for node in self._side.order if node in nodes]

    def bound(self, value: Value, given: Tensors) -> tuple[Interval | str, list[Node]]:
        """The interval of a value, or why there is none, and its region."""
        nodes = self.region(value, given)
        read = {source for node in nodes for source in node.inputs if source is not None}
        # Inner tensors of the region may be known: other outputs of its layers.
        sources = {source: given[source] for source in read if source in given}
        for source in read:
            if source.node.constant is not None:
                sources[source] = constant_value(source.node.constant)
        found = graph_bounds(nodes, sources, self._facts, self._arithmetic)[value]
        return (found if isinstance(found, Interval) else found.reason), nodes

    def _beside(self, value: Value, given: Tensors, actual: np.ndarray) -> JudgedLayer:
        layer = compared_layer(value)
        bound, nodes = self.bound(value, given)
        names = tuple(node.name for node in nodes if node is not value.node)
        if isinstance(bound, str):
            return JudgedLayer(layer, "no bound", elements=actual.size, reason=bound, region=names)
        if bound.exact.shape != actual.shape:
            return self._of_another_shape(value, bound, actual, names)
        outside = bound.outside(actual)
        count = int(np.count_nonzero(outside))
        made = JudgedLayer(layer, "outside" if count else "inside", count, actual.size, region=names, codes=bound.codes)
        return _with_worst(made, bound, actual) if count else made

    def _of_another_shape(
        self, value: Value, bound: Interval, actual: np.ndarray, names: tuple[str, ...]
    ) -> JudgedLayer:
        """A shape that inference knows is demanded; a shape that follows from values is not judged."""
        fact = self._facts.get(value)
        text = f"shape {list(actual.shape)}, expected {list(bound.exact.shape)}"
        is_known = fact is not None and fact.is_static and tuple(fact.static_shape) == bound.exact.shape
        state: State = "outside" if is_known else "no bound"
        return JudgedLayer(compared_layer(value), state, actual.size, actual.size, reason=text, region=names)

    def _confirmed(self, one: JudgedLayer, value: Value, given: Tensors) -> JudgedLayer:
        """The accusation, if it can be confirmed."""
        inside_of: Tensors | None = given
        was_run = False
        for _ in range(_DEPTH):
            alone = None if inside_of is None else self.alone(value, inside_of)
            if inside_of is None or alone is None:
                break
            was_run = True
            made = self._beside(value, inside_of, alone)
            if made.state == "outside":
                return replace(made, alone=True)
            inside_of = self._earlier(value, inside_of)
        wider = self._earlier(value, given)
        is_exact = self._arithmetic.name == "f32" and self._opponent.runtime is not None
        if not was_run and (is_exact or wider is None):
            return one
        if wider is not None and self._beside(value, wider, given[value]).state == "outside":
            return one
        reason = "when it runs alone with the observed inputs" if was_run else "from earlier tensors"
        return replace(one, state="unconfirmed", reason=f"it is inside {reason}")

    def _earlier(self, value: Value, given: Tensors) -> Tensors | None:
        """The tensors without those that the region of a value reads; None if these are all inputs of the model."""
        nodes = self.region(value, given)
        read = {source for node in nodes for source in node.inputs if source is not None and source in given}
        dropped = {source for source in read if source.node.type not in ("Parameter", "ReadValue")}
        if not dropped:
            return None
        return {other: array for other, array in given.items() if other not in dropped}

    def alone(self, value: Value, given: Tensors, runtime: str | None = None) -> np.ndarray | None:
        """The value of the region alone in the runtime with the observed inputs; None if it cannot be run."""
        name = runtime or self._opponent.options.runtime
        if runtime is None and self._opponent.runtime is None:
            return None
        sources = {source: source for source in given if source is not value}
        isolated = Isolated(self._side, sources, self._opponent.options.running)
        pair = TensorPair(value, value, "same model")
        seen = Observed()
        seen.arrays = {source: [array] for source, array in given.items()}
        if not isolated.chosen([pair], []):
            return None
        try:
            found = isolated.observed([pair], seen, name, 1).arrays
        except RunTimeoutError:
            raise
        except IrexecError:
            # The runtime does not take the part: nothing is confirmed.
            return None
        return found[value][0] if value in found else None


def _with_worst(one: JudgedLayer, bound: Interval, actual: np.ndarray) -> JudgedLayer:
    position = np.unravel_index(int(np.argmax(bound.excess(actual))), actual.shape)
    low, high, value = (_number(array[position]) for array in (bound.low, bound.high, actual))
    return replace(one, value=value, low=low, high=high, position=tuple(map(int, position)))


def _number(value: object) -> float | None:
    return None if isinstance(value, str | bytes) else float(value)  # type: ignore[arg-type]
