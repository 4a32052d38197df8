"""Checks of layers: their attributes, ports and weights, and layers that are refused.

Each layer by itself: its type and version, its attributes, and whether its outputs can be inferred from its
inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from irexec.analysis import version_10
from irexec.analysis.attributes import typed_attribute, typed_attributes
from irexec.analysis.shape_inference import UNKNOWN, Inference
from irexec.errors import IrexecError, NodeError, UnsupportedError
from irexec.ir import codes
from irexec.ir.constants import Constant, constant_blocks, size_problem
from irexec.ir.dims import contradict, shape_text
from irexec.ir.facts import Fact
from irexec.ir.findings import Finding, at_the_first, in_model
from irexec.ir.graph import ModelGraph, Node, Value, graphs
from irexec.ir.order import readers
from irexec.schema.registry import is_known_type, opset_number, resolve

# A problem that many layers of a model share is reported once, at the first of them.
_REPORTED_ONCE = (
    codes.UNKNOWN_TYPE,
    codes.UNKNOWN_VERSION,
    codes.UNKNOWN_ATTRIBUTE,
    codes.OWN_OPERATION,
    codes.UNREAD_OPERATION,
)


OWN_NAMESPACES = ("irexec", "onednn")
"""Namespaces of operations that OpenVINO does not have."""


def refused_layers(model: ModelGraph) -> list[Node]:
    """The layers for which OpenVINO refuses the model: of operations of irexec alone, and those with IR110."""
    return [node for node in model.walk() if node.version in OWN_NAMESPACES or _is_unread(node)]


def _is_unread(node: Node) -> bool:
    try:
        return resolve(node.type, node.version).unread
    except UnsupportedError:
        return False


def layer_findings(model: ModelGraph, inference: Inference) -> Iterator[Finding]:
    """Unknown types and versions, wrong attributes, and inputs that do not fit.

    A layer that already has an error is not reported again because it cannot be inferred.
    """
    damaged = {(f.layer_id, f.layer_name) for graph in graphs(model) for f in graph.problems if f.severity == "error"}
    repeated: dict[tuple[str, str], list[Finding]] = {}
    for node in model.walk():
        found = list(_schema_findings(node))
        for finding in found:
            if finding.code in _REPORTED_ONCE:
                repeated.setdefault((finding.code, finding.message), []).append(finding)
            else:
                yield finding
        error = inference.failures.get(node)
        explained = (node.id, node.name) in damaged or any(finding.severity == "error" for finding in found)
        if error is not None and not explained and not isinstance(error, UnsupportedError):
            reason = error.reason if isinstance(error, NodeError) else str(error)
            inputs = ("nothing" if value is None else str(inference.facts.get(value, "?")) for value in node.inputs)
            yield node.finding(codes.WRONG_INPUTS, f"{reason}; inputs {', '.join(inputs) or 'none'}")
    yield from map(at_the_first, repeated.values())


def _schema_findings(node: Node) -> Iterator[Finding]:
    try:
        definition = resolve(node.type, node.version)
    except UnsupportedError as error:
        yield _unsupported(node, str(error))
        return
    # oneDNN defines its own; whoever writes one does not mean OpenVINO.
    if definition.since == "irexec":
        yield node.finding(codes.OWN_OPERATION, f"{node.type} of {definition.since} is an operation of irexec alone")
    if definition.unread:
        text = f"{node.type} of {definition.since} is an operation that OpenVINO writes, and its reader refuses"
        yield node.finding(codes.UNREAD_OPERATION, text)
    for problem in typed_attributes(node, definition).problems:
        yield node.finding(problem.code, problem.message)


def _unsupported(node: Node, reason: str) -> Finding:
    if is_known_type(node.type):
        return node.finding(codes.UNKNOWN_VERSION, reason)
    if node.version and opset_number(node.version) is None:
        reason = f"{node.type} is an operation of the extension {node.version!r}, which irexec does not have"
    return node.finding(codes.UNKNOWN_TYPE, f"{reason}; its outputs are taken as declared")


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
                    declared = _Port(node, "input", node.input_id(index), port.line, port.fact)
                    yield from _input(declared, port.source, inferred, is_static)


def _agrees(declared: Fact | None, inferred: Fact) -> bool:
    """Whether a port declares exactly what inference gives, as nearly all ports do."""
    return declared is None or (declared.element is inferred.element and declared.shape == inferred.shape)


def _without_type(model: ModelGraph, inference: Inference) -> set[Value]:
    """Values whose declared element type does not matter, as Model Optimizer of 2020 and 2021 wrote some.

    Further outputs that nobody uses, such as the indices of MaxPool-8, had the type of the first one; and outputs of a
    model of version 10 the type in which they are given out.
    """
    users = readers(model.walk())
    free = {value for node in model.walk() for value in node.outputs[1:] if value not in users}
    if model.version == version_10.VERSION:
        for value, nodes in users.items():
            given_out = version_10.output_element(inference.facts.get(value, UNKNOWN).element)
            is_given_out = value.fact is not None and value.fact.element is given_out
            if is_given_out and all(node.type == "Result" for node in nodes):
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


def refused_findings(model: ModelGraph, inference: Inference) -> Iterator[Finding]:
    """Layers that OpenVINO refuses when it reads or compiles the model."""
    for node in model.walk():
        if node.type in _CHECKS and node not in inference.failures:
            facts = [UNKNOWN if value is None else inference.facts.get(value, UNKNOWN) for value in node.inputs]
            reason = _CHECKS[node.type](node, facts)
            if reason is not None:
                yield node.finding(codes.WRONG_INPUTS, reason)


def _parts(node: Node, facts: list[Fact]) -> str | None:
    """OpenVINO gives the layer no outputs, which other layers then cannot read."""
    shape = facts[2].shape if len(facts) > 2 else None
    is_known = shape and isinstance(shape[0], int)
    return None if is_known else "the length of split_lengths, and so the number of outputs, is not known"


def _signal(node: Node, facts: list[Fact]) -> str | None:
    """OpenVINO transforms signals of three types. Source: openvino ``fft_base.cpp``."""
    element = facts[0].element
    is_taken = element is None or element.name in ("bf16", "f16", "f32")
    return None if is_taken else f"data is {element}, expected bf16, f16 or f32"


def _mapping(node: Node, facts: list[Fact]) -> str | None:
    """OpenVINO refuses an axes_mapping that Broadcast-3 would not read. Source: openvino ``broadcast.cpp``."""
    is_read = typed_attribute(node, "mode") == "explicit" or resolve(node.type, node.version).since == 1
    return None if is_read or len(facts) < 3 else "axes_mapping is given, though mode is not explicit"


_CHECKS: Mapping[str, Callable[[Node, list[Fact]], str | None]] = {
    "VariadicSplit": _parts,
    "Broadcast": _mapping,
    **dict.fromkeys(("DFT", "IDFT", "RDFT", "IRDFT"), _signal),
}


def constant_findings(model: ModelGraph, inference: Inference) -> Iterator[Finding]:
    """Sizes, overlaps and unused bytes, without reading any weight."""
    constants = [(node, node.constant) for node in model.walk() if node.constant is not None]
    for node, constant in constants:
        wrong = size_problem(constant)
        if wrong is not None:
            yield node.finding(codes.CONSTANT_SIZE, wrong)
    ranges = sorted(
        ((c.offset, c.offset + c.size, node) for node, c in constants if c.offset is not None and c.size > 0),
        key=lambda range: range[:2],
    )
    yield from _overlaps(ranges)
    if model.bin_path is not None or model.bin_size:
        yield from _unused(model.bin_size, ranges)


def _overlaps(ranges: list[tuple[int, int, Node]]) -> Iterator[Finding]:
    """Constants that share exactly the same bytes are one constant written once; to share some of them is damage."""
    last: tuple[int, int, Node] | None = None
    for start, stop, node in ranges:
        if last is not None and start < last[1] and (start, stop) != last[:2]:
            text = f"bytes {start}..{stop} overlap bytes {last[0]}..{last[1]} of layer {last[2].id} {last[2].name!r}"
            yield node.finding(codes.WEIGHTS_OVERLAP, text)
        if last is None or stop > last[1]:
            last = (start, stop, node)


def _unused(size: int, ranges: list[tuple[int, int, Node]]) -> Iterator[Finding]:
    gaps, covered = [], 0
    for start, stop, _ in ranges:
        if start > covered:
            gaps.append((covered, start))
        covered = max(covered, stop)
    # The writer gives constants without elements a file with one byte.
    if covered < size and size > 1:
        gaps.append((covered, size))
    if gaps:
        total = sum(stop - start for start, stop in gaps)
        text = f"{total} of the {size} bytes of the .bin belong to no constant, the first at {gaps[0][0]}..{gaps[0][1]}"
        yield in_model(codes.WEIGHTS_UNUSED, text)


def value_findings(model: ModelGraph, found: Sequence[Finding]) -> Iterator[Finding]:
    """NaN, infinities and values beyond f16 in the weights.

    Every constant that the .bin has, and of which no error is found yet, is read in blocks.

    Before that, all bytes of the .bin are compared with what the .xml says of them, unless they are known to be others.
    """
    if model.check_bin is not None and all(finding.code != codes.CHANGED_BIN for finding in found):
        try:
            yield from model.check_bin(whole=True)
        except IrexecError as error:
            yield in_model(codes.WEIGHTS_UNREADABLE, str(error))
            return
    damaged = {(finding.line, finding.layer_id, finding.layer_name) for finding in found if finding.severity == "error"}
    for node in model.walk():
        if node.constant is None or not node.constant.is_readable or (node.line, node.id, node.name) in damaged:
            continue
        try:
            values = _counted(node.constant)
        except IrexecError as error:
            yield node.finding(codes.WEIGHTS_UNREADABLE, str(error))
            continue
        count = node.constant.count
        if values.nans or values.infinities:
            text = f"contains {values.nans} NaN and {values.infinities} infinities among {count} values"
            yield node.finding(codes.WEIGHTS_NOT_FINITE, text)
        if values.beyond_f16:
            zeros = f", {values.zero_in_f16} become 0" if values.zero_in_f16 else ""
            yield node.finding(
                codes.WEIGHTS_BEYOND_F16, f"{values.beyond_f16} of {count} values become infinite in f16{zeros}"
            )


@dataclass
class _Counts:
    """Numbers of NaN and infinite values of a constant, and of finite values that f16 makes infinite or 0."""

    nans: int = 0
    infinities: int = 0
    beyond_f16: int = 0
    zero_in_f16: int = 0


def _counted(constant: Constant) -> _Counts:
    """The counts of a constant. A constant of any type is read, which shows that it is readable."""
    found = _Counts()
    for block in constant_blocks(constant):
        if not constant.element.is_float:
            continue
        with np.errstate(over="ignore", under="ignore"):
            half = block.astype(np.float16)
        infinite = np.isinf(block)
        found.nans += int(np.isnan(block).sum())
        found.infinities += int(infinite.sum())
        found.beyond_f16 += int((np.isinf(half) & ~infinite).sum())
        found.zero_in_f16 += int(((half == 0) & (block != 0)).sum())
    return found
