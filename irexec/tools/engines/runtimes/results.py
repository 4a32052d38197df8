"""A copy of a model with other Results, and with inputs of types that another runtime accepts."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from irexec.analysis.model import Model, Port
from irexec.dtypes.elements import F32, I32, Element
from irexec.errors import InputError
from irexec.ir.facts import Fact
from irexec.ir.graph import Input, Node, Value
from irexec.ir.names import Names
from irexec.messages import counted
from irexec.runtime.inputs import bind_inputs


@dataclass(frozen=True)
class ObservedCopy:
    """The copy.

    Attributes:
        model: with one Result for each value that is asked for, in this order, and no other.
        inputs: the layer names of its Parameters, in the order of those of the model; each is unique.
        types: the element types that the Parameters take.
    """

    model: Model
    inputs: tuple[str, ...]
    types: tuple[Element | None, ...]


def observed(model: Model, values: Sequence[Value], elements: Sequence[Element | None]) -> ObservedCopy:
    """A copy that gives these values of a model.

    Tensors of types that NumPy lacks go in and out in f32 or i32, through a Convert: other runtimes have no arrays of
    these types.

    Args:
        model: a model, which is not changed.
        values: of the graph itself.
        elements: the element type of each value; None where it is not known.
    """
    made = copy.copy(model)
    # The reader of version 10 changes the types of inputs and outputs; names of tensors may occur twice, and none is
    # needed.
    made.version = 11
    for value in (value for node in made.nodes for value in node.outputs):
        value.names = []
    position = {node: i for i, node in enumerate(model.nodes)}
    found = [made.nodes[position[value.node]].outputs[value.index] for value in values]
    made.nodes = [node for node in made.nodes if node.type != "Result"]
    adding = _Adding(made)
    parameters = [node for node in made.parameters if node.outputs]
    inputs = [adding.parameter(node) for node in parameters]
    for i, (value, element) in enumerate(zip(found, elements, strict=True)):
        given = _given(value)
        adding.result(adding.replaced.get(given, given), element, i)
    return ObservedCopy(made, tuple(node.name for node in parameters), tuple(inputs))


def fed(inputs: Sequence[Port], arrays: Mapping[str, np.ndarray], made: ObservedCopy) -> dict[str, np.ndarray]:
    """The inputs of a model by the names and in the types of the copy.

    Raises:
        InputError: they do not fit.
    """
    bound = bind_inputs(inputs, dict(arrays))
    if len(bound) != len(made.inputs):
        raise InputError(f"{counted(len(bound), 'input')} for {counted(len(made.inputs), 'Parameter')}")
    return {
        name: array if element is None or element.kind == "string" else array.astype(element.carrier, copy=False)
        for name, array, element in zip(made.inputs, bound, made.types, strict=True)
    }


def _given(value: Value) -> Value:
    """The value itself, or what an Assign passes on: in OpenVINO its output cannot be read."""
    source = value.node.inputs[0] if value.node.type == "Assign" and value.node.inputs else None
    return value if source is None else source


class _Adding:
    """Layers that are added to a graph.

    Attributes:
        replaced: the replacements of Parameters whose type was changed.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.replaced: dict[Value, Value] = {}
        self._next = max((node.id for node in model.nodes), default=-1) + 1
        self._names = Names()

    def parameter(self, node: Node) -> Element | None:
        """Let a Parameter have a name of its own, and take a type that NumPy has; that type."""
        node.name = self._names.free(node.name)
        value = node.outputs[0]
        declared = Fact(None, None) if value.fact is None else value.fact
        if declared.element is None or _is_given(declared.element):
            return declared.element
        carried = carried_type(declared.element)
        node.attributes["element_type"] = carried.name
        value.fact = Fact(carried, declared.shape)
        converted = self.convert(value, declared.element)
        for other in self.model.nodes:
            for port in other.ports:
                if port.source is value and other is not converted.node:
                    port.source = converted
        self.replaced[value] = converted
        return carried

    def result(self, value: Value, element: Element | None, index: int) -> None:
        """A Result of a value."""
        if element is not None and not _is_given(element):
            value = self.convert(value, carried_type(element))
        self._node("Result", f"irexec.result.{index}", value)

    def convert(self, value: Value, element: Element) -> Value:
        """The value, converted."""
        node = self._node("Convert", f"irexec.convert.{self._next}", value)
        node.attributes["destination_type"] = element.name
        shape = None if value.fact is None else value.fact.shape
        node.outputs.append(Value(node, 0, Fact(element, shape)))
        return node.outputs[0]

    def _node(self, type: str, name: str, value: Value) -> Node:
        node = Node(self._next, name, type, "opset1", [Input(value, value.fact)])
        self._next += 1
        self.model.nodes.append(node)
        return node


def _is_given(element: Element) -> bool:
    return element.native or element.kind in ("string", "boolean")


def carried_type(element: Element) -> Element:
    """A type that NumPy has for the values of one that it lacks."""
    return F32 if element.is_float else I32
