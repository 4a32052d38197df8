"""Declared ports against inference, and against each other."""

from __future__ import annotations

from collections.abc import Iterator

from irexec.analysis.findings import (
    EDGE_ELEMENT,
    EDGE_SHAPE,
    INPUT_ELEMENT,
    INPUT_SHAPE,
    NO_DIMS,
    OUTPUT_ELEMENT,
    OUTPUT_SHAPE,
    Finding,
    Severity,
    at,
)
from irexec.analysis.shape_inference import UNKNOWN, Inference
from irexec.ir.dims import PartialShape, may_equal, shape_text
from irexec.ir.facts import Fact
from irexec.ir.graph import Input, Model, Node, Value


def port_findings(model: Model, inference: Inference) -> Iterator[Finding]:
    """What the ports of the model and of its bodies declare that cannot be so."""
    failed = {failure.node for failure in inference.failures}
    is_static = all(inference.facts.get(node.outputs[0], UNKNOWN).is_static for node in model.parameters if node.outputs)
    for node in model.walk():
        if node not in failed:
            for value in node.outputs:
                yield from _output(value, inference.facts.get(value, UNKNOWN), is_static)
        for index, port in enumerate(node.ports):
            if port.source is not None:
                yield from _input(node, index, port, inference.facts.get(port.source, UNKNOWN), is_static)


def contradicts(declared: PartialShape, inferred: PartialShape) -> bool:
    """Whether no tensor can have both shapes."""
    if declared is None or inferred is None:
        return False
    return len(declared) != len(inferred) or not all(map(may_equal, declared, inferred))


def _output(value: Value, inferred: Fact, is_static: bool) -> Iterator[Finding]:
    number = value.index if value.port is None else value.port
    yield from _against(
        value.node, f"output port {number}", number, value.line, value.fact, inferred, (OUTPUT_SHAPE, OUTPUT_ELEMENT), is_static
    )


def _input(node: Node, index: int, port: Input, inferred: Fact, is_static: bool) -> Iterator[Finding]:
    number = index if port.port is None else port.port
    found = list(_against(node, f"input port {number}", number, port.line, port.fact, inferred, (INPUT_SHAPE, INPUT_ELEMENT), is_static))
    yield from found
    if not found and port.source is not None:
        yield from _edge(node, number, port, port.source, inferred)


def _edge(node: Node, number: int, port: Input, source: Value, inferred: Fact) -> Iterator[Finding]:
    """The two ends of an edge, where inference has not already said which of them is wrong."""
    here, there = port.fact, source.fact
    if here is None or there is None:
        return
    origin = f"its producer {source.node.name!r} declares"
    undecided = not contradicts(there.shape, inferred.shape) and here.shape != () and there.shape != ()
    if undecided and contradicts(here.shape, there.shape):
        text = f"input port {number} declares {shape_text(here.shape)}, {origin} {shape_text(there.shape)}"
        yield at(node, EDGE_SHAPE, text, port=number, line=port.line)
    if inferred.element is None and None not in (here.element, there.element) and here.element is not there.element:
        text = f"input port {number} declares {here.element}, {origin} {there.element}"
        yield at(node, EDGE_ELEMENT, text, port=number, line=port.line)


def _against(
    node: Node, what: str, number: int, line: int | None, declared: Fact | None, inferred: Fact, codes: tuple[str, str], is_static: bool
) -> Iterator[Finding]:
    if declared is None:
        return
    shape_code, element_code = codes
    if declared.shape == () and inferred.shape:
        # OpenVINO writes an unknown rank as it writes a scalar: no dims at all.
        severity: Severity = "error" if is_static and inferred.is_static else "warning"
        code = shape_code if severity == "error" else NO_DIMS
        if severity == "error" or not _rank_could_be_unknown(inferred):
            text = f"{what} declares [] (a scalar, or an unknown rank), inference gives {shape_text(inferred.shape)}"
            yield at(node, code, text, severity=severity, port=number, line=line)
    elif contradicts(declared.shape, inferred.shape):
        text = f"{what} declares {shape_text(declared.shape)}, inference gives {shape_text(inferred.shape)}"
        yield at(node, shape_code, text, port=number, line=line)
    if None not in (declared.element, inferred.element) and declared.element is not inferred.element:
        text = f"{what} declares {declared.element}, inference gives {inferred.element}"
        yield at(node, element_code, text, port=number, line=line)


def _rank_could_be_unknown(inferred: Fact) -> bool:
    """Where inference itself knows too little, OpenVINO's may have known nothing."""
    return not inferred.is_static
