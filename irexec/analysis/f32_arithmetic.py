"""f16 and bf16 arithmetic in f32, as OpenVINO's CPU plugin computes it.

- Inputs, constants and states of f16 and bf16 keep their type; a Convert to f32 follows them, and one back precedes
  what is assigned to a state or is its initial value.
- Parameters of bodies, and the element types that attributes name, become f32: a Convert to f16 of an f32 tensor
  changes nothing.
- A MaxPool with windows in the padding alone, and a SegmentMax that fills in the minimum, keep their type and its
  minimum. (OpenVINO fills in the minimum of f32, which is -inf in f16.)
- A result that depends on constants alone is rounded to f16 where a layer of f16 reads it: OpenVINO folds it, in f32,
  before it changes types. Decompression of weights for MatMul and Gather is not folded, and neither is FakeQuantize.
- A Convert of constants alone to f16 rounds: OpenVINO folds it to a constant of f16.
- f64, the types of 8 bits and less, and integers stay as they are.

Source: ConvertPrecision in openvino's ``convert_precision.cpp``, with the CPU plugin's option that inputs, outputs and
states keep their types; measured with OpenVINO 2026.4.1. In bodies the plugin does the same, but states are f32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from irexec.analysis.attributes import typed_attributes
from irexec.analysis.constant_layers import constant_layers
from irexec.dtypes.elements import BF16, F16, F32, Element
from irexec.errors import UnsupportedError
from irexec.ir.facts import Fact
from irexec.ir.graph import Graph, Input, Node, Value
from irexec.ir.order import grouped, upstream
from irexec.schema.registry import resolve
from irexec.schema.windows import PoolingAttributes

HALVES = (F16, BF16)
_NAMES = tuple(element.name for element in HALVES)
_STATES = ("ReadValue", "Assign")
_ANY_TYPE = ("Convert", "ShapeOf", "Result")
"""Types of layers that may read f16 where all other layers read f32."""

_DECOMPRESSED = ("MatMul", "Gather")
_AFTER_SCALING = ("Reshape", "Transpose", "Squeeze", "Unsqueeze")


def computed_in_halves(graph: Graph) -> list[Node]:
    """The layers of a graph that declare a result of f16 or bf16 and compute it: neither constants and conversions of
    them, nor inputs."""
    constant = constant_layers(graph)
    return [
        node
        for node in graph.nodes
        if node not in constant and node.constant is None and node.type not in ("Parameter", *_ANY_TYPE, *_STATES)
        if any(value.fact is not None and value.fact.element in HALVES for value in node.outputs)
    ]


def compute_in_f32(graph: Graph, facts: Mapping[Value, Fact]) -> set[Node] | None:
    """Change a graph and its bodies so that nothing is computed in f16 or bf16; a Result of a computed value is f32.

    A graph stays as it is where an input has no element type: a run may give it f16.

    Args:
        facts: facts of the values of the unchanged graph.

    Returns:
        The Converts that were inserted; None if nothing has changed.
    """
    halves = {value: fact.element for value, fact in facts.items() if fact.element in HALVES}
    types = [
        fact.element for node in graph.parameters for value in node.outputs if (fact := facts.get(value)) is not None
    ]
    if not halves or None in types:
        return None
    rewriting = _Rewriting(halves)
    rewriting.graph(graph, is_body=False)
    return rewriting.inserted if rewriting.has_renamed or rewriting.inserted else None


@dataclass
class _Rewriting:
    """The rewriting of a graph and its bodies.

    Attributes:
        halves: the types of the values that are f16 or bf16 as written.
        stored: the values that stay so.
        rounded: results of constants alone, which are computed in f32 and rounded to these types.
        kept: the layers that take and give these types.
        has_renamed: whether an attribute was changed.
        inserted: the Converts.
    """

    halves: Mapping[Value, Element]
    stored: set[Value] = field(default_factory=set)
    rounded: set[Value] = field(default_factory=set)
    kept: set[Node] = field(default_factory=set)
    has_renamed: bool = False
    inserted: set[Node] = field(default_factory=set)

    def graph(self, graph: Graph, *, is_body: bool) -> None:
        """Rewrite one graph."""
        self.rounded |= _folded(graph, self.halves)
        # Converts of constants alone to f16 and bf16. OpenVINO folds them, except where a layer decompresses weights.
        # Integers of 8 bits and less are exact in both, and their Converts are left out.
        readers = (node for node in graph.nodes if node.type in _DECOMPRESSED)
        decompressing = {_decompression(value) for node in readers for value in node.inputs if value is not None}
        converts = {
            node
            for node in constant_layers(graph) - decompressing
            if node.type == "Convert" and node.outputs[0] in self.halves and node.inputs[0] not in self.halves
            if not _is_exact(node)
        }
        for node in graph.nodes:
            for body in node.bodies.values():
                self.graph(body.graph, is_body=True)
            if node.type in _STATES or _gives_lowest(node):
                self.kept.add(node)
            if node in self.kept or node in converts or self._is_stored(node, is_body):
                self.stored |= self.halves.keys() & node.outputs
            else:
                self._name_f32(node)
        self._connect(graph, is_body)

    def _is_stored(self, node: Node, is_body: bool) -> bool:
        if node.type == "ConvertPromoteTypes":
            # Two different types of 8 bits are promoted to f16.
            return self.halves.keys().isdisjoint(filter(None, node.inputs))
        return node.type == "Constant" or (node.type == "Parameter" and not is_body)

    def _name_f32(self, node: Node) -> None:
        """The attributes of a layer that name f16 or bf16 name f32."""
        try:
            definition = resolve(node.type, node.version)
        except UnsupportedError:
            return
        values = typed_attributes(node, definition).values
        for attribute in definition.attributes:
            named = values.get(attribute.parameter)
            if named in HALVES if isinstance(named, Element) else attribute.choices and named in _NAMES:
                node.attributes[attribute.name] = F32.name
                self.has_renamed = True

    def _connect(self, graph: Graph, is_body: bool) -> None:
        """Put a Convert between what is f16 and what is f32."""
        converts, constant = _Converts(graph), constant_layers(graph)
        for node in graph.nodes:
            takes_any = node.type in _ANY_TYPE and not (is_body and node.type == "Result")
            for port in node.ports:
                source = port.source
                if source is None or source not in self.halves or takes_any:
                    continue
                if (source in self.stored) is not (node in self.kept):
                    port.source = converts.get(source, self.halves[source] if node in self.kept else F32)
                elif source in self.rounded and node not in constant and node not in self.kept:
                    port.source = converts.get(converts.get(source, self.halves[source]), F32)
        self.inserted |= converts.insert()


def _folded(graph: Graph, halves: Mapping[Value, Element]) -> set[Value]:
    """Values of f16 and bf16 that OpenVINO folds before it changes types, and that a layer of f16 or bf16 reads."""
    constant = constant_layers(graph)
    folded: set[Value] = set()
    for node in graph.nodes:
        if node in constant or node.type in _ANY_TYPE:
            continue
        read = {value for value in node.inputs if value is not None and value in halves and value.node in constant}
        if node.type in _DECOMPRESSED:
            read = {value for value in read if _decompression(value) is None}
        folded |= {value for value in read if not _is_quantised(value, constant)}
    return folded


def _is_quantised(value: Value, constant: set[Node]) -> bool:
    """Whether a FakeQuantize is among the constant layers that a value is computed by."""
    layers = upstream([value.node], lambda node: node.inputs if node in constant else ())
    return any(node.type == "FakeQuantize" for node in layers)


def _decompression(value: Value) -> Node | None:
    """The Convert of a value that is Convert -> [Subtract] -> Multiply of a constant of 8 bits or less; None of
    others."""
    node: Node | None = value.node
    while node is not None and (node.type in _AFTER_SCALING or _widens(node)):
        node = _source(node, 0)
    if node is None or node.type != "Multiply":
        return None
    for index in (0, 1):
        converted = _source(node, index)
        if converted is not None and converted.type == "Subtract":
            converted = _source(converted, 0)
        stored = None if converted is None or converted.type != "Convert" else _source(converted, 0)
        if stored is not None and stored.constant is not None and stored.constant.element.bits <= 8:
            return converted
    return None


def _widens(node: Node) -> bool:
    """Whether a layer is a Convert of computed values to f32: scaled weights may have one."""
    source = _source(node, 0) if node.type == "Convert" else None
    return source is not None and source.constant is None and node.attributes.get("destination_type") == F32.name


def _is_exact(convert: Node) -> bool:
    constant = None if (source := _source(convert, 0)) is None else source.constant
    return constant is not None and constant.element.is_integer and constant.element.bits <= 8


def _source(node: Node, index: int) -> Node | None:
    value = node.inputs[index]
    return None if value is None else value.node


def _gives_lowest(node: Node) -> bool:
    """Whether a layer may give the lowest value of its element type for data that do not have it."""
    if node.type not in ("MaxPool", "SegmentMax"):
        return False
    try:
        given = typed_attributes(node, resolve(node.type, node.version)).values
    except UnsupportedError:
        return False
    if node.type == "SegmentMax":
        return given.get("fill_mode") == "lowest"
    pooling = given.get("attributes")
    return isinstance(pooling, PoolingAttributes) and pooling.may_have_windows_beside_data()


class _Converts:
    """The Converts of a graph that are to be inserted, one for each value and type."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._made: dict[tuple[Value, Element], Node] = {}
        self._first_id = 1 + max((node.id for node in graph.nodes), default=0)

    def get(self, source: Value, element: Element) -> Value:
        """The value in another element type."""
        node = self._made.get((source, element))
        if node is None:
            number, name = self._first_id + len(self._made), f"{source.label}/{element.name}"
            attributes = {"destination_type": element.name}
            node = Node(number, name, "Convert", "opset1", [Input(source)], attributes=attributes)
            node.outputs.append(Value(node, 0, Fact(element, source.shape)))
            self._made[source, element] = node
        return node.outputs[0]

    def insert(self) -> set[Node]:
        """Insert each after the layer whose value it converts, and return them."""
        after = grouped((source.node, node) for (source, _), node in self._made.items())
        waiting, ordered = self._graph.nodes[::-1], []
        while waiting:
            node = waiting.pop()
            ordered.append(node)
            waiting += reversed(after.get(node, ()))
        self._graph.nodes = ordered
        return set(self._made.values())
