"""Models that a release reads and its CPU plugin does not run: shapes and element types.

Source: the plugins themselves of 2021.4.2, 2022.3.2 and 2023.3.0, which tests.release_sweep asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from irexec.analysis.portability.releases import Release
from irexec.ir import codes
from irexec.ir.dims import is_static
from irexec.ir.facts import Fact
from irexec.ir.findings import Finding
from irexec.ir.graph import Node, Value

DYNAMIC_SHAPES = Release(2022, 1)
"""The first release with plugins for unknown sizes and for tensors without elements."""

ELEMENTS_COMPUTED: dict[str, Release] = {"bf16": Release(2023, 0)}
"""The first release whose CPU plugin computes in an element type on any processor."""

ELEMENTS_OF_INPUTS: dict[str, Release] = {name: Release(2022, 1) for name in ("f64", "u32", "u4", "i4", "u1")}
"""The first release that takes inputs of a type."""


def plugin_findings(node: Node, facts: Mapping[Value, Fact], release: Release) -> Iterator[Finding]:
    """Findings about the outputs of a layer that the CPU plugin of the release does not run."""
    for value in node.outputs:
        fact = facts.get(value)
        reason = None if fact is None else _shape(fact, release) or _element(node, fact, release)
        if reason is not None:
            yield node.finding(codes.NOT_RUN_BY_RELEASE, f"OpenVINO {release} {reason}")


def _shape(fact: Fact, release: Release) -> str | None:
    if release >= DYNAMIC_SHAPES:
        return None
    if not is_static(fact.shape):
        return "does not run sizes that are not known before the model runs"
    return "does not run tensors without elements" if 0 in fact.shape else None


def _element(node: Node, fact: Fact, release: Release) -> str | None:
    name = "" if fact.element is None else fact.element.name
    if name in ELEMENTS_COMPUTED and ELEMENTS_COMPUTED[name] > release:
        return f"does not compute in {name} on a CPU"
    if node.type == "Parameter" and name in ELEMENTS_OF_INPUTS and ELEMENTS_OF_INPUTS[name] > release:
        return f"does not take inputs of {name}"
    return None
