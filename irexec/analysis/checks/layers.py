"""Each layer by itself: its type and version, its attributes, and whether its outputs can be inferred from its
inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from irexec.analysis.attributes import typed_attributes
from irexec.analysis.shape_inference import Inference
from irexec.errors import IrexecError, NodeError, UnsupportedError
from irexec.ir import codes
from irexec.ir.findings import Finding
from irexec.ir.graph import ModelGraph, Node, graphs
from irexec.messages import counted
from irexec.schema.registry import is_known_type, opset_number, resolve

# A problem that many layers of a model share is reported once, at the first of them.
_REPORTED_ONCE = (codes.UNKNOWN_TYPE, codes.UNKNOWN_VERSION, codes.UNKNOWN_ATTRIBUTE, codes.OWN_OPERATION)


OWN_NAMESPACES = ("irexec", "onednn")
"""Namespaces of operations that OpenVINO does not have."""


def own_layers(model: ModelGraph) -> list[Node]:
    """The layers of operations that irexec alone has, so that OpenVINO refuses the model."""
    return [node for node in model.walk() if node.version in OWN_NAMESPACES]


def layer_findings(model: ModelGraph, inference: Inference) -> Iterator[Finding]:
    """Unknown types and versions, wrong attributes, and inputs that do not fit.

    A layer that already has an error is not reported again because it cannot be inferred.
    """
    damaged = {(f.layer_id, f.layer_name) for graph in graphs(model) for f in graph.problems if f.severity == "error"}
    repeated: dict[tuple[str, str], list[Finding]] = {}
    for node in model.walk():
        found = list(_schema_findings(node))
        for finding in found:
            if finding.code in _REPORTED_ONCE:
                repeated.setdefault((finding.code, finding.message), []).append(finding)
            else:
                yield finding
        error = inference.failures.get(node)
        explained = (node.id, node.name) in damaged or any(finding.severity == "error" for finding in found)
        if error is not None and not explained and not isinstance(error, UnsupportedError):
            yield _failure(node, error, inference)
    for first, *others in repeated.values():
        more = f"; so it is in {counted(len(others), 'more layer')}" if others else ""
        yield replace(first, message=f"{first.message}{more}")


def _schema_findings(node: Node) -> Iterator[Finding]:
    try:
        definition = resolve(node.type, node.version)
    except UnsupportedError as error:
        yield _unsupported(node, str(error))
        return
    # oneDNN defines its own; whoever writes one does not mean OpenVINO.
    if definition.since == "irexec":
        yield node.finding(codes.OWN_OPERATION, f"{node.type} of {definition.since} is an operation of irexec alone")
    for problem in typed_attributes(node, definition).problems:
        yield node.finding(problem.code, problem.message)


def _unsupported(node: Node, reason: str) -> Finding:
    if is_known_type(node.type):
        return node.finding(codes.UNKNOWN_VERSION, reason)
    if node.version and opset_number(node.version) is None:
        reason = f"{node.type} is an operation of the extension {node.version!r}, which irexec does not have"
    return node.finding(codes.UNKNOWN_TYPE, f"{reason}; its outputs are taken as declared")


def _failure(node: Node, error: IrexecError, inference: Inference) -> Finding:
    reason = error.reason if isinstance(error, NodeError) else str(error)
    inputs = ", ".join(
        str(inference.facts.get(value, "?")) if value is not None else "nothing" for value in node.inputs
    )
    return node.finding(codes.WRONG_INPUTS, f"{reason}; inputs {inputs or 'none'}")
