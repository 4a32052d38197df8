"""Each layer by itself: its type and version, its attributes, and whether its outputs can be inferred from its inputs."""

from __future__ import annotations

from collections.abc import Iterator

from irexec.analysis.attributes import typed_attributes
from irexec.analysis.checks.graph import graphs
from irexec.analysis.shape_inference import Inference
from irexec.errors import IrexecError, NodeError, UnsupportedError
from irexec.ir import codes
from irexec.ir.findings import Finding
from irexec.ir.graph import Model, Node
from irexec.schema.registry import is_known_type, resolve


def layer_findings(model: Model, inference: Inference) -> Iterator[Finding]:
    """Unknown types and versions, wrong attributes, and inputs that do not fit.

    A layer that already has an error is not reported again because it cannot be inferred.
    """
    damaged = {(f.layer_id, f.layer_name) for graph in graphs(model) for f in graph.problems if f.severity == "error"}
    for node in model.walk():
        found = list(_schema_findings(node))
        yield from found
        error = inference.failures.get(node)
        explained = (node.id, node.name) in damaged or any(finding.severity == "error" for finding in found)
        if error is not None and not explained and not isinstance(error, UnsupportedError):
            yield _failure(node, error, inference)


def _schema_findings(node: Node) -> Iterator[Finding]:
    try:
        definition = resolve(node.type, node.version)
    except UnsupportedError as error:
        code = codes.UNKNOWN_VERSION if is_known_type(node.type) else codes.UNKNOWN_TYPE
        yield node.finding(code, str(error))
        return
    for problem in typed_attributes(node, definition).problems:
        yield node.finding(problem.code, problem.message)


def _failure(node: Node, error: IrexecError, inference: Inference) -> Finding:
    reason = error.reason if isinstance(error, NodeError) else str(error)
    inputs = ", ".join(str(inference.facts.get(value, "?")) if value is not None else "nothing" for value in node.inputs)
    return node.finding(codes.WRONG_INPUTS, f"{reason}; inputs {inputs or 'none'}")
