"""Tensors inside bodies as outputs of a copy of the model, all iterations one after the other.

For each tensor the body gets an Unsqueeze and a Result. The layer around the body gets an output with the iterations
concatenated along a new axis 0, for which all iterations need one shape. Shapes of a tensor are exposed in the same
way, and then the tensor itself as vectors of one length. The other branch of an If has an output of length 0, or of
zeros in a loop. Tensors of bodies inside bodies become outputs level by level, with one such axis for each level.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from irexec.analysis.builder import packed
from irexec.analysis.model import Model
from irexec.dtypes.elements import I64
from irexec.ir.dims import Dim
from irexec.ir.facts import Fact
from irexec.ir.graph import Body, Graph, Input, Node, PortMap, Value
from irexec.schema.attributes import write_attribute

_CONCATENATED = {"axis": "0", "start": "0", "end": "-1", "stride": "1", "part_size": "1"}


@dataclass(frozen=True)
class Inner:
    """A tensor inside bodies.

    Attributes:
        value: the tensor, of the graph of the innermost body.
        levels: the layers around its bodies, from the outermost on, each with the name of the body.
    """

    value: Value
    levels: tuple[tuple[Node, str], ...]

    @property
    def is_in_inner_loop(self) -> bool:
        """Whether the tensor is in a loop inside another loop: the number of inner iterations may change."""
        return sum(len(node.bodies) == 1 for node, _ in self.levels) > 1

    @property
    def path(self) -> str:
        """The path of the bodies, with a slash after each part."""
        return "".join(f"{node.name}/{name}/" for node, name in self.levels)


def expose(
    model: Model,
    tensors: Sequence[Inner],
    facts: Mapping[Value, Fact],
    *,
    shapes: bool = False,
    lengths: Mapping[Value, int] | None = None,
) -> tuple[Model, dict[Value, Value]]:
    """A copy of a model with tensors of its bodies as outputs, and the value of the copy for each tensor.

    Tensors of an If without a known type or rank are left out: both branches need the same.

    Args:
        model: the model, which is not changed.
        tensors: the tensors to expose.
        facts: facts of the values of the model.
        shapes: expose the shape of each tensor in place of the tensor.
        lengths: lengths of tensors that are exposed as vectors, filled up with zeros.
    """
    made = copy.copy(model)
    exposing = _Exposing(dict(zip(model.walk(), made.walk(), strict=True)), facts)
    found: dict[Value, Value] = {}
    for tensor in tensors:
        length = (lengths or {}).get(tensor.value)
        value = exposing.outermost(tensor, shapes=shapes, length=length)
        if value is not None:
            found[tensor.value] = value
    return made, found


class _Exposing:
    """Outputs that are added to a copy.

    Args:
        copies: the layers of the copy by layers of the model.
        facts: facts of the values of the model.
    """

    def __init__(self, copies: Mapping[Node, Node], facts: Mapping[Value, Fact]) -> None:
        self._copies, self._facts = copies, facts
        self._next: dict[int, int] = {}

    def outermost(self, tensor: Inner, *, shapes: bool, length: int | None) -> Value | None:
        value = self._copies[tensor.value.node].outputs[tensor.value.index]
        fact = self._facts.get(tensor.value, Fact(None, None))
        node, name = tensor.levels[-1]
        graph = self._copies[node].bodies[name].graph
        if shapes:
            fact = Fact(I64, None if fact.shape is None else (len(fact.shape),))
            value = self._emitted(graph, "ShapeOf", [value], fact)
        elif length is not None:
            if fact.element is None:
                return None
            fact = Fact(fact.element, (length,))
            value = self._filled_up(graph, value, fact)
        for depth in range(len(tensor.levels) - 1, -1, -1):
            node, name = tensor.levels[depth]
            if len(node.bodies) > 1 and (fact.element is None or fact.shape is None):
                return None
            value = self._level(self._copies[node], name, value, fact, in_loop=depth > 0 and fact.is_static)
            fact = Fact(fact.element, None if fact.shape is None else (1, *fact.shape))
        return value

    def _level(self, node: Node, name: str, value: Value, fact: Fact, *, in_loop: bool) -> Value:
        """A new output of a layer with a tensor of one of its bodies."""
        index = len(node.outputs)
        ids = [port.port for port in node.ports if port.port is not None] + [
            one.port for one in node.outputs if one.port is not None
        ]
        port = max(ids) + 1 if ids else None
        external = len(node.ports) + index if port is None else port
        for other, body in node.bodies.items():
            if other == name:
                result = self._result(body.graph, self._unsqueezed(body.graph, value))
            else:
                result = self._result(body.graph, self._nothing(body.graph, fact, (int(in_loop),)))
            self._map(node, body, external, result)
        output = Value(node, index, Fact(fact.element, None), [], port)
        node.outputs.append(output)
        return output

    def _map(self, node: Node, body: Body, external: int, result: Node) -> None:
        attributes = {} if len(node.bodies) > 1 else dict(_CONCATENATED)
        body.port_maps.append(PortMap("output", external, result.id, attributes))

    def _unsqueezed(self, graph: Graph, value: Value) -> Value:
        shape = None if value.fact is None or value.fact.shape is None else (1, *value.fact.shape)
        fact = Fact(None if value.fact is None else value.fact.element, shape)
        return self._emitted(graph, "Unsqueeze", [value, self._integer(graph, 0)], fact)

    def _filled_up(self, graph: Graph, value: Value, fact: Fact) -> Value:
        """The elements of a tensor as a vector, with zeros after them."""
        vector = self._emitted(
            graph, "Reshape", [value, self._integer(graph, -1)], Fact(fact.element, (Dim(),)), special_zero="false"
        )
        longer = self._emitted(
            graph, "Concat", [vector, self._nothing(graph, fact, ())], Fact(fact.element, (Dim(),)), axis="0"
        )
        start, stop, step = self._integer(graph, 0), self._integer(graph, fact.static_shape[0]), self._integer(graph, 1)
        return self._emitted(graph, "StridedSlice", [longer, start, stop, step], fact, begin_mask="0", end_mask="0")

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
