"""Layers that depend on random values or on detections, tensors in front of a tensor, and constants of both models."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from irexec.analysis.constant_layers import constant_layers, leaves
from irexec.analysis.matching.keys import attribute_values
from irexec.analysis.model import Model
from irexec.errors import IrexecError
from irexec.ir.constants import constant_value
from irexec.ir.graph import Body, Graph, Node, Value
from irexec.ir.order import grouped, topological
from irexec.tools.compare.comparison import ComparedLayer

_GENERATORS = ("RandomUniform", "Multinomial")
DETECTIONS = frozenset({
    "DetectionOutput", "NonMaxSuppression", "NMSRotated", "MulticlassNms", "MatrixNms", "Proposal",
    "GenerateProposals", "ExperimentalDetectronDetectionOutput", "ExperimentalDetectronTopKROIs",
    "ExperimentalDetectronGenerateProposalsSingleImage",
})  # fmt: skip
"""Layers that return rows in the order of scores."""
_KEEP_LEVELS = {"Reshape", "Transpose", "Squeeze", "Unsqueeze", "MaxPool", "Relu"}
MOVES = ("Reshape", "Transpose", "Squeeze", "Unsqueeze")
"""Layers that move elements, or none."""
COMMUTATIVE = ("Add", "Multiply", "Maximum", "Minimum", "Equal", "NotEqual", "LogicalAnd", "LogicalOr", "LogicalXor")
_NEAR = 1e-6
"""Maximum relative difference of sums over equal values."""
_MANY, _ROW = 16, 4
"""Minimum number of elements of a constant, and of one of its channels, that is recognised as a multiple."""
_SCALED = 1e-5
"""Maximum relative difference of sums without the factors of channels."""


def layer(value: Value, path: str = "") -> ComparedLayer:
    """The layer of a value, for reports."""
    node = value.node
    return ComparedLayer(f"{path}{node.name}", node.type, node.id, node.line, f"{path}{value.name}")


def with_same_elements(value: Value | None) -> list[Value]:
    """A value and the values in front of it with the same elements, up to the first that is computed."""
    found: list[Value] = []
    while value is not None and value.node.type not in ("Parameter", "Constant"):
        found.append(value)
        value = value.node.inputs[0] if value.node.type in MOVES else None
    return found


def levels_apart(value: Value, one: np.ndarray, other: np.ndarray) -> np.ndarray | None:
    """The distances between the elements of two tensors of a FakeQuantize, in its levels, as i64.

    None where the value is neither that of a FakeQuantize nor moved from one with the same levels for all channels, the
    ranges are not constant, or the shapes differ.
    """
    node = value.node
    while node.type in _KEEP_LEVELS and node.inputs[0] is not None:
        node = node.inputs[0].node
    ends = [None if source is None else source.node.constant for source in node.inputs[3:5]]
    if node.type != "FakeQuantize" or one.shape != other.shape or None in ends:
        return None
    low, high = (constant_value(end).astype(np.float64) for end in ends if end is not None)
    step = np.abs(high - low) / max(1, int(node.attributes.get("levels", 256)) - 1)
    if not step.all() or (node is not value.node and step.size > 1):
        return None
    distance = np.abs(one.astype(np.float64) - other) / step.reshape(step.shape if step.size > 1 else ())
    return np.rint(np.nan_to_num(distance, posinf=np.iinfo(np.int32).max)).astype(np.int64)


def _is_random(node: Node, *, seeded: bool) -> bool:
    """Whether a layer has other values in each run: its seeds are 0, or ``seeded`` counts others too. A body counts as
    its layer."""
    if node.type in _GENERATORS:
        return seeded or all(node.attributes.get(name, "0").strip() == "0" for name in ("global_seed", "op_seed"))
    return any(_is_random(inner, seeded=seeded) for body in node.bodies.values() for inner in body.graph.walk())


def random_layers(order: Sequence[Node], *, seeded: bool) -> dict[Node, Node]:
    """The layers with random values, each with the layer that generates them.

    ``order`` is topological. With ``seeded`` generators with seeds count too: runtimes of ONNX have their own.
    """
    found: dict[Node, Node] = {}
    for node in order:
        in_front = next((found[value.node] for value in _read(node) if value.node in found), None)
        source = node if _is_random(node, seeded=seeded) else in_front
        # A shape does not depend on values.
        if source is not None and node.type != "ShapeOf":
            found[node] = source
    return found


def detection_layers(model: Model) -> set[Node]:
    """The layers that return rows of detections, and all layers behind them."""
    found: set[Node] = set()
    for node in topological(model)[0]:
        if node.type in DETECTIONS or any(value.node in found for value in _read(node)):
            found.add(node)
    return found


class Ancestors:
    """The nearest compared tensors in front of a tensor.

    Args:
        compared: the compared values of B.
        graph: the graph of B.
    """

    def __init__(self, compared: Iterable[Value], graph: Graph) -> None:
        self._compared = set(compared)
        self._found: dict[Value, tuple[list[Value], list[Node]]] = {}
        self._more = defaultdict[Value, list[Value]](list)
        """Values in front of a value that its layer does not read: what a variable was assigned, results of bodies, and
        for a Parameter of a body an input and a result of the iteration before."""
        nodes = list(graph.walk())
        assigned = grouped((_variable(node), value) for node in nodes if node.type == "Assign" for value in _read(node))
        for node in nodes:
            if node.type == "ReadValue":
                self._more |= dict.fromkeys(node.outputs, assigned.get(_variable(node), []))
            for body in node.bodies.values():
                self._add_body(node, body)

    def _add_body(self, node: Node, body: Body) -> None:
        parameters = {inner.id: inner.outputs[0] for inner in body.graph.parameters}
        results = {inner.id: _read(inner) for inner in body.graph.results}
        for entry in body.port_maps:
            if entry.kind == "input":
                index = node.input_index(entry.external)
                source = None if index is None else node.inputs[index]
                if source is not None and entry.internal in parameters:
                    self._more[parameters[entry.internal]].append(source)
            elif (index := node.output_index(entry.external)) is not None:
                self._more[node.outputs[index]] += results.get(entry.internal, [])
        for edge in body.back_edges:
            if edge.target in parameters:
                self._more[parameters[edge.target]] += results.get(edge.source, [])

    def of(self, value: Value) -> tuple[list[Value], list[Node]]:
        """The compared tensors, and the layers between without a compared tensor. Inputs of a ShapeOf do not count."""
        if value not in self._found:
            self._found[value] = self._searched(value)
        return self._found[value]

    def _searched(self, value: Value) -> tuple[list[Value], list[Node]]:
        found: dict[Value, None] = {}
        between: dict[Node, None] = {}
        waiting = self._in_front(value)[::-1]
        seen: set[Value] = set()
        while waiting:
            source = waiting.pop()
            if source in self._compared:
                found[source] = None
            elif source not in seen:
                seen.add(source)
                if source.node.type not in ("Parameter", "Constant"):
                    between[source.node] = None
                waiting += [] if source.node.type == "ShapeOf" else self._in_front(source)[::-1]
        return list(found), list(between)

    def _in_front(self, value: Value) -> list[Value]:
        return [*_read(value.node), *self._more.get(value, ())]


def _read(node: Node) -> list[Value]:
    return [value for value in node.inputs if value is not None]


def _variable(node: Node) -> str:
    return node.attributes.get("variable_id", "")


def differing_attributes(of_a: Node | None, node: Node) -> dict[str, tuple[str | None, str | None]]:
    """Differing attributes; the types, for layers of two types."""
    if of_a is None:
        return {}
    if of_a.type != node.type:
        return {"type": (of_a.type, node.type)}
    mine, theirs = attribute_values(of_a), attribute_values(node)
    names = dict.fromkeys([*mine, *theirs])
    differing = {name: (mine.get(name), theirs.get(name)) for name in names if mine.get(name) != theirs.get(name)}
    if _is_one_axis(node, *differing.get("axis", ("", ""))):
        del differing["axis"]
    return differing


def _is_one_axis(node: Node, one: str | None, other: str | None) -> bool:
    """Whether two texts are an axis of a layer, counted from the first axis and from the last."""
    fact = node.inputs[0].fact if node.inputs and node.inputs[0] is not None else None
    if not one or not other or fact is None or not fact.shape:
        return False
    if not one.lstrip("-").isdigit() or not other.lstrip("-").isdigit():
        return False
    return int(one) % len(fact.shape) == int(other) % len(fact.shape)


class KnownConstants:
    """The constants of A, identified by sums that depend neither on the order of elements nor on factors of channels.

    Args:
        a: a model.
    """

    def __init__(self, a: Model) -> None:
        self._sums = defaultdict[int, list[np.ndarray]](list)
        self._scaled = defaultdict[int, list[np.ndarray]](list)
        self._folded = grouped((folded.size, _sums(folded)) for folded in _scales_and_shifts(a))
        for node in a.walk():
            if (values := _values(node)) is not None:
                self._sums[values.size].append(_sums(values))
                self._scaled[values.size] += _unscaled(values)

    def unknown(self, b: Model) -> dict[Node, tuple[Node, ...]]:
        """Constants of B without a counterpart in A, by the layers that read them.

        A must have another constant of as many elements. Empty if A lacks most constants of B; constants that A may
        have folded into others are left out.
        """
        looked = {node: values for node in b.walk() if (values := _values(node)) is not None}
        partners = {node: _equal(_sums(values), self._sums) for node, values in looked.items()}
        known = {id(one) for one in partners.values() if one is not None}
        if sum(one is not None for one in partners.values()) * 2 < len(looked):
            return {}
        left = {size for size, all_of_size in self._sums.items() if any(id(one) not in known for one in all_of_size)}
        suspicious = {
            node
            for node, values in looked.items()
            if partners[node] is None and values.size in left and not self._is_folded(values)
        }
        computed = constant_layers(b)
        found: dict[Node, tuple[Node, ...]] = {}
        for node in b.nodes:
            read = dict.fromkeys(leaf for value in node.inputs if value is not None for leaf in leaves(value, computed))
            if not suspicious.isdisjoint(read):
                found[node] = tuple(leaf for leaf in read if leaf in suspicious)
        return found

    def _is_folded(self, values: np.ndarray) -> bool:
        """Whether A has a constant with every channel multiplied by a factor, such as a folded scale, or layers that
        have the values together."""
        if _equal(_sums(values), self._folded) is not None:
            return True
        others = self._scaled.get(values.size, [])
        return any(np.allclose(one, other, rtol=_SCALED, atol=0) for one in _unscaled(values) for other in others)


def has_values(node: Node, arrays: Iterable[np.ndarray]) -> bool:
    """Whether a Constant has the values of one of some tensors, in any order of elements."""
    values = _values(node)
    if values is None:
        return False
    sums = _sums(values)
    return any(_are_near(_sums(array.astype(np.float64)), sums) for array in arrays if array.size == values.size)


def _are_near(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(np.all(np.abs(one - other) <= _NEAR * np.maximum(np.abs(other), np.abs(other[1]))))


def _equal(sums: np.ndarray, all_sums: Mapping[int, Sequence[np.ndarray]]) -> np.ndarray | None:
    """Sums of a constant with the same values."""
    return next((other for other in all_sums.get(int(sums[0]), ()) if _are_near(other, sums)), None)


def _scales_and_shifts(model: Model) -> Iterator[np.ndarray]:
    """Factors and summands of successive layers with constant operands, folded into one factor and one summand."""
    for node in model.walk():
        scale, shift = np.ones(()), np.zeros(())
        step = _step(node)
        while step is not None:
            source, factor, summand = step
            scale, shift = scale * factor, shift + scale * summand
            yield from (scale, shift)
            step = _step(source)


def _step(node: Node) -> tuple[Node, np.ndarray, np.ndarray] | None:
    """The layer in front of a sum or product with a constant, and its factor and summand; None for other layers."""
    if node.type not in ("Add", "Multiply", "Subtract", "Divide") or len(node.inputs) != 2:
        return None
    one, other = node.inputs
    if one is None or other is None:
        return None
    values = _values(other.node)
    if values is None:
        one, other, values = other, one, _values(one.node)
    is_first = node.inputs[0] is other
    if values is None or _values(one.node) is not None or (node.type == "Divide" and (is_first or not values.all())):
        return None
    if node.type == "Add":
        return one.node, np.ones(()), values
    if node.type == "Subtract":
        return one.node, np.array(-1.0 if is_first else 1.0), values if is_first else -values
    return one.node, values if node.type == "Multiply" else 1.0 / values, np.zeros(())


def _unscaled(values: np.ndarray) -> list[np.ndarray]:
    """Sums that do not change if all elements are multiplied by one factor, or the slices along an axis by factors."""
    if values.size < _MANY:
        return []
    found = []
    along = (np.moveaxis(values, axis, 0).reshape(size, -1) for axis, size in enumerate(values.shape) if size > 1)
    for slices in (values.reshape(1, -1), *along):
        rows = np.abs(slices)
        norms = np.sqrt(np.sum(rows**2, axis=1, keepdims=True))
        if rows.shape[1] >= _ROW and norms.all():
            rows = rows / norms
            found.append(np.array([rows.sum(), (rows**3).sum(), (rows**4).sum(), rows.max()]))
    return found


def _values(node: Node) -> np.ndarray | None:
    """Elements of a numeric Constant as f64."""
    constant = node.constant
    if constant is None or not constant.count or not (constant.element.is_float or constant.element.is_integer):
        return None
    try:
        return constant_value(constant).astype(np.float64)
    except IrexecError:
        return None


def _sums(array: np.ndarray) -> np.ndarray:
    """Figures without the order of elements: their number, norm, sum, maximum and minimum."""
    values = array.ravel()
    return np.array([values.size, np.sqrt(values @ values), values.sum(), values.max(), values.min()])
