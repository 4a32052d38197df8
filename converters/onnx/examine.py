"""All findings of an ONNX model at once, those of the package onnx included."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx
from onnx import checker

from converters.onnx.blocked_layout import without_blocks
from converters.onnx.functions import name_of, overriding
from converters.onnx.graphs import (
    Objections,
    WithoutValueError,
    at_value,
    graphs_of,
    location,
    mark,
    own_names,
    subgraphs,
)
from converters.onnx.inference import LARGEST_MESSAGE, infer_shapes
from converters.onnx.load import (
    Source,
    check_readable,
    fact_of,
    fact_of_tensor,
    is_text_form,
    parse,
    prepared,
    structure_findings,
)
from converters.onnx.operators import operator_findings
from converters.onnx.tensors import ScoresByLabel
from converters.onnx.translate import MainGraph, Shapes, translate, with_path
from irexec.analysis.model import Model
from irexec.errors import ConversionError, EngineError, InputError, IrexecError, RunTimeoutError
from irexec.ir import onnx_codes as codes
from irexec.ir.facts import Fact
from irexec.ir.findings import Finding, in_model
from irexec.ir.graph import Value

_AT_NODE = re.compile(r"\(op_type:(?P<type>[^,)]*)(?:, node name: (?P<name>[^)]*))?\): (?P<reason>.*)")
_PREFIX = re.compile(r"^(\[\w+\] |Inference error\(s\): |\(op_type:[^)]*\): )+")


def checker_findings(model: onnx.ModelProto, reason: str | None, found: Sequence[Finding]) -> list[Finding]:
    """Findings of onnx.checker; if it has none, those of the strict shape inference of onnx.

    Args:
        model: a model whose nodes are marked.
        reason: the objection of onnx.checker to the whole model.
        found: findings of irexec.
    """
    is_sound = all(finding.severity == "info" for finding in found)
    if reason is None:
        return list(_inference_findings(model)) if is_sound else []
    known = {(finding.layer_name, finding.layer_id) for finding in found if finding.layer_id is not None}
    at_nodes = list(_node_findings(model))
    if at_nodes or not is_sound:
        return [finding for finding in at_nodes if (finding.layer_name, finding.layer_id) not in known]
    return [in_model(codes.CHECKER, reason)]


def objection(model: onnx.ModelProto, source: Source) -> str | None:
    """The objection of onnx.checker to a whole model, which was read from ``source``; None without objection.

    No other function of onnx may receive a model with an objection: its C++ may crash.
    """
    is_file = isinstance(source, str | Path)
    if not is_file and model.ByteSize() > LARGEST_MESSAGE:
        return "the model is too large to be checked"
    try:
        checker.check_model(str(source) if is_file and not is_text_form(str(source)) else model)
    except Exception as error:
        # The checker is C++; its own exception classes have no common base but Exception.
        return _brief(error)
    return None


def _node_findings(model: onnx.ModelProto) -> Iterator[Finding]:
    """Objections to single nodes. A node with subgraphs cannot be checked without the graphs around it."""
    imported = {opset.domain: opset.version for opset in model.opset_import}
    for _, graph in graphs_of(model):
        context = checker.C.CheckerContext()
        context.ir_version = model.ir_version
        own = graph.opset_import if isinstance(graph, onnx.FunctionProto) else ()
        context.opset_imports = imported | {opset.domain: opset.version for opset in own}
        for node in graph.node:
            if not any(subgraphs(node)) and not any(
                (function.domain, function.name) == (node.domain, node.op_type) for function in model.functions
            ):
                try:
                    checker.check_node(node, context)
                except Exception as error:
                    # As above.
                    yield location(node).finding(codes.CHECKER, _brief(error))


def _inference_findings(model: onnx.ModelProto) -> Iterator[Finding]:
    try:
        infer_shapes(model, strict=True)
    except (EngineError, RunTimeoutError):
        # A fault of the package says nothing about the model.
        return
    except ConversionError as error:
        matches = list(_AT_NODE.finditer(str(error)))
        for match in matches:
            yield _at_node(model, match["type"], match["name"] or "", _PREFIX.sub("", match["reason"]))
        if not matches:
            yield in_model(codes.SHAPE_INFERENCE, _brief(error))


def _at_node(model: onnx.ModelProto, operator: str, name: str, reason: str) -> Finding:
    """The finding at the node that a message names, or in the model if several nodes or none have that name."""
    nodes = [
        node for _, graph in graphs_of(model) for node in graph.node if node.op_type == operator and node.name == name
    ]
    if len(nodes) == 1:
        return location(nodes[0]).finding(codes.SHAPE_INFERENCE, reason)
    return in_model(codes.SHAPE_INFERENCE, f"{operator} {name!r}: {reason}" if name else f"{operator}: {reason}")


def _brief(error: Exception) -> str:
    """The message without the text of the node that the checker appends."""
    text = str(error).split("==> Context:")[0].strip()
    return _PREFIX.sub("", " ".join(text.split())) or type(error).__name__


@dataclass(frozen=True)
class Examination:
    """The IR and the findings of an ONNX model.

    Attributes:
        model: the IR; None if the model cannot be converted.
        findings: faults of the ONNX model, in the order of its nodes.
    """

    model: Model | None
    findings: tuple[Finding, ...]


def examine(source: Source, inputs: Shapes | None = None) -> Examination:
    """Convert a model as far as possible, and report all of its faults and all obstacles to the conversion.

    Args:
        source: the model.
        inputs: as for converters.convert.

    Raises:
        ConversionError: the model cannot be read, is not an ONNX model, or calls functions in a cycle.
        InputError: the input does not exist, or a shape is invalid.
    """
    model, where, folder = parse(source)
    check_readable(model, where)
    if model is source:
        model = onnx.ModelProto()
        model.CopyFrom(source)
    reason = objection(model, source)
    mark(model)
    findings = list(structure_findings(model))
    findings += [
        at_value(codes.OVERRIDDEN_OPERATOR, "", name_of(function), "function", "the operator of that name is computed")
        for function in overriding(model)
    ]
    newer: list[str] = []
    inlined = prepared(model, where, newer.append)
    findings += [in_model(codes.NEW_OPSET, text) for text in newer]
    findings += operator_findings(inlined)
    try:
        inlined = without_blocks(inlined, folder, lambda text: findings.append(in_model(codes.UNKNOWN_BLOCKS, text)))
    except ConversionError as error:
        return Examination(None, tuple(_sorted([*findings, in_model(codes.UNSUPPORTED_USE, str(error))])))
    converted, found = _translated(inlined, folder, inputs or {}, is_checked=reason is None)
    findings += found
    findings += checker_findings(model, reason, findings)
    # Contradictions (ON2..) do not prevent the conversion.
    if converted is None and all(finding.severity != "error" or finding.code.startswith("ON2") for finding in findings):
        # A fault that only inlining causes belongs to no node of the file.
        findings += _refusal(source, inputs or {})
    return Examination(None if converted is None else with_path(converted, source, inlined), tuple(_sorted(findings)))


def _refusal(source: Source, inputs: Shapes) -> Iterator[Finding]:
    """The error of the conversion, as a finding."""
    try:
        translate(source, inputs, strict=False, warn=lambda text: None)
    except IrexecError as error:
        yield in_model(codes.UNSUPPORTED_USE, str(error))


def _translated(
    model: onnx.ModelProto, folder: Path | None, inputs: Shapes, *, is_checked: bool
) -> tuple[Model | None, list[Finding]]:
    """The IR, or None if it cannot be built, and the findings of nodes and declarations."""
    try:
        graph = _ExaminedGraph(model, folder, inputs, is_checked=is_checked)
        return graph.examined(), graph.found
    except WithoutValueError:
        # A cycle or a duplicate name, both of which are findings already.
        return None, []
    except InputError:
        raise
    except IrexecError as error:
        return None, [in_model(codes.UNSUPPORTED_USE, str(error))]


def _sorted(findings: Sequence[Finding]) -> list[Finding]:
    """Each finding once; those of the main graph by node, then those of subgraphs and functions."""
    return sorted(dict.fromkeys(findings), key=lambda f: (_path(f), -1 if f.layer_id is None else f.layer_id, f.code))


def _path(finding: Finding) -> str:
    return (finding.layer_name or "").rpartition("/")[0] if finding.layer_id is not None else ""


class _ExaminedGraph(MainGraph):
    """The main graph, translated as far as possible.

    Attributes:
        found: the findings.
    """

    def __init__(self, model: onnx.ModelProto, folder: Path | None, inputs: Shapes, *, is_checked: bool) -> None:
        self._objections = Objections()
        super().__init__(model, folder, inputs, lambda text: None, self._objections)
        self.found: list[Finding] = []
        self._model, self._is_checked = model, is_checked
        self._assumed: set[str] = set()

    def examined(self) -> Model | None:
        """The IR; None if it cannot be built."""
        self._inputs()
        self.nodes("an input of the graph")
        for name in self._assumed:
            self.values.pop(name, None)
        if not self.is_redeclared:
            self.compare_declared(self._objections)
        self.found += self._objections.findings
        self._outputs()
        complete = not self._objections.has_failed and not self.unknown and not self._assumed
        return self.finished() if complete and self.graph.output else None

    def _outputs(self) -> None:
        """Report outputs that are not tensors; outputs without a producer are findings already."""
        self.unknown |= {info.name for info in self.graph.output} - own_names(self.graph)
        for info in self.graph.output:
            value = self.values.get(info.name)
            if value is not None and not isinstance(value, Value | ScoresByLabel):
                self.found.append(at_value(codes.UNSUPPORTED_TYPE, "", info.name, "output", "it is not a tensor"))
                self.unknown.add(info.name)

    @functools.cached_property
    def _declared(self) -> dict[str, Fact]:
        graph = self._model.graph
        if self._is_checked:
            # A graph whose inference fails keeps its declared types.
            with contextlib.suppress(IrexecError):
                graph = infer_shapes(self._model).graph
        found = {info.name: fact_of(info.type.tensor_type) for info in [*graph.value_info, *graph.output]}
        return found | {tensor.name: fact_of_tensor(tensor) for tensor in graph.initializer}

    def _inputs(self) -> None:
        self.take_shapes([info.name for info in self.graph.input if info.name not in self.initializers])
        for info in self.graph.input:
            if info.name in self.initializers:
                continue
            try:
                self.values[info.name] = self.parameter(info)
            except ConversionError as error:
                reason = str(error.__cause__ or "it is not a tensor")
                self.found.append(at_value(codes.UNSUPPORTED_TYPE, "", info.name, "input", reason))
                self.unknown.add(info.name)

    def assume(self, name: str) -> None:
        """Replace the value by a Parameter of its declared or inferred type, if its element type is known."""
        fact = self._declared.get(name, Fact(None, None))
        if fact.element is None:
            super().assume(name)
        else:
            self._assumed.add(name)
            self.values[name] = self.builder.parameter(fact.element, fact.shape, name, [name])
