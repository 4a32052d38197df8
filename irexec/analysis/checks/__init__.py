"""The checks of validate, one file per subject. To add a check, add it to CHECKS."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from irexec.analysis.checks.bodies import body_findings
from irexec.analysis.checks.graph import graph_findings
from irexec.analysis.checks.layers import layer_findings
from irexec.analysis.checks.ports import port_findings
from irexec.analysis.checks.variables import variable_findings
from irexec.analysis.checks.weights import constant_findings
from irexec.analysis.shape_inference import Inference
from irexec.ir.findings import Finding
from irexec.ir.graph import ModelGraph

Check = Callable[[ModelGraph, Inference], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    layer_findings,
    port_findings,
    graph_findings,
    constant_findings,
    body_findings,
    variable_findings,
)
