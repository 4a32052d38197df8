"""Tensors in use while the layers of a graph run one after the other, each tensor in memory of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from irexec.analysis.constant_layers import Interval, constant_layers, in_use
from irexec.analysis.cost import NO_COMPUTATION
from irexec.analysis.shape_inference import UNKNOWN
from irexec.ir.facts import Fact
from irexec.ir.graph import Body, Graph, Node, Value
from irexec.ir.order import needed, topological


@dataclass(frozen=True)
class LiveTensor(Interval):
    """A tensor between layers, in use from the layer that computes it to the last layer that reads it.

    A result of the model is in use until the last layer, and a value that a loop passes to its next iteration from the
    first, 0.

    Attributes:
        name: its first tensor name, or else ``layer`` or ``layer:index``.
        path: the names of the bodies that it is in, each followed by a slash.
        layer, type: the layer that computes it.
        fact: element type and shape, as text.
    """

    name: str
    path: str
    layer: str
    type: str
    fact: str


@dataclass(frozen=True)
class Liveness:
    """The tensors in use while a graph runs.

    Attributes:
        order: layers in order of execution, without constant and unused layers.
        tensors: the tensors between these layers.
        bodies: the liveness in the bodies of each layer that has bodies.
        path: the names of the bodies around the graph.
    """

    order: tuple[Node, ...]
    tensors: tuple[LiveTensor, ...]
    bodies: Mapping[int, tuple[Liveness, ...]]
    path: str = ""
    curve: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "curve", tuple(self._curve()))

    @property
    def peak(self) -> int:
        """The index of the layer of the peak, the first such layer; 0 without layers."""
        return max(range(len(self.curve)), key=lambda i: self.curve[i], default=0)

    def alive(self, index: int) -> list[LiveTensor]:
        """The tensors that are alive during a layer; those of the body that needs the most memory are among them."""
        found = [tensor for tensor in self.tensors if tensor.first <= index <= tensor.last]
        body = max(self.bodies.get(index, ()), key=lambda one: max(one.curve, default=0), default=None)
        return found + (body.alive(body.peak) if body is not None else [])

    def every_tensor(self) -> list[LiveTensor]:
        """The tensors, and those of bodies."""
        return [
            *self.tensors,
            *(tensor for bodies in self.bodies.values() for one in bodies for tensor in one.every_tensor()),
        ]

    def _curve(self) -> list[int]:
        """Bytes in use during each layer, those of the largest body of the layer among them."""
        peaks = {i: max(max(one.curve, default=0) for one in bodies) for i, bodies in self.bodies.items()}
        return [size + peaks.get(i, 0) for i, size in enumerate(in_use(self.tensors, len(self.order)))]


def liveness(graph: Graph, facts: Mapping[Value, Fact]) -> Liveness:
    """The tensors in use while a graph runs, from facts alone. Inputs of the graph belong to the caller."""
    return _of_graph(graph, facts, "", frozenset())


def _of_graph(graph: Graph, facts: Mapping[Value, Fact], path: str, carried: frozenset[Value]) -> Liveness:
    order = _order(graph)
    index = {node: i for i, node in enumerate(order)}
    last = {value: index[node] for node in order for value in node.inputs if value is not None}
    kept = {value for node in (*graph.results, *graph.sinks) for value in node.inputs if value is not None}
    tensors = [
        _tensor(value, path, facts, i, len(order) - 1 if value in kept else last[value])
        for i, node in enumerate(order)
        for value in node.outputs
        if value in last or value in kept
    ]
    tensors += [_tensor(value, path, facts, 0, last[value]) for value in carried if value in last]
    bodies = {
        i: tuple(_of_body(body, facts, f"{path}{node.name}/{name}/") for name, body in node.bodies.items())
        for i, node in enumerate(order)
        if node.bodies
    }
    return Liveness(tuple(order), tuple(tensors), bodies, path)


def _of_body(body: Body, facts: Mapping[Value, Fact], path: str) -> Liveness:
    """Parameters are views of what is outside, unless the iteration before has computed them."""
    targets = {edge.target for edge in body.back_edges}
    carried = frozenset(node.outputs[0] for node in body.graph.parameters if node.id in targets and node.outputs)
    return _of_graph(body.graph, facts, path, carried)


def _order(graph: Graph) -> list[Node]:
    """The layers that run, in their order."""
    wanted = needed(graph) - constant_layers(graph)
    return [node for node in topological(graph)[0] if node in wanted and node.type not in NO_COMPUTATION]


def _tensor(value: Value, path: str, facts: Mapping[Value, Fact], first: int, last: int) -> LiveTensor:
    node, fact = value.node, facts.get(value, UNKNOWN)
    known = fact.is_static and fact.element is not None and fact.element.kind != "string"
    text = str(Fact(fact.element, fact.shape))
    return LiveTensor(fact.nbytes if known else None, first, last, value.name, path, node.name, node.type, text)
