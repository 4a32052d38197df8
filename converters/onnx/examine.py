"""All findings of an ONNX model at once: one finding does not hide the next."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx

from converters.onnx.blocked_layout import without_blocks
from converters.onnx.checker import checker_findings, objection
from converters.onnx.declared import fact_of, fact_of_tensor
from converters.onnx.functions import overriding
from converters.onnx.graphs import own_names
from converters.onnx.inference import infer_shapes
from converters.onnx.inlining import name_of
from converters.onnx.load import Source, check_readable, parse, prepared
from converters.onnx.locations import at_value, mark
from converters.onnx.objections import Objections, WithoutValueError
from converters.onnx.onnx_values import ScoresByLabel
from converters.onnx.operators import operator_findings
from converters.onnx.structure import structure_findings
from converters.onnx.translate import MainGraph, Shapes, translate, with_path
from irexec.analysis.model import Model
from irexec.errors import ConversionError, InputError, IrexecError
from irexec.ir import onnx_codes as codes
from irexec.ir.facts import Fact
from irexec.ir.findings import Finding, in_model
from irexec.ir.graph import Value


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
        InputError: there is no such input, or a shape is invalid.
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
