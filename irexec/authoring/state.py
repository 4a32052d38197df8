"""The state of a model that is edited: its facts, inferred again only where something has changed, and snapshots that
restore it exactly.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import fields
from typing import Any

from irexec.analysis.model import with_blocking_constant
from irexec.analysis.shape_inference import Inference, ShapeInference, key_of
from irexec.analysis.validate import infer_unreached
from irexec.errors import IrexecError, ModelError
from irexec.ir.facts import Fact
from irexec.ir.graph import Input, ModelGraph, Node, Value, graphs
from irexec.ir.order import topological

Saved = tuple[dict[Value, Fact], dict[Node, IrexecError]]


class Facts:
    """The facts of every value of a model.

    Args:
        model: layers that cannot be inferred have the facts that their ports declare, as in a tolerant inference.

    Attributes:
        walk: the shape inference, which knows all facts.
        inferred: number of layers outside of bodies that have been inferred so far.
    """

    def __init__(self, model: ModelGraph) -> None:
        self.model = model
        self.walk = ShapeInference(tolerant=True)
        self.walk.graph(model, {})
        infer_unreached(self.walk, model.walk())
        self.inferred = len(model.nodes)

    @property
    def inference(self) -> Inference:
        """Facts and failures."""
        return self.walk.inference

    def __getitem__(self, value: Value) -> Fact:
        return self.inference.facts.get(value, Fact(None, None))

    def saved(self) -> Saved:
        """A copy of facts and failures."""
        return dict(self.inference.facts), dict(self.inference.failures)

    def restore(self, saved: Saved) -> None:
        """Set facts and failures to what they were."""
        facts, failures = self.inference.facts, self.inference.failures
        facts.clear()
        facts.update(saved[0])
        failures.clear()
        failures.update(saved[1])

    def update(self, changed: Collection[Node]) -> None:
        """Infer the changed layers, and all layers to whose inputs the new facts spread.

        Raises:
            NodeError, UnsupportedError: a layer that could be inferred before no longer can.
            ModelError: the graph has a cycle.
        """
        order, stuck = topological(self.model)
        if stuck:
            names = ", ".join(repr(node.name) for node in stuck[:5])
            raise ModelError(f"layers {names} are on or after a cycle")
        moved: set[Value] = set()
        for node in order:
            if node in changed or any(value in moved for value in node.inputs):
                moved |= self.infer(node)

    def infer(self, node: Node) -> set[Value]:
        """Infer one layer again; the outputs that have other facts than before."""
        facts, failures = self.inference.facts, self.inference.failures
        before = [facts.get(value) for value in node.outputs]
        nodes = list(with_bodies(node))
        failed = {inner: failures.pop(inner) for inner in nodes if inner in failures}
        self.inferred += 1
        self.walk.node(node)
        infer_unreached(self.walk, nodes)
        error = next((failures[inner] for inner in nodes if inner in failures and inner not in failed), None)
        if error is not None:
            raise with_blocking_constant(node, error)
        return {value for value, old in zip(node.outputs, before, strict=True) if not _same(old, facts.get(value))}


def _same(one: Fact | None, other: Fact | None) -> bool:
    return one is other or (one is not None and other is not None and key_of([one]) == key_of([other]))


def with_bodies(node: Node) -> Iterator[Node]:
    yield node
    for body in node.bodies.values():
        yield from body.graph.walk()


_NODE = tuple(each.name for each in fields(Node) if each.name != "typed")
_INPUT, _VALUE = (tuple(each.name for each in fields(kind)) for kind in (Input, Value))


class _Fields:
    """The fields of an object; contents of lists and dictionaries are kept beside the object that contains them."""

    __slots__ = ("_contents", "_owner", "_values")

    def __init__(self, owner: Any, names: tuple[str, ...]) -> None:
        self._owner = owner
        self._values = tuple([(name, getattr(owner, name)) for name in names])
        self._contents = tuple([(v, v.copy()) for _, v in self._values if isinstance(v, list | dict)])

    def restore(self) -> None:
        for container, content in self._contents:
            container.clear()
            container.extend(content) if isinstance(container, list) else container.update(content)
        for name, value in self._values:
            setattr(self._owner, name, value)


def _fields_of(node: Node) -> list[_Fields]:
    """The fields of a node, and those of its ports and bodies."""
    parts = [_Fields(node, _NODE)]
    parts += [_Fields(port, _INPUT) for port in node.ports]
    parts += [_Fields(value, _VALUE) for value in node.outputs]
    return parts + [_Fields(body, ("graph", "port_maps", "back_edges")) for body in node.bodies.values()]


def content_of(node: Node) -> tuple[Any, ...]:
    """Everything of a node on which its facts depend, besides the facts of its inputs; bodies are part of it."""
    bodies = tuple(
        [
            (name, body.graph, tuple(body.graph.nodes), tuple(map(_port_map, body.port_maps)), tuple(body.back_edges))
            for name, body in node.bodies.items()
        ]
    )
    own = (node.id, node.type, node.version, tuple(node.attributes.items()), node.constant)
    return (*own, node.inputs, tuple(node.outputs), bodies)


def _port_map(entry: Any) -> tuple[Any, ...]:
    return entry.kind, entry.external, entry.internal, tuple(entry.attributes.items())


class Snapshot:
    """The state of a model.

    Args:
        model: stays the same object, and so do its layers; what is taken back are their contents.
    """

    def __init__(self, model: ModelGraph) -> None:
        self._fields = [_Fields(graph, tuple(vars(graph))) for graph in graphs(model)]
        self._contents: dict[Node, tuple[Any, ...]] = {}
        for node in model.walk():
            self._fields += _fields_of(node)
            self._contents[node] = content_of(node)

    def restore(self) -> None:
        """Take the model back."""
        for each in self._fields:
            each.restore()

    def __contains__(self, node: Node) -> bool:
        return node in self._contents

    def changed(self, model: ModelGraph) -> set[Node]:
        """Layers outside of bodies whose facts may have changed since, other than by their inputs; new ones too."""
        return {node for node in model.nodes if any(map(self._has_changed, with_bodies(node)))}

    def _has_changed(self, node: Node) -> bool:
        # No content is None.
        return self._contents.get(node) != content_of(node)
