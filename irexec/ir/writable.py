"""Reasons that keep a model from being written as an IR: validate reports them, save_model refuses the model.

Payloads, which nobody but the reader reads, are not examined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from irexec.errors import ModelError
from irexec.ir import codes
from irexec.ir.constants import BytesInMemory
from irexec.ir.findings import Finding, in_model
from irexec.ir.graph import ModelGraph, Node, graphs
from irexec.ir.shape_text import is_name, is_text

_LARGEST_ID = (1 << 63) - 1


def damage(model: ModelGraph, *, edges: bool = True) -> Iterator[Finding]:
    """Problems that leave no graph to run or write: those of the reader, and ``edges`` of an edited graph without a
    source."""
    for graph in graphs(model):
        found = [problem for problem in graph.problems if problem.severity == "error"]
        yield from found
        if edges:
            # The reader has found those of a file already.
            reported, inside = {(problem.code, problem.layer_id) for problem in found}, set(graph.nodes)
            missing = (finding for node in graph.nodes for finding in _of_edges(node, inside))
            yield from (finding for finding in missing if (finding.code, finding.layer_id) not in reported)


def refuse_damage(model: ModelGraph, *, edges: bool = True) -> None:
    """Raise ModelError with the first finding of ``damage``, and the number of the others."""
    errors = list(damage(model, edges=edges))
    if errors:
        more = f" (and {len(errors) - 1} more, see validate)" if len(errors) > 1 else ""
        raise ModelError(f"{errors[0].at(str(model.path or 'the model'))}: {errors[0].message}{more}")


def unwritable(model: ModelGraph) -> Iterator[Finding]:
    """Each reason for which a model cannot be written."""
    yield from damage(model)
    yield from (in_model(*wrong) for wrong in _of_text("the name of the model", model.name))
    for graph in graphs(model):
        reported = {(problem.code, problem.layer_id) for problem in graph.problems}
        ids: dict[int, Node] = {}
        for node in graph.nodes:
            first = ids.setdefault(node.id, node)
            found = [*_of_id(node, first), *_of_texts(node), *_of_ports(node), *_of_constant(node)]
            yield from (finding for finding in found if (finding.code, finding.layer_id) not in reported)


def _of_id(node: Node, first: Node) -> Iterator[Finding]:
    is_integer = isinstance(node.id, int | np.integer) and not isinstance(node.id, bool)
    if not is_integer or not 0 <= node.id <= _LARGEST_ID:
        text = f"the id is {node.id!r:.60}, expected an integer from 0 to {_LARGEST_ID}"
        finding = node.finding(codes.BAD_NUMBER, text)
        yield finding if is_integer else replace(finding, layer_id=None)
    elif first is not node:
        yield node.finding(codes.DUPLICATE_LAYER, f"layer {first.name!r} has the id {node.id}, too")


def _of_texts(node: Node) -> Iterator[Finding]:
    texts: list[tuple[str, object]] = [("the name", node.name), ("the type", node.type), ("the version", node.version)]
    texts += [("a tensor name", name) for value in node.outputs for name in value.names]
    for body in node.bodies.values():
        texts += [("the name of a body", body.graph.name)] if body.graph.name else []
        texts += [
            (f"{key!r} of a port map", text) for entry in body.port_maps for key, text in entry.attributes.items()
        ]
    if _are_fine(node, [text for _, text in texts]):
        return
    wrong = [each for what, text in texts for each in _of_text(what, text)]
    wrong += [each for key, text in node.attributes.items() for each in attribute_problems(key, text)]
    yield from (node.finding(code, message) for code, message in wrong)
    if node.type == "":
        yield node.finding(codes.LAYER_ATTRIBUTE, "the layer has no type")


def _are_fine(node: Node, texts: Sequence[object]) -> bool:
    """Whether all texts of a layer can be written, in one look at all of them."""
    known = [text for text in (*texts, *node.attributes.values(), *node.attributes) if isinstance(text, str)]
    is_whole = len(known) == len(texts) + 2 * len(node.attributes) and node.type != ""
    return is_whole and is_text("".join(known)) and all(map(is_name, node.attributes))


def attribute_problems(key: object, text: object) -> Iterator[tuple[str, str]]:
    """Code and message of what is wrong with an attribute of a layer as text, whatever it means."""
    if not isinstance(key, str):
        yield codes.NOT_TEXT, f"the name of an attribute is {key!r:.60} of type {type(key).__name__}, expected text"
    elif not is_name(key):
        text = f"the name of an attribute, {key[:60]!r}, has characters that XML cannot contain there"
        yield codes.UNWRITABLE_TEXT, text
    else:
        yield from _of_text(f"attribute {key!r}", text)


def _of_text(what: str, text: object) -> Iterator[tuple[str, str]]:
    if not isinstance(text, str):
        yield codes.NOT_TEXT, f"{what} is {text!r:.60} of type {type(text).__name__}, expected text"
    elif not is_text(text):
        yield codes.UNWRITABLE_TEXT, f"{what}, {text[:60]!r}, has characters that XML cannot contain"


def _of_edges(node: Node, inside: set[Node]) -> Iterator[Finding]:
    for index, port in enumerate(node.ports):
        source, number = port.source, node.input_id(index)
        if source is None:
            text = f"no edge arrives at input port {number}"
            yield node.finding(codes.MISSING_EDGE, text, port=number, line=port.line)
        elif source.node not in inside or all(value is not source for value in source.node.outputs):
            what = "which is not in the graph" if source.node not in inside else "which has no such output"
            text = f"input {index} comes from {source.node.name!r}, {what}"
            yield node.finding(codes.EDGE_FROM_NOTHING, text, port=number, line=port.line)


def _of_ports(node: Node) -> Iterator[Finding]:
    for ports in (
        [node.input_id(index) for index in range(len(node.ports))],
        [value.port_id for value in node.outputs],
    ):
        for number in _repeated(ports):
            yield node.finding(codes.DUPLICATE_PORT, f"two ports have the id {number}", port=number)


def _repeated(numbers: Sequence[int]) -> list[int]:
    if len(set(numbers)) == len(numbers):
        return []
    return [number for number, count in Counter(numbers).items() if count > 1]


def _of_constant(node: Node) -> Iterator[Finding]:
    """Problems of constants in memory; constants of a file are checked where it is read. A constant of another shape
    can be written, and is found again."""
    constant = node.constant
    if constant is not None and isinstance(constant.fetch, BytesInMemory):
        size = constant.fetch.data.nbytes
        if size < constant.size:
            yield node.finding(codes.CONSTANT_SIZE, f"the constant has {size} bytes, expected {constant.size}")
