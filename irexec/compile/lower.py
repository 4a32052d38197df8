"""From a layer graph and the facts of its values to a compile graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irexec.analysis.attributes import typed_attributes
from irexec.analysis.evaluate import as_tuple, rounded
from irexec.analysis.shape_inference import Inference
from irexec.backend.constants import ConstantSource
from irexec.compile.errors import located
from irexec.compile.graph import CompileGraph, CompileValue, LoweredBody, Operation, constant_value
from irexec.compile.rewriting import create
from irexec.dtypes.elements import Element
from irexec.errors import ModelError, NodeError, OpError, UnsupportedError
from irexec.ir import graph as ir
from irexec.ir.constants import size_problem
from irexec.ir.facts import Fact
from irexec.ir.order import topological
from irexec.schema.attributes import ElementTypes, Runner
from irexec.schema.opdef import OpDef
from irexec.schema.registry import resolve

Sources = dict[ir.Node, ConstantSource]
"""The constants that were lowered already: every plan of a model reads the same ones."""


def lower(
    graph: ir.Graph,
    inference: Inference,
    sources: Sources,
    targets: Sequence[ir.Value] | None = None,
    declared: Mapping[ir.Value, Element] | None = None,
) -> CompileGraph:
    """The compile graph of ``targets`` (by default the Results) and of everything that has an effect.

    What tolerant inference could not infer is left out: an Assign after it has no effect. Targets are converted to the
    element types of ``declared``.

    Raises:
        NodeError, UnsupportedError, ModelError: a target depends on what cannot be computed.
    """
    wanted = [_source(node) for node in graph.results] if targets is None else list(targets)
    lowered = _Lowering(graph, inference, sources).lower(wanted)
    if declared:
        lowered.targets = _converted(lowered, [declared.get(value) for value in wanted])
    return lowered


def _converted(graph: CompileGraph, elements: Sequence[Element | None]) -> list[CompileValue]:
    """The targets of a graph in these element types; None for any."""
    made: dict[CompileValue, CompileValue] = {}
    for value, element in zip(graph.targets, elements, strict=True):
        if (
            element is not None
            and value.producer is not None
            and value.fact.element not in (None, element)
            and value not in made
        ):
            made[value] = create(
                graph, "Convert", "opset1", [value], {"destination_type": element}, [value.producer]
            ).output
    return [made.get(value, value) for value in graph.targets]


def _output(parameter: ir.Node) -> ir.Value:
    if not parameter.outputs:
        raise ModelError(f"layer {parameter.id} {parameter.name!r} (Parameter) has no output")
    return parameter.outputs[0]


def _source(result: ir.Node) -> ir.Value:
    if not result.inputs or result.inputs[0] is None:
        raise ModelError(f"layer {result.id} {result.name!r} (Result) has no input")
    return result.inputs[0]


class _Lowering:
    def __init__(self, graph: ir.Graph, inference: Inference, sources: Sources) -> None:
        self.source, self.inference, self.sources = graph, inference, sources
        self.values: dict[ir.Value, CompileValue] = {}

    def lower(self, targets: Sequence[ir.Value]) -> CompileGraph:
        order = self._needed(targets)
        graph = CompileGraph([self._value(_output(node)) for node in self.source.parameters])
        for node in order:
            if node.type == "Constant":
                self._constant(node)
            elif node.type != "Parameter":
                graph.insert(self._operation(node))
        graph.targets = [self.values[value] for value in targets]
        return graph

    def _needed(self, targets: Sequence[ir.Value]) -> list[ir.Node]:
        order, stuck = topological(self.source)
        blocked = self.inference.blocked(self.source)
        for value in targets:
            if value.node in blocked:
                raise blocked[value.node]
        wanted = {value.node for value in targets} | (set(self.source.sinks) - set(blocked))
        if stuck and wanted & set(stuck):
            raise ModelError(f"layers {', '.join(repr(n.name) for n in stuck[:5])} are on or after a cycle")
        for node in reversed(order):
            if node in wanted:
                wanted.update(value.node for value in node.inputs if value is not None)
        return [node for node in order if node in wanted]

    def _value(self, value: ir.Value) -> CompileValue:
        made = self.values[value] = CompileValue(self.inference.facts[value], index=value.index, name=value.name)
        return made

    def _constant(self, node: ir.Node) -> None:
        value = node.outputs[0]
        if node not in self.sources:
            self.sources[node] = _constant_source(node, self.inference.facts[value])
        self.values[value] = constant_value(self.sources[node], node.name)

    def _operation(self, node: ir.Node) -> Operation:
        definition = _definition(node)
        facts = [Fact(None, None) if value is None else self.inference.facts[value] for value in node.inputs]
        try:
            definition.check_input_count(len(facts))
            attributes = typed_attributes(node, definition).require()
        except OpError as error:
            raise NodeError(
                f"layer {node.id} {node.name!r} ({node.type}): {error}", node=node.name, reason=str(error)
            ) from error
        if definition.elements_parameter is not None:
            attributes[definition.elements_parameter] = ElementTypes(fact.element for fact in facts)
        inputs = [self.values[value] for value in node.inputs if value is not None]
        outputs = [self._value(value) for value in node.outputs]
        bodies = {
            name: self._body(node, node.bodies[name]) for name, kind in definition.injected.items() if kind is Runner
        }
        return Operation(definition, attributes, inputs, outputs, node, (node,), len(inputs), bodies=bodies)

    def _body(self, node: ir.Node, body: ir.Body) -> LoweredBody:
        lowered = lower(body.graph, self.inference, self.sources)
        lowered.is_body = True
        return LoweredBody(node, body, lowered)


def _definition(node: ir.Node) -> OpDef:
    try:
        return resolve(node.type, node.version)
    except UnsupportedError as error:
        raise UnsupportedError(f"layer {node.id} {node.name!r}: {error}") from None


def _constant_source(node: ir.Node, fact: Fact) -> ConstantSource:
    """The constant of a layer, read and unpacked each time it is asked for; the mapped .bin is all that is held."""
    definition = _definition(node)
    attributes: dict[str, Any] = typed_attributes(node, definition).require() | dict.fromkeys(
        definition.injected, node.constant
    )

    def compute() -> np.ndarray:
        array = rounded(as_tuple(located(node, definition, [], attributes))[0], fact.element)
        array.flags.writeable = False
        return array

    constant = node.constant
    is_sound = constant is not None and constant.is_readable and size_problem(constant) is None
    if constant is None or not is_sound or fact.element is None or not fact.is_static:
        # Raises for one that is not sound, before anything is decided by its shape.
        array = compute()
        return ConstantSource(fact.element or _element(node), array.shape, compute)
    source = ConstantSource(fact.element, constant.shape, compute)
    source.raw = constant
    return source


def _element(node: ir.Node) -> Any:
    raise ModelError(f"layer {node.id} {node.name!r} (Constant) has no element type")
