"""The exact rewrites of the compiler, written back as layers."""

from __future__ import annotations

from irexec.analysis.builder import packed
from irexec.authoring.editing import Editing
from irexec.compile.graph import CompileGraph, CompileValue, Operation
from irexec.compile.lower import Sources, lower
from irexec.compile.passes import optimize as run_passes
from irexec.compile.rewriting import Rewriting
from irexec.ir.graph import Node, Value
from irexec.ir.order import needed

EXACT = ("remove no-ops", "merge duplicates", "merge transposes")
"""The passes whose results are the same bit by bit, and are operations of IR."""


def optimize(editing: Editing) -> None:
    """Rewrite the layers outside of bodies; see Editor.optimize."""
    before = needed(editing.model)
    _Rewritten(editing).write_back()
    editing.drop_unneeded(before)


class _Rewritten:
    """The compile graph of a model after the passes, and the layers that its operations are."""

    def __init__(self, editing: Editing) -> None:
        self._editing = editing
        sources: Sources = {}
        self._graph: CompileGraph = lower(editing.model, editing.facts.inference, sources)
        self._nodes: dict[Operation, Node] = {operation: operation.node for operation in self._graph}
        self._constants = {id(source): node.outputs[0] for node, source in sources.items()}
        self._values: dict[CompileValue, Value] = {}
        for parameter, value in zip(editing.model.parameters, self._graph.inputs, strict=True):
            self._values[value] = parameter.outputs[0]
        self._sources = sources
        run_passes(self._graph, Rewriting(), EXACT)

    def write_back(self) -> None:
        for operation in self._graph.order():
            node = self._nodes.get(operation)
            inputs = [self._value(value) for value in operation.inputs]
            if node is None:
                made = self._emitted(operation, inputs)
            else:
                made = tuple(node.outputs)
                ports = [port for port in node.ports if port.source is not None]
                for port, value in zip(ports, inputs, strict=True):
                    port.source = value
            self._values |= dict(zip(operation.outputs, made, strict=False))
        for result, target in zip(self._editing.model.results, self._graph.targets, strict=True):
            self._give(result, self._value(target))

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
