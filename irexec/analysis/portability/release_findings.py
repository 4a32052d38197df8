"""Findings about the parts of a model that a release of OpenVINO does not read."""

from __future__ import annotations

from collections.abc import Iterator

from irexec.analysis.portability.difference_findings import at_the_first
from irexec.analysis.portability.releases import ELEMENTS, IR_VERSIONS, OPSETS, Release, first_release
from irexec.analysis.shape_inference import Inference
from irexec.errors import UnsupportedError
from irexec.ir import codes
from irexec.ir.findings import Finding, in_model
from irexec.ir.graph import ModelGraph, Node
from irexec.schema.registry import opset_number, resolve


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
    for node in model.walk():
        for finding in (*_operation(node, release), *_elements(node, inference, release)):
            repeated.setdefault(finding.message, []).append(finding)
    yield from map(at_the_first, repeated.values())


def _operation(node: Node, release: Release) -> Iterator[Finding]:
    written = opset_number(node.version)
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
