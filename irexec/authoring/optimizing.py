"""Exact rewrites, written back as layers: constants are folded, weights are decompressed, and the compiler rewrites."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from irexec.analysis.attributes import typed_attributes
from irexec.analysis.builder import packed
from irexec.analysis.constant_layers import constant_layers, gives_the_same, leaves
from irexec.analysis.evaluate import evaluate
from irexec.authoring.editing import Editing
from irexec.compile.graph import CompileGraph, CompileValue, Operation
from irexec.compile.lower import Sources, lower
from irexec.compile.passes import optimize as run_passes
from irexec.compile.passes.recognise_quantised_values import write_fake_quantize
from irexec.compile.rewriting import Rewriting
from irexec.errors import InputError
from irexec.ir.constants import constant_value
from irexec.ir.graph import Input, Node, Value
from irexec.ir.order import needed
from irexec.messages import counted
from irexec.schema.attributes import ElementTypes
from irexec.schema.registry import resolve

_LARGEST_GROWTH = 1 << 20
"""Number of bytes by which a folded constant may be larger than the constants that it is computed from."""


def fold(editing: Editing) -> None:
    """Compute what depends on constants alone, and what shape inference knows; see Editor.fold."""
    _replace_all(editing, _computed(editing), Evaluation(editing).array)
    _replace_all(editing, _known(editing), lambda value: np.asarray(editing.facts[value].known))


def is_folded(editing: Editing) -> bool:
    """Whether fold would leave the model as it is."""
    return not _computed(editing) and not _known(editing)


def _computed(editing: Editing) -> list[Value]:
    """Values of layers that depend on constants alone, unless a constant of them takes much more memory."""
    computed = constant_layers(editing.model)
    return [value for value in _frontier(editing, computed) if _is_small(editing, value, computed)]


def decompress(editing: Editing) -> None:
    """Compute weights that are stored in fewer bits; see Editor.decompress."""
    computed = constant_layers(editing.model)
    values = [value for value in _frontier(editing, computed) if _is_compressed(editing, value, computed)]
    if not _replace_all(editing, values, Evaluation(editing).array):
        raise InputError("the model has no compressed weights")


def _frontier(editing: Editing, computed: set[Node]) -> list[Value]:
    """The values of computed layers that others read."""
    read = [value for node in editing.model.nodes if node not in computed for value in node.inputs]
    return list(dict.fromkeys(value for value in read if value is not None and value.node in computed))


def _known(editing: Editing) -> list[Value]:
    """Values known from shape inference, and read by layers whose outputs are not known."""
    folds = functools.cache(functools.partial(_is_known, editing))
    found: dict[Value, None] = {}
    for node in editing.model.nodes:
        if node.outputs and all(folds(value) for value in node.outputs):
            continue
        read = (value for value in node.inputs if value is not None and _may_fold(value.node))
        found |= dict.fromkeys(value for value in read if folds(value))
    return list(found)


def _is_known(editing: Editing, value: Value) -> bool:
    return editing.facts[value].known is not None and not _reads_compressed(editing, value)


def _may_fold(node: Node) -> bool:
    return node.type not in ("Parameter", "Result") and node.constant is None and gives_the_same(node)


def _is_compressed(editing: Editing, value: Value, computed: set[Node]) -> bool:
    """Whether a value of floats is computed from constants of fewer bits."""
    element = editing.facts[value].element
    if element is None or not element.is_float:
        return False
    held = [node.constant for node in leaves(value, computed)]
    return any(c is not None and c.element.bits < element.bits for c in held)


def _reads_compressed(editing: Editing, value: Value) -> bool:
    """Whether a value of floats is computed from weights of fewer bits: in f16 it would be rounded on the way."""
    element = editing.facts[value].element
    if element is None or not element.is_float:
        return False
    waiting, seen = [value.node], {value.node}
    while waiting:
        node = waiting.pop()
        if node.constant is not None and node.constant.element.bits < element.bits:
            return True
        # ShapeOf reads the sizes alone.
        sources = [] if node.type == "ShapeOf" else [source.node for source in node.inputs if source is not None]
        waiting += [source for source in sources if source not in seen]
        seen.update(sources)
    return False


def _is_small(editing: Editing, value: Value, computed: set[Node]) -> bool:
    fact = editing.facts[value]
    held = [node.constant.size for node in leaves(value, computed) if node.constant is not None]
    if not fact.is_static or fact.element is None:
        return True
    return not _is_compressed(editing, value, computed) and fact.nbytes - sum(held) <= _LARGEST_GROWTH


def _replace_all(editing: Editing, values: list[Value], array: Callable[[Value], np.ndarray]) -> int:
    """Put constants in the place of values; the number of values."""
    before = needed(editing.model)
    readers: dict[Value, list[Input]] = {value: [] for value in values}
    for port in (port for node in editing.model.nodes for port in node.ports):
        if port.source in readers:
            readers[port.source].append(port)
    made: list[Node] = []
    for value in values:
        element = editing.facts[value].element
        assert element is not None
        constant = editing.add.raw_constant(packed(array(value).copy(), element), f"{value.label}/folded")
        for port in readers[value]:
            port.source = constant
        editing.move_names(value, constant)
        made.append(constant.node)
    gone = editing.drop_unneeded(before)
    for value, node in zip(values, made, strict=True):
        if value.node in gone and len(value.node.outputs) == 1:
            node.name = value.node.name
    return len(values)


class Evaluation:
    """Evaluates layers of constants, each once."""

    def __init__(self, editing: Editing) -> None:
        self._editing = editing
        self._done: dict[Value, np.ndarray] = {}

    def array(self, value: Value) -> np.ndarray:
        """The array of a value that depends on constants alone."""
        waiting = [value.node]
        while waiting:
            node = waiting[-1]
            missing = [v.node for v in node.inputs if v is not None and v not in self._done]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if node.outputs and node.outputs[0] not in self._done:
                self._done |= dict(zip(node.outputs, self._computed(node), strict=False))
        return self._done[value]

    def _computed(self, node: Node) -> tuple[np.ndarray, ...]:
        if node.constant is not None:
            return (constant_value(node.constant),)
        sources = [value for value in node.inputs if value is not None]
        facts = self._editing.facts
        definition = resolve(node.type, node.version)
        arguments = typed_attributes(node, definition).require()
        if definition.elements_parameter is not None:
            arguments[definition.elements_parameter] = ElementTypes(facts[value].element for value in sources)
        inputs = [self._done[value] for value in sources]
        return evaluate(definition, inputs, arguments, [facts[value] for value in node.outputs])


EXACT = ("remove no-ops", "merge duplicates", "merge transposes")
"""The passes whose results are the same bit by bit, and are operations of IR."""


def optimize(editing: Editing) -> None:
    """Rewrite the layers outside of bodies; see Editor.optimize."""
    _rewrite(editing, lambda graph, rewriting: run_passes(graph, rewriting, EXACT))


def fake_quantize(editing: Editing) -> str:
    """Replace QuantizeLinear and DequantizeLinear in primitives by FakeQuantize; see Editor.fake_quantize. Returns a
    note."""
    before = sum(node.type == "FakeQuantize" for node in editing.model.nodes)
    _rewrite(editing, write_fake_quantize)
    made = sum(node.type == "FakeQuantize" for node in editing.model.nodes) - before
    if not made:
        raise InputError("the model has no QuantizeLinear with its DequantizeLinear in 8 bits")
    return f"{counted(made, 'FakeQuantize layer')}; a value halfway between two levels may get the other one"


def _rewrite(editing: Editing, change: Callable[[CompileGraph, Rewriting], object]) -> None:
    before = needed(editing.model)
    replaced = _Rewritten(editing, change).write_back()
    for node in editing.drop_unneeded(before) & replaced.keys():
        replaced[node].name = node.name


class _Rewritten:
    """The compile graph of a model after a change, and the layers that its operations are."""

    def __init__(self, editing: Editing, change: Callable[[CompileGraph, Rewriting], object]) -> None:
        self._editing = editing
        sources: Sources = {}
        self._graph: CompileGraph = lower(editing.model, editing.facts.inference, sources)
        self._nodes: dict[Operation, Node] = {operation: operation.node for operation in self._graph}
        self._constants = {id(source): node.outputs[0] for node, source in sources.items()}
        self._values: dict[CompileValue, Value] = {}
        for parameter, value in zip(editing.model.parameters, self._graph.inputs, strict=True):
            self._values[value] = parameter.outputs[0]
        self._sources = sources
        change(self._graph, Rewriting())

    def write_back(self) -> dict[Node, Node]:
        """Make the operations layers; returns the last new layer for each that it replaces."""
        replaced: dict[Node, Node] = {}
        for operation in self._graph.order():
            node = self._nodes.get(operation)
            inputs = [self._value(value) for value in operation.inputs]
            if node is None:
                made = self._emitted(operation, inputs)
                self._editing.move_names(operation.node.outputs[0], made[0])
                replaced[operation.node] = made[0].node
            else:
                made = tuple(node.outputs)
                ports = [port for port in node.ports if port.source is not None]
                for port, value in zip(ports, inputs, strict=True):
                    port.source = value
            self._values |= dict(zip(operation.outputs, made, strict=False))
        for result, target in zip(self._editing.model.results, self._graph.targets, strict=True):
            self._give(result, self._value(target))
        return replaced

    def _emitted(self, operation: Operation, inputs: list[Value]) -> tuple[Value, ...]:
        definition = operation.definition
        assert definition is not None and operation.chain is None
        attributes = definition.ungrouped(operation.attributes)
        known = {attribute.parameter for attribute in definition.attributes}
        made = self._editing.add.emit(
            definition.type, *inputs, version=definition.version, name=operation.node.name,
            **{name: value for name, value in attributes.items() if name in known},
        )  # fmt: skip
        return made if isinstance(made, tuple) else (made,)

    def _value(self, value: CompileValue) -> Value:
        if value not in self._values:
            assert value.constant is not None
            found = self._constants.get(id(value.constant))
            if found is None:
                array = packed(value.constant.array(), value.constant.element)
                found = self._editing.add.raw_constant(array, value.name or None)
            self._values[value] = found
        return self._values[value]

    def _give(self, result: Node, value: Value) -> None:
        """Let a Result give a value, unless the names of the output would be lost to another one."""
        source = result.inputs[0]
        if source is value or source is None:
            return
        is_taken = value.node.type == "Parameter" or any(
            node.type == "Result" for node, _ in self._editing.readers(value)
        )
        if not is_taken:
            result.ports[0].source = value
            if not source.names:
                value.names = value.names or [source.label]
            self._editing.move_names(source, value)
