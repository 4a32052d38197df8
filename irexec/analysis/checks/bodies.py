"""Port maps and back edges of bodies."""

from __future__ import annotations

from collections.abc import Iterator

from irexec.analysis.shape_inference import Inference
from irexec.ir import codes
from irexec.ir.findings import Finding
from irexec.ir.graph import Body, ModelGraph, Node, PortMap

_PURPOSES = ("current_iteration", "execution_condition")


def body_findings(model: ModelGraph, inference: Inference) -> Iterator[Finding]:
    """Problems of the port maps and back edges of every body."""
    for node in model.walk():
        for name, body in node.bodies.items():
            yield from _port_maps(node, name, body)
            yield from _without_value(node, name, body)
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
        text = entry.attributes.get(key)
        if text is not None and not _is_integer(text):
            yield f"{key} {text!r} is not an integer"
    purpose = entry.attributes.get("purpose")
    if purpose and purpose not in _PURPOSES:
        yield f"purpose {purpose!r} is not one of {', '.join(_PURPOSES)}"
    if entry.attributes.get("stride", "1").strip() == "0":
        yield "stride is 0"


def _is_integer(text: str) -> bool:
    stripped = text.strip().removeprefix("-")
    return stripped.isascii() and stripped.isdigit()


def _without_value(node: Node, name: str, body: Body) -> Iterator[Finding]:
    mapped = {entry.internal for entry in body.port_maps if entry.kind == "input"}
    for parameter in body.graph.parameters:
        if parameter.id not in mapped:
            text = f"Parameter {parameter.id} {parameter.name!r} of {name} has no entry in the port map"
            yield node.finding(codes.BODY_UNFED, text)


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
