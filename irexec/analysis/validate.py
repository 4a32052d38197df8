"""Validation: everything that is wrong with a model, in one pass.

``validate`` never raises for a bad model. A finding in one place does not hide the next: after a
node that cannot be inferred, inference goes on from the declared ports, and the node is named once.
"""

from __future__ import annotations

from collections.abc import Iterator

from irexec.analysis.attributes import typed_attributes
from irexec.analysis.checks.bodies import body_findings, state_findings
from irexec.analysis.checks.graph import graph_findings
from irexec.analysis.checks.ports import port_findings
from irexec.analysis.checks.weights import constant_findings, value_findings
from irexec.analysis.findings import (
    ATTRIBUTE_OUT_OF_RANGE,
    ILL_TYPED_ATTRIBUTE,
    MISSING_ATTRIBUTE,
    UNKNOWN_ATTRIBUTE,
    UNKNOWN_TYPE,
    UNKNOWN_VERSION,
    WRONG_INPUTS,
    Finding,
    Severity,
    at,
    of_problem,
)
from irexec.analysis.model import check_model
from irexec.analysis.shape_inference import Inference, ShapeInference
from irexec.errors import NodeError, UnsupportedError
from irexec.ir.graph import Graph, Model, Node
from irexec.schema.registry import is_known_type, resolve

_ATTRIBUTE_CODES = {
    "missing": MISSING_ATTRIBUTE,
    "type": ILL_TYPED_ATTRIBUTE,
    "range": ATTRIBUTE_OUT_OF_RANGE,
    "unknown": UNKNOWN_ATTRIBUTE,
}


def validate(model: Model, *, weights: bool = False) -> list[Finding]:
    """All findings about a model, by XML line.

    Args:
        model: as read, however damaged; it is not changed.
        weights: also read every constant and look for NaN and infinities.

    Raises:
        InputError: it is no model at all.
    """
    check_model(model)
    findings = [of_problem(problem) for graph in graphs(model) for problem in graph.problems]
    attributes = {node: list(_attribute_findings(node)) for node in model.walk()}
    inference = _infer_all(model)
    findings += (finding for found in attributes.values() for finding in found)
    blamed = {node for node, found in attributes.items() if any(f.severity == "error" for f in found)}
    blamed |= _damaged(model)
    findings += _failures(inference, blamed)
    findings += port_findings(model, inference)
    for graph in graphs(model):
        findings += graph_findings(graph, is_model=graph is model)
    findings += constant_findings(model)
    findings += body_findings(model)
    findings += state_findings(model)
    if weights:
        findings += value_findings(model)
    return sorted(dict.fromkeys(findings), key=lambda f: (f.line or 0, f.layer_id or 0, f.code, f.port or 0))


def graphs(model: Graph) -> Iterator[Graph]:
    """The model and every body in it."""
    yield model
    for node in model.walk():
        for body in node.bodies.values():
            yield body.graph


def _infer_all(model: Model) -> Inference:
    """Facts of every value; a body whose owner cannot say what it is given starts from its own ports."""
    walk = ShapeInference(tolerant=True)
    walk.graph(model, {})
    for node in model.walk():
        for name, body in node.bodies.items():
            if any(value not in walk.inference.facts for inner in body.graph.nodes for value in inner.outputs):
                with walk.enter(f"{node.name}/{name}"):
                    walk.graph(body.graph, {})
    return walk.inference


def _attribute_findings(node: Node) -> Iterator[Finding]:
    try:
        definition = resolve(node.type, node.version)
    except UnsupportedError as error:
        yield at(node, UNKNOWN_VERSION if is_known_type(node.type) else UNKNOWN_TYPE, str(error))
        return
    for problem in typed_attributes(node, definition).problems:
        severity: Severity = "warning" if problem.kind == "unknown" else "error"
        yield at(node, _ATTRIBUTE_CODES[problem.kind], problem.message, severity=severity)


def _damaged(model: Model) -> set[Node]:
    """Nodes of which the reader has already said what is wrong."""
    lines = {(p.layer_id, p.layer_name) for graph in graphs(model) for p in graph.problems if p.severity == "error"}
    return {node for node in model.walk() if (node.id, node.name) in lines}


def _failures(inference: Inference, blamed: set[Node]) -> Iterator[Finding]:
    for failure in inference.failures:
        if failure.node in blamed or isinstance(failure.error, UnsupportedError):
            continue
        reason = failure.error.reason if isinstance(failure.error, NodeError) else str(failure.error)
        given = ", ".join(str(inference.facts.get(v, "?")) if v is not None else "nothing" for v in failure.node.inputs)
        yield at(failure.node, WRONG_INPUTS, f"{reason}; inputs {given or 'none'}")
