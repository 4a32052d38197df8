"""Checks of graphs: bodies, variables, what a model as a whole must have, and weights in few bits with their ranges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from irexec.analysis.shape_inference import UNKNOWN, Inference
from irexec.dtypes.elements import F16
from irexec.errors import ModelError
from irexec.ir import codes
from irexec.ir.constants import constant_value
from irexec.ir.dims import broadcastable_to, contradict, is_static, join_shapes, shape_text
from irexec.ir.facts import Fact
from irexec.ir.findings import Finding, in_model
from irexec.ir.graph import Body, Graph, ModelGraph, Node, PortMap, Value, graphs
from irexec.ir.order import ancestors, grouped, needed, topological

_PURPOSES = ("current_iteration", "execution_condition")


def body_findings(model: ModelGraph, inference: Inference) -> Iterator[Finding]:
    """Problems of the port maps and back edges of every body."""
    for node in model.walk():
        for name, body in node.bodies.items():
            yield from _port_maps(node, name, body)
            mapped = {entry.internal for entry in body.port_maps if entry.kind == "input"}
            for parameter in body.graph.parameters:
                if parameter.id not in mapped:
                    text = f"Parameter {parameter.id} {parameter.name!r} of {name} has no entry in the port map"
                    yield node.finding(codes.BODY_UNFED, text)
            yield from _back_edges(node, name, body)


def _port_maps(node: Node, name: str, body: Body) -> Iterator[Finding]:
    ids = {"input": {inner.id for inner in body.graph.parameters}, "output": {inner.id for inner in body.graph.results}}
    seen: set[int] = set()
    for entry in body.port_maps:
        texts = [*_internal(entry, ids, seen), *_external(node, entry), *_attributes(entry)]
        for text in texts:
            yield node.finding(codes.BODY_PORT_MAP, f"port map of {name}: {text}", line=entry.line)


def _internal(entry: PortMap, ids: dict[str, set[int]], seen: set[int]) -> Iterator[str]:
    if entry.internal not in ids.get(entry.kind, ()):
        what = "Parameter" if entry.kind == "input" else "Result"
        yield f"internal_layer_id {entry.internal} is not a {what} of the body"
    elif entry.kind == "input":
        if entry.internal in seen:
            yield f"Parameter {entry.internal} has two inputs"
        seen.add(entry.internal)


def _external(node: Node, entry: PortMap) -> Iterator[str]:
    index = node.input_index(entry.external) if entry.kind == "input" else node.output_index(entry.external)
    stays_inside = entry.external == -1 and entry.attributes.get("purpose") in _PURPOSES
    if index is None and not stays_inside:
        yield f"external_port_id {entry.external} is not an {entry.kind} port of the layer"


def _attributes(entry: PortMap) -> Iterator[str]:
    for key in ("axis", "start", "end", "stride", "part_size"):
        text = entry.attributes.get(key, "0")
        digits = text.strip().removeprefix("-")
        if not (digits.isascii() and digits.isdigit()):
            yield f"{key} {text!r} is not an integer"
    purpose = entry.attributes.get("purpose")
    if purpose and purpose not in _PURPOSES:
        yield f"purpose {purpose!r} is not one of {', '.join(_PURPOSES)}"
    if entry.attributes.get("stride", "1").strip() == "0":
        yield "stride is 0"


def _back_edges(node: Node, name: str, body: Body) -> Iterator[Finding]:
    parameters = {inner.id for inner in body.graph.parameters}
    results = {inner.id for inner in body.graph.results}
    targets: set[int] = set()
    for edge in body.back_edges:
        texts = []
        if edge.source not in results:
            texts.append(f"from-layer {edge.source} is not a Result of the body")
        if edge.target not in parameters:
            texts.append(f"to-layer {edge.target} is not a Parameter of the body")
        elif edge.target in targets:
            texts.append(f"Parameter {edge.target} has two back edges")
        targets.add(edge.target)
        for text in texts:
            yield node.finding(codes.BODY_BACK_EDGE, f"back edge of {name}: {text}", line=edge.line)


def graph_findings(model: ModelGraph, inference: Inference) -> Iterator[Finding]:
    """Problems of the structure of the model and of each of its bodies."""
    for graph in graphs(model):
        _, stuck = topological(graph)
        for cycle in cycles(stuck):
            path = " -> ".join(repr(node.name) for node in [*cycle[:8], cycle[0]])
            yield cycle[0].finding(codes.CYCLE, f"the graph has a cycle: {path}")
        reached = needed(graph) if graph.results or graph.sinks else set(graph.nodes)
        for node in graph.nodes:
            if node not in reached and node.type != "Parameter":
                yield node.finding(codes.UNREACHABLE, "no Result and no Assign depends on it")
    if not model.results and not model.sinks:
        line = min((node.line for node in model.nodes if node.line), default=None)
        yield in_model(codes.NO_RESULT, "the model has no Result", line=line)
    yield from _duplicate_names(model)


def cycles(stuck: list[Node]) -> Iterator[list[Node]]:
    """Disjoint cycles among nodes of which each is on a cycle or after one; each starts at its smallest id."""
    waiting = dict.fromkeys(stuck)
    while waiting:
        path: list[Node] = []
        position: dict[Node, int] = {}
        node: Node | None = next(iter(waiting))
        while node is not None and node not in position:
            position[node] = len(path)
            path.append(node)
            node = next((v.node for v in node.inputs if v is not None and v.node in waiting), None)
        done = path if node is None else path[position[node] :]
        if node is not None:
            first = min(done, key=lambda n: n.id)
            yield [first, *(n for n in reversed(done) if n is not first)]
        for one in done:
            waiting.pop(one, None)


def _duplicate_names(graph: Graph) -> Iterator[Finding]:
    """One finding at the first name that occurs twice: Model Optimizer of 2021 gave every fused layer the names of its
    parts."""
    owners: dict[str, Value] = {}
    found: list[tuple[str, Value]] = []
    for node in graph.nodes:
        for value in node.outputs:
            found += [(name, value) for name in value.names if owners.setdefault(name, value) is not value]
    if found:
        name, value = found[0]
        first = owners[name].node
        more = f"; {len(found) - 1} more names occur twice" if len(found) > 1 else ""
        text = f"tensor name {name!r} is also that of layer {first.id} {first.name!r}{more}"
        yield value.node.finding(codes.DUPLICATE_TENSOR_NAME, text, port=value.port, line=value.line)


_SEARCHING = ("opset3", "opset4", "opset5")
"""The versions of Assign-3."""


def variable_findings(model: ModelGraph, inference: Inference) -> Iterator[Finding]:
    """Variables without reader or writer, with several readers or writers, or with values of another type or shape."""
    readers, writers = _users(model, "ReadValue"), _users(model, "Assign")
    for name, nodes in readers.items():
        if name not in writers:
            yield nodes[0].finding(codes.VARIABLE_NOT_ASSIGNED, f"variable {name!r} is read and never assigned")
    for name, nodes in writers.items():
        if name not in readers:
            yield nodes[0].finding(codes.VARIABLE_NOT_READ, f"variable {name!r} is assigned and never read")
        for node in nodes if name in readers else ():
            yield from _misfits(node, readers[name], inference)
    for reader in (reader for several in readers.values() for reader in several if reader.version not in _SEARCHING):
        yield from _start_misfits(reader, inference)
    for nodes in (*readers.values(), *writers.values()):
        for node in nodes[1:]:
            name, first = node.attributes["variable_id"], f"layer {nodes[0].id} {nodes[0].name!r}"
            yield node.finding(codes.VARIABLE_DUPLICATE, f"variable {name!r} is also that of {first}")


def _misfits(writer: Node, readers: list[Node], inference: Inference) -> Iterator[Finding]:
    """An Assign whose value does not fit the variable.

    Assign-3 finds its variable only in a ReadValue-3 on which its input depends, and Assign-6 is not compared with a
    ReadValue-3. Source: openvino ``assign.cpp`` and ``assign_shape_inference.hpp``.
    """
    name, searches = writer.attributes["variable_id"], writer.version in _SEARCHING
    readers = [reader for reader in readers if (reader.version in _SEARCHING) is searches]
    if searches and ancestors([writer]).isdisjoint(readers):
        text = f"the input of Assign-3 does not depend on the ReadValue-3 of variable {name!r}"
        yield writer.finding(codes.VARIABLE_NOT_READ, text)
    for reader in readers:
        variable, value = _fact(reader.outputs, inference), _fact(writer.inputs, inference)
        if not _fits(value, variable, searches):
            text = f"{value} is assigned to variable {name!r}, which is {variable}"
            yield writer.finding(codes.VARIABLE_MISFIT, text)


def _fits(value: Fact, variable: Fact, exactly: bool) -> bool:
    """Whether a value may be assigned; ``exactly`` compares static shapes alone, as OpenVINO does for Assign-3."""
    if None not in (value.element, variable.element) and value.element is not variable.element:
        return False
    if exactly and not (is_static(value.shape) and is_static(variable.shape)):
        return True
    return not contradict(value.shape, variable.shape)


def _start_misfits(reader: Node, inference: Inference) -> Iterator[Finding]:
    """A ReadValue-6 whose variable_shape excludes a possible shape of init_value; OpenVINO refuses such a layer."""
    declared, start = _fact(reader.outputs, inference).shape, _fact(reader.inputs, inference).shape
    is_wider = shape_text(join_shapes(declared, start)) != shape_text(declared)
    if reader.inputs and reader not in inference.failures and is_wider:
        text = f"init_value may have the shape {shape_text(start)}, variable_shape is {shape_text(declared)}"
        yield reader.finding(codes.VARIABLE_MISFIT, text)


def _fact(values: Sequence[Value | None], inference: Inference) -> Fact:
    """The fact of the first value; an unknown one without it."""
    return UNKNOWN if not values or values[0] is None else inference.facts.get(values[0], UNKNOWN)


def _users(model: ModelGraph, type: str) -> dict[str, list[Node]]:
    users = (node for node in model.walk() if node.type == type and "variable_id" in node.attributes)
    return grouped((node.attributes["variable_id"], node) for node in users)


_LARGEST_F16 = np.float64(np.finfo(np.float16).max)
_CLIPPED_STEPS = 0.5
_BLOCK = 1 << 20
"""Elements that are computed at once."""


def stored_weight_findings(model: ModelGraph) -> Iterator[Finding]:
    """Findings of weights that are computed from integers, and of weights behind a FakeQuantize.

    Stored weights are a Constant, a Convert, perhaps a Subtract of a zero point, and a Multiply by a scale, as NNCF and
    OpenVINO write them.
    """
    for node in model.walk():
        if node.type == "Multiply":
            yield from _of_scale(node)
        elif node.type == "FakeQuantize":
            yield from _of_range(node)


def _of_scale(node: Node) -> Iterator[Finding]:
    """Findings of a Multiply by the scale of stored weights."""
    stored = _stored(node.inputs[0]) if len(node.inputs) > 1 else None
    scale = _array(node.inputs[1]) if stored is not None else None
    if stored is None or scale is None:
        return
    fact = node.outputs[0].fact if node.outputs else None
    beyond = dead = channels = count = 0
    for integers, zero, factor in _blocks(stored[0], stored[1], scale):
        with np.errstate(all="ignore"):
            weights = (integers - zero) * factor
        beyond += int(np.count_nonzero(np.abs(weights) > _LARGEST_F16))
        channels, count = channels + len(weights), count + weights.size
        dead += int(np.count_nonzero(~weights.reshape(len(weights), -1).any(axis=1)))
    if beyond and fact is not None and fact.element is F16:
        text = f"{beyond} of {count} weights are infinite: integers times scales are beyond f16"
        yield node.finding(codes.SCALE_OVERFLOW, text)
    if dead and stored[0].ndim > 1:
        yield node.finding(codes.DEAD_CHANNELS, f"{dead} of {channels} channels of weights are 0 throughout")


def _of_range(node: Node) -> Iterator[Finding]:
    """Findings of a FakeQuantize of constant weights."""
    levels = node.attributes.get("levels", "")
    arrays = [_array(value) for value in node.inputs[:3]]
    if len(arrays) < 3 or any(array is None for array in arrays) or not levels.isdigit() or int(levels) < 2:
        return
    clipped = count = 0
    for weights, low, high in _blocks(*arrays):
        margin = _CLIPPED_STEPS * np.abs(high - low) / (int(levels) - 1)
        outside = (weights < np.minimum(low, high) - margin) | (weights > np.maximum(low, high) + margin)
        clipped, count = clipped + int(np.count_nonzero(outside)), count + weights.size
    if clipped:
        text = f"{clipped} of {count} weights are outside of the range by more than half a step"
        yield node.finding(codes.CLIPPED_WEIGHTS, text)


def _blocks(weights: np.ndarray | None, *others: np.ndarray | None) -> Iterator[tuple[np.ndarray, ...]]:
    """Rows of weights as f64, and what is broadcast to them; none where the shapes do not go together, which is a
    finding of the shapes."""
    assert weights is not None
    arrays = [np.zeros(()) if array is None else array for array in others]
    if not weights.ndim or any(not broadcastable_to(array.shape, weights.shape) for array in arrays):
        return
    rows = max(1, _BLOCK * len(weights) // max(weights.size, 1))
    for first in range(0, len(weights), rows):
        part = slice(first, first + rows)
        with_rows = [array.ndim == weights.ndim and len(array) > 1 for array in arrays]
        cut = [array[part] if rowed else array for array, rowed in zip(arrays, with_rows, strict=True)]
        yield tuple(array.astype(np.float64) for array in (weights[part], *cut))


def _stored(value: Value | None) -> tuple[np.ndarray, np.ndarray | None] | None:
    """The integers of weights and their zero point, by the layers that compute the weights from them."""
    if value is None:
        return None
    node, zero = value.node, None
    if node.type == "Subtract":
        zero = _array(node.inputs[1]) if len(node.inputs) > 1 else None
        if zero is None or node.inputs[0] is None:
            return None
        node = node.inputs[0].node
    if node.type != "Convert" or not node.inputs or (source := node.inputs[0]) is None:
        return None
    constant = source.node.constant
    if constant is None or not constant.is_readable or constant.element.bits > 8:
        return None
    integers = _array(source)
    return None if integers is None else (integers, zero)


def _array(value: Value | None) -> np.ndarray | None:
    """The values of a constant, or of a Convert of one; None if they cannot be read."""
    if value is None:
        return None
    node = value.node
    if node.type == "Convert" and node.inputs and node.inputs[0] is not None:
        node = node.inputs[0].node
    if node.constant is None or not node.constant.is_readable or node.constant.element.bits == 0:
        return None
    try:
        return constant_value(node.constant)
    except ModelError:
        return None
