"""Variables: each is read by one ReadValue and assigned by one Assign."""

from __future__ import annotations

from collections.abc import Iterator

from irexec.analysis.shape_inference import Inference
from irexec.ir import codes
from irexec.ir.findings import Finding
from irexec.ir.graph import ModelGraph, Node

_SEARCHING = ("opset3", "opset4", "opset5")
"""The versions of Assign-3."""


def variable_findings(model: ModelGraph, inference: Inference) -> Iterator[Finding]:
    """Variables that are only read or only assigned, or that several layers read or assign.

    Assign-3 finds its variable only in a ReadValue on which its input depends. Source: openvino ``assign.cpp``.
    """
    readers, writers = _users(model, "ReadValue"), _users(model, "Assign")
    for name, nodes in readers.items():
        if name not in writers:
            yield nodes[0].finding(codes.VARIABLE_NOT_ASSIGNED, f"variable {name!r} is read and never assigned")
    for name, nodes in writers.items():
        if name not in readers:
            yield nodes[0].finding(codes.VARIABLE_NOT_READ, f"variable {name!r} is assigned and never read")
        for node in nodes if name in readers else ():
            if node.version in _SEARCHING and not any(reader in _ancestors(node) for reader in readers[name]):
                text = f"the input of Assign-3 does not depend on the ReadValue of variable {name!r}"
                yield node.finding(codes.VARIABLE_NOT_READ, text)
    for nodes in (*readers.values(), *writers.values()):
        for node in nodes[1:]:
            text = (
                f"variable {node.attributes.get('variable_id')!r} is also that of layer {nodes[0].id} {nodes[0].name!r}"
            )
            yield node.finding(codes.VARIABLE_DUPLICATE, text)


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
