"""A part of a model as a model of its own: chosen layers, with Parameters or Constants in place of what the others gave
them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from irexec.analysis.builder import packed
from irexec.analysis.model import Model
from irexec.analysis.shape_inference import infer_shapes
from irexec.errors import ModelError
from irexec.ir.facts import Fact
from irexec.ir.graph import Graph, Input, ModelGraph, Node, Value
from irexec.ir.order import Names
from irexec.ir.shape_text import write_shape

Boundary = Callable[[Value], Fact | None]
"""Stand-in for a value that is cut: a fact with a known value is a Constant, one without a Parameter; with None it
cannot be cut."""


@dataclass(frozen=True)
class SubModel:
    """A model that was made of a part of another.

    Attributes:
        model: layers that were kept have the ids, names and ports that they had; what stands for a value has those of
            its layer.
        feeds: for each input of the model, in order, the value of the other model that it stands for.
        results: for each Result, in order, the value of the other model that it gives.
    """

    model: Model
    feeds: tuple[Value, ...]
    results: tuple[Value, ...]


def extract(
    model: Model,
    keep: Collection[Node],
    boundary: Boundary,
    *,
    results: Collection[Value] | None = None,
    bypass: Mapping[Value, Value] | None = None,
    also: Collection[Node] = (),
) -> SubModel:
    """The layers ``keep`` of a model as a model of its own; the model stays as it is.

    Parameters and Constants that the layers read come along, and Results of their outputs do. Damage that the reader
    found does not.

    Args:
        model: any model, or a body as one; it may be damaged.
        keep: layers other than Parameters, Constants and Results.
        boundary: stand-in for the value of a layer outside ``keep``, and for an input without an edge.
        results: the values to give; unless given, the values read by a layer outside ``keep`` or by a Result.
        bypass: for an output of a layer that is not kept, the value that its readers get in its place.
        also: Parameters and Constants to keep although nothing reads them. Where nothing else is kept, the first
            Parameter gets a Result.

    Raises:
        ModelError: nothing can stand for a value that is read.
    """
    return _Extraction(model, keep, boundary, bypass or {}).made(results, also)


def frontier(graph: Graph, keep: Collection[Node], bypass: Mapping[Value, Value] | None = None) -> list[Value]:
    """The outputs of the layers ``keep`` that others read: Results, or layers that are not kept."""
    inside, through = set(keep), bypass or {}
    bypassed = {value.node for value in through}
    found: dict[Value, None] = {}
    for node in graph.nodes:
        if node not in inside and node not in bypassed:
            found |= dict.fromkeys(
                source
                for value in node.inputs
                if value is not None and (source := resolved(value, through)).node in inside
            )
    index = {node: i for i, node in enumerate(graph.nodes)}
    return sorted(found, key=lambda value: (index[value.node], value.index))


def resolved(value: Value, bypass: Mapping[Value, Value]) -> Value:
    """The value that stands for ``value``, which may be bypassed."""
    while value in bypass:
        value = bypass[value]
    return value


@dataclass
class _Extraction:
    """One extraction: the copies made so far."""

    model: Model
    keep: Collection[Node]
    boundary: Boundary
    bypass: Mapping[Value, Value]
    values: dict[Value, Value] = field(default_factory=dict)
    made_nodes: dict[Node, list[Node]] = field(default_factory=dict)
    missing: list[Node] = field(default_factory=list)
    feeds: dict[Node, Value] = field(default_factory=dict)
    given: dict[Node, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.keep = set(self.keep)
        self._next_id = max((node.id for node in self.model.nodes), default=0) + 1
        self._names = Names(node.name for node in self.model.nodes)

    def made(self, results: Collection[Value] | None, also: Collection[Node]) -> SubModel:
        copies = {node: self._copy(node) for node in self.model.nodes if node in self.keep}
        for node, copied in copies.items():
            for port, fresh in zip(node.ports, copied.ports, strict=True):
                fresh.source = self._source(port)
        for node in also:
            self._bring(node.outputs[0])
        given = list(frontier(self.model, self.keep, self.bypass) if results is None else results)
        if not self.keep:
            given += [node.outputs[0] for node in also if node.type == "Parameter"][:1]
        endings = [result for value in dict.fromkeys(given) for result in self._results(value)]
        order = [made for node in self.model.nodes for made in self.made_nodes.get(node, ())]
        nodes = [*self.missing, *order, *endings]
        made = Model.of(ModelGraph(self.model.name, nodes, payload=self.model.payload, version=self.model.version))
        feeds = tuple(self.feeds[node] for node in made.parameters)
        return SubModel(made, feeds, tuple(self.given[node] for node in made.results))

    def _copy(self, node: Node) -> Node:
        copied = node.detached()
        self.made_nodes.setdefault(node, []).append(copied)
        self.values |= dict(zip(node.outputs, copied.outputs, strict=True))
        return copied

    def _source(self, port: Input) -> Value:
        if port.source is not None:
            return self._value(port.source)
        # Nothing arrives at the port: its declared type and shape stand for what should.
        stand_in = Value(Node(-1, "missing", "Parameter", "opset1"), 0, port.fact)
        fact = self.boundary(stand_in)
        if fact is None:
            raise ModelError("nothing can stand for an input at which no edge arrives")
        node = self._stand_in(stand_in, fact, self._id(), self._names.free("missing"))
        self.missing.append(node)
        return node.outputs[0]

    def _value(self, original: Value) -> Value:
        value = resolved(original, self.bypass)
        self._bring(value)
        return self.values[value]

    def _bring(self, value: Value) -> None:
        """Bring a value that no kept layer gives: a Parameter or a Constant of the model, or what stands for it."""
        node = value.node
        if value in self.values:
            return
        if node.type == "Parameter":
            self.feeds[self._copy(node)] = value
            return
        if node.constant is not None and node.constant.is_readable:
            self._copy(node)
            return
        fact = self.boundary(value)
        if fact is None:
            raise ModelError(f"neither the type nor the rank of {value.node.name!r}:{value.index} is known")
        is_first = node not in self.made_nodes
        name = node.name if is_first else self._names.free(f"{node.name}:{value.index}")
        made = self._stand_in(value, fact, node.id if is_first else self._id(), name)
        self.made_nodes.setdefault(node, []).append(made)
        self.values[value] = made.outputs[0]

    def _stand_in(self, value: Value, fact: Fact, number: int, name: str) -> Node:
        """The Parameter or Constant of a fact, under the tensor names of the value."""
        if fact.element is None:
            raise ModelError(f"the element type of {value.node.name!r}:{value.index} is not known")
        attributes = {"shape": write_shape(fact.shape), "element_type": fact.element.name}
        node = Node(number, name, "Parameter", "opset1", attributes=attributes)
        if fact.known is not None:
            node.type, node.constant = "Constant", packed(fact.known, fact.element)
        else:
            self.feeds[node] = value
        node.outputs.append(Value(node, 0, Fact(fact.element, fact.shape), list(value.names)))
        return node

    def _results(self, original: Value) -> Iterator[Node]:
        """The Results of the model that give a value, or a new one."""
        value = self._value(original)
        found = [
            node
            for node in self.model.results
            for source in node.inputs
            if source is not None and resolved(source, self.bypass) is resolved(original, self.bypass)
        ]
        for node in found:
            copied = node.detached()
            copied.ports[0].source = value
            self.given[copied] = original
            yield copied
        if not found:
            name = self._names.free(f"{value.node.name}/sink_port_{value.index}")
            result = Node(self._id(), name, "Result", "opset1")
            result.ports.append(Input(value, value.fact))
            self.given[result] = original
            yield result

    def _id(self) -> int:
        self._next_id += 1
        return self._next_id - 1


def with_shapes(model: Model, shapes: Mapping[int, Sequence[int]]) -> Model:
    """A copy of a model, without the damage that the reader found, whose Parameters have these shapes.

    Args:
        model: stays as it is.
        shapes: by the ids of Parameters. Ports declare the sizes that follow from them where they left these open.
    """
    copied = copy.copy(model)
    copied.problems = []
    for node in copied.parameters:
        if node.id in shapes:
            node.attributes["shape"] = write_shape(tuple(shapes[node.id]))
    facts = infer_shapes(copied, tolerant=True).facts
    for node in copied.nodes:
        for value in node.outputs:
            value.fact = _refined(value.fact, facts[value])
        for port in node.ports:
            if port.source is not None:
                port.fact = _refined(port.fact, facts[port.source])
    return copied


def _refined(declared: Fact | None, inferred: Fact) -> Fact | None:
    """Declared fact of a port, with its open sizes as inferred."""
    if declared is None or declared.shape is None or inferred.rank != declared.rank:
        return declared
    pairs = zip(declared.shape, inferred.shape or (), strict=True)
    return replace(declared, shape=tuple(size if isinstance(size, int) else known for size, known in pairs))
