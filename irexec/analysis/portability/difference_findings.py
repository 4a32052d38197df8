"""Findings of the differences between implementations, layer by layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from irexec.analysis.portability import DIFFERENCES, Difference
from irexec.analysis.portability.layer import ExaminedLayer
from irexec.analysis.portability.releases import Release, parse_release
from irexec.analysis.shape_inference import Inference
from irexec.errors import UnsupportedError
from irexec.ir.findings import Finding
from irexec.ir.graph import ModelGraph, Node
from irexec.messages import counted
from irexec.schema.registry import resolve


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


def at_the_first(findings: Sequence[Finding]) -> Finding:
    """One finding for equal ones: the first, with the number of the other layers."""
    first, *others = findings
    more = f"; so it is in {counted(len(others), 'more layer')}" if others else ""
    return replace(first, message=f"{first.message}{more}")


def differences(
    model: ModelGraph, inference: Inference, rows: Sequence[Difference]
) -> Iterator[tuple[Node, Difference]]:
    """Layers with a known difference, layers of bodies included, each with its difference."""
    read = {value for node in model.walk() for value in node.inputs if value is not None}
    own = set(model.nodes)
    for node in model.walk():
        for row in rows:
            if row.types and node.type not in row.types:
                continue
            layer = _layer(node, inference, read, node in own)
            if layer is not None and row.condition(layer):
                yield node, row


def _layer(node: Node, inference: Inference, read: set, is_of_the_model: bool) -> ExaminedLayer | None:
    if node in inference.failures:
        return None
    try:
        return ExaminedLayer(node, resolve(node.type, node.version), inference, read, is_of_the_model)
    except UnsupportedError:
        return None


def _is_in(row: Difference, release: Release) -> bool:
    """Whether a release is known to have a difference, or not known not to have it."""
    begun = row.since is None or release >= parse_release(row.since)
    return begun and (row.until is None or release < parse_release(row.until))
