"""Findings about a model elsewhere: differences between implementations, and parts that a release does not read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from irexec.analysis.portability import DIFFERENCES, Difference
from irexec.analysis.portability.layer import ExaminedLayer, KnownLayer
from irexec.analysis.portability.old_values import other_values
from irexec.analysis.portability.plugins import DYNAMIC_SHAPES, plugin_findings
from irexec.analysis.portability.releases import ELEMENTS, IR_VERSIONS, OPSETS, Release, first_release, parse_release
from irexec.analysis.shape_inference import Inference
from irexec.errors import UnsupportedError
from irexec.ir import codes
from irexec.ir.findings import Finding, in_model
from irexec.ir.graph import ModelGraph, Node, Value
from irexec.messages import counted
from irexec.schema.registry import OTHER_VERSIONS, opset_number, resolve


def portability_findings(model: ModelGraph, inference: Inference, release: Release | None = None) -> Iterator[Finding]:
    """A finding for each layer on which OpenVINO's implementations differ; only those of one release, if it is given.

    What any layer may have, such as an element type, is reported once, at the first of them.
    """
    rows = [row for row in DIFFERENCES.values() if release is None or _is_in(row, release)]
    repeated: dict[str, list[Finding]] = {}
    for node, row in differences(model, inference, rows):
        finding = node.finding(row.code, row.does)
        if row.types:
            yield finding
        else:
            repeated.setdefault(row.code, []).append(finding)
    yield from map(at_the_first, repeated.values())


def value_findings(model: ModelGraph, inference: Inference, release: Release) -> Iterator[Finding]:
    """A finding for each layer to which an implementation of a release may give other values or another shape."""
    rows = {code for code, row in DIFFERENCES.items() if row.effect != "fails"}
    return (one for one in portability_findings(model, inference, release) if one.code in rows)


def at_the_first(findings: Sequence[Finding]) -> Finding:
    """One finding for equal ones: the first, with the number of the other layers."""
    first, *others = findings
    more = f"; so it is in {counted(len(others), 'more layer')}" if others else ""
    return replace(first, message=f"{first.message}{more}")


def differences(
    model: ModelGraph, inference: Inference, rows: Sequence[Difference]
) -> Iterator[tuple[Node, Difference]]:
    """Layers with a known difference, layers of bodies included, each with its difference."""
    readers, own = _readers(model), set(model.nodes)
    for node in model.walk():
        for row in rows:
            if row.types and node.type not in row.types:
                continue
            layer = _layer(node, inference, readers, node in own)
            if layer is not None and row.condition(layer):
                yield node, row


def _readers(model: ModelGraph) -> dict[Value, list[Node]]:
    found: dict[Value, list[Node]] = {}
    for node in model.walk():
        for value in node.inputs:
            if value is not None:
                found.setdefault(value, []).append(node)
    return found


def _layer(
    node: Node, inference: Inference, readers: Mapping[Value, Sequence[Node]], is_of_the_model: bool
) -> ExaminedLayer | None:
    if node in inference.failures:
        return None
    try:
        return ExaminedLayer(node, inference.facts, readers, resolve(node.type, node.version), is_of_the_model)
    except UnsupportedError:
        return None


def _is_in(row: Difference, release: Release) -> bool:
    """Whether a release is known to have a difference, or not known not to have it."""
    begun = row.since is None or release >= parse_release(row.since)
    return begun and (row.until is None or release < parse_release(row.until))


def release_findings(model: ModelGraph, inference: Inference, release: Release) -> Iterator[Finding]:
    """Findings about parts that the release does not read: the version of IR, opsets, operations and types.

    What several layers have in common is reported once, at the first of them.
    """
    first_with = IR_VERSIONS.get(model.version)
    if first_with is None or first_with > release:
        since = "" if first_with is None else f"; {first_with} is the first that does"
        yield in_model(
            codes.VERSION_NOT_IN_RELEASE, f"OpenVINO {release} does not read version {model.version} of IR{since}"
        )
    repeated: dict[str, list[Finding]] = {}
    own, readers = set(model.nodes), _readers(model)
    for node in model.walk():
        # Releases before 2022.1 leave out inputs that no layer reads.
        layer = KnownLayer(node, inference.facts, readers)
        is_left_out = release < DYNAMIC_SHAPES and node.type == "Parameter" and not layer.is_used(0)
        for finding in (
            *_operation(node, release),
            *_elements(node, inference, release),
            *(() if is_left_out and node in own else plugin_findings(layer, release)),
            *other_values(layer, release),
        ):
            repeated.setdefault(finding.message, []).append(finding)
    yield from map(at_the_first, repeated.values())


def _operation(node: Node, release: Release) -> Iterator[Finding]:
    written = opset_number(OTHER_VERSIONS.get((node.type, node.version), node.version))
    try:
        definition = resolve(node.type, node.version)
    except UnsupportedError:
        return
    since = definition.since
    if not isinstance(since, int) or written is None:
        yield node.finding(codes.NOT_IN_RELEASE, f"{node.type} of {node.version!r} is not an operation of OpenVINO")
        return
    begun = first_release(node.type, since)
    if begun is None or begun > release:
        first = "no release is known to have it" if begun is None else f"{begun} is the first that does"
        yield node.finding(
            codes.NOT_IN_RELEASE, f"OpenVINO {release} does not have {node.type} of opset{since}; {first}"
        )
    elif written != since and (written not in OPSETS or OPSETS[written] > release):
        message = (
            f"OpenVINO {release} does not have opset{written}, with which the layer is written; "
            f"opset{since} means the same"
        )
        yield node.finding(codes.OPSET_NOT_IN_RELEASE, message)


def _elements(node: Node, inference: Inference, release: Release) -> Iterator[Finding]:
    for value in node.outputs:
        fact = inference.facts.get(value)
        name = "" if fact is None or fact.element is None else fact.element.name
        if name in ELEMENTS and ELEMENTS[name] > release:
            message = (
                f"OpenVINO {release} does not have the element type {name}; {ELEMENTS[name]} is the first that does"
            )
            yield node.finding(codes.ELEMENT_NOT_IN_RELEASE, message)
