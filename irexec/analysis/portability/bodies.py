"""Differences of layers with bodies and of variables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from irexec.analysis.portability.difference import difference, layer_xml
from irexec.ir.dims import is_static
from irexec.ir.order import in_front

if TYPE_CHECKING:
    from irexec.analysis.portability.layer import ExaminedLayer
    from irexec.ir.graph import Body, Node, Value


@difference(
    "IR941", "slices that are not read", ("TensorIterator",), "CPU plugin", "values",
    does="the CPU plugin runs the body once where none of its results is computed from a sliced input, whatever the "
    "number of slices, and gives outputs of other shapes than it infers itself",
    example='<port_map>\n  <input axis="0" external_port_id="0" internal_layer_id="0" part_size="1"/>\n</port_map>',
    repair="Let a result of the body be computed from the sliced input.",
)  # fmt: skip
def _unread_slices(layer: ExaminedLayer) -> bool:
    body = layer.node.bodies.get("body")
    if body is None:
        return False
    sliced = [edge for edge in body.port_maps if "axis" in edge.attributes]
    internal = {edge.internal for edge in sliced if edge.kind == "input"}
    return bool(internal) and internal.isdisjoint(_read(layer, body)) and any(edge.kind == "output" for edge in sliced)


@difference(
    "IR944", "initial value that the body does not read", ("Loop",), "CPU plugin", "undefined values",
    does="where the body does not read an input that a back edge updates, the CPU plugin drops its initial value: of "
    "no iterations the result is what its memory holds",
    example='<layer type="Loop" version="opset5">\n  <back_edges>\n    <edge from-layer="3" to-layer="0"/>\n'
    "  </back_edges>\n</layer>",
    repair="Let the body read the input, or run at least one iteration.",
)  # fmt: skip
def _unread_initial_value(layer: ExaminedLayer) -> bool:
    body = layer.node.bodies.get("body")
    if body is None or _runs(layer):
        return False
    read = _read(layer, body)
    last = {edge.internal for edge in body.port_maps if edge.kind == "output" and "axis" not in edge.attributes}
    return any(edge.source in last and edge.target not in read for edge in body.back_edges)


def _runs(layer: ExaminedLayer) -> bool:
    """Whether a Loop is known to have an iteration; a negative number of iterations has no limit."""
    minimum, maximum = layer.bounds(0)
    condition = layer.value(1)
    return (minimum > 0 or maximum < 0) and condition is not None and bool(condition.all())


def _read(layer: ExaminedLayer, body: Body) -> set[int]:
    """Ids of the layers that the Results of a body are computed from. A static shape is computed from nothing."""
    from irexec.ir.order import upstream

    def followed(node: Node) -> list[Value]:
        sources = [value for value in node.inputs if value is not None]
        return [value for value in sources if node.type != "ShapeOf" or not is_static(layer.facts[value].shape)]

    return {node.id for node in upstream(body.graph.results, followed)}


_VIEWS = {"Reshape", "Squeeze", "Unsqueeze"}
_IN_PLACE = {"Softmax", "MVN", "ScatterUpdate", "ScatterElementsUpdate", "ScatterNDUpdate"}
_OF_VIEWS = _IN_PLACE | {
    "Abs", "Add", "Cos", "Cosh", "Divide", "Elu", "Erf", "Exp", "Gelu", "HSigmoid", "HSwish", "Log", "Maximum",
    "Minimum", "Mish", "Multiply", "Negative", "PRelu", "Power", "Sigmoid", "Sin", "Sinh", "SoftPlus", "Sqrt",
    "Subtract", "Swish", "Tan", "Tanh",
}  # fmt: skip
"""Layers that write their result over their data, of which a view may be an input of the body."""


@difference(
    "IR995", "input of all iterations overwritten", ("Loop",), "CPU plugin", "values",
    does="where the only layer that reads an input which all iterations share is computed in place (Softmax, MVN, "
    "ScatterUpdate, or an element-wise layer behind a Reshape), the CPU plugin overwrites the input, and the next "
    "iteration reads the result",
    example=layer_xml("Parameter-1", name="shared") + "\n"
    + layer_xml("SoftMax-8", name="weights") + "\n"
    + layer_xml("Loop-5"),
    repair="Compute the layer before the Loop, or let a second layer of the body read the input.",
)  # fmt: skip
def _overwritten(layer: ExaminedLayer) -> bool:
    body = layer.node.bodies.get("body")
    if body is None or layer.bounds(0)[1] == 1:
        return False
    updated = {edge.target for edge in body.back_edges}
    shared = {
        edge.internal
        for edge in body.port_maps
        if edge.kind == "input" and edge.external >= 0 and "axis" not in edge.attributes
    } - updated
    return any(node.id in shared and _is_overwritten(layer, node) for node in body.graph.parameters)


def _is_overwritten(layer: ExaminedLayer, node: Node) -> bool:
    """Whether the one layer that reads a Parameter of a body, directly or through views, writes over it."""
    types = _IN_PLACE
    while len(readers := layer.readers.get(node.outputs[0], ())) == 1:
        reader = readers[0]
        if reader.type not in _VIEWS:
            return reader.type in types
        node, types = reader, _OF_VIEWS
    return False


@difference(
    "IR974", "loop that never runs", ("Loop",), "shape inference", "shape",
    does="where the execution condition is constant and false, every output gets the size 0 along its first axis, and "
    "in the specification the last value of no iterations is the initial one",
    example=layer_xml("Const-1", 'element_type="boolean" shape=""', name="never") + "\n" + layer_xml("Loop-5"),
    repair="Replace the layer by its initial values.",
)  # fmt: skip
def _never_runs(layer: ExaminedLayer) -> bool:
    condition, body = layer.value(1), layer.node.bodies.get("body")
    if condition is None or condition.any() or body is None:
        return False
    return any(
        edge.kind == "output" and edge.external >= 0 and "axis" not in edge.attributes for edge in body.port_maps
    )


_CONDITIONS = {"", "boolean", "u8", "u4"}
_TRIP_COUNTS = {"", "i16", "i32", "i64", "u16", "u32", "u64"}


difference(
    "IR981", "element types of a loop refused", ("Loop",), "CPU plugin", "fails",
    does="the CPU plugin compiles a Loop with conditions of boolean, u8 and u4 and a trip count of 16 bits or more; "
    "the specification has a boolean, and i32 or i64",
    example=layer_xml("Const-1", 'element_type="i32" shape=""', name="again") + "\n" + layer_xml("Loop-5"),
    repair="Convert the conditions to boolean, and the trip count to i64.",
)(lambda layer: layer.element(0) not in _TRIP_COUNTS or not _CONDITIONS.issuperset(_conditions(layer)))  # fmt: skip


def _conditions(layer: ExaminedLayer) -> Iterator[str]:
    """The element types of the execution condition and of the condition that the body computes."""
    yield layer.element(1)
    for body in layer.node.bodies.values():
        again = {edge.internal for edge in body.port_maps if edge.attributes.get("purpose") == "execution_condition"}
        for result in body.graph.results:
            source = result.inputs[0] if result.id in again and result.inputs else None
            fact = None if source is None else layer.facts.get(source)
            yield "" if fact is None or fact.element is None else fact.element.name


@difference(
    "IR992", "state of open shape", ("Assign",), "CPU plugin", "fails", since="2023.3",
    does="the CPU plugin does not run an Assign of a tensor of static shape to a variable whose shape is open",
    example=layer_xml("ReadValue-6", 'variable_id="v" variable_type="f32" variable_shape="?,4"', name="old") + "\n"
    + layer_xml("Assign-6", 'variable_id="v"', "[1,4]", name="new"),
    repair="Write the shape of the tensor as variable_shape of ReadValue.",
)  # fmt: skip
def _open_variable(layer: ExaminedLayer) -> bool:
    name = layer.says("variable_id")
    reads = (value.node for value in layer.facts if value.node.type == "ReadValue")
    shapes = [node.attributes.get("variable_shape", "") for node in reads if node.attributes.get("variable_id") == name]
    return layer.shape() is not None and any("?" in shape or ".." in shape for shape in shapes)


@difference(
    "IR1002", "causal attention to a cache", ("ScaledDotProductAttention",), "CPU plugin", "values", since="2023.3",
    does="with causal, the CPU plugin lets the last query see all keys of a variable, where the specification lets "
    "the first query see the first key alone; both are the same while the variable is empty",
    example=layer_xml("ReadValue-6", name="past") + "\n"
    + layer_xml("Concat-1", name="keys") + "\n"
    + layer_xml("Assign-6", name="kept") + "\n"
    + layer_xml("ScaledDotProductAttention-13", 'causal="true"'),
    repair="Write causal=false and an attention_mask.",
)  # fmt: skip
def _causal_cache(layer: ExaminedLayer) -> bool:
    """2023.3 to 2026.4 were asked, with the keys of a Gather of the variable and of new ones, as all exporters write
    them."""
    keys = in_front(layer.source(1), ("Transpose", "Reshape", "Unsqueeze", "Broadcast", "Squeeze"))
    if not layer["causal"] or keys is None or keys.node.type != "Concat" or layer.source(1) is layer.source(2):
        return False
    past = in_front(keys.node.inputs[0] if keys.node.inputs else None, ("Gather",))
    is_kept = any(node.type == "Assign" for node in layer.readers[keys])
    return is_kept and past is not None and past.node.type == "ReadValue"


@difference(
    "IR1003", "computed initial state", ("ReadValue",), "CPU plugin", "fails", since="2025.0",
    does="the CPU plugin does not compile a Concat of a variable of open shape whose initial value a layer computes "
    "for it alone",
    example=layer_xml("Broadcast-3", name="zeros") + "\n"
    + layer_xml("ReadValue-6", 'variable_id="v" variable_type="f32" variable_shape="?,?"', name="past") + "\n"
    + layer_xml("Concat-1", name="joined"),
    repair="Read the variable by a Gather of all indices, as for beam search, or make the initial value a Constant.",
)  # fmt: skip
def _joined_with_a_computed_state(layer: ExaminedLayer) -> bool:
    """2024.6 compiles it, 2025.0 to 2026.4 do not: "Invalid graph status". Equal initial values are computed once, for
    two variables."""
    initial = layer.source(0)
    if initial is None or initial.node.type in ("Parameter", "Convert") or layer.result() is not None:
        return False
    beside = (node for source in initial.node.inputs if source is not None for node in layer.readers[source])
    has_twin = any(node is not initial.node and node.type == initial.node.type for node in beside)
    is_moved = not layer.is_constant(0) and len(layer.readers[initial]) == 1 and not has_twin
    readers = layer.readers[layer.node.outputs[0]] if layer.is_used(0) else ()
    return is_moved and any(node.type == "Concat" for node in readers)
