"""Making a model node by node, with the facts of every value inferred at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from irexec.analysis.attributes import seed_attributes
from irexec.analysis.evaluate import as_tuple
from irexec.analysis.model import Model, declare, partial_shape
from irexec.analysis.shape_inference import ShapeInference
from irexec.dtypes.elements import Element, ElementLike, as_element, element_of, pack, packed_size
from irexec.errors import ModelError, OpError, check
from irexec.ir.constants import BytesInMemory, Constant, constant_value
from irexec.ir.facts import Fact
from irexec.ir.graph import Body, Graph, Input, ModelGraph, Node, Value
from irexec.ir.order import Names, needed
from irexec.ir.shape_text import ShapeLike, write_shape
from irexec.messages import counted
from irexec.schema.attributes import REQUIRED, UNKNOWN_ELEMENT, Attribute, write_attribute
from irexec.schema.opdef import OpDef
from irexec.schema.registry import newest, resolve

Operand = Value | np.ndarray | np.generic | int | float | bool | list | tuple


class Builder:
    """Collects nodes into a graph and infers the facts of each as it is added.

    Args:
        name: of the graph.
        inside: for the graph of a body, the builder of the graph around it. Bodies must not change once a node with
            them has been added: each is inferred once from the same facts, however many bodies are inside each
            other.

    Attributes:
        graph: the graph built so far.
    """

    def __init__(self, name: str = "", *, inside: Builder | None = None) -> None:
        self.graph = Graph(name)
        self._inference: ShapeInference = ShapeInference(tolerant=False) if inside is None else inside._inference
        self._inference.bodies_are_final = inside is not None
        self._names = Names()
        self._made: set[Node] = set()
        self._result_names: list[tuple[Value, str]] = []

    def __repr__(self) -> str:
        return f"<Builder {self.graph.name!r}: {counted(len(self.graph.nodes), 'layer')}>"

    def parameter(
        self,
        element: ElementLike,
        shape: ShapeLike,
        name: str,
        names: Sequence[str] = (),
        *,
        value: np.ndarray | None = None,
    ) -> Value:
        """An input of the model.

        Args:
            element: the element type: irexec.f32, "f32", np.float32.
            shape: as Model.reshape takes it. A Dim's symbol is kept in its fact but cannot be written.
            name: the layer's name.
            names: its tensor names; the layer's name unless given.
            value: the known elements of the Parameter of a body.
        """
        kind, sizes = as_element(element), partial_shape(name, shape)
        node = self._node("Parameter", "opset1", name, {"shape": write_shape(sizes), "element_type": kind.name})
        return self._output(node, 0, Fact(kind, sizes, value), names)

    def constant(
        self, array: Any, element: ElementLike | None = None, name: str | None = None, names: Sequence[str] = ()
    ) -> Value:
        """A constant with a copy of the values in ``array``: Python ints are i64 and floats f32 unless ``element`` says
        otherwise."""
        values = _array(array, None if element is None else as_element(element))
        kind = element_of(values.dtype) if element is None else as_element(element)
        return self.raw_constant(packed(_cast(values, kind), kind), name, names)

    def raw_constant(self, constant: Constant, name: str | None = None, names: Sequence[str] = ()) -> Value:
        """A constant of bytes that are packed already, perhaps in a file."""
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
        """Add an operation: its Value, or a tuple of Values where its shape rule gives a tuple.

        Args:
            type: the operation type.
            inputs: values; numbers and arrays become constants; trailing None are left out.
            version: the opset (or namespace) of the operation; the newest unless given.
            name: the layer's name; made unique if it is taken.
            names: tensor names of the first output.
            bodies: by the IR's element name; their port maps say how many outputs there are, and what
                their layers declare becomes what follows from the inputs.
            attributes: by the kernel's parameter name; defaults are written too. Element types as for ``parameter``.

        Raises:
            NodeError: the inputs or attributes are wrong; the graph is then as it was before.
            OpError, ModelError: an input is a value of another builder or no tensor; the operation or attribute
                does not exist.
        """
        definition = (
            newest(type)
            if version is None
            else resolve(type, version if isinstance(version, str) else f"opset{version}")
        )
        given = _attribute_values(definition, definition.ungrouped(attributes))
        trailing = list(inputs)
        while trailing and trailing[-1] is None:
            trailing.pop()
        with self._undone_by_errors():
            values = [self._operand(type, operand) for operand in trailing]
            texts = {name: write_attribute(value) for name, value in given.items()}
            node = self._node(type, definition.version, name or type, texts)
            seed_attributes(node, definition, given)
            node.bodies = dict(bodies or {})
            node.ports = [Input(value, value.fact) for value in values]
            return self._infer(node, names)

    def clone_node(self, node: Node, *inputs: Value) -> tuple[Value, ...]:
        """Add a copy of another graph's node on new inputs, with its name, attributes, bodies and tensor names; its
        outputs.

        Raises:
            NodeError: the inputs do not fit the operation.
        """
        with self._undone_by_errors():
            clone = self._node(node.type, node.version, node.name, dict(node.attributes))
            clone.typed = node.typed
            clone.constant, clone.bodies = node.constant, {name: body.copied() for name, body in node.bodies.items()}
            clone.ports = [Input(self._own(value), value.fact) for value in inputs]
            self._infer(clone, ())
        for value, original in zip(clone.outputs, node.outputs, strict=False):
            value.names = list(original.names)
        return tuple(clone.outputs)

    def result(self, value: Value, name: str | None = None) -> Node:
        """An output of the model; ``name`` is also its tensor name if it has none. OpError if the value is of another
        builder."""
        self._own(value)
        node = self._node("Result", "opset1", name or f"{value.node.name}/sink_port_{value.index}", {})
        if name is not None:
            self._result_names.append((value, node.name))
        node.ports.append(Input(value, value.fact))
        return node

    def rename(self, node: Node, name: str) -> None:
        """Call a layer ``name``, made unique if it is taken."""
        self._names.give_back(node.name)
        node.name = self._names.free(name)

    def fact(self, value: Value) -> Fact:
        """The fact of a value, its contents included."""
        return self._inference.inference.facts[value]

    def constant_array(self, value: Value) -> np.ndarray | None:
        """The contents of a constant of any size; None for a value that is not a constant."""
        return None if value.node.constant is None else constant_value(value.node.constant)

    def drop_unused(self) -> None:
        """Leave out the layers, Parameters apart, on which no Result and no Assign depends; ids are given anew."""
        kept = needed(self.graph)
        self.graph.nodes = [node for node in self.graph.nodes if node in kept or node.type == "Parameter"]
        self._made.intersection_update(self.graph.nodes)
        for number, node in enumerate(self.graph.nodes):
            node.id = number

    def model(self) -> Model:
        """The model built so far. Inputs and outputs without tensor names get those of their layers."""
        self._name_inputs_and_outputs()
        return Model.of(ModelGraph(self.graph.name, self.graph.nodes))

    def _name_inputs_and_outputs(self) -> None:
        """OpenVINO finds inputs and outputs by tensor names, which must be unique in a model."""
        wanted = [(node.outputs[0], node.name) for node in self.graph.parameters]
        wanted += self._result_names
        defaults = len(wanted)
        wanted += [(value, value.label) for node in self.graph.results for value in node.inputs if value is not None]
        unnamed = {value for value, _ in wanted if not value.names}
        taken = {name for node in self.graph.nodes for value in node.outputs for name in value.names}
        # The name that a user gave comes before the layer's.
        given = {value for value, _ in self._result_names}
        for i, (value, name) in enumerate(wanted):
            is_default = i >= defaults
            if value in unnamed and name not in taken and not (is_default and (value in given or value.names)):
                value.names.append(name)
                taken.add(name)

    def _operand(self, type: str, operand: Operand | None) -> Value:
        if operand is None:
            raise OpError(f"{type} lacks an input before its last")
        return self._own(operand) if isinstance(operand, Value) else self.constant(operand)

    def _own(self, value: Value) -> Value:
        """The value itself, which must be of this graph: a body has values of the graph around it through its
        Parameters alone."""
        if value.node not in self._made:
            raise OpError(f"{value!r} is a value of another builder than {self!r}")
        return value

    @contextmanager
    def _undone_by_errors(self) -> Iterator[None]:
        """The graph is as it was before if the context ends with an error."""
        before = len(self.graph.nodes)
        try:
            yield
        except BaseException:
            for node in self.graph.nodes[before:]:
                self._names.give_back(node.name)
            del self.graph.nodes[before:]
            raise

    def _node(self, type: str, version: str, name: str, attributes: dict[str, str]) -> Node:
        node = Node(len(self.graph.nodes), self._names.free(name), type, version, attributes=attributes)
        self.graph.nodes.append(node)
        self._made.add(node)
        return node

    def _infer(self, node: Node, names: Sequence[str]) -> Any:
        # The rules of control flow ask the node which of its outputs a port map means.
        last = [entry.external for body in node.bodies.values() for entry in body.port_maps if entry.kind == "output"]
        node.outputs = [Value(node, i) for i in range(max(last, default=-1) + 1 - len(node.ports))]
        facts = self._inference.infer_new_node(node)
        for body in node.bodies.values():
            # The facts of the body are written on its ports and Parameters.
            declare(body.graph, self._inference.inference)
            for parameter in body.graph.parameters:
                parameter.attributes["shape"] = write_shape(self.fact(parameter.outputs[0]).shape)
        values = tuple(self._output(node, i, fact, names if i == 0 else ()) for i, fact in enumerate(as_tuple(facts)))
        return values if isinstance(facts, tuple) else values[0]

    def _output(self, node: Node, index: int, fact: Fact, names: Sequence[str]) -> Value:
        if index == len(node.outputs):
            node.outputs.append(Value(node, index))
        value = node.outputs[index]
        value.fact, value.names = Fact(fact.element, fact.shape), list(names)
        self._inference.inference.facts[value] = fact
        return value


class Adding:
    """Adds layers of opset1 to a graph without inferring or checking them: a search makes hundreds of graphs.

    Args:
        nodes: the layers of the graph, to which others are appended.
    """

    def __init__(self, nodes: list[Node]) -> None:
        self._nodes = nodes
        self._next = max((node.id for node in nodes), default=0) + 1

    def layer(self, type: str, attributes: dict[str, str], inputs: Sequence[Value], fact: Fact | None) -> Value:
        """The output of a new layer."""
        ports = [Input(value, value.fact) for value in inputs]
        node = Node(self._next, f"added {self._next}", type, "opset1", ports, attributes=attributes)
        node.outputs.append(Value(node, 0, fact))
        self._nodes.append(node)
        self._next += 1
        return node.outputs[0]

    def constant(self, array: np.ndarray, element: Element | None = None) -> Value:
        """The output of a new Constant, of the type of the array unless ``element`` says otherwise."""
        element = element or element_of(array.dtype)
        attributes = {"element_type": element.name, "shape": write_attribute(array.shape)}
        made = self.layer("Constant", attributes, [], Fact(element, array.shape))
        made.node.constant = packed(np.asarray(array, element.carrier, order="C"), element)
        return made


def packed(array: np.ndarray, element: Element) -> Constant:
    """A constant of values in the carrier of their element type; it may share the array's memory, which must not change
    from then on."""
    raw = pack(element, array).view()
    raw.flags.writeable = False
    return Constant(element, array.shape, BytesInMemory(raw), raw.nbytes)


def packed_size_of(element: Element, shape: Sequence[int]) -> int:
    """Number of bytes of a constant of this type and shape; raises OpError for strings."""
    return packed_size(element, math.prod(shape))


def _array(array: Any, element: Element | None) -> np.ndarray:
    if isinstance(array, np.ndarray | np.generic):
        values = np.asarray(array)
    else:
        try:
            values = np.asarray(array)
        except ValueError as error:
            raise OpError(f"a constant is not an array: {error}") from None
        if values.dtype == np.float64:
            values = values.astype(np.float32)
        if values.size == 0 and element is None:
            values = values.astype(np.int64)
    if values.dtype.kind in "US":
        values = values.astype(object)
    if values.dtype == object:
        wrong = next(
            (each for each in values.ravel() if not isinstance(each, str | bytes | int | float | np.generic)), None
        )
        check(wrong is None, f"a constant has {wrong!r:.100}, expected numbers or texts")
    if (
        values.dtype.kind in "iub"
        and element is None
        and not isinstance(array, np.ndarray | np.generic)
        and values.dtype != np.bool_
    ):
        values = values.astype(np.int64)
    return values if element is None else _cast(values, element)


def _cast(values: np.ndarray, element: Element) -> np.ndarray:
    """The values in the carrier of the element type; raises OpError for floats that no integer stands for."""
    if values.dtype.kind == "f" and np.dtype(element.carrier).kind in "iu":
        # Compared as numbers: WebAssembly has no flags that would tell of an invalid cast.
        limits, whole = np.iinfo(element.carrier), np.trunc(values.astype(np.float64))
        if not ((whole >= limits.min) & (whole < limits.max + 1)).all():
            raise OpError(f"NaN, infinity or a value out of range cannot be a constant of type {element}")
    with np.errstate(over="ignore"):
        return values.astype(element.carrier)


def _attribute_values(definition: OpDef, given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of attributes by the name that IR writes, with defaults."""
    known = {attribute.parameter: attribute for attribute in definition.attributes}
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise OpError(f"{definition.type} of {definition.version} has no attribute {', '.join(unknown)}")
    values: dict[str, Any] = {}
    for parameter, attribute in known.items():
        value = given.get(parameter, attribute.default)
        if value is REQUIRED:
            raise ModelError(f"{definition.type} of {definition.version} needs the attribute {attribute.name}")
        if value is not None:
            values[attribute.name] = _typed(attribute, value)
    return values


def attribute_text(attribute: Attribute, value: Any) -> str:
    """The text of an attribute; an element type may be given as any of its names."""
    return write_attribute(_typed(attribute, value))


def _typed(attribute: Attribute, value: Any) -> Any:
    """The value of an attribute, with an Element in place of any of its names."""
    if isinstance(value, Element | np.dtype | type) or (attribute.is_element and value not in UNKNOWN_ELEMENT):
        return as_element(value)
    return value
