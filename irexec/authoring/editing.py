"""A model while it is edited: steps that are made as a whole or not at all, with facts that are always current."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field

from irexec.analysis.builder import Builder
from irexec.analysis.model import Model
from irexec.analysis.validate import validate
from irexec.authoring.state import Facts, Saved, Snapshot, with_bodies
from irexec.errors import ModelError, NodeError, OpError
from irexec.ir.dims import join_shapes
from irexec.ir.facts import Fact
from irexec.ir.findings import Finding
from irexec.ir.graph import Graph, Node, Value
from irexec.ir.order import Names, grouped, needed
from irexec.ir.shape_text import parse_shape, write_shape
from irexec.ir.writable import unwritable
from irexec.messages import counted


@dataclass(frozen=True)
class Made:
    """A step that was made: its text, the state before it, and sentences about the model after it."""

    text: str
    snapshot: Snapshot
    facts: Saved
    errors: Counter[Finding]
    notes: list[str] = field(default_factory=list)


class Editing:
    """A model and what is known of it, between steps and during one.

    Args:
        model: it is changed in place; its layers stay the same objects.

    Attributes:
        model: the model.
        facts: facts of every value.
        made: the steps so far.

    Raises:
        ModelError: the model is damaged, so that it could not be written.
    """

    def __init__(self, model: Model) -> None:
        wrong = next(unwritable(model), None)
        if wrong is not None:
            raise ModelError(f"a damaged model cannot be edited: {wrong.placed_message}")
        self.model = model
        self.facts = Facts(model)
        self.made: list[Made] = []
        self._errors = self._error_findings()
        self._builder: Builder | None = None

    @contextmanager
    def step(self, text: str) -> Iterator[list[str]]:
        """One step: after an error in the block, and after a block that leaves a wrong model, the model is as before.

        Yields the notes of the step.

        Raises:
            NodeError, UnsupportedError: a layer that was right before would be wrong.
            ModelError: the model could not be written.
        """
        before = Made(text, Snapshot(self.model), self.facts.saved(), self._errors)
        try:
            yield before.notes
            self._settle(before)
        except BaseException:
            self._restore(before)
            raise
        finally:
            self._builder = None
        self.made.append(before)

    def undo(self, count: int = 1) -> None:
        """Take back the last ``count`` steps, and every other change since."""
        if not 0 <= count <= len(self.made):
            raise OpError(f"{counted(count, 'step')} cannot be undone: {len(self.made)} made")
        for _ in range(count):
            self._restore(self.made.pop())

    def _restore(self, state: Made) -> None:
        state.snapshot.restore()
        self.facts.restore(state.facts)
        self._errors = state.errors

    @property
    def add(self) -> Builder:
        """Makes new layers of the model on its values; they stand where their readers are once the step is done."""
        if self._builder is None:
            self._builder = _Additions(self.model, self.facts)
        return self._builder

    def readers(self, value: Value, graph: Graph | None = None) -> list[tuple[Node, int]]:
        """The layers that read a value, each with the index of its input."""
        nodes = (graph or self.model).nodes
        return [(node, i) for node in nodes for i, port in enumerate(node.ports) if port.source is value]

    def replace_uses(self, old: Value, new: Value, *, graph: Graph | None = None) -> None:
        """Every reader of ``old`` reads ``new``."""
        for node, index in self.readers(old, graph):
            node.ports[index].source = new

    def move_names(self, old: Value, new: Value) -> None:
        """The tensor names of a value become those of another one."""
        old.names, new.names = [], [*old.names, *(name for name in new.names if name not in old.names)]

    def drop(self, nodes: Collection[Node], graph: Graph | None = None) -> None:
        """Take layers out of a graph."""
        gone, where = set(nodes), graph or self.model
        where.nodes = [node for node in where.nodes if node not in gone]

    def drop_unneeded(self, before: Set[Node], graph: Graph | None = None) -> set[Node]:
        """Take out layers, except Parameters, that are no longer needed; returns these layers."""
        gone = {node for node in before - needed(graph or self.model) if node.type != "Parameter"}
        self.drop(gone, graph)
        return gone

    def adopt(self, nodes: Sequence[Node]) -> None:
        """Make nodes layers of the model: ids are new, layers whose name is taken get another, and tensors lose it."""
        taken = {name for node in self.model.nodes for value in node.outputs for name in value.names}
        names = Names(node.name for node in self.model.nodes)
        number = max((node.id for node in self.model.nodes), default=-1) + 1
        for offset, node in enumerate(nodes):
            node.id, node.name = number + offset, names.free(node.name)
            for value in node.outputs:
                value.names = [name for name in value.names if name not in taken]
        self.model.nodes = [*self.model.nodes, *nodes]
        self._builder = None
        self.settle_facts(*nodes)

    def free_tensor_name(self, wanted: str) -> str:
        """A tensor name that no tensor has."""
        return Names(name for node in self.model.nodes for value in node.outputs for name in value.names).free(wanted)

    def settle_facts(self, *nodes: Node) -> None:
        """Infer layers that this step has changed, before new layers are added on their outputs."""
        for node in nodes:
            self.facts.infer(node)

    def _settle(self, before: Made) -> None:
        """Bring everything that follows from a step up to date, and check the model."""
        _place(self.model, [node for node in self.model.nodes if node not in before.snapshot])
        # It parses XML, and irexec.opset, which imports this module, has none.
        from irexec.io.payload import output_names, set_output_names

        wrong = next(unwritable(self.model), None)
        if wrong is not None:
            raise ModelError(wrong.placed_message)
        changed = before.snapshot.changed(self.model)
        self.facts.update(changed)
        changed |= self._keep_variables(before.facts[0])
        _declare(self.model, before.facts[0], self.facts, {inner for node in changed for inner in with_bodies(node)})
        for result in self.model.results:
            # Leave out names of an output that its tensor has lost; without any left, it has all names of the tensor.
            names, source = output_names(result), result.inputs[0] if result.inputs else None
            if names is not None and source is not None and not set(names) <= set(source.names):
                set_output_names(result, [name for name in names if name in source.names] or source.names)
        errors = self._error_findings()
        new = next(iter(errors - before.errors), None)
        if new is not None:
            raise NodeError(new.placed_message, node=new.layer_name or "", reason=new.message)
        self._errors = errors

    def _keep_variables(self, before: Mapping[Value, Fact]) -> set[Node]:
        """Declare for variables the shapes that this step gave them, where the declared ones do not admit them and
        OpenVINO refuses the model; the changed layers. A variable without initial value has zeros of its shape."""
        changed: set[Node] = set()
        assigned = {node.attributes.get("variable_id"): node for node in self.model.sinks}
        for node in self.model.nodes:
            if node.type != "ReadValue" or "variable_shape" not in node.attributes:
                continue
            sinks = [assigned[name] for name in (node.attributes.get("variable_id"),) if name in assigned]
            shapes, given = [], []
            ports = [port for each in (node, *sinks) for port in each.ports]
            for source, fact in ((port.source, port.fact) for port in ports if port.source is not None):
                old, new = before.get(source, fact), self.facts[source].shape
                shapes.append(new)
                given += [] if old is not None and old.shape == new else [new]
            declared = parse_shape(node.attributes["variable_shape"])
            if any(write_shape(join_shapes(declared, shape)) != write_shape(declared) for shape in given):
                node.attributes["variable_shape"] = write_shape(functools.reduce(join_shapes, shapes))
                changed.add(node)
        if changed:
            self.facts.update(changed)
        return changed

    def _error_findings(self) -> Counter[Finding]:
        found = validate(self.model, inference=self.facts.inference, errors_alone=True)
        return Counter(finding for finding in found if finding.severity == "error")


class _Additions(Builder):
    """Builds on the values of a model that exists."""

    def __init__(self, model: Model, facts: Facts) -> None:
        super().__init__(model.name)
        self.graph = model
        self._inference = facts.walk
        self._names = Names(node.name for node in model.nodes)
        self._made = set(model.nodes)
        self._next_id = max((node.id for node in model.nodes), default=-1) + 1

    def _node(self, type: str, version: str, name: str, attributes: dict[str, str]) -> Node:
        node = super()._node(type, version, name, attributes)
        node.id, self._next_id = self._next_id, self._next_id + 1
        return node


def _place(graph: Graph, new: Sequence[Node]) -> None:
    """Put new layers in front of their first readers, Parameters after the other Parameters."""
    if not new:
        return
    added = set(new)
    order = [node for node in graph.nodes if node not in added]
    position: dict[Node, float] = {node: i for i, node in enumerate(order)}
    last_parameter = max((position[node] for node in order if node.type == "Parameter"), default=-1)
    readers = grouped((value.node, node) for node in graph.nodes for value in node.inputs if value is not None)
    for node in reversed(new):
        before = [position.get(reader, len(order)) for reader in readers.get(node, ())]
        position[node] = min(before, default=len(order)) - 0.5
        if node.type == "Parameter":
            position[node] = last_parameter + 0.5
        if node.type == "Result":
            position[node] = len(order)
    # Sorting is stable: new layers of one position stay in the order in which they were made.
    graph.nodes = sorted([*new, *order], key=lambda node: position[node])


def _declare(model: Model, before: dict[Value, Fact], facts: Facts, changed: Collection[Node]) -> None:
    """Declare on the ports the types and shapes that a step changed, and leave all others as they were declared."""
    now = facts.inference.facts
    moved: set[Value] = set()
    for node in model.walk():
        for value in node.outputs:
            old, new = before.get(value), now.get(value)
            if new is not None and new is not old and not _declares_same(old, new):
                value.fact = Fact(new.element, new.shape)
                moved.add(value)
    for node in model.walk():
        for port in node.ports:
            source = port.source
            if source is not None and (
                source in moved or (node in changed and not _declares_same(port.fact, source.fact))
            ):
                port.fact = source.fact


def _declares_same(one: Fact | None, other: Fact | None) -> bool:
    return one is other or (
        one is not None and other is not None and one.element is other.element and one.shape == other.shape
    )


def names_in(nodes: Iterable[Node]) -> str:
    """The names of layers in a message."""
    return ", ".join(repr(node.name) for node in nodes)
