"""Variables: each is read by one ReadValue and assigned by one Assign."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from irexec.analysis.shape_inference import Inference
from irexec.ir import codes
from irexec.ir.dims import contradict, is_static, join_shapes, shape_text
from irexec.ir.facts import Fact
from irexec.ir.findings import Finding
from irexec.ir.graph import ModelGraph, Node, Value

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
            text = (
                f"variable {node.attributes.get('variable_id')!r} is also that of layer {nodes[0].id} {nodes[0].name!r}"
            )
            yield node.finding(codes.VARIABLE_DUPLICATE, text)


def _misfits(writer: Node, readers: list[Node], inference: Inference) -> Iterator[Finding]:
    """An Assign whose value does not fit the variable.

    Assign-3 finds its variable only in a ReadValue-3 on which its input depends, and Assign-6 is not compared with a
    ReadValue-3. Source: openvino ``assign.cpp`` and ``assign_shape_inference.hpp``.
    """
    name, searches = writer.attributes["variable_id"], writer.version in _SEARCHING
    readers = [reader for reader in readers if (reader.version in _SEARCHING) is searches]
    if searches and not any(reader in _ancestors(writer) for reader in readers):
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
    declared = _fact(reader.outputs, inference).shape
    start = _fact(reader.inputs, inference).shape
    if (
        reader.inputs
        and reader not in inference.failures
        and shape_text(join_shapes(declared, start)) != shape_text(declared)
    ):
        text = f"init_value may have the shape {shape_text(start)}, variable_shape is {shape_text(declared)}"
        yield reader.finding(codes.VARIABLE_MISFIT, text)


def _fact(values: Sequence[Value | None], inference: Inference) -> Fact:
    """The fact of the first value; an unknown one without it."""
    unknown = Fact(None, None)
    return unknown if not values or values[0] is None else inference.facts.get(values[0], unknown)


def _users(model: ModelGraph, type: str) -> dict[str, list[Node]]:
    found: dict[str, list[Node]] = {}
    for node in model.walk():
        if node.type == type and "variable_id" in node.attributes:
            found.setdefault(node.attributes["variable_id"], []).append(node)
    return found


def _ancestors(node: Node) -> set[Node]:
    """The nodes on which a node depends, itself included."""
    found, waiting = {node}, [node]
    for one in waiting:
        fresh = {value.node for value in one.inputs if value is not None} - found
        found |= fresh
        waiting += fresh
    return found
