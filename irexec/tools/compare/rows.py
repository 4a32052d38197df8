"""Rows of a comparison, made of arrays, and the order between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from irexec.dtypes.elements import Element
from irexec.ir.graph import Body, Graph, Node, Value
from irexec.messages import counted
from irexec.tools.arrays.agreement import Agreement, Tolerance, agreement_of
from irexec.tools.compare.comparison import ComparedLayer, TensorRow
from irexec.tools.compare.detections import as_rows, returns_detections
from irexec.tools.compare.pairs import FOLDED, VALUES, InnerPair, TensorPair
from irexec.tools.compare.sides import ordered
from irexec.tools.compare.tolerances import Tolerances

_VARIED = 7
"""Minimum number of elements other than the most frequent one of a tensor that confirms a trial."""
_SHAPED = ("Broadcast", "ReadValue")
"""Layers with results that are often filled with one value."""

ElementOf = Callable[[Value], Element | None]


def layer(value: Value, path: str = "") -> ComparedLayer:
    """The layer of a value, for reports."""
    node = value.node
    return ComparedLayer(f"{path}{node.name}", node.type, node.id, node.line, f"{path}{value.name}")


@dataclass(frozen=True)
class Found:
    """A row with its value of B.

    Attributes:
        row, value: the row and the value.
        positions: positions of the layers around its bodies, from the outermost on, and of its own layer.
        path: the path of the bodies.
        is_reshaped: whether A has the values in another shape.
        is_other_values: whether a tensor that A has as a Constant has other values in any order: moved elements alone
            are not the reason.
    """

    row: TensorRow
    value: Value
    positions: tuple[int, ...]
    path: str = ""
    is_reshaped: bool = False
    is_other_values: bool = False

    @property
    def has_another_shape(self) -> bool:
        """Whether A's tensor has another shape, such as with axes of size 1 in other places."""
        return self.row.agreement.largest is None and self.row.type != "string"

    @property
    def position(self) -> tuple[int, ...]:
        """Sort key by the order of computation in B; rows of a body come before its layer."""
        *outer, own = self.positions
        return (*(part for position in outer for part in (position, -1)), own, self.value.index)

    @property
    def order(self) -> tuple[int, ...]:
        """Sort key by the time of the difference: by run, and by iteration in a loop."""
        *outer, own = self.positions
        iterations = (*self.row.iteration, *([0] * len(outer)))
        inside = (
            part for position, iteration in zip(outer, iterations, strict=False) for part in (position, -1, iteration)
        )
        return (self.row.run, *inside, own, self.value.index)


class Rows:
    """All rows found so far.

    Args:
        tolerances: tolerances of pairs.
        a_element, b_element: the element types of values of A and B.
        position: position of each layer of B in the topological order of its graph, bodies included.
        detections: layers that return rows of detections, and layers behind them.
    """

    def __init__(
        self,
        tolerances: Tolerances,
        a_element: Callable[[Value | str], Element | None],
        b_element: ElementOf,
        position: Mapping[Node, int],
        detections: Set[Node] = frozenset(),
    ) -> None:
        self._detections, self._are_reordered = detections, False
        self._tolerances, self._a_element, self._b_element = tolerances, a_element, b_element
        self._position = position
        self.found: list[Found] = []

    def add(self, pair: TensorPair, a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> None:
        """Add the row of a pair: of the first run with a difference, else of the run with the largest one."""
        is_reshaped = any(one.shape != other.shape for one, other in zip(a, b, strict=True))
        row = self.row(pair, a, b)
        is_other = pair.how == FOLDED and not row.agreement.agrees and _are_other_values(a[row.run - 1], b[row.run - 1])
        self.found.append(Found(row, pair.b, (self._position[pair.b.node],), "", is_reshaped, is_other))

    def row(self, pair: TensorPair, a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> TensorRow:
        """The row of a pair, without adding it."""
        a, b = zip(*(in_one_shape(pair, one, other) for one, other in zip(a, b, strict=True)), strict=True)
        agreements = [self.agreement(pair.a, pair.b, *arrays) for arrays in zip(a, b, strict=True)]
        run, agreement = worst(agreements)
        of_a = layer(pair.a) if isinstance(pair.a, Value) else None
        is_blind = agreement.agrees and pair.b.node.type not in _SHAPED and all(map(_is_constant, (*a, *b)))
        return TensorRow(
            of_a, layer(pair.b), pair.how, type_name(b[run]), b[run].shape, agreement, run + 1, is_blind=is_blind
        )

    def add_inner(self, pair: InnerPair, a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> bool:
        """Add the row of a tensor inside bodies; False if no iteration computed it.

        The arrays have one axis for each body in front. Their elements are arrays if shapes or numbers of iterations
        change, None where there is no iteration.
        """
        depth = len(pair.b.levels)
        found: list[tuple[int, tuple[int, ...], Agreement, np.ndarray]] = []
        for run, (one, other) in enumerate(zip(a, b, strict=True)):
            for index in np.ndindex(*map(max, one.shape[:depth], other.shape[:depth])):
                of_a, of_b = _at(one, index), _at(other, index)
                if of_a is not None and of_b is not None:
                    found.append((run, index, self.agreement(pair.a.value, pair.b.value, of_a, of_b), of_b))
                elif of_a is not None or of_b is not None:
                    text = f"B computes it {_times(other, depth)}, A {_times(one, depth)}"
                    example = np.asarray(of_a if of_b is None else of_b)
                    found.append((run, index, Agreement(pair.b.value.name, False, None, text), example))
                if found and not found[-1][2].agrees:
                    break
            if found and not found[-1][2].agrees:
                break
        if not found:
            return False
        chosen, agreement = worst([one[2] for one in found])
        run, index, _, array = found[chosen]
        loops = tuple(i for i, (node, _) in zip(index, pair.b.levels, strict=True) if len(node.bodies) == 1)
        a_layer, b_layer = layer(pair.a.value, pair.a.path), layer(pair.b.value, pair.b.path)
        row = TensorRow(a_layer, b_layer, pair.how, type_name(array), array.shape, agreement, run + 1, loops)
        positions = (*(self._position[node] for node, _ in pair.b.levels), self._position[pair.b.value.node])
        self.found.append(Found(row, pair.b.value, positions, pair.b.path))
        return True

    def agreement(self, one: Value | str, other: Value, a: np.ndarray, b: np.ndarray) -> Agreement:
        """The agreement of two arrays of a pair, within the tolerance of their types."""
        tolerance = self.tolerance(one, other)
        found = agreement_of(other.name, b, a, tolerance, "A")
        orders_rows = returns_detections(other.node)
        if not found.agrees and (orders_rows or (self._are_reordered and other.node in self._detections)):
            found = as_rows(found, a, b, tolerance)
            self._are_reordered |= found.agrees and orders_rows
        return found

    def tolerance(self, one: Value | str, other: Value) -> Tolerance:
        """The tolerance of a pair."""
        return self._tolerances.of(self._b_element(other), self._a_element(one))

    @property
    def agree(self) -> bool:
        """Whether all rows agree."""
        return all(one.row.agreement.agrees for one in self.found)

    @property
    def unreadable(self) -> set[Value]:
        """Values of B that A has as Constants of another shape: layers of B read what B computes in their place."""
        return {one.value for one in self.found if one.row.how == FOLDED and one.is_reshaped}

    def sort(self) -> None:
        """Bring the rows into the order in which B computes them."""
        self.found.sort(key=lambda found: found.position)


def _are_other_values(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two tensors differ in the set of their values, up to rounding."""
    a, b = np.unique(one), np.unique(other)
    return a.dtype.kind in "fiu" and (a.shape != b.shape or not np.allclose(a, b, rtol=1e-5))


def is_varied(array: np.ndarray) -> bool:
    """Whether a tensor has enough elements other than its most frequent one to confirm that it is computed right."""
    if not array.size:
        return True
    # An element that is more frequent than all others together is the median.
    median = np.partition(array, array.size // 2, axis=None)[array.size // 2]
    return bool(np.count_nonzero(array != median) >= min(_VARIED, array.size - 1))


def noisy(array: np.ndarray) -> np.ndarray:
    """Other values for every element."""
    scale = float(np.abs(array).max(initial=0.0)) or 1.0
    noise = np.random.default_rng(0).uniform(0.5, 1.0, array.shape) * scale
    return (array + noise).astype(array.dtype)


def _broadcast(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays in one shape; unchanged if they have none."""
    try:
        shape = np.broadcast_shapes(one.shape, other.shape)
    except ValueError:
        return one, other
    return np.broadcast_to(one, shape), np.broadcast_to(other, shape)


def in_one_shape(pair: TensorPair, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The arrays of a pair in one shape, if its values come in one order and only the axes differ."""
    return fitted(pair, a, b) if pair.how in VALUES else (a, b)


def fitted(pair: TensorPair, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The arrays of a pair in one shape: that of A arranged as B's."""
    a = arranged(a, b.shape, pair.order)
    # A Constant may have been broadcast already, or not yet.
    return _broadcast(a, b) if pair.how == FOLDED else (a, b)


def in_shape(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """An array in the shape of its partner: exporters keep, merge and split axes. Unchanged for as many axes."""
    return array.reshape(shape) if array.ndim != len(shape) and array.size == math.prod(shape) else array


def arranged(array: np.ndarray, shape: tuple[int, ...], order: tuple[int, ...]) -> np.ndarray:
    """An array of A in B's form: with its axes in another order, or in the shape of its partner."""
    return array.transpose(order) if order and array.ndim == len(order) else in_shape(array, shape)


def _is_constant(array: np.ndarray) -> bool:
    """Whether all elements of a floating-point tensor are equal."""
    return array.dtype.kind == "f" and array.size > 1 and bool((array == array.flat[0]).all())


def _at(array: np.ndarray, index: tuple[int, ...]) -> np.ndarray | None:
    """The tensor of an iteration; None if there is no such iteration."""
    if any(i >= size for i, size in zip(index, array.shape, strict=False)):
        return None
    found: np.ndarray | None = array[index]
    return found


def _times(array: np.ndarray, depth: int) -> str:
    """The number of iterations that compute a tensor, whose array has ``depth`` axes for the bodies."""
    return counted(sum(_at(array, index) is not None for index in np.ndindex(array.shape[:depth])), "time")


def positions(order: Sequence[Node]) -> dict[Node, int]:
    """Position of each layer in the topological order of its graph, bodies included."""
    found = {node: i for i, node in enumerate(order)}
    for node in order:
        for body in node.bodies.values():
            found |= positions(ordered(body.graph))
    return found


def paths_of(graph: Graph, path: str = "") -> dict[Node, str]:
    """Path of the bodies around each layer, layers of bodies included."""
    found = dict.fromkeys(graph.nodes, path)
    for node in graph.nodes:
        for name, body in node.bodies.items():
            found |= paths_of(body.graph, f"{path}{node.name}/{name}/")
    return found


def worst(agreements: Sequence[Agreement]) -> tuple[int, Agreement]:
    """The first agreement that is a difference, else the one with the largest difference, and its index."""
    for i, agreement in enumerate(agreements):
        if not agreement.agrees:
            return i, agreement
    i = max(range(len(agreements)), key=lambda i: agreements[i].largest or 0.0)
    return i, agreements[i]


def type_name(array: np.ndarray) -> str:
    """NumPy's name of the type, or "string"."""
    return "string" if array.dtype.kind in "OU" else array.dtype.name


class Ancestors:
    """The nearest compared tensors in front of a tensor.

    Args:
        compared: the compared values of B.
        graph: the graph of B.
    """

    def __init__(self, compared: Iterable[Value], graph: Graph) -> None:
        self._compared = set(compared)
        self._assigned: dict[str, list[Value]] = {}
        self._bodies: dict[Node, tuple[Node, Body]] = {}
        for node in graph.walk():
            if node.type == "Assign":
                self._assigned.setdefault(node.attributes.get("variable_id", ""), []).extend(_sources(node))
            for body in node.bodies.values():
                self._bodies |= dict.fromkeys(body.graph.parameters, (node, body))

    def of(self, value: Value) -> tuple[list[Value], list[Node]]:
        """The compared tensors, and the layers between without a compared tensor. Inputs of a ShapeOf do not count."""
        found: dict[Value, None] = {}
        between: dict[Node, None] = {}
        waiting = self._read(value)[::-1]
        seen: set[Value] = set()
        while waiting:
            source = waiting.pop()
            if source in self._compared:
                found[source] = None
            elif source not in seen:
                seen.add(source)
                if source.node.type not in ("Parameter", "Constant"):
                    between[source.node] = None
                waiting += [] if source.node.type == "ShapeOf" else self._read(source)[::-1]
        return list(found), list(between)

    def _read(self, value: Value) -> list[Value]:
        """The values in front of a value: for a layer with bodies the results of these, for a Parameter of a body its
        arguments."""
        node = value.node
        if node in self._bodies:
            return self._given(node)
        sources = _sources(node)
        if node.type == "ReadValue":
            sources += self._assigned.get(node.attributes.get("variable_id", ""), [])
        for body in node.bodies.values():
            results = {result.id: result for result in body.graph.results}
            inner = [
                e.internal
                for e in body.port_maps
                if e.kind == "output" and node.output_index(e.external) == value.index
            ]
            sources += [source for number in inner if number in results for source in _sources(results[number])]
        return sources

    def _given(self, parameter: Node) -> list[Value]:
        """Arguments of a Parameter of a body: an input of the layer, and a result of the iteration before."""
        node, body = self._bodies[parameter]
        inputs = [
            node.input_index(e.external) for e in body.port_maps if e.kind == "input" and e.internal == parameter.id
        ]
        found = [node.inputs[i] for i in inputs if i is not None and i < len(node.inputs)]
        results = {result.id: result for result in body.graph.results}
        left = [edge.source for edge in body.back_edges if edge.target == parameter.id]
        found += [source for number in left if number in results for source in _sources(results[number])]
        return [value for value in found if value is not None]


def _sources(node: Node) -> list[Value]:
    return [value for value in node.inputs if value is not None]
