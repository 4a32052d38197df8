"""Validation: all findings about a model, in one pass.

``validate`` never raises for a bad model. One finding does not hide the next: after a node that cannot be inferred,
shape inference continues from the declared ports, and the node is reported once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from irexec.analysis.checks.frozen import frozen_findings
from irexec.analysis.checks.graph import body_findings, graph_findings, variable_findings
from irexec.analysis.checks.layers import (
    constant_findings,
    layer_findings,
    port_findings,
    refused_findings,
    value_findings,
)
from irexec.analysis.checks.stored_weights import stored_weight_findings
from irexec.analysis.execution_graph import description, is_execution_graph
from irexec.analysis.model import check_model
from irexec.analysis.shape_inference import Inference, ShapeInference
from irexec.ir import codes
from irexec.ir.findings import Finding, Findings, in_model
from irexec.ir.garbage import collection_paused
from irexec.ir.graph import ModelGraph, Node, graphs
from irexec.ir.writable import unwritable
from irexec.schema.plugins import plugins

if TYPE_CHECKING:
    from irexec.analysis.portability.findings import Target

FindingCheck = Callable[[ModelGraph, Inference], Iterable[Finding]]

_CHECKS_OF_ERRORS: tuple[FindingCheck, ...] = (
    layer_findings,
    port_findings,
    graph_findings,
    constant_findings,
    body_findings,
    variable_findings,
    refused_findings,
)
CHECKS: tuple[FindingCheck, ...] = (*_CHECKS_OF_ERRORS, frozen_findings)

PLUGIN_CHECKS: dict[tuple[str, str], FindingCheck] = {}
"""Checks of plug-ins by their plug-in and name; irexec.analysis.plugin_checks registers them."""


def validate(
    model: ModelGraph, *, weights: bool = False, portability: bool = False, release: str | None = None,
    inference: Inference | None = None, errors_alone: bool = False, progress: Callable[[float], None] | None = None,
) -> Findings:  # fmt: skip
    """All findings about a model, however damaged, by XML line; arguments and errors are those of
    irexec.api.validate, ``errors_alone`` leaves out a check that finds no errors and infers the model several times."""
    check_model(model)
    target = None if release is None else _target(release)
    if is_execution_graph(model):
        return Findings([in_model(codes.EXECUTION_GRAPH, description(model))])
    unwritten = list(unwritable(model))
    if any(finding.code == codes.NOT_TEXT for finding in unwritten):
        # Nothing else can be asked of it.
        return _sorted(unwritten)
    with collection_paused():
        inference = inference or infer_all(model)
        findings = [*(finding for graph in graphs(model) for finding in graph.problems), *unwritten]
        checks = (*(_CHECKS_OF_ERRORS if errors_alone else CHECKS), *_of_plugins())
        advance, part = progress or (lambda amount: None), 1 / (1 + len(checks))
        advance(part)
        for check in checks:
            findings += check(model, inference)
            advance(part)
        findings += _of_other_implementations(model, inference, portability, target)
    if weights:
        findings += [*value_findings(model, findings), *stored_weight_findings(model)]
    return _sorted(findings)


def _of_plugins() -> tuple[FindingCheck, ...]:
    plugins.load()
    return tuple(PLUGIN_CHECKS.values())


def _sorted(findings: Iterable[Finding]) -> Findings:
    return Findings(sorted(dict.fromkeys(findings), key=lambda f: (f.line or 0, f.layer_id or 0, f.code, f.port or 0)))


def _of_other_implementations(
    model: ModelGraph, inference: Inference, portability: bool, target: Target | None
) -> list[Finding]:
    found: list[Finding] = []
    if portability:
        # Not before: most models are validated without.
        from irexec.analysis.portability.findings import portability_findings

        found += portability_findings(model, inference, None if target is None else target.release)
    return [*found, *(target.findings(model, inference) if target is not None else ())]


def _target(text: str) -> Target:
    from irexec.analysis.portability.findings import parse_target

    return parse_target(text)


@collection_paused()
def infer_all(model: ModelGraph) -> Inference:
    """Facts of every value. A body whose node cannot be inferred is inferred from its own Parameters."""
    walk = ShapeInference(tolerant=True)
    walk.graph(model, {})
    infer_unreached(walk, model.walk())
    return walk.inference


def infer_unreached(walk: ShapeInference, nodes: Iterable[Node]) -> None:
    """Infer the bodies of layers that inference has not come to, each from its own Parameters."""
    for node in nodes:
        for name, body in node.bodies.items():
            if any(value not in walk.inference.facts for inner in body.graph.nodes for value in inner.outputs):
                with walk.enter(f"{node.name}/{name}"):
                    walk.graph(body.graph, {})
