"""Declared ports against shape inference, and against each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from irexec.analysis import version_10
from irexec.analysis.attributes import typed_attribute
from irexec.analysis.shape_inference import UNKNOWN, Inference
from irexec.ir import codes
from irexec.ir.dims import contradict, shape_text
from irexec.ir.facts import Fact
from irexec.ir.findings import Finding
from irexec.ir.graph import ModelGraph, Node, Value


@dataclass(frozen=True)
class _Port:
    """A declared port; ``number`` is its id as written, and its position where it has none."""

    node: Node
    side: str
    number: int
    line: int | None
    declared: Fact

    def finding(self, code: str, text: str) -> Finding:
        return self.node.finding(
            code, f"{self.side} port {self.number} declares {text}", port=self.number, line=self.line
        )


def port_findings(model: ModelGraph, inference: Inference) -> Iterator[Finding]:
    """Ports of the model and of its bodies that declare what cannot be."""
    is_static = all(
        inference.facts.get(node.outputs[0], UNKNOWN).is_static for node in model.parameters if node.outputs
    )
    free = _without_type(model, inference)
    for node in model.walk():
        if node not in inference.failures:
            for value in node.outputs:
                inferred = inference.facts.get(value, UNKNOWN)
                if not _agrees(value.fact, inferred):
                    yield from _output(value, inferred, is_static, has_type=value not in free)
                if node.type == "Parameter":
                    yield from _parameter(value, inferred)
        for index, port in enumerate(node.ports):
            if port.source is not None and port.fact is not None:
                inferred = inference.facts.get(port.source, UNKNOWN)
                if not _agrees(port.fact, inferred):
                    yield from _input(
                        _Port(node, "input", node.input_id(index), port.line, port.fact),
                        port.source,
                        inferred,
                        is_static,
                    )


def _agrees(declared: Fact | None, inferred: Fact) -> bool:
    """Whether a port declares exactly what inference gives, as nearly all ports do."""
    return declared is None or (declared.element is inferred.element and declared.shape == inferred.shape)


def _without_type(model: ModelGraph, inference: Inference) -> set[Value]:
    """Values whose declared element type does not matter, as Model Optimizer of 2020 and 2021 wrote some.

    Further outputs that nobody uses, such as the indices of MaxPool-8, had the type of the first one; and outputs of a
    model of version 10 the type in which they are given out.
    """
    users: dict[Value, set[str]] = {}
    for node in model.walk():
        for source in node.inputs:
            if source is not None:
                users.setdefault(source, set()).add(node.type)
    free = {value for node in model.walk() for value in node.outputs[1:] if value not in users}
    if model.version == version_10.VERSION:
        for value, types in users.items():
            given_out = version_10.output_element(inference.facts.get(value, UNKNOWN).element)
            if types == {"Result"} and value.fact is not None and value.fact.element is given_out:
                free.add(value)
    return free


def _output(value: Value, inferred: Fact, is_static: bool, *, has_type: bool) -> Iterator[Finding]:
    if value.fact is None:
        return
    port = _Port(value.node, "output", value.port_id, value.line, value.fact)
    yield from _shape(port, inferred, codes.OUTPUT_SHAPE, is_static)
    if has_type:
        yield from _element(port, inferred, codes.OUTPUT_ELEMENT)


def _parameter(value: Value, inferred: Fact) -> Iterator[Finding]:
    """A Parameter of a body whose element_type is not the type that it is given, where its port does not show it.

    OpenVINO computes the body of a TensorIterator in the type that the attribute says.
    """
    declared, port = typed_attribute(value.node, "element_type"), value.fact
    if None in (declared, inferred.element) or declared is inferred.element:
        return
    if port is None or port.element is None or port.element is inferred.element:
        text = f"attribute element_type is {declared}, inference gives {inferred.element}"
        yield value.node.finding(codes.OUTPUT_ELEMENT, text)


def _input(port: _Port, source: Value, inferred: Fact, is_static: bool) -> Iterator[Finding]:
    found = [*_shape(port, inferred, codes.INPUT_SHAPE, is_static), *_element(port, inferred, codes.INPUT_ELEMENT)]
    yield from found
    if not found and source.fact is not None:
        yield from _edge(port, source, source.fact, inferred)


def _shape(port: _Port, inferred: Fact, code: str, is_static: bool) -> Iterator[Finding]:
    declared = port.declared.shape
    if declared == () and inferred.shape:
        # OpenVINO writes an unknown rank as it writes a scalar: without dims.
        # Where our inference does not know all sizes, that of OpenVINO may have known nothing.
        if inferred.is_static:
            text = f"[] (a scalar, or an unknown rank), inference gives {shape_text(inferred.shape)}"
            yield port.finding(code if is_static else codes.NO_DIMS, text)
    elif contradict(declared, inferred.shape):
        yield port.finding(code, f"{shape_text(declared)}, inference gives {shape_text(inferred.shape)}")


def _element(port: _Port, inferred: Fact, code: str) -> Iterator[Finding]:
    declared = port.declared.element
    if None not in (declared, inferred.element) and declared is not inferred.element:
        yield port.finding(code, f"{declared}, inference gives {inferred.element}")


def _edge(port: _Port, source: Value, there: Fact, inferred: Fact) -> Iterator[Finding]:
    """The two ports of an edge, where inference has not already decided which of them is wrong."""
    here = port.declared
    origin = f"its producer {source.node.name!r} declares"
    undecided = not contradict(there.shape, inferred.shape) and here.shape != () and there.shape != ()
    if undecided and contradict(here.shape, there.shape):
        yield port.finding(codes.EDGE_SHAPE, f"{shape_text(here.shape)}, {origin} {shape_text(there.shape)}")
    if inferred.element is None and None not in (here.element, there.element) and here.element is not there.element:
        yield port.finding(codes.EDGE_ELEMENT, f"{here.element}, {origin} {there.element}")
