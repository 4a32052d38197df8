"""Port maps and back edges of bodies, and the pairs that variables come in."""

from __future__ import annotations

from collections.abc import Iterator

from irexec.analysis.findings import (
    BODY_BACK_EDGE,
    BODY_PORT_MAP,
    BODY_UNFED,
    VARIABLE_DUPLICATE,
    VARIABLE_UNPAIRED,
    Finding,
    at,
)
from irexec.ir.graph import Body, Model, Node, PortMap

_PURPOSES = ("current_iteration", "execution_condition")


def body_findings(model: Model) -> Iterator[Finding]:
    """What the port maps and back edges of every body get wrong."""
    for node in model.walk():
        for name, body in node.bodies.items():
            yield from _port_maps(node, name, body)
            yield from _unfed(node, name, body)
            yield from _back_edges(node, name, body)


def _port_maps(node: Node, name: str, body: Body) -> Iterator[Finding]:
    parameters = {inner.id for inner in body.graph.parameters}
    results = {inner.id for inner in body.graph.results}
    seen: set[tuple[str, int]] = set()
    for entry in body.port_maps:
        what = "Parameter" if entry.kind == "input" else "Result"
        if entry.internal not in (parameters if entry.kind == "input" else results):
            text = f"port map of {name}: internal_layer_id {entry.internal} is no {what} of the body"
            yield at(node, BODY_PORT_MAP, text, line=entry.line)
        elif entry.kind == "input" and (entry.kind, entry.internal) in seen:
            yield at(node, BODY_PORT_MAP, f"port map of {name}: Parameter {entry.internal} is fed twice", line=entry.line)
        seen.add((entry.kind, entry.internal))
        yield from _external(node, name, entry)
        yield from _numbers(node, name, entry)


def _external(node: Node, name: str, entry: PortMap) -> Iterator[Finding]:
    index = node.input_index(entry.external) if entry.kind == "input" else node.output_index(entry.external)
    inner = entry.external == -1 and entry.attributes.get("purpose") in _PURPOSES
    if index is None and not inner:
        side = "input" if entry.kind == "input" else "output"
        text = f"port map of {name}: external_port_id {entry.external} is no {side} port of the layer"
        yield at(node, BODY_PORT_MAP, text, port=entry.external, line=entry.line)


def _numbers(node: Node, name: str, entry: PortMap) -> Iterator[Finding]:
    for key in ("axis", "start", "end", "stride", "part_size"):
        text = entry.attributes.get(key)
        if text is not None and not _is_integer(text):
            yield at(node, BODY_PORT_MAP, f"port map of {name}: {key} {text!r} is not an integer", line=entry.line)
    purpose = entry.attributes.get("purpose")
    if purpose and purpose not in _PURPOSES:
        yield at(node, BODY_PORT_MAP, f"port map of {name}: purpose {purpose!r} is none of {', '.join(_PURPOSES)}", line=entry.line)
    if entry.attributes.get("stride", "1").strip() == "0":
        yield at(node, BODY_PORT_MAP, f"port map of {name}: stride is 0", line=entry.line)


def _is_integer(text: str) -> bool:
    stripped = text.strip().removeprefix("-")
    return stripped.isascii() and stripped.isdigit()


def _unfed(node: Node, name: str, body: Body) -> Iterator[Finding]:
    fed = {entry.internal for entry in body.port_maps if entry.kind == "input"}
    for parameter in body.graph.parameters:
        if parameter.id not in fed:
            text = f"Parameter {parameter.id} {parameter.name!r} of {name} is fed by no port map"
            yield at(node, BODY_UNFED, text)


def _back_edges(node: Node, name: str, body: Body) -> Iterator[Finding]:
    parameters = {inner.id for inner in body.graph.parameters}
    results = {inner.id for inner in body.graph.results}
    targets: set[int] = set()
    for edge in body.back_edges:
        if edge.source not in results:
            yield at(node, BODY_BACK_EDGE, f"back edge of {name}: from-layer {edge.source} is no Result of the body", line=edge.line)
        if edge.target not in parameters:
            yield at(node, BODY_BACK_EDGE, f"back edge of {name}: to-layer {edge.target} is no Parameter of the body", line=edge.line)
        elif edge.target in targets:
            yield at(node, BODY_BACK_EDGE, f"back edge of {name}: Parameter {edge.target} is fed back twice", line=edge.line)
        targets.add(edge.target)


def state_findings(model: Model) -> Iterator[Finding]:
    """Variables without a pair, or with two readers or writers."""
    reads, writes = _users(model, "ReadValue"), _users(model, "Assign")
    for name, nodes in reads.items():
        if name not in writes:
            yield at(nodes[0], VARIABLE_UNPAIRED, f"variable {name!r} is read and never assigned", severity="warning")
    for name, nodes in writes.items():
        if name not in reads:
            yield at(nodes[0], VARIABLE_UNPAIRED, f"variable {name!r} is assigned and never read")
    for nodes in (*reads.values(), *writes.values()):
        for node in nodes[1:]:
            text = f"variable {node.attributes.get('variable_id')!r} is also that of layer {nodes[0].id} {nodes[0].name!r}"
            yield at(node, VARIABLE_DUPLICATE, text)


def _users(model: Model, type: str) -> dict[str, list[Node]]:
    found: dict[str, list[Node]] = {}
    for node in model.walk():
        if node.type == type and "variable_id" in node.attributes:
            found.setdefault(node.attributes["variable_id"], []).append(node)
    return found
