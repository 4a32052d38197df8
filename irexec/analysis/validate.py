"""Validation: all findings about a model, in one pass; and finding checks of plug-ins.

``finding_code`` declares a code, ``finding_check`` registers a check:

    ONE_VALUE = irexec.finding_code("my.ops:101", "warning", "one value kept", meaning=..., example=..., repair=...)

    @irexec.finding_check
    def one_value(model: irexec.Graph, inference: irexec.Inference) -> Iterator[irexec.Finding]:
        for node in model.walk():
            if node.type == "SoftTopK" and node.attributes.get("k", "1") == "1":
                yield node.finding(ONE_VALUE, "k is 1, so that each result is 0 or 1")

A check has the form of irexec's own checks, and ``validate`` calls it after them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from irexec.analysis.checks.graph import body_findings, graph_findings, stored_weight_findings, variable_findings
from irexec.analysis.checks.layers import (
    constant_findings,
    layer_findings,
    port_findings,
    refused_findings,
    value_findings,
)
from irexec.analysis.execution_graph import description, is_execution_graph
from irexec.analysis.model import check_model
from irexec.analysis.open_sizes import frozen_findings
from irexec.analysis.shape_inference import Inference, ShapeInference
from irexec.errors import PluginError
from irexec.ir import codes
from irexec.ir.codes import Severity, by_number
from irexec.ir.findings import Finding, Findings, in_model
from irexec.ir.graph import ModelGraph, Node, graphs
from irexec.ir.process import collection_paused
from irexec.ir.writable import unwritable
from irexec.schema.plugins import IN_MAIN, guarded, origin_of, plugins

if TYPE_CHECKING:
    from irexec.analysis.portability.findings import Target


_FORM = re.compile(r"[A-Za-z][\w.-]*:\w+")
_SEVERITIES = ("error", "warning", "info")
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
"""Checks of plug-ins by their plug-in and name; irexec.analysis.validate registers them."""


def finding_code(
    code: str, severity: Severity, name: str, *, meaning: str, example: str, repair: str
) -> str:  # fmt: skip
    """Declare a finding code of a plug-in, and return it. ``irexec explain`` shows the texts.

    Args:
        code: a namespace and an identifier, such as "my.ops:101"; the codes of irexec have no namespace.
        severity: "error" (the model cannot be run, or its results cannot be trusted), "warning" (unusual, but it can be
            run) or "info".
        name: two to four words, unique.
        meaning: one sentence without a full stop.
        example: XML in which it is found, reduced to what matters.
        repair: the cure.

    Raises:
        PluginError: the code has another form, the severity does not exist, or the code or the name is used already.
    """
    if not _FORM.fullmatch(code):
        raise PluginError(f"finding code {code!r}: expected a namespace and an identifier, such as 'my.ops:101'")
    if severity not in _SEVERITIES:
        raise PluginError(f"finding code {code}: the severity is {severity!r}, expected error, warning or info")
    known = codes.CODES.get(code)
    if known is not None and known.name == name and plugins.current is None:
        # A cell of a notebook that is run again.
        codes.discard(code)
    try:
        codes.add(code, severity, name, meaning, example, repair)
    except ValueError as error:
        raise PluginError(str(error)) from None
    if plugins.current is not None:
        plugins.current.undo.append(functools.partial(codes.discard, code))
    return code


def finding_check(check: FindingCheck) -> FindingCheck:
    """Decorator of a check of a plug-in: a function of a model and what shape inference knows of its values.

    The check yields findings, which ``node.finding(code, message)`` makes, and changes nothing. ``inference.facts`` has
    the fact of each value that was inferred; the model may be damaged in any way.

    Raises:
        PluginError: a check of this name is registered already.
    """
    origin = origin_of(check)
    key = origin, check.__qualname__
    if key in PLUGIN_CHECKS and origin != IN_MAIN:
        raise PluginError(f"the check {check.__qualname__} is registered twice by {origin}")
    PLUGIN_CHECKS[key] = functools.partial(_checked, check, f"the check {check.__qualname__} of {origin}")
    if plugins.current is not None:
        plugins.current.undo.append(functools.partial(PLUGIN_CHECKS.pop, key))
    return check


def _checked(check: FindingCheck, what: str, model: ModelGraph, inference: Inference) -> list[Finding]:
    """The findings of a check; PluginError where it raises, or yields something else."""
    found = guarded(lambda: list(check(model, inference)), what, PluginError)()
    for finding in found:
        if not isinstance(finding, Finding):
            raise PluginError(f"{what} yields {type(finding).__name__}, expected a Finding of node.finding(...)")
    return list(found)


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
        plugins.load()
        checks = (*(_CHECKS_OF_ERRORS if errors_alone else CHECKS), *PLUGIN_CHECKS.values())
        advance, part = progress or (lambda amount: None), 1 / (1 + len(checks))
        advance(part)
        for check in checks:
            findings += check(model, inference)
            advance(part)
        findings += _of_other_implementations(model, inference, portability, target)
    if weights:
        findings += [*value_findings(model, findings), *stored_weight_findings(model)]
    return _sorted(findings)


def _sorted(findings: Iterable[Finding]) -> Findings:
    def key(one: Finding) -> tuple[object, ...]:
        return one.line or 0, one.layer_id or 0, by_number(one.code), one.port or 0

    return Findings(sorted(dict.fromkeys(findings), key=key))


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
