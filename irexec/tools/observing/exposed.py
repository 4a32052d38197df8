"""Tensors inside bodies as outputs of a copy of the model, all iterations one after the other.

For each tensor the body gets an Unsqueeze and a Result. The layer around the body gets an output with the iterations
concatenated along a new axis 0, for which all iterations need one shape. Shapes of a tensor are exposed in the same
way, and then the tensor itself as vectors of one length. The other branch of an If has an output of length 0. Tensors
of bodies inside bodies become outputs level by level, with one such axis for each level. An axis whose size changes
with the iteration of an outer loop is filled up with zeros; the sizes are exposed beforehand.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from irexec.analysis.builder import packed
from irexec.analysis.model import Model
from irexec.dtypes.elements import I64
from irexec.ir.dims import Dim
from irexec.ir.facts import Fact
from irexec.ir.graph import BackEdge, Body, Graph, Input, Node, PortMap, Value, slice_attributes
from irexec.schema.attributes import write_attribute

Levels: TypeAlias = tuple[tuple[Node, str], ...]
"""The layers around a body, from the outermost on, each with the name of its body."""

_COUNT = Fact(I64, (1,))


@dataclass(frozen=True)
class Inner:
    """A tensor inside bodies.

    Attributes:
        value: the tensor, of the graph of the innermost body.
        levels: the layers around its bodies.
    """

    value: Value
    levels: Levels

    @property
    def inner_levels(self) -> list[Levels]:
        """The levels of each body inside another one, from the outermost on."""
        return [self.levels[:depth] for depth in range(2, len(self.levels) + 1)]

    @property
    def path(self) -> str:
        """The path of the bodies, with a slash after each part."""
        return "".join(f"{node.name}/{name}/" for node, name in self.levels)


def expose(
    model: Model, tensors: Sequence[Inner], facts: Mapping[Value, Fact], counts: Mapping[Levels, int], *,
    shapes: bool = False, lengths: Mapping[Value, int] | None = None,
) -> tuple[Model, dict[Value, Value]]:  # fmt: skip
    """A copy of a model with tensors of its bodies as outputs, and the value of the copy for each tensor.

    Tensors of an If without a known type or rank are left out: both branches need the same.

    Args:
        model: the model, which is not changed.
        tensors: the tensors to expose.
        facts: facts of the values of the model.
        counts: size of the axis of each inner body whose number of iterations changes.
        shapes: expose the shape of each tensor in place of the tensor.
        lengths: lengths of tensors that are exposed as vectors, filled up with zeros.
    """
    exposing, lengths = _Exposing(model, facts, counts), lengths or {}
    pairs = [(one.value, exposing.outermost(one, shapes=shapes, length=lengths.get(one.value))) for one in tensors]
    return exposing.model, {value: exposed for value, exposed in pairs if exposed is not None}


def expose_counts(
    model: Model, bodies: Sequence[Levels], counts: Mapping[Levels, int]
) -> tuple[Model, dict[Levels, Value]]:
    """A copy of a model with the numbers of iterations of inner bodies as outputs; the branch of an If has 0 or 1."""
    exposing = _Exposing(model, {}, counts)
    return exposing.model, {levels: exposing.count(levels) for levels in bodies}


class _Exposing:
    """Outputs that are added to a copy.

    Args:
        model: the model, which is not changed.
        facts: facts of the values of the model.
        counts: size of the axis of each inner body whose number of iterations changes.

    Attributes:
        model: the copy.
    """

    def __init__(self, model: Model, facts: Mapping[Value, Fact], counts: Mapping[Levels, int]) -> None:
        self.model, self._facts, self._counts = copy.copy(model), facts, counts
        self._copies = dict(zip(model.walk(), self.model.walk(), strict=True))
        self._next: dict[int, int] = {}

    def outermost(self, tensor: Inner, *, shapes: bool, length: int | None) -> Value | None:
        """The output for a tensor, its shape, or a vector of its elements; None if it cannot be exposed."""
        value = self._copies[tensor.value.node].outputs[tensor.value.index]
        fact = self._facts.get(tensor.value, Fact(None, None))
        graph = self._graph(tensor.levels)
        if shapes:
            fact = Fact(I64, None if fact.shape is None else (len(fact.shape),))
            value = self._emitted(graph, "ShapeOf", [value], fact)
        elif length is not None:
            if fact.element is None:
                return None
            fact = Fact(fact.element, (length,))
            # The elements of a tensor as a vector, with zeros after them.
            vector = self._emitted(
                graph, "Reshape", [value, self._integer(graph, -1)], Fact(fact.element, (Dim(),)), special_zero="false"
            )
            value = self._filled_up(graph, vector, fact)
        return self._outwards(tensor.levels, value, fact)

    def count(self, levels: Levels) -> Value:
        """The output for the number of iterations of a body: a state that starts with 0, or a constant per branch."""
        node, name = levels[-1]
        count = self._copies[node]
        inside = self._graph(levels[:-1])
        if len(node.bodies) == 1:
            external_input = self._new_input(count, self._constant(inside, np.zeros(1, np.int64), _COUNT))
        value, external = self._new_output(count, _COUNT)
        for other, body in count.bodies.items():
            if len(node.bodies) > 1:
                last = self._constant(body.graph, np.array([int(other == name)]), _COUNT)
                body.port_maps.append(PortMap("output", external, self._result(body.graph, last).id))
            else:
                self._add_counter(body, external_input, external)
        outer = self._outwards(levels[:-1], value, _COUNT)
        if outer is None:
            raise AssertionError("the type and the shape of a count are known")
        return outer

    def _add_counter(self, body: Body, external_input: int, external: int) -> None:
        """A state that every iteration of a loop increments."""
        parameter = self._node(body.graph, "Parameter", [])
        parameter.attributes |= {"element_type": "i64", "shape": "1"}
        parameter.outputs.append(Value(parameter, 0, _COUNT))
        more = self._emitted(body.graph, "Add", [parameter.outputs[0], self._integer(body.graph, 1)], _COUNT)
        result = self._result(body.graph, more)
        body.port_maps.append(PortMap("input", external_input, parameter.id))
        body.port_maps.append(PortMap("output", external, result.id))
        body.back_edges.append(BackEdge(result.id, parameter.id))

    def _graph(self, levels: Levels) -> Graph:
        node, name = levels[-1]
        return self._copies[node].bodies[name].graph

    def _outwards(self, levels: Levels, value: Value, fact: Fact) -> Value | None:
        """The output of the outermost layer for a value of the innermost body."""
        for depth in range(len(levels), 0, -1):
            node, name = levels[depth - 1]
            if len(node.bodies) > 1 and (fact.element is None or fact.shape is None):
                return None
            value = self._level(self._copies[node], name, value, fact)
            count = self._counts.get(levels[:depth])
            if count is not None and not fact.is_static:
                return None
            fact = Fact(fact.element, None if fact.shape is None else (count or 1, *fact.shape))
            if count is not None:
                value = self._filled_up(self._graph(levels[: depth - 1]), value, fact)
        return value

    def _level(self, node: Node, name: str, value: Value, fact: Fact) -> Value:
        """A new output of a layer with a tensor of one of its bodies."""
        output, external = self._new_output(node, Fact(fact.element, None))
        for other, body in node.bodies.items():
            graph = body.graph
            inner = self._unsqueezed(graph, value) if other == name else self._nothing(graph, fact, (0,))
            result = self._result(graph, inner)
            attributes = {} if len(node.bodies) > 1 else slice_attributes(0)
            body.port_maps.append(PortMap("output", external, result.id, attributes))
        return output

    def _new_output(self, node: Node, fact: Fact) -> tuple[Value, int]:
        """An output, and its id for the port maps."""
        index, port = len(node.outputs), _unused_port(node)
        node.outputs.append(Value(node, index, fact, [], port))
        return node.outputs[index], len(node.ports) + index if port is None else port

    def _new_input(self, node: Node, value: Value) -> int:
        """Add an input; returns its id for the port maps. Ports without ids are numbered, outputs after inputs."""
        index, port = len(node.ports), _unused_port(node)
        node.ports.append(Input(value, value.fact, port))
        if port is not None:
            return port
        for body in node.bodies.values():
            maps = body.port_maps
            maps[:] = [replace(entry, external=entry.external + (entry.external >= index)) for entry in maps]
        return index

    def _unsqueezed(self, graph: Graph, value: Value) -> Value:
        shape = None if value.fact is None or value.fact.shape is None else (1, *value.fact.shape)
        fact = Fact(None if value.fact is None else value.fact.element, shape)
        return self._emitted(graph, "Unsqueeze", [value, self._integer(graph, 0)], fact)

    def _filled_up(self, graph: Graph, value: Value, fact: Fact) -> Value:
        """A tensor whose axis 0 is shorter than that of ``fact``, with zeros after it."""
        size, *rest = fact.static_shape
        longer = self._emitted(
            graph, "Concat", [value, self._nothing(graph, fact, ())], Fact(fact.element, (Dim(), *rest)), axis="0"
        )
        bounds = [self._integer(graph, bound) for bound in (0, size, 1)]
        return self._emitted(graph, "StridedSlice", [longer, *bounds], fact, begin_mask="0", end_mask="0")

    def _emitted(self, graph: Graph, type: str, inputs: Sequence[Value], fact: Fact, **attributes: str) -> Value:
        node = self._node(graph, type, inputs)
        node.attributes |= attributes
        node.outputs.append(Value(node, 0, fact))
        return node.outputs[0]

    def _integer(self, graph: Graph, value: int) -> Value:
        return self._constant(graph, np.array([value]), Fact(I64, (1,)))

    def _nothing(self, graph: Graph, fact: Fact, counts: tuple[int, ...]) -> Value:
        """Zeros of a type and shape, with ``counts`` in front of the shape; unknown sizes are 0."""
        if fact.element is None or fact.shape is None:
            raise AssertionError("the type and the rank are known")
        shape = (*counts, *(size if isinstance(size, int) else 0 for size in fact.shape))
        return self._constant(graph, np.zeros(shape, fact.element.carrier), Fact(fact.element, shape))

    def _constant(self, graph: Graph, array: np.ndarray, fact: Fact) -> Value:
        if fact.element is None:
            raise AssertionError("a Constant has a type")
        node = self._node(graph, "Constant", [])
        node.constant = packed(array, fact.element)
        node.attributes |= {"element_type": fact.element.name, "shape": write_attribute(array.shape)}
        node.outputs.append(Value(node, 0, fact))
        return node.outputs[0]

    def _result(self, graph: Graph, value: Value) -> Node:
        return self._node(graph, "Result", [value])

    def _node(self, graph: Graph, type: str, inputs: Sequence[Value]) -> Node:
        number = self._next.setdefault(id(graph), max((node.id for node in graph.nodes), default=-1) + 1)
        self._next[id(graph)] = number + 1
        node = Node(number, f"irexec.{type}.{number}", type, "opset1", [Input(value, value.fact) for value in inputs])
        graph.nodes.append(node)
        return node


def _unused_port(node: Node) -> int | None:
    """The next id of a port; None if ports have no ids."""
    ends: list[Input | Value] = [*node.ports, *node.outputs]
    ids = [one.port for one in ends if one.port is not None]
    return max(ids) + 1 if ids else None
