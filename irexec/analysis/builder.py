"""Making a model node by node, with the facts of every value inferred at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irexec.analysis.evaluate import as_tuple
from irexec.analysis.model import Model, declare
from irexec.analysis.shape_inference import ShapeInference
from irexec.dtypes.elements import Element, element_of
from irexec.dtypes.packing import pack, packed_size
from irexec.errors import ModelError, OpError
from irexec.ir.constants import Bytes, Constant, constant_value
from irexec.ir.dims import PartialShape
from irexec.ir.facts import Fact
from irexec.ir.graph import Body, Graph, Input, Node, Value
from irexec.ir.shape_text import write_shape
from irexec.schema.attributes import REQUIRED, write_attribute
from irexec.schema.opdef import OpDef
from irexec.schema.registry import newest, resolve

Operand = Value | np.ndarray | np.generic | int | float | bool | list | tuple


class Builder:
    """Collects nodes into a graph and infers the facts of each as it is added.

    Attributes:
        graph: what has been built so far.
    """

    def __init__(self, name: str = "") -> None:
        self.graph = Graph(name)
        self._inference = ShapeInference(tolerant=False)
        self._names: set[str] = set()

    def parameter(
        self, element: Element, shape: PartialShape, name: str, names: Sequence[str] = (), *, value: np.ndarray | None = None
    ) -> Value:
        """An input of the model; a Dim's symbol is kept in its fact but cannot be written.

        ``value`` is what is known of the numbers that the Parameter of a body will have.
        """
        node = self._node("Parameter", "opset1", name, {"shape": write_shape(shape), "element_type": element.name})
        return self._output(node, 0, Fact(element, shape, value), names)

    def constant(self, array: Any, element: Element | None = None, name: str | None = None, names: Sequence[str] = ()) -> Value:
        """A constant: Python ints are i64 and floats f32 unless ``element`` says otherwise.

        ``array`` holds values of the element's carrier; they are packed here.
        """
        values = _array(array, element)
        kind = element or element_of(values.dtype)
        return self.raw_constant(packed(values, kind), name, names)

    def raw_constant(self, constant: Constant, name: str | None = None, names: Sequence[str] = ()) -> Value:
        """A constant whose packed bytes are there already, perhaps in a file."""
        attributes = {"element_type": constant.element.name, "shape": write_attribute(constant.shape)}
        node = self._node("Constant", "opset1", name or "Constant", attributes)
        node.constant = constant
        value: Value = self._infer(node, names)
        return value

    def emit(
        self,
        type: str,
        *inputs: Operand | None,
        version: int | str | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
        bodies: Mapping[str, Body] | None = None,
        **attributes: Any,
    ) -> Any:
        """Add an operation: its Value, or a tuple of Values where its facts rule gives a tuple.

        Args:
            type: the operation type.
            inputs: values; numbers and arrays become constants; trailing None are left out.
            version: the opset (or namespace) of the operation; the newest unless told.
            name: the layer's name; made unique if it is taken.
            names: tensor names of the first output.
            bodies: by the IR's element name; their port maps say how many outputs there are, and what
                their layers declare becomes what follows from the inputs.
            attributes: by the kernel's parameter name; defaults are written too.

        Raises:
            NodeError: the inputs or attributes are wrong.
        """
        definition = newest(type) if version is None else resolve(type, version if isinstance(version, str) else f"opset{version}")
        texts = _attribute_texts(definition, definition.ungrouped(attributes))
        trailing = list(inputs)
        while trailing and trailing[-1] is None:
            trailing.pop()
        values = [self._operand(type, operand) for operand in trailing]
        node = self._node(type, definition.version, name or type, texts)
        node.bodies = dict(bodies or {})
        node.ports = [Input(value, value.fact) for value in values]
        return self._infer(node, names)

    def result(self, value: Value, name: str | None = None) -> Node:
        """An output of the model."""
        node = self._node("Result", "opset1", name or f"{value.node.name}/sink_port_{value.index}", {})
        node.ports.append(Input(value, value.fact))
        return node

    def rename(self, node: Node, name: str) -> None:
        """Call a layer ``name``, made unique if it is taken."""
        self._names.discard(node.name)
        node.name = self._unique(name)

    def fact(self, value: Value) -> Fact:
        """What is known of a value, its number included."""
        return self._inference.inference.facts[value]

    def constant_array(self, value: Value) -> np.ndarray | None:
        """The numbers of a constant of any size; None for a value that is no constant."""
        return None if value.node.constant is None else constant_value(value.node.constant)

    def drop_unused(self) -> None:
        """Leave out the layers, Parameters apart, on which no Result and no Assign depends; ids are given anew."""
        needed: set[Node] = set()
        waiting = [*self.graph.results, *self.graph.sinks]
        while waiting:
            node = waiting.pop()
            if node not in needed:
                needed.add(node)
                waiting += [value.node for value in node.inputs if value is not None]
        self.graph.nodes = [node for node in self.graph.nodes if node in needed or node.type == "Parameter"]
        for number, node in enumerate(self.graph.nodes):
            node.id = number

    def model(self) -> Model:
        """The model built."""
        return Model(name=self.graph.name, nodes=self.graph.nodes)

    def _operand(self, type: str, operand: Operand | None) -> Value:
        if operand is None:
            raise OpError(f"{type} lacks an input before its last")
        return operand if isinstance(operand, Value) else self.constant(operand)

    def _node(self, type: str, version: str, name: str, attributes: dict[str, str]) -> Node:
        node = Node(len(self.graph.nodes), self._unique(name), type, version, attributes=attributes)
        self.graph.nodes.append(node)
        return node

    def _unique(self, name: str) -> str:
        free, count = name, 0
        while free in self._names:
            count += 1
            free = f"{name}_{count}"
        self._names.add(free)
        return free

    def _infer(self, node: Node, names: Sequence[str]) -> Any:
        # The rules of control flow ask the node which of its outputs a port map means.
        node.outputs = [Value(node, i) for i in range(_mapped_outputs(node))]
        facts = self._inference.infer_new_node(node)
        for body in node.bodies.values():
            self._declare(body.graph)
        values = tuple(self._output(node, i, fact, names if i == 0 else ()) for i, fact in enumerate(as_tuple(facts)))
        return values if isinstance(facts, tuple) else values[0]

    def _declare(self, body: Graph) -> None:
        """Write what has been inferred of a body on its ports and Parameters."""
        declare(body, self._inference.inference)
        for parameter in body.parameters:
            parameter.attributes["shape"] = write_shape(self.fact(parameter.outputs[0]).shape)

    def _output(self, node: Node, index: int, fact: Fact, names: Sequence[str]) -> Value:
        if index == len(node.outputs):
            node.outputs.append(Value(node, index))
        value = node.outputs[index]
        value.fact, value.names = Fact(fact.element, fact.shape), list(names)
        self._inference.inference.facts[value] = fact
        return value


def _mapped_outputs(node: Node) -> int:
    """How many outputs the port maps of a node's bodies speak of; 0 for a node without bodies."""
    last = [entry.external for body in node.bodies.values() for entry in body.port_maps if entry.kind == "output"]
    return max(0, max(last, default=-1) + 1 - len(node.ports))


def packed(array: np.ndarray, element: Element) -> Constant:
    """A constant of numbers in the carrier of their element type."""
    raw = pack(element, array)
    return Constant(element, array.shape, Bytes(raw), raw.nbytes)


def packed_size_of(element: Element, shape: Sequence[int]) -> int:
    """How many bytes a constant of this type and shape takes; raises OpError for strings."""
    return packed_size(element, math.prod(shape))


def _array(array: Any, element: Element | None) -> np.ndarray:
    if isinstance(array, np.ndarray | np.generic):
        values = np.asarray(array)
    else:
        values = np.asarray(array)
        if values.dtype == np.float64:
            values = values.astype(np.float32)
        if values.size == 0 and element is None:
            values = values.astype(np.int64)
    if values.dtype.kind in "US":
        values = values.astype(object)
    if values.dtype.kind in "iub" and element is None and not isinstance(array, np.ndarray | np.generic) and values.dtype != np.bool_:
        values = values.astype(np.int64)
    return values if element is None else values.astype(element.carrier)


def _attribute_texts(definition: OpDef, given: Mapping[str, Any]) -> dict[str, str]:
    known = {attribute.parameter: attribute for attribute in definition.attributes}
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise OpError(f"{definition.type} of {definition.version} has no attribute {', '.join(unknown)}")
    texts: dict[str, str] = {}
    for parameter, attribute in known.items():
        value = given.get(parameter, attribute.default)
        if value is REQUIRED:
            raise ModelError(f"{definition.type} of {definition.version} needs the attribute {attribute.name}")
        if value is not None:
            texts[attribute.name] = _text(value)
    return texts


def _text(value: Any) -> str:
    return value.name if isinstance(value, Element) else write_attribute(value)
