"""IR version 10 as OpenVINO reads it: inputs and outputs with the types and names that the API had in 2020 and 2021.

- A Parameter of f16 takes f32; a Convert follows it.
- A Result of i64, u64, i32 or u32 gives i32, every other one f32; a Convert precedes it.
- The name of a Parameter's layer, and that of the layer that a Result takes its input from, is a tensor name too; the
  latter with ``.N`` where the layer has several outputs.

The model itself stays as it was read. Source: ``update_v10_model`` in openvino's ``model_reader.cpp``; OpenVINO
2026.4.1 does so.
"""

from __future__ import annotations

from irexec.analysis.shape_inference import infer_shapes
from irexec.dtypes.elements import F16, F32, I32, I64, U32, U64, Element
from irexec.ir.dims import PartialShape
from irexec.ir.facts import Fact
from irexec.ir.graph import Input, ModelGraph, Node, Value

VERSION = 10


def input_element(element: Element | None) -> Element | None:
    """The element type of the input for a Parameter of this type."""
    return F32 if element is F16 else element


def output_element(element: Element | None) -> Element | None:
    """The type in which a Result of this type is given out."""
    if element is None or element is F32:
        return element
    return I32 if element in (I64, U64, I32, U32) else F32


def output_name(value: Value) -> str:
    """The name of an output that comes from this value."""
    return value.node.name if len(value.node.outputs) == 1 else f"{value.node.name}.{value.index}"


def adapt(model: ModelGraph) -> None:
    """Turn a model of version 10 into one of version 11 that has the same inputs and outputs in OpenVINO.

    A Result without an inferred type has the declared type of its port.
    """
    for node in model.parameters:
        if node.outputs:
            _adapt_input(model, node)
    facts = infer_shapes(model, tolerant=True).facts
    named: set[Value] = set()
    for node in model.results:
        source = node.inputs[0] if node.inputs else None
        if source is not None:
            _adapt_output(model, node, source, facts[source], is_named=source in named)
            named.add(source)
    model.version = 11


def _adapt_input(model: ModelGraph, node: Node) -> None:
    value = node.outputs[0]
    if node.name not in value.names:
        value.names.append(node.name)
    if node.attributes.get("element_type", "").lower() not in (F16.name, F16.precision.lower()):
        return
    readers = [port for other in model.nodes for port in other.ports if port.source is value]
    shape = None if value.fact is None else value.fact.shape
    converted = _convert(model, model.nodes.index(node) + 1, value, f"{node.name}/f16", F16, shape)
    node.attributes["element_type"], value.fact = F32.name, Fact(F32, shape)
    for port in readers:
        port.source = converted


def _adapt_output(model: ModelGraph, result: Node, source: Value, fact: Fact, *, is_named: bool) -> None:
    """Put a Convert before a Result if it must; the first one of a value takes over its tensor names."""
    element, name = output_element(fact.element), output_name(source)
    names = [] if is_named else [*(n for n in source.names if n != name), name]
    if element is None or element is fact.element:
        source.names = source.names if is_named else names
        return
    value = _convert(model, model.nodes.index(result), source, result.name, element, fact.shape)
    value.names = names
    result.ports[0].source = value
    # A Parameter keeps its names: they are those of an input.
    if source.node.type != "Parameter":
        source.names = []


def _convert(
    model: ModelGraph, position: int, source: Value, name: str, element: Element, shape: PartialShape
) -> Value:
    """A new Convert in the model."""
    number = 1 + max(node.id for node in model.nodes)
    node = Node(number, name, "Convert", "opset1", [Input(source)], attributes={"destination_type": element.name})
    node.outputs.append(Value(node, 0, Fact(element, shape)))
    model.nodes.insert(position, node)
    return node.outputs[0]
