"""Bounds of If, Loop and TensorIterator: their bodies are evaluated with bounds, iteration by iteration.

A layer has no bound where a condition, the number of iterations or an index depends on a value that is not certain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irexec.bounds.interval import Bound, Interval, Unbounded, spanning
from irexec.ir.graph import Graph, Node
from irexec.schema.bodies import Branch, Slice, Wiring
from irexec.schema.shape_rules import normalize_axis

Evaluate = Callable[[Graph, Sequence[Bound]], list[Bound]]
"""Bounds of a body's Results from those of its Parameters."""

_OPEN = Unbounded("the condition of a body is not certain")


def body_bounds(node: Node, inputs: Sequence[Bound], evaluate: Evaluate) -> tuple[Bound, ...]:
    """The bounds of the outputs of a layer with bodies.

    Raises:
        OpError: the body is not connected with its layer as its kind asks.
    """
    if node.type == "If":
        return _of_branch(node, inputs, evaluate)
    body = node.bodies["body"]
    wiring = Wiring.of(node, body)
    if node.type == "Loop":
        trips, condition = (_scalar(one) for one in inputs[:2])
        if trips is None or condition is None:
            return (_OPEN,) * len(node.outputs)
        count = int(trips) if bool(condition) else 0
    else:
        count = _slices(wiring, inputs)
    return _Iterations(body.graph, wiring, inputs, evaluate).outputs(count)


def _scalar(bound: Bound) -> Any:
    """The element of a certain tensor of one element; None for any other."""
    if isinstance(bound, Unbounded) or bound.exact.size != 1 or bound.admits is not None:
        return None
    return bound.exact.reshape(-1)[0] if bool((bound.low == bound.high).all()) else None


def _of_branch(node: Node, inputs: Sequence[Bound], evaluate: Evaluate) -> tuple[Bound, ...]:
    condition = _scalar(inputs[0])
    if condition is None:
        return (_OPEN,) * len(node.outputs)
    body = node.bodies["then_body" if bool(condition) else "else_body"]
    branch = Branch.of(node, body)
    results = evaluate(body.graph, [inputs[index] for index in branch.sources])
    return tuple(results[index] for index in branch.outputs)


def _slices(wiring: Wiring, inputs: Sequence[Bound]) -> int:
    """The number of iterations of a TensorIterator: that of the slices of any sliced input; -1 where it is unknown."""
    for source in wiring.sources:
        cut = None if source is None else source[1]
        if source is not None and cut is not None:
            bound = inputs[source[0]]
            if isinstance(bound, Unbounded):
                return -1
            shape = bound.exact.shape
            size = cut.iterations(shape[normalize_axis(cut.axis, len(shape))])
            return size if isinstance(size, int) else -1
    return 1


class _Iterations:
    """The iterations of a body, and the outputs that are made of their results."""

    def __init__(self, graph: Graph, wiring: Wiring, inputs: Sequence[Bound], evaluate: Evaluate) -> None:
        self.graph, self.wiring, self.inputs, self.evaluate = graph, wiring, inputs, evaluate
        self.fed: list[Bound | None] = [None] * len(wiring.backs)
        self.results: list[list[Bound]] = []

    def outputs(self, count: int) -> tuple[Bound, ...]:
        """The bounds of the outputs after ``count`` iterations, or fewer if the body's condition ends them; without
        limit if it is negative."""
        has_limit = count >= 0
        if not has_limit and self.wiring.condition is None:
            return (Unbounded("the number of iterations is not known"),) * len(self.wiring.outputs)
        while not has_limit or len(self.results) < count:
            results = self.evaluate(self.graph, [self._argument(i) for i in range(len(self.wiring.sources))])
            self.results.append(results)
            self.fed = [None if back is None else results[back] for back in self.wiring.backs]
            if self.wiring.condition is not None:
                continues = _scalar(results[self.wiring.condition])
                if continues is None:
                    return (_OPEN,) * len(self.wiring.outputs)
                if not bool(continues):
                    break
        return tuple(self._output(result, cut) for result, cut in self.wiring.outputs)

    def _argument(self, index: int) -> Bound:
        source, fed, iteration = self.wiring.sources[index], self.fed[index], len(self.results)
        if fed is not None:
            return fed
        if source is None:
            return Interval.certain(_counter(self.graph.parameters[index], iteration))
        bound, cut = self.inputs[source[0]], source[1]
        if cut is None or isinstance(bound, Unbounded):
            return bound
        return bound.moved(lambda array: cut.cut(array)(iteration))

    def _output(self, result: int, cut: Slice | None) -> Bound:
        if not self.results:
            if cut is not None:
                return Unbounded("slices of a body without an iteration")
            # The first value of what the result would be fed back to.
            back = next((i for i, one in enumerate(self.wiring.backs) if one == result), None)
            return Unbounded("a body without an iteration") if back is None else self._argument(back)
        parts = [one[result] for one in self.results]
        return parts[-1] if cut is None else _concatenated(parts[::-1] if cut.stride < 0 else parts, cut.axis)


def _counter(parameter: Node, iteration: int) -> np.ndarray:
    fact = parameter.outputs[0].fact
    shape = (1,) if fact is not None and fact.shape == (1,) else ()
    carrier = np.int32 if fact is not None and fact.element is not None and fact.element.name == "i32" else np.int64
    return np.full(shape, iteration, carrier)


def _concatenated(parts: Sequence[Bound], axis: int) -> Bound:
    found = [one for one in parts if isinstance(one, Interval)]
    if len(found) < len(parts):
        return next(one for one in parts if isinstance(one, Unbounded))
    if all(one.is_certain for one in found):
        return Interval.certain(np.concatenate([one.exact for one in found], axis))
    exact, low, high = (np.concatenate([getattr(one, end) for one in found], axis) for end in ("exact", "low", "high"))
    return spanning(exact, low, high)
