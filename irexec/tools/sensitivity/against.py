"""The layers in which a quantised model differs from its original, and these layers put into the original."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from irexec.analysis.builder import Adding
from irexec.analysis.constant_layers import constant_layers
from irexec.analysis.matching.match import match_graphs
from irexec.analysis.model import Model
from irexec.errors import InputError
from irexec.ir.facts import Fact
from irexec.ir.graph import Graph, Input, Node, Value

Observe = Callable[[Model, list[Value]], Mapping[Value, np.ndarray]]
"""Computes values of a model that do not depend on its inputs."""

_MOVES_LEVELS = frozenset(
    ("Reshape", "Transpose", "Squeeze", "Unsqueeze", "MaxPool", "Split", "VariadicSplit", "Slice", "StridedSlice")
)
"""Operations through which the levels of a FakeQuantize with one range pass unchanged; input 0 has the data."""
_PASSIVE = _MOVES_LEVELS | {"Constant", "Result", "FakeQuantize", "Convert", "ShapeOf", "Assign"}


@dataclass(frozen=True)
class Swap:
    """The weights or ranges of the quantised model at an input of a layer.

    Attributes:
        index: the input.
        weights: the stored weights as floats; None for an activation.
        ranges: the four ranges of a FakeQuantize.
        levels: its number of levels.
    """

    index: int
    weights: np.ndarray | None = None
    ranges: tuple[np.ndarray, ...] = ()
    levels: str = "256"


@dataclass(frozen=True)
class _Source:
    """An input of a layer: weights, or the FakeQuantize behind an activation."""

    index: int
    weights: Value | None = None
    quantize: Node | None = None

    @property
    def values(self) -> list[Value]:
        """The values that say all of it, none of which depends on an input of the model."""
        if self.weights is not None:
            return [self.weights]
        return [value for value in self.quantize.inputs[1:] if value is not None] if self.quantize is not None else []


class Swaps:
    """The layers that differ, with what they are in the quantised model.

    Args:
        model: the original.
        other: the quantised model.
        observe: computes values without inputs.

    Raises:
        InputError: no layer of the original has other weights or ranges in the quantised model.
    """

    def __init__(self, model: Model, other: Model, observe: Observe) -> None:
        self._model = model
        matching = match_graphs(model, other)
        pairs = [(pair.a, pair.b) for pair in matching.pairs if pair.a.type == pair.b.type not in _PASSIVE]
        fixed, fixed_other = _fixed(model), _fixed(other)
        sources = [(a, dict(_sources(a, fixed)), dict(_sources(b, fixed_other))) for a, b in pairs]
        held = observe(_part(model, fixed), [v for _, own, _ in sources for one in own.values() for v in one.values])
        stored = observe(
            _part(other, fixed_other), [v for _, _, its in sources for one in its.values() for v in one.values]
        )
        self._swaps: dict[Node, list[tuple[Node, Swap]]] = {}
        for node, own, its in sources:
            swaps = [(node, _swap(one, stored)) for i, one in its.items() if _differs(own.get(i), one, held, stored)]
            if swaps:
                # A corrected bias repairs the error of its product, and would be an error without it.
                product = _product_of_bias(node) if all(swap.weights is not None for _, swap in swaps) else None
                self._swaps.setdefault(product if product in self._swaps else node, []).extend(swaps)
        if not self._swaps:
            raise InputError(
                f"{other.path or other.name or 'the other model'} has no layer whose weights or ranges differ from "
                f"{model.path or model.name or 'the model'}"
            )

    @property
    def layers(self) -> list[Node]:
        """The layers of the original that differ, in its order."""
        return list(self._swaps)

    def applied(self, layers: Collection[Node]) -> Model:
        """A copy of the original in which these layers are as in the quantised model."""
        made = copy.copy(self._model)
        position = {node: i for i, node in enumerate(self._model.nodes)}
        adding = Adding(made.nodes)
        for node in layers:
            for changed, swap in self._swaps[node]:
                _put(made.nodes[position[changed]].ports[swap.index], swap, adding)
        return made


def _product_of_bias(node: Node) -> Node | None:
    """The layer whose result an Add changes by a constant."""
    data = [value.node for value in node.inputs if value is not None and value.node.type != "Constant"]
    return data[0] if node.type == "Add" and len(data) == 1 else None


def _fixed(graph: Graph) -> set[Value]:
    """The values of Constants, and of layers that depend on them alone."""
    constant = constant_layers(graph)
    return {value for node in graph.nodes if node.constant is not None or node in constant for value in node.outputs}


def _part(model: Model, fixed: Collection[Value]) -> Model:
    """The layers that do not depend on an input."""
    part = Model.of(model)
    part.nodes = [node for node in model.nodes if any(value in fixed for value in node.outputs)]
    return part


def _sources(node: Node, fixed: Collection[Value]) -> Iterator[tuple[int, _Source]]:
    """Inputs of a layer that are weights or quantised."""
    if all(value is None or value in fixed for value in node.inputs):
        return
    for index, value in enumerate(node.inputs):
        if value is None:
            continue
        if value in fixed:
            yield index, _Source(index, weights=value)
            continue
        producer, moved = value.node, False
        while producer.type in _MOVES_LEVELS and (data := producer.inputs[0]) is not None and data not in fixed:
            producer, moved = data.node, True
        if producer.type == "FakeQuantize" and all(v in fixed for v in producer.inputs[1:]):
            one_range = all(v is not None and v.fact is not None and _is_single(v.fact) for v in producer.inputs[1:])
            if one_range or not moved:
                yield index, _Source(index, quantize=producer)


def _is_single(fact: Fact) -> bool:
    return fact.shape is not None and all(size == 1 for size in fact.shape)


def _differs(
    own: _Source | None, its: _Source, held: Mapping[Value, np.ndarray], stored: Mapping[Value, np.ndarray]
) -> bool:
    if its.weights is not None:
        if own is None or own.weights is None:
            return False
        a, b = held[own.weights], stored[its.weights]
        return a.dtype.kind == b.dtype.kind == "f" and a.shape == b.shape and not np.array_equal(a, b, equal_nan=True)
    if own is None or own.quantize is None:
        return True
    assert its.quantize is not None
    if own.quantize.attributes.get("levels") != its.quantize.attributes.get("levels"):
        return True
    return any(not np.array_equal(held[a], stored[b]) for a, b in zip(own.values, its.values, strict=True))


def _swap(source: _Source, stored: Mapping[Value, np.ndarray]) -> Swap:
    if source.quantize is None:
        return Swap(source.index, weights=stored[source.values[0]])
    ranges = tuple(stored[value] for value in source.values)
    return Swap(source.index, ranges=ranges, levels=source.quantize.attributes.get("levels", "256"))


def _put(port: Input, swap: Swap, adding: Adding) -> None:
    """Put weights, or a FakeQuantize, at an input of a layer."""
    source = port.source
    assert source is not None
    if swap.weights is not None:
        element = source.fact.element if source.fact is not None else None
        weights = swap.weights.astype(np.float32 if element is None else element.carrier)
        port.source = adding.constant(weights)
        return
    if source.node.type == "FakeQuantize" and source.node.inputs[0] is not None:
        source = source.node.inputs[0]
    inputs = [source, *map(adding.constant, swap.ranges)]
    attributes = {"levels": swap.levels, "auto_broadcast": "numpy"}
    port.source = adding.layer("FakeQuantize", attributes, inputs, source.fact)
